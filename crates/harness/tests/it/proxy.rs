//! Each fault of the proxy, as a client of Redis meets it.

use std::io;
use std::time::Duration;

use hookgate_harness::{Fault, Proxy, RedisServer, Then, Trap};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

const A_WHILE: Duration = Duration::from_millis(100);

struct Client(TcpStream);

impl Client {
    async fn connect(proxy: &Proxy) -> Self {
        Self(TcpStream::connect(proxy.addr()).await.unwrap())
    }

    async fn send(&mut self, command: &str) {
        self.0
            .write_all(format!("{command}\r\n").as_bytes())
            .await
            .unwrap();
    }

    /// The next piece of a reply; empty if the connection was closed.
    async fn receive(&mut self) -> io::Result<String> {
        let mut reply = [0; 256];
        let length = self.0.read(&mut reply).await?;
        Ok(String::from_utf8_lossy(&reply[..length]).trim_end().to_owned())
    }

    async fn ask(&mut self, command: &str) -> io::Result<String> {
        self.send(command).await;
        self.receive().await
    }

    async fn is_silent(&mut self) -> bool {
        timeout(A_WHILE, self.receive()).await.is_err()
    }
}

async fn redis_behind_a_proxy() -> (&'static RedisServer, Proxy) {
    let server = RedisServer::shared().await;
    (server, Proxy::start(server.addr()).await)
}

fn is_reset(result: &io::Result<String>) -> bool {
    result
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset)
}

#[tokio::test]
async fn without_a_fault_all_bytes_pass_and_are_counted() {
    let (_, proxy) = redis_behind_a_proxy().await;
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.ask("PING").await.unwrap(), "+PONG");
    assert_eq!(client.ask("ECHO hello").await.unwrap(), "$5\r\nhello");
    assert_eq!(proxy.client_writes(), 2);
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn refuse_resets_open_and_new_connections() {
    let (_, proxy) = redis_behind_a_proxy().await;
    let mut open = Client::connect(&proxy).await;
    open.ask("PING").await.unwrap();
    proxy.set(Fault::Refuse);
    assert!(is_reset(&open.receive().await));
    assert!(is_reset(&Client::connect(&proxy).await.receive().await));
    proxy.set(Fault::None);
    assert_eq!(Client::connect(&proxy).await.ask("PING").await.unwrap(), "+PONG");
}

#[tokio::test]
async fn a_blackhole_holds_everything_back_until_it_ends() {
    let (_, proxy) = redis_behind_a_proxy().await;
    let mut open = Client::connect(&proxy).await;
    open.ask("PING").await.unwrap();
    proxy.set(Fault::Blackhole);
    let mut new = Client::connect(&proxy).await;
    open.send("ECHO open").await;
    new.send("ECHO new").await;
    assert!(open.is_silent().await);
    assert!(new.is_silent().await);
    proxy.set(Fault::None);
    assert_eq!(open.receive().await.unwrap(), "$4\r\nopen");
    assert_eq!(new.receive().await.unwrap(), "$3\r\nnew");
}

#[tokio::test]
async fn a_delayed_reply_arrives_late() {
    let (_, proxy) = redis_behind_a_proxy().await;
    let mut client = Client::connect(&proxy).await;
    proxy.set(Fault::DelayReplies(A_WHILE));
    let sent = Instant::now();
    assert_eq!(client.ask("PING").await.unwrap(), "+PONG");
    assert!(sent.elapsed() >= A_WHILE);
}

#[tokio::test]
async fn a_dropped_reply_leaves_the_server_changed() {
    for then in [Then::Reset, Then::Silence] {
        let (server, proxy) = redis_behind_a_proxy().await;
        let key = format!("dropped-{then:?}");
        let (mut struck, mut other) = (Client::connect(&proxy).await, Client::connect(&proxy).await);
        proxy.set_for(b"SET", Fault::DropNextReply { then });
        assert_eq!(
            struck.ask("PING").await.unwrap(),
            "+PONG",
            "the needle is not in it"
        );
        struck.send(&format!("SET {key} v")).await;
        match then {
            Then::Reset => assert!(is_reset(&struck.receive().await)),
            Then::Silence => assert!(struck.is_silent().await),
        }
        assert_eq!(server.cli(&["GET", &key]), "v");
        assert_eq!(proxy.fault(), Fault::None);
        assert_eq!(other.ask("PING").await.unwrap(), "+PONG");
    }
}

#[tokio::test]
async fn an_invented_reply_never_reaches_the_server() {
    let (server, proxy) = redis_behind_a_proxy().await;
    let mut client = Client::connect(&proxy).await;
    proxy.set(Fault::ReplyWith(b"-LOADING\r\n".to_vec()));
    assert_eq!(client.ask("SET invented v").await.unwrap(), "-LOADING");
    assert_eq!(server.cli(&["EXISTS", "invented"]), "0");
    assert_eq!(client.ask("PING").await.unwrap(), "+PONG", "it strikes once");
    proxy.set(Fault::ReplyToAllWith(b"-READONLY\r\n".to_vec()));
    assert_eq!(client.ask("PING").await.unwrap(), "-READONLY");
    assert_eq!(client.ask("PING").await.unwrap(), "-READONLY");
}

#[tokio::test]
async fn a_dead_server_is_a_reset_connection() {
    let server = RedisServer::start().await;
    let proxy = Proxy::start(server.addr()).await;
    server.kill().await;
    assert!(is_reset(&Client::connect(&proxy).await.receive().await));
}

#[tokio::test]
async fn a_held_command_never_reaches_the_server_if_its_client_dies() {
    let (server, proxy) = redis_behind_a_proxy().await;
    let trapped = proxy.trap(Trap::command(b"held-command"));
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.ask("SET other 1").await.unwrap(), "+OK");
    client.send("SET held-command 1").await;
    trapped.struck().await;
    drop(client);
    while proxy.connections() > 0 {
        tokio::task::yield_now().await;
    }
    drop(trapped);
    assert_eq!(server.cli(&["EXISTS", "held-command"]), "0");
}

#[tokio::test]
async fn a_held_reply_is_that_of_a_command_which_the_server_has_executed() {
    let (server, proxy) = redis_behind_a_proxy().await;
    let trapped = proxy.trap(Trap::reply_to(b"held-reply").nth(2));
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.ask("SET held-reply 1").await.unwrap(), "+OK");
    client.send("INCR held-reply").await;
    trapped.struck().await;
    assert_eq!(server.cli(&["GET", "held-reply"]), "2");
    assert!(client.is_silent().await);
    client.send("ECHO behind").await;
    drop(trapped);
    let mut replies = String::new();
    while !replies.contains("behind") {
        replies += &client.receive().await.unwrap();
    }
    assert!(replies.starts_with(":2"), "in order: {replies}");
}

#[tokio::test]
async fn a_reply_is_held_for_what_it_says() {
    let (server, proxy) = redis_behind_a_proxy().await;
    server.cli(&["SET", "telling", "something-telling"]);
    let trapped = proxy.trap(Trap::reply_with(b"something-telling"));
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.ask("EXISTS telling").await.unwrap(), ":1");
    client.send("GET telling").await;
    trapped.struck().await;
    assert!(client.is_silent().await);
    drop(trapped);
    assert!(client.receive().await.unwrap().contains("something-telling"));
    assert_eq!(client.ask("PING").await.unwrap(), "+PONG");
}

#[tokio::test]
async fn a_trap_that_was_taken_away_holds_nothing() {
    let (_, proxy) = redis_behind_a_proxy().await;
    drop(proxy.trap(Trap::command(b"PING")));
    let mut client = Client::connect(&proxy).await;
    assert_eq!(client.ask("PING").await.unwrap(), "+PONG");
}

#[tokio::test]
async fn a_half_open_connection_stays_silent_for_good_and_new_ones_work() {
    let (_, proxy) = redis_behind_a_proxy().await;
    let mut open = Client::connect(&proxy).await;
    open.ask("PING").await.unwrap();
    proxy.cut_silently();
    open.send("PING").await;
    assert!(open.is_silent().await);
    assert_eq!(Client::connect(&proxy).await.ask("PING").await.unwrap(), "+PONG");
    proxy.set(Fault::None);
    assert!(
        open.is_silent().await,
        "also after other faults have come and gone"
    );
    drop(open);
    while proxy.connections() > 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn new_connections_lead_to_another_server_and_open_ones_stay() {
    let (one, two) = (RedisServer::start().await, RedisServer::start().await);
    assert_eq!(two.cli(&["SET", "k", "v"]), "OK");
    let proxy = Proxy::start(one.addr()).await;
    let mut stays = Client::connect(&proxy).await;
    assert_eq!(stays.ask("EXISTS k").await.unwrap(), ":0");
    proxy.lead_to(two.addr());
    let mut led = Client::connect(&proxy).await;
    assert_eq!(led.ask("EXISTS k").await.unwrap(), ":1");
    assert_eq!(stays.ask("EXISTS k").await.unwrap(), ":0");
}
