-- One table of events is inbox, queue, dead letters and audit trail at once.
--
-- A delivery becomes a row once and for ever: the primary key is the judge of duplicates, on every replica
-- and whatever Redis remembers. A row is never moved to another table; only its state changes.
--
-- Names are compared byte for byte, so they are kept in the "C" collation: the key cannot be damaged by an
-- operating system that sorts letters differently after an upgrade, and comparing is cheapest.

CREATE TABLE webhook_events (
    -- What it is. `source` is the endpoint it came to, `event_id` the provider's name for it.
    source          text        COLLATE "C" NOT NULL,
    event_id        text        COLLATE "C" NOT NULL,
    provider        text        NOT NULL,
    account         text,
    mode            text        CHECK (mode IN ('live', 'test')),
    event_type      text,
    object_id       text,
    -- The provider's own time; ours is `received_at`.
    provider_time   timestamptz,
    received_at     timestamptz NOT NULL DEFAULT now(),

    -- Whose it is to run: a worker's (inbox), or the replica's that received it (forward). A forward that is
    -- handed to the workers becomes an inbox row.
    path            text        NOT NULL CHECK (path IN ('inbox', 'forward')),
    state           text        NOT NULL CHECK (state IN
                        ('queued', 'running', 'done', 'dead', 'discarded', 'parked', 'twin', 'failed')),
    -- `attempts` counts runs of the current generation and only rises: targets see it as a fence. `tries`
    -- counts those that cost something: a parked run gives its try back, a redrive starts again from 0.
    attempts        integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    tries           integer     NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_attempt_at timestamptz,
    -- Until when it may be parked; set when it is first parked.
    deadline_at     timestamptz,

    -- The lease of a run. The owner is drawn anew for every run; whoever settles must name it. `leased_at`
    -- stays when the run is over.
    lease_owner     bytea,
    leased_at       timestamptz,
    lease_until     timestamptz,

    -- The delivery that wrote the row, drawn by the receiver: by it a repeated append knows its own row.
    delivery_id     bytea       NOT NULL,
    -- How often a finished event was replayed.
    generation      integer     NOT NULL DEFAULT 0 CHECK (generation >= 0),
    -- The event of the same source that this one repeats under another id.
    twin_of         text        COLLATE "C",

    -- What came. The body is kept as bytes: JSON columns refuse or rewrite some valid bodies, and cost more
    -- than all the rest of an insert. Headers are a JSON list of [name, value] pairs in the order they came;
    -- each byte of a value stands as the character of the same number (latin-1), so that any byte survives.
    body_sha256     bytea       NOT NULL CHECK (octet_length(body_sha256) = 32),
    headers         text        NOT NULL,
    body            bytea       NOT NULL,

    -- How it ended. `processed_at` is when the row came to rest; `pruned_at` when body and headers were
    -- emptied. The row stays after that, so the key keeps judging.
    last_error      text,
    processed_at    timestamptz,
    pruned_at       timestamptz,

    PRIMARY KEY (source, event_id),
    CONSTRAINT webhook_events_running_has_a_lease CHECK
        ((state = 'running') = (lease_owner IS NOT NULL AND lease_until IS NOT NULL)),
    CONSTRAINT webhook_events_waiting_has_a_time CHECK
        (state NOT IN ('queued', 'parked') OR next_attempt_at IS NOT NULL),
    CONSTRAINT webhook_events_rest_has_a_time CHECK
        ((state IN ('done', 'dead', 'discarded', 'twin')) = (processed_at IS NOT NULL))
)
-- Each row is rewritten about twice soon after it came. Room on its page keeps the new version beside the
-- old one, in a page that is in memory and in the log already.
WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);

-- Indexes cover only what moves; a row at rest stands in none of them but the key.

-- What is due, oldest first.
CREATE INDEX webhook_events_due ON webhook_events (next_attempt_at) WHERE state IN ('queued', 'parked');

-- Leases that ran out are sought among the few running rows. `lease_until` is left out on purpose: a
-- heartbeat then touches no index.
CREATE INDEX webhook_events_running ON webhook_events (source) WHERE state = 'running';

-- Dead letters, and forwards that wait for the provider's next try.
CREATE INDEX webhook_events_dead ON webhook_events (processed_at) WHERE state = 'dead';
CREATE INDEX webhook_events_failed ON webhook_events (received_at) WHERE state = 'failed';

-- Search by time reads ranges of pages. It costs an append next to nothing.
CREATE INDEX webhook_events_received ON webhook_events USING brin (received_at);

-- lz4 compresses bodies several times faster than the default, where the server was built with it (from 14).
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_settings
               WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
        ALTER TABLE webhook_events ALTER COLUMN body SET COMPRESSION lz4;
    END IF;
END
$$;
