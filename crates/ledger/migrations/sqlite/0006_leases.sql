-- Which process does a job that only one should do, such as sweeping: several may hold this file open. `term`
-- rises with each new holder, so that a late one can be told from its successor.

CREATE TABLE leases (
    name        TEXT    PRIMARY KEY NOT NULL,
    owner       BLOB    NOT NULL,
    term        INTEGER NOT NULL DEFAULT 1,
    acquired_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000) AS INTEGER)),
    lease_until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
