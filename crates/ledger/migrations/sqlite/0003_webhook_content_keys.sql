-- Who was first with this content. Some providers send two events for one change, and some sign no id, so
-- that a captured body can come again under a new one. Sources that ask for it claim a content key in the
-- transaction of the append: who inserts is the original.

CREATE TABLE webhook_content_keys (
    source      TEXT    NOT NULL,
    -- `object`: type and object id; `content`: those and a digest of the data; `body`: digest of the body.
    kind        TEXT    NOT NULL CHECK (kind IN ('object', 'content', 'body')),
    content_key TEXT    NOT NULL,
    event_id    TEXT    NOT NULL,
    claimed_at  INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000) AS INTEGER)),
    -- The provider's time of the original, for twins that count only within a window.
    provider_time INTEGER,

    PRIMARY KEY (source, kind, content_key),
    FOREIGN KEY (source, event_id) REFERENCES webhook_events ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- For the cascade, and to find the keys of one event.
CREATE INDEX webhook_content_keys_event ON webhook_content_keys (source, event_id);
