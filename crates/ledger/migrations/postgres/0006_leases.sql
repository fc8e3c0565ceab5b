-- Which process does a job that only one should do, such as sweeping. A row and the database's clock elect it:
-- advisory locks belong to a session, and transaction poolers lend sessions out. `term` rises with each new
-- holder, so that a late one can be told from its successor.

CREATE TABLE leases (
    name        text        COLLATE "C" PRIMARY KEY,
    owner       bytea       NOT NULL,
    term        bigint      NOT NULL DEFAULT 1,
    acquired_at timestamptz NOT NULL DEFAULT now(),
    lease_until timestamptz NOT NULL
);
