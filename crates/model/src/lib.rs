//! Is the protocol right?
//!
//! A small model of claim and ledger, checked in every order of steps and faults.
