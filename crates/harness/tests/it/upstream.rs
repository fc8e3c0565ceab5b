//! A target that misbehaves as told and remembers what it saw.

use std::time::Duration;

use hookgate_harness::{Answer, Capacity, Gate, Lottery, Upstream};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

struct Client(BufReader<TcpStream>);

impl Client {
    async fn connect(upstream: &Upstream) -> Self {
        Self(BufReader::new(TcpStream::connect(upstream.addr()).await.unwrap()))
    }

    async fn send(&mut self, id: &str, body: &str) {
        let length = body.len();
        let request =
            format!("POST /hook?a=b HTTP/1.1\r\nWebhook-ID: {id}\r\nContent-Length: {length}\r\n\r\n{body}");
        self.0.get_mut().write_all(request.as_bytes()).await.unwrap();
    }

    /// The lines of the next answer's head; none if the connection was reset.
    async fn answer(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            match self.0.read_line(&mut line).await {
                Ok(length) if length > 2 => lines.push(line.trim_end().to_owned()),
                _ => return lines,
            }
        }
    }

    async fn status(&mut self, id: &str) -> String {
        self.send(id, "").await;
        self.answer().await[0].split(' ').nth(1).unwrap().to_owned()
    }
}

#[tokio::test]
async fn requests_are_kept_as_they_came() {
    let upstream = Upstream::start().await;
    let mut client = Client::connect(&upstream).await;
    assert_eq!(client.status("first").await, "200");
    client.send("second", "{\"n\":1.0}").await;
    let requests = upstream.wait_for(2).await;
    assert_eq!(
        (requests[1].method.as_str(), requests[1].path.as_str()),
        ("POST", "/hook?a=b")
    );
    assert_eq!(
        requests[1].headers[0],
        ("Webhook-ID".to_owned(), "second".to_owned())
    );
    assert_eq!(&requests[1].body[..], b"{\"n\":1.0}");
    assert!(requests[0].ended.unwrap() < requests[1].began);
    assert_eq!(upstream.count_for("second"), 1);
}

#[tokio::test]
async fn answers_are_given_per_event() {
    let upstream = Upstream::start().await;
    let mut client = Client::connect(&upstream).await;
    upstream.answer(Answer::Status(503));
    upstream.answer_for(
        "late",
        Answer::StatusWithHeaders(429, vec![("Retry-After".into(), "7".into())]),
    );
    upstream.answer_for("slow", Answer::Slow(Duration::from_millis(1), 204));
    assert_eq!(client.status("any").await, "503");
    assert_eq!(client.status("slow").await, "204");
    client.send("late", "").await;
    assert_eq!(
        client.answer().await,
        ["HTTP/1.1 429", "Content-Length: 0", "Retry-After: 7"]
    );
}

#[tokio::test]
async fn each_event_fails_as_often_as_told() {
    let upstream = Upstream::start().await;
    let mut client = Client::connect(&upstream).await;
    upstream.answer(Answer::FailFirst {
        times: 2,
        status: 500,
    });
    let mut statuses = Vec::new();
    for id in ["a", "b", "a", "a", "b", "b"] {
        statuses.push(client.status(id).await);
    }
    assert_eq!(statuses, ["500", "500", "500", "200", "500", "200"]);
}

#[tokio::test]
async fn a_reset_leaves_no_answer() {
    let upstream = Upstream::start().await;
    upstream.answer(Answer::Reset);
    let mut client = Client::connect(&upstream).await;
    client.send("e", "").await;
    assert!(client.answer().await.is_empty());
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_answered_400() {
    let upstream = Upstream::start().await;
    let mut client = Client::connect(&upstream).await;
    let chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    client.0.get_mut().write_all(chunked).await.unwrap();
    assert!(client.answer().await[0].starts_with("HTTP/1.1 400"));
    assert!(upstream.requests().is_empty());
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_is_noted() {
    let upstream = Upstream::start().await;
    upstream.answer(Answer::Hang);
    let mut client = Client::connect(&upstream).await;
    client.send("e", "").await;
    upstream.wait_for(1).await;
    drop(client);
    let requests = upstream.wait_until(|requests| requests[0].ended.is_some()).await;
    assert!(requests[0].client_left);
}

#[tokio::test]
async fn a_gate_holds_both_copies_and_shows_their_overlap() {
    let upstream = Upstream::start().await;
    let gate = Gate::closed();
    upstream.answer(Answer::Gate(gate.clone(), 200));
    let (mut one, mut other) = (Client::connect(&upstream).await, Client::connect(&upstream).await);
    one.send("e", "").await;
    other.send("e", "").await;
    upstream.wait_for(2).await;
    assert!(timeout(Duration::from_millis(50), one.answer()).await.is_err());
    gate.open();
    assert!(!one.answer().await.is_empty() && !other.answer().await.is_empty());
    assert!(upstream.overlapped("e"));
    assert_eq!(upstream.peak(), 2);
    one.status("sequential").await;
    other.status("sequential").await;
    assert!(!upstream.overlapped("sequential"));
}

#[tokio::test]
async fn a_lottery_gives_an_event_the_same_fate_in_every_order() {
    let mut fates = Vec::new();
    for order in [["a", "b", "a", "c"], ["c", "a", "b", "a"]] {
        let upstream = Upstream::start().await;
        let chances = [(40, Answer::Status(500)), (30, Answer::Status(404))];
        upstream.answer(Answer::Lottery(Lottery::new(7, &chances, Answer::Status(200))));
        let mut client = Client::connect(&upstream).await;
        for id in order {
            client.status(id).await;
        }
        let answered = |id| {
            upstream
                .requests_for(id)
                .into_iter()
                .map(|request| request.answered)
        };
        fates.push(["a", "b", "c"].map(|id| answered(id).collect::<Vec<_>>()));
    }
    assert_eq!(fates[0], fates[1]);
}

#[tokio::test]
async fn a_lottery_keeps_its_odds() {
    let upstream = Upstream::start().await;
    let chances = [(10, Answer::Status(500)), (1, Answer::Status(404))];
    upstream.answer(Answer::Lottery(Lottery::new(7, &chances, Answer::Status(200))));
    let mut client = Client::connect(&upstream).await;
    for number in 0..2000 {
        client.status(&format!("evt_{number}")).await;
    }
    let count = |status| {
        let requests = upstream.requests();
        requests
            .iter()
            .filter(|request| request.answered == Some(status))
            .count()
    };
    assert!((150..250).contains(&count(500)), "{}", count(500));
    assert!((5..50).contains(&count(404)), "{}", count(404));
}

#[tokio::test]
async fn a_target_without_a_place_is_busy_and_a_place_is_free_again_after_its_request() {
    let upstream = Upstream::start().await;
    let mut client = Client::connect(&upstream).await;
    upstream.answer(Answer::Capacity(Capacity::new(0, Duration::ZERO, 429)));
    assert_eq!(client.status("e").await, "429");
    upstream.answer(Answer::Capacity(Capacity::new(1, Duration::from_millis(1), 429)));
    assert_eq!(client.status("e").await, "200");
    assert_eq!(client.status("e").await, "200");
    assert_eq!(upstream.peak(), 1);
}

#[tokio::test]
async fn a_target_comes_back_where_another_was() {
    let first = Upstream::start().await;
    let address = first.addr();
    drop(first);
    assert!(TcpStream::connect(address).await.is_err());
    let second = Upstream::start_at(address).await;
    assert_eq!(Client::connect(&second).await.status("e").await, "200");
}
