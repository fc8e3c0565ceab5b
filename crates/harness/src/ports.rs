//! Free ports of 127.0.0.1. The port is free when asked for and may be taken a moment later, so whoever starts a
//! server on it tries again with another one.

use std::net::{Ipv4Addr, TcpListener};

/// A port nobody listens on at this moment.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("127.0.0.1 has a free port");
    listener
        .local_addr()
        .expect("a bound listener has an address")
        .port()
}
