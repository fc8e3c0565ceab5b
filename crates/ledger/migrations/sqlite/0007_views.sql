-- What people look at. Times are readable here.

-- The body is NULL where it is not JSON. Text ends at a zero byte for SQLite, so a body with one is not read.
CREATE VIEW webhook_events_json AS
SELECT source, event_id, provider, account, mode, event_type, object_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', provider_time / 1000.0, 'unixepoch') AS provider_time,
       strftime('%Y-%m-%dT%H:%M:%fZ', received_at / 1000.0, 'unixepoch') AS received_at,
       path, state, attempts, generation, twin_of, last_error,
       strftime('%Y-%m-%dT%H:%M:%fZ', processed_at / 1000.0, 'unixepoch') AS processed_at,
       CASE WHEN instr(body, x'00') = 0 AND json_valid(CAST(body AS TEXT)) THEN CAST(body AS TEXT) END AS body
FROM webhook_events;

CREATE VIEW dead_letters AS
SELECT source, event_id, provider, account, mode, event_type, object_id,
       strftime('%Y-%m-%dT%H:%M:%fZ', provider_time / 1000.0, 'unixepoch') AS provider_time,
       strftime('%Y-%m-%dT%H:%M:%fZ', received_at / 1000.0, 'unixepoch') AS received_at,
       attempts, generation, last_error,
       strftime('%Y-%m-%dT%H:%M:%fZ', processed_at / 1000.0, 'unixepoch') AS died_at
FROM webhook_events
WHERE state = 'dead';
