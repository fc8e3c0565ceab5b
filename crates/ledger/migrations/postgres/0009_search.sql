-- What people search by. Pages of a list are read in the order of arrival, which ranges of pages cannot give.

DROP INDEX webhook_events_received;
CREATE INDEX webhook_events_received ON webhook_events (received_at);

-- "What happened to this invoice?"
CREATE INDEX webhook_events_object ON webhook_events (object_id) WHERE object_id IS NOT NULL;
