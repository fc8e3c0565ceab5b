//! Has anyone got it?
//!
//! A claim says that a replica works on an event, or that the event is done. It saves work and lets
//! replicas see each other; it is never the judge. A claim store may lose everything at any moment, and
//! still no event is lost or applied twice, because only what the ledger (without one: the target)
//! already holds is marked done.
//!
//! ```text
//! absent ── claim ──▶ in flight (token) ── finish / mark_done ──▶ done
//!    ▲                   │      │
//!    └──── release ──────┘      └─ older than its lease: taken over under a new token
//! ```

pub mod cell;
mod claims;
mod memory;
mod redis;
mod value;

pub use crate::claims::{
    Claim, Claims, Epoch, Lease, NodeMemory, Ownership, Sight, Terms, Trouble, Unavailable,
};
pub use crate::memory::MemoryClaims;
pub use crate::redis::{BadRedisUrl, RedisClaims, RedisMode, RedisSettings};
