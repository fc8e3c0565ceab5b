-- What happened in each minute. Every replica writes its own rows, with the minute's count so far and not with
-- what came since: written twice it says the same. Sums over the replicas are what people see.

CREATE TABLE stats_minute (
    minute  timestamptz NOT NULL,
    source  text        COLLATE "C" NOT NULL,
    -- What is counted, e.g. `accepted` or `attempt_dead`.
    name    text        COLLATE "C" NOT NULL,
    -- Drawn anew by each process.
    replica bytea       NOT NULL,
    count   bigint      NOT NULL CHECK (count >= 0),

    PRIMARY KEY (minute, source, name, replica)
);
