-- The audit log says which target a pause speaks of, and which rows one request wrote. A request is drawn at
-- random by whoever asks: when the answer to its commit was lost, it finds here that it was done, and is not
-- told that somebody else was faster.

ALTER TABLE audit_log ADD COLUMN target TEXT;
ALTER TABLE audit_log ADD COLUMN request BLOB;

CREATE INDEX audit_log_request ON audit_log (request) WHERE request IS NOT NULL;
