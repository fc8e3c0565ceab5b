//! A client that says exactly what it is told, byte by byte: for requests that no proper client sends.

use std::collections::BTreeMap;

use hookgate_harness::PATIENCE;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::gateway::{Answer, Replica};
use crate::provider::Signed;

/// One connection to the public listener.
pub struct Raw {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Raw {
    /// Connects, and says nothing yet.
    pub async fn connect(replica: &Replica) -> Self {
        Self::connect_to(replica.public()).await
    }

    /// As [`Self::connect`], to any address.
    pub async fn connect_to(address: &str) -> Self {
        let stream = TcpStream::connect(address)
            .await
            .expect("the gateway accepts connections");
        stream
            .set_nodelay(true)
            .expect("a fresh connection takes options");
        Self {
            stream,
            read: Vec::new(),
        }
    }

    /// Sends bytes. False if the connection is gone.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let sending = self.stream.write_all(bytes.as_ref());
        timeout(PATIENCE, sending)
            .await
            .expect("the gateway reads or closes")
            .is_ok()
    }

    /// Says that no more will come, and keeps listening.
    pub async fn end(&mut self) {
        // The other side may have closed already.
        let _ = self.stream.shutdown().await;
    }

    /// Whether the other side has said something or closed meanwhile.
    pub async fn has_heard(&mut self) -> bool {
        let now = std::time::Duration::from_millis(1);
        timeout(now, self.stream.peek(&mut [0])).await.is_ok()
    }

    /// The next answer; `None` if the connection closes without one.
    pub async fn answer(&mut self) -> Option<Answer> {
        loop {
            if let Some((answer, length)) = parse(&self.read) {
                self.read.drain(..length);
                return Some(answer);
            }
            if !self.receive().await {
                return None;
            }
        }
    }

    /// Waits until the other side has closed; what it sends until then is dropped.
    pub async fn closed(mut self) {
        while self.receive().await {}
    }

    /// Waits for bytes. False at the end.
    async fn receive(&mut self) -> bool {
        let receiving = self.stream.read_buf(&mut self.read);
        let received = timeout(PATIENCE, receiving).await;
        received
            .expect("the gateway answers or closes")
            .is_ok_and(|length| length > 0)
    }
}

/// The head of a POST with these header lines.
pub fn head(path: &str, headers: &[(String, String)]) -> String {
    let lines = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    format!(
        "POST {path} HTTP/1.1\r\nHost: gateway\r\n{}\r\n",
        lines.collect::<String>()
    )
}

/// A whole delivery with its true length, ready to be sent.
pub fn request(delivery: &Signed) -> Vec<u8> {
    let mut headers = delivery.headers.clone();
    headers.push(("Content-Length".to_owned(), delivery.body.len().to_string()));
    let mut bytes = head(&format!("/webhooks/{}", delivery.source), &headers).into_bytes();
    bytes.extend_from_slice(&delivery.body);
    bytes
}

/// The first whole answer among the bytes, and how long it is.
fn parse(bytes: &[u8]) -> Option<(Answer, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = text.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: BTreeMap<_, _> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers
        .get("content-length")
        .map_or(0, |length| length.parse().expect("a length is a number"));
    let body = bytes.get(end..end + length)?;
    let json = serde_json::from_slice::<Value>(body).unwrap_or_default();
    Some((
        Answer {
            status,
            headers,
            json,
        },
        end + length,
    ))
}
