//! The value of a claim.
