-- What retention looks for: finished rows whose body is still there, by the time they came to rest, and rows
-- whose body was emptied, until they go as well. A row leaves the first index when it enters the second.

CREATE INDEX webhook_events_finished ON webhook_events (processed_at)
    WHERE state IN ('done', 'discarded', 'twin') AND pruned_at IS NULL;
CREATE INDEX webhook_events_pruned ON webhook_events (processed_at) WHERE pruned_at IS NOT NULL;
