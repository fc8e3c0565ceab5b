-- What people look at.

-- A body as JSON, or NULL where the database cannot read it as such: other formats, \u0000, numbers without
-- end, nesting too deep, bytes that are no UTF-8.
CREATE FUNCTION webhook_body_json(body bytea) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN convert_from(body, 'UTF8')::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;

CREATE VIEW webhook_events_json AS
SELECT source, event_id, provider, account, mode, event_type, object_id, provider_time, received_at,
       path, state, attempts, generation, twin_of, last_error, processed_at,
       webhook_body_json(body) AS body
FROM webhook_events;

CREATE VIEW dead_letters AS
SELECT source, event_id, provider, account, mode, event_type, object_id, provider_time, received_at,
       attempts, generation, last_error, processed_at AS died_at
FROM webhook_events
WHERE state = 'dead';
