-- Dead letters are listed, and redriven, in the order of arrival. After an outage there may be a hundred thousand
-- of them, too many to sort for each page. Only a row that dies pays for this index.

CREATE INDEX webhook_events_dead_received ON webhook_events (received_at) WHERE state = 'dead';
