-- Follow-up jobs, written in the transaction that settles their event: both happen or neither. They wait, are
-- leased, retried and buried just as events are.

CREATE TABLE outbox (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Names the effect. Written twice it is one row, so a replay of the event asks for nothing twice.
    effect_key      text        COLLATE "C" NOT NULL UNIQUE,
    -- The event that asked for it. No foreign key: an effect outlives the event's row.
    source          text        COLLATE "C" NOT NULL,
    event_id        text        COLLATE "C" NOT NULL,
    -- Who is to get it, what to do, and with what.
    target          text        NOT NULL,
    kind            text        NOT NULL,
    payload         bytea       NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),

    state           text        NOT NULL DEFAULT 'queued' CHECK (state IN
                        ('queued', 'running', 'done', 'dead', 'discarded', 'parked')),
    attempts        integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    tries           integer     NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_attempt_at timestamptz DEFAULT now(),
    deadline_at     timestamptz,
    lease_owner     bytea,
    leased_at       timestamptz,
    lease_until     timestamptz,
    last_error      text,
    processed_at    timestamptz,

    CONSTRAINT outbox_running_has_a_lease CHECK
        ((state = 'running') = (lease_owner IS NOT NULL AND lease_until IS NOT NULL)),
    CONSTRAINT outbox_waiting_has_a_time CHECK
        (state NOT IN ('queued', 'parked') OR next_attempt_at IS NOT NULL),
    CONSTRAINT outbox_rest_has_a_time CHECK
        ((state IN ('done', 'dead', 'discarded')) = (processed_at IS NOT NULL))
)
WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX outbox_due ON outbox (next_attempt_at) WHERE state IN ('queued', 'parked');
CREATE INDEX outbox_running ON outbox (id) WHERE state = 'running';
CREATE INDEX outbox_dead ON outbox (processed_at) WHERE state = 'dead';
CREATE INDEX outbox_event ON outbox (source, event_id);
