//! Does the thing hold?
//!
//! Real replicas, workers and stores under every fault, and an oracle that compares what they tell.

fn main() {}
