-- The key of a `content` rule names an object, and this is what its latest event said of it: the digest of the data. So
-- an event with other content that comes in between takes the key, and what then comes with the first content again is
-- no twin of it.

ALTER TABLE webhook_content_keys ADD COLUMN content_sha256 bytea CHECK (octet_length(content_sha256) = 32);
