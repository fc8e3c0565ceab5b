-- What people search by. The order of arrival has its index already.

-- "What happened to this invoice?"
CREATE INDEX webhook_events_object ON webhook_events (object_id) WHERE object_id IS NOT NULL;
