-- One table of events is inbox, queue, dead letters and audit trail at once.
--
-- A delivery becomes a row once and for ever: the primary key is the judge of duplicates. A row is never
-- moved to another table; only its state changes. The twin of this file for Postgres says the same in its
-- words; here times are integers, milliseconds since 1970 UTC.

-- The one clock of leases and retries. `SELECT now FROM clock` is the same throughout a statement.
CREATE VIEW clock AS SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now;

CREATE TABLE webhook_events (
    -- What it is. `source` is the endpoint it came to, `event_id` the provider's name for it; both are
    -- compared byte for byte.
    source          TEXT    NOT NULL,
    event_id        TEXT    NOT NULL,
    provider        TEXT    NOT NULL,
    account         TEXT,
    mode            TEXT    CHECK (mode IN ('live', 'test')),
    event_type      TEXT,
    object_id       TEXT,
    -- The provider's own time; ours is `received_at`.
    provider_time   INTEGER,
    received_at     INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000) AS INTEGER)),

    -- Whose it is to run: a worker's (inbox), or the replica's that received it (forward). A forward that is
    -- handed to the workers becomes an inbox row.
    path            TEXT    NOT NULL CHECK (path IN ('inbox', 'forward')),
    state           TEXT    NOT NULL CHECK (state IN
                        ('queued', 'running', 'done', 'dead', 'discarded', 'parked', 'twin', 'failed')),
    -- `attempts` counts runs of the current generation and only rises: targets see it as a fence. `tries`
    -- counts those that cost something: a parked run gives its try back, a redrive starts again from 0.
    attempts        INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    tries           INTEGER NOT NULL DEFAULT 0 CHECK (tries >= 0),
    next_attempt_at INTEGER,
    -- Until when it may be parked; set when it is first parked.
    deadline_at     INTEGER,

    -- The lease of a run. The owner is drawn anew for every run; whoever settles must name it. `leased_at`
    -- stays when the run is over.
    lease_owner     BLOB,
    leased_at       INTEGER,
    lease_until     INTEGER,

    -- The delivery that wrote the row, drawn by the receiver: by it a repeated append knows its own row.
    delivery_id     BLOB    NOT NULL,
    -- How often a finished event was replayed.
    generation      INTEGER NOT NULL DEFAULT 0 CHECK (generation >= 0),
    -- The event of the same source that this one repeats under another id.
    twin_of         TEXT,

    -- What came, byte for byte. Headers are a JSON list of [name, value] pairs in the order they came; each
    -- byte of a value stands as the character of the same number (latin-1), so that any byte survives.
    body_sha256     BLOB    NOT NULL CHECK (length(body_sha256) = 32),
    headers         TEXT    NOT NULL,
    body            BLOB    NOT NULL,

    -- How it ended. `processed_at` is when the row came to rest; `pruned_at` when body and headers were
    -- emptied. The row stays after that, so the key keeps judging.
    last_error      TEXT,
    processed_at    INTEGER,
    pruned_at       INTEGER,

    PRIMARY KEY (source, event_id),
    CONSTRAINT webhook_events_running_has_a_lease CHECK
        ((state = 'running') = (lease_owner IS NOT NULL AND lease_until IS NOT NULL)),
    CONSTRAINT webhook_events_waiting_has_a_time CHECK
        (state NOT IN ('queued', 'parked') OR next_attempt_at IS NOT NULL),
    CONSTRAINT webhook_events_rest_has_a_time CHECK
        ((state IN ('done', 'dead', 'discarded', 'twin')) = (processed_at IS NOT NULL))
) STRICT;

-- Indexes cover only what moves; a row at rest stands in none of them but the key.

-- What is due, oldest first.
CREATE INDEX webhook_events_due ON webhook_events (next_attempt_at) WHERE state IN ('queued', 'parked');

-- Leases that ran out are sought among the few running rows; a heartbeat touches no index.
CREATE INDEX webhook_events_running ON webhook_events (source) WHERE state = 'running';

-- Dead letters, and forwards that wait for the provider's next try.
CREATE INDEX webhook_events_dead ON webhook_events (processed_at) WHERE state = 'dead';
CREATE INDEX webhook_events_failed ON webhook_events (received_at) WHERE state = 'failed';

-- Search by time.
CREATE INDEX webhook_events_received ON webhook_events (received_at);
