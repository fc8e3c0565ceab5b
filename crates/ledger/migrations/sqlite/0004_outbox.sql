-- Follow-up jobs, written in the transaction that settles their event: both happen or neither. They wait, are
-- leased, retried and buried just as events are.

CREATE TABLE outbox (
    id              INTEGER PRIMARY KEY,
    -- Names the effect. Written twice it is one row, so a replay of the event asks for nothing twice.
    effect_key      TEXT    NOT NULL UNIQUE,
    -- The event that asked for it. No foreign key: an effect outlives the event's row.
    source          TEXT    NOT NULL,
    event_id        TEXT    NOT NULL,
    -- Who is to get it, what to do, and with what.
    target          TEXT    NOT NULL,
    kind            TEXT    NOT NULL,
    payload         BLOB    NOT NULL,
    created_at      INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000) AS INTEGER)),

    state           TEXT    NOT NULL DEFAULT 'queued' CHECK (state IN
                        ('queued', 'running', 'done', 'dead', 'discarded', 'parked')),
    attempts        INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    tries           INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_attempt_at INTEGER DEFAULT (CAST(round(unixepoch('subsec') * 1000) AS INTEGER)),
    deadline_at     INTEGER,
    lease_owner     BLOB,
    leased_at       INTEGER,
    lease_until     INTEGER,
    last_error      TEXT,
    processed_at    INTEGER,

    CONSTRAINT outbox_running_has_a_lease CHECK
        ((state = 'running') = (lease_owner IS NOT NULL AND lease_until IS NOT NULL)),
    CONSTRAINT outbox_waiting_has_a_time CHECK
        (state NOT IN ('queued', 'parked') OR next_attempt_at IS NOT NULL),
    CONSTRAINT outbox_rest_has_a_time CHECK
        ((state IN ('done', 'dead', 'discarded')) = (processed_at IS NOT NULL))
) STRICT;

CREATE INDEX outbox_due ON outbox (next_attempt_at) WHERE state IN ('queued', 'parked');
CREATE INDEX outbox_running ON outbox (id) WHERE state = 'running';
CREATE INDEX outbox_dead ON outbox (processed_at) WHERE state = 'dead';
CREATE INDEX outbox_event ON outbox (source, event_id);
