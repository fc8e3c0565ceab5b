-- One row for each run that came to an end, written in the transaction that settles the event. So it is the
-- history a person reads, and the proof by which a repeated settlement knows that it was committed before.

CREATE TABLE webhook_attempts (
    source      text        COLLATE "C" NOT NULL,
    event_id    text        COLLATE "C" NOT NULL,
    generation  integer     NOT NULL,
    attempt     integer     NOT NULL,
    owner       bytea       NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz NOT NULL DEFAULT now(),
    -- `lost`: the owner died, and the lease was taken from it.
    outcome     text        NOT NULL CHECK (outcome IN
                    ('done', 'ignored', 'retry', 'dead', 'parked', 'failed', 'lost')),
    error       text,

    PRIMARY KEY (source, event_id, generation, attempt),
    FOREIGN KEY (source, event_id) REFERENCES webhook_events ON DELETE CASCADE
);
