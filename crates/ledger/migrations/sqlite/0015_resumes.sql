-- When a person last lifted a target's pause. The time for which its events may be held begins anew then: while it
-- was paused nobody could try them, and that was no fault of theirs.

ALTER TABLE targets ADD COLUMN resumed_at INTEGER;
