//! A Redis that is killed, paused, restarted, and run in its other forms.

use std::time::Duration;

use hookgate_harness::{RedisSentinel, RedisServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn a_started_server_answers() {
    let server = RedisServer::start().await;
    assert_eq!(server.cli(&["SET", "k", "v", "EX", "604800"]), "OK");
    assert_eq!(server.cli(&["TTL", "k"]), "604800");
    assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
}

#[tokio::test]
async fn arguments_reach_the_server() {
    let server = RedisServer::start_with(&["--maxmemory", "4mb"]).await;
    assert_eq!(server.cli(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n4194304");
}

#[tokio::test]
async fn a_restarted_server_is_empty_and_keeps_its_port() {
    let mut server = RedisServer::start().await;
    let (port, pid) = (server.port(), server.pid());
    server.cli(&["SET", "k", "v"]);
    server.restart().await;
    assert_eq!(server.cli(&["EXISTS", "k"]), "0");
    assert_eq!(server.port(), port);
    assert_ne!(server.pid(), pid);
}

#[tokio::test]
async fn a_killed_server_refuses_connections() {
    let server = RedisServer::start().await;
    server.kill().await;
    assert!(TcpStream::connect(server.addr()).await.is_err());
}

#[tokio::test]
async fn a_paused_server_is_silent_until_it_is_resumed() {
    let server = RedisServer::start().await;
    server.pause();
    let mut connection = TcpStream::connect(server.addr()).await.unwrap();
    connection.write_all(b"PING\r\n").await.unwrap();
    let mut reply = [0; 7];
    assert!(
        timeout(Duration::from_millis(100), connection.read_exact(&mut reply))
            .await
            .is_err()
    );
    server.resume();
    connection.read_exact(&mut reply).await.unwrap();
    assert_eq!(&reply, b"+PONG\r\n");
}

#[tokio::test]
async fn the_monitor_sees_every_command() {
    let server = RedisServer::start().await;
    let monitor = server.monitor().await;
    server.cli(&["SET", "k", "v"]);
    server.cli(&["GET", "k"]);
    let commands = monitor.commands().await;
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert!(commands[0].ends_with(r#""SET" "k" "v""#), "{commands:?}");
    server.cli(&["DEL", "k"]);
    assert_eq!(monitor.commands().await.len(), 3);
}

#[tokio::test]
async fn a_replica_has_the_data_of_its_master() {
    let master = RedisServer::start().await;
    let replica = RedisServer::start_replica_of(&master).await;
    // WAIT waits for what its own connection has written.
    let mut connection = TcpStream::connect(master.addr()).await.unwrap();
    connection
        .write_all(b"SET k v\r\nWAIT 1 30000\r\n")
        .await
        .unwrap();
    let mut replies = [0; 9];
    connection.read_exact(&mut replies).await.unwrap();
    assert_eq!(&replies, b"+OK\r\n:1\r\n");
    assert_eq!(replica.cli(&["GET", "k"]), "v");
}

#[tokio::test]
async fn a_sentinel_promotes_the_replica() {
    let master = RedisServer::start().await;
    let replica = RedisServer::start_replica_of(&master).await;
    let sentinel = RedisSentinel::start(&master).await;
    sentinel.fail_over().await;
    assert_eq!(replica.cli(&["SET", "k", "v"]), "OK");
}

#[tokio::test]
async fn a_cluster_of_one_node_serves_all_slots() {
    let node = RedisServer::start_cluster().await;
    for key in ["a", "b", "c"] {
        assert_eq!(node.cli(&["SET", key, "v"]), "OK");
    }
}

#[tokio::test]
async fn the_shared_server_is_one() {
    assert_eq!(
        RedisServer::shared().await.pid(),
        RedisServer::shared().await.pid()
    );
}
