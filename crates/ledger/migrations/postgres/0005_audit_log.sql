-- What people did: replays, redrives, discards. Written with the change it speaks of; never changed, and kept
-- when the event's row is gone.

CREATE TABLE audit_log (
    id         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT now(),
    actor      text        NOT NULL,
    action     text        NOT NULL,
    source     text        COLLATE "C",
    event_id   text        COLLATE "C",
    generation integer,
    detail     text
);

CREATE INDEX audit_log_event ON audit_log (source, event_id);
