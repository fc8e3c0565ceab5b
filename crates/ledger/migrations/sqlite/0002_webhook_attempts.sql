-- One row for each run that came to an end, written in the transaction that settles the event. So it is the
-- history a person reads, and the proof by which a repeated settlement knows that it was committed before.

CREATE TABLE webhook_attempts (
    source      TEXT    NOT NULL,
    event_id    TEXT    NOT NULL,
    generation  INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    owner       BLOB    NOT NULL,
    started_at  INTEGER NOT NULL,
    finished_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000) AS INTEGER)),
    -- `lost`: the owner died, and the lease was taken from it.
    outcome     TEXT    NOT NULL CHECK (outcome IN
                    ('done', 'ignored', 'retry', 'dead', 'parked', 'failed', 'lost')),
    error       TEXT,

    PRIMARY KEY (source, event_id, generation, attempt),
    FOREIGN KEY (source, event_id) REFERENCES webhook_events ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
