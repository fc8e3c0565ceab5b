//! As much of HTTP/1.1 as a target needs: requests with a Content-Length over kept-alive connections. Written by hand
//! so that the journal holds what was on the wire, in order, and not what a library made of it.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request as it was read from the wire.
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// A connection with what was read ahead.
pub(crate) struct HttpStream {
    stream: TcpStream,
    buffer: BytesMut,
}

impl HttpStream {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            buffer: BytesMut::new(),
        }
    }

    /// The next request; `None` if the client closed between two.
    pub(crate) async fn read_request(&mut self) -> io::Result<Option<(Head, Bytes)>> {
        let head = loop {
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break self.buffer.split_to(end + 4);
            }
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        };
        let head = parse(&head)?;
        let length = content_length(&head)?;
        while self.buffer.len() < length {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(Some((head, self.buffer.split_to(length).freeze())))
    }

    /// Returns when the client closes or resets the connection. Requests that it sends meanwhile are kept.
    pub(crate) async fn client_leaves(&mut self) {
        while self
            .stream
            .read_buf(&mut self.buffer)
            .await
            .is_ok_and(|length| length > 0)
        {}
    }

    /// Answers without a body and keeps the connection open.
    pub(crate) async fn answer(&mut self, status: u16, headers: &[(String, String)]) -> io::Result<()> {
        let lines: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let answer = format!("HTTP/1.1 {status} \r\nContent-Length: 0\r\n{lines}\r\n");
        self.stream.write_all(answer.as_bytes()).await
    }

    /// Ends the connection with a reset.
    pub(crate) fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }
}

fn parse(head: &[u8]) -> io::Result<Head> {
    let text = std::str::from_utf8(head).map_err(|_| malformed("the head is not UTF-8"))?;
    let mut lines = text.trim_end().split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(malformed("the request line lacks a path"));
    };
    let header = |line: &str| {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| malformed("a header lacks its colon"))?;
        Ok((name.to_owned(), value.trim().to_owned()))
    };
    let headers = lines.map(header).collect::<io::Result<_>>()?;
    Ok(Head {
        method: method.to_owned(),
        path: path.to_owned(),
        headers,
    })
}

fn content_length(head: &Head) -> io::Result<usize> {
    let named = |wanted: &str| {
        head.headers
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    match (named("content-length"), named("transfer-encoding")) {
        (Some((_, length)), None) => length
            .parse()
            .map_err(|_| malformed("Content-Length is no number")),
        (None, None) => Ok(0),
        (_, Some(_)) => Err(malformed("this target reads no Transfer-Encoding")),
    }
}

fn malformed(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
