-- A queue in which no source waits behind another, and fresh events do not wait behind old retries.
--
-- Workers ask for so many events of this source and so many of that one. In this index each source is a lane
-- of its own, with the events that were never run before those that come again. It takes the place of the one
-- list of everything that is due. A program that names the old list in its statements could not work beside this
-- one; none was ever released.

CREATE INDEX webhook_events_lanes ON webhook_events
    (source, (attempts > 0 OR generation > 0), next_attempt_at)
    WHERE state IN ('queued', 'parked');
DROP INDEX webhook_events_due;

-- What is known about a target besides its settings. A target without a row is neither paused nor known to be
-- down.
CREATE TABLE targets (
    name       TEXT    NOT NULL PRIMARY KEY,
    -- Set by a person, who also lifts it: nothing is delivered meanwhile, and nothing is lost.
    paused_at  INTEGER,
    paused_by  TEXT,
    paused_why TEXT,
    -- Since when it has been away, as far as any worker knows. Events are held for its sake so long.
    down_since INTEGER,

    CONSTRAINT targets_pause_has_a_reason CHECK
        ((paused_at IS NULL) = (paused_by IS NULL) AND (paused_at IS NULL) = (paused_why IS NULL))
) STRICT;
