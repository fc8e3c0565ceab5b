//! A killed test run leaves nothing behind: no server, no directory.

use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hookgate_harness::{PATIENCE, PostgresServer, Process, RedisServer};
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn no_server_survives_a_killed_test_process() {
    let mut this_binary = Command::new(std::env::current_exe().unwrap());
    this_binary.args([
        "--exact",
        "--ignored",
        "--nocapture",
        "survivors::a_test_run_that_hangs",
    ]);
    let run = Process::spawn(this_binary);
    let line = run.wait_for_line(|line| line.contains("servers:")).await;
    let told = line.split("servers:").nth(1).unwrap();
    let [redis, postgres, directory] = told.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{line}")
    };
    assert!(is_open(redis) && is_open(postgres) && Path::new(directory).exists());

    run.signal("KILL");

    let gone = async {
        while is_open(redis) || is_open(postgres) || Path::new(directory).exists() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, gone)
        .await
        .expect("the watchdogs end both servers and remove the directory");
}

#[tokio::test]
#[ignore = "run and killed by the test above"]
async fn a_test_run_that_hangs() {
    let (redis, postgres) = tokio::join!(RedisServer::shared(), PostgresServer::shared());
    let directory = postgres.data_directory();
    println!(
        "servers: {} {} {}",
        redis.port(),
        postgres.port(),
        directory.display()
    );
    std::future::pending().await
}

fn is_open(port: &str) -> bool {
    TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
}
