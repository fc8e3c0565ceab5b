-- What people did: replays, redrives, discards. Written with the change it speaks of; never changed, and kept
-- when the event's row is gone.

CREATE TABLE audit_log (
    id         INTEGER PRIMARY KEY,
    at         INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000) AS INTEGER)),
    actor      TEXT    NOT NULL,
    action     TEXT    NOT NULL,
    source     TEXT,
    event_id   TEXT,
    generation INTEGER,
    detail     TEXT
) STRICT;

CREATE INDEX audit_log_event ON audit_log (source, event_id);
