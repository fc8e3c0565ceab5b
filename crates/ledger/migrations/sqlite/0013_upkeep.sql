-- Up to which moment a job is done. Whoever is elected next goes on from there, also when the holder before
-- died in the middle, and also when it is told twice that it was elected.
ALTER TABLE leases ADD COLUMN done_until INTEGER;

-- How long a row is kept after its body is gone depends on how long its provider may send it again. With the
-- provider in front no row that has to stay is ever looked at.
DROP INDEX webhook_events_pruned;
CREATE INDEX webhook_events_pruned ON webhook_events (provider, processed_at) WHERE pruned_at IS NOT NULL;
