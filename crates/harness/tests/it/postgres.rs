//! A Postgres that is killed, paused and restarted, and keeps what it has committed.

use std::time::Duration;

use hookgate_harness::PostgresServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Asks a Postgres whether it speaks TLS; it answers with one byte, from a child that it forks for us.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

#[tokio::test]
async fn databases_of_the_shared_server_are_apart() {
    let server = PostgresServer::shared().await;
    let (one, other) = (server.create_database().await, server.create_database().await);
    server.psql(&one, "CREATE TABLE t (n int)");
    assert_eq!(
        server.psql(&other, "SELECT count(*) FROM pg_class WHERE relname = 't'"),
        "0"
    );
    assert_eq!(server.psql(&one, "SHOW fsync"), "on");
}

#[tokio::test]
async fn a_commit_survives_a_kill() {
    let mut server = PostgresServer::start().await;
    let (url, pid) = (server.create_database().await, server.pid());
    server.psql(&url, "CREATE TABLE t (n int); INSERT INTO t VALUES (7)");
    server.kill().await;
    assert!(TcpStream::connect(server.addr()).await.is_err());
    server.restart().await;
    assert_eq!(server.psql(&url, "SELECT n FROM t"), "7");
    assert_ne!(server.pid(), pid);
}

#[tokio::test]
async fn settings_reach_a_server_that_is_silent_while_paused() {
    let server = PostgresServer::start_with(&["fsync=off"]).await;
    assert_eq!(server.psql(&server.url("postgres"), "SHOW fsync"), "off");
    server.pause();
    let mut connection = TcpStream::connect(server.addr()).await.unwrap();
    connection.write_all(&SSL_REQUEST).await.unwrap();
    assert!(
        timeout(Duration::from_millis(100), connection.read_u8())
            .await
            .is_err()
    );
    server.resume();
    assert_eq!(connection.read_u8().await.unwrap(), b'N');
}
