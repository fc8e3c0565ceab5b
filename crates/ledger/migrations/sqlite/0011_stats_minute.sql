-- What happened in each minute. Every process writes its own rows, with the minute's count so far and not with
-- what came since: written twice it says the same. Sums over the processes are what people see.

CREATE TABLE stats_minute (
    minute  INTEGER NOT NULL,
    source  TEXT    NOT NULL,
    -- What is counted, e.g. `accepted` or `attempt_dead`.
    name    TEXT    NOT NULL,
    -- Drawn anew by each process.
    replica BLOB    NOT NULL,
    count   INTEGER NOT NULL CHECK (count >= 0),

    PRIMARY KEY (minute, source, name, replica)
) STRICT, WITHOUT ROWID;
