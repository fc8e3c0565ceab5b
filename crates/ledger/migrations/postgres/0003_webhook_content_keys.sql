-- Who was first with this content. Some providers send two events for one change, and some sign no id, so
-- that a captured body can come again under a new one. Sources that ask for it claim a content key in the
-- transaction of the append, keys in sorted order: who inserts is the original. Sources that do not ask pay
-- nothing, which an index on the digest of every body would not allow.

CREATE TABLE webhook_content_keys (
    source      text        COLLATE "C" NOT NULL,
    -- `object`: type and object id; `content`: those and a digest of the data; `body`: digest of the body.
    kind        text        COLLATE "C" NOT NULL CHECK (kind IN ('object', 'content', 'body')),
    content_key text        COLLATE "C" NOT NULL,
    event_id    text        COLLATE "C" NOT NULL,
    claimed_at  timestamptz NOT NULL DEFAULT now(),
    -- The provider's time of the original, for twins that count only within a window.
    provider_time timestamptz,

    PRIMARY KEY (source, kind, content_key),
    FOREIGN KEY (source, event_id) REFERENCES webhook_events ON DELETE CASCADE
);

-- For the cascade, and to find the keys of one event.
CREATE INDEX webhook_content_keys_event ON webhook_content_keys (source, event_id);
