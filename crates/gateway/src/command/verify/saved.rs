//! A request as somebody saved it: lines of headers, what `curl -v` printed, or the whole of it in one file.

use bytes::Bytes;

/// A saved request.
#[derive(Debug, Default)]
pub(super) struct Saved {
    /// Of its request line, if that was saved.
    pub(super) method: Option<String>,
    /// Path and query of its request line.
    pub(super) target: Option<String>,
    /// In their order.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    /// Byte for byte.
    pub(super) body: Bytes,
}

impl Saved {
    /// Of headers and a body in files of their own.
    pub(super) fn of_parts(headers: &[u8], body: Vec<u8>) -> Self {
        let mut saved = Self {
            body: Bytes::from(body),
            ..Self::default()
        };
        let curl = headers
            .split(|&byte| byte == b'\n')
            .any(|line| line.starts_with(b"> "));
        for line in headers.split(|&byte| byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let line = match (curl, line.strip_prefix(b"> ")) {
                (false, _) => line,
                (true, Some(line)) => line,
                // What curl tells of itself, and of the answer.
                (true, None) => continue,
            };
            saved.take(line);
        }
        saved
    }

    /// Of a whole request; `None` if no empty line ends its headers.
    pub(super) fn of_request(request: &[u8]) -> Option<Self> {
        let mut at = 0;
        loop {
            let line = at + request.get(at..)?.iter().position(|&byte| byte == b'\n')?;
            if at > 0 && matches!(&request[at..line], b"" | b"\r") {
                return Some(Self::of_parts(&request[..at], request[line + 1..].to_vec()));
            }
            at = line + 1;
        }
    }

    /// The first value of a header, as text.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let mut named = self
            .headers
            .iter()
            .filter(|(own, _)| own.eq_ignore_ascii_case(name));
        named.find_map(|(_, value)| std::str::from_utf8(value).ok())
    }

    fn take(&mut self, line: &[u8]) {
        if self.headers.is_empty() && self.method.is_none() && self.request_line(line).is_some() {
            return;
        }
        let Some(colon) = line.iter().position(|&byte| byte == b':') else {
            return;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is_name = !name.is_empty() && name.iter().all(|&byte| byte.is_ascii_graphic());
        if let (true, Ok(name)) = (is_name, std::str::from_utf8(name)) {
            self.headers.push((name.to_owned(), value.to_vec()));
        }
    }

    fn request_line(&mut self, line: &[u8]) -> Option<()> {
        let line = std::str::from_utf8(line).ok()?;
        let (method, rest) = line.split_once(' ')?;
        let (target, version) = rest.rsplit_once(' ')?;
        if !version.starts_with("HTTP/") {
            return None;
        }
        self.method = Some(method.to_owned());
        self.target = Some(target.to_owned());
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(saved: &Saved, method: Option<&str>, target: Option<&str>, headers: &[(&str, &str)]) {
        let own: Vec<_> = saved
            .headers
            .iter()
            .map(|(name, value)| (&**name, std::str::from_utf8(value).unwrap()))
            .collect();
        assert_eq!(own, headers);
        assert_eq!(
            (saved.method.as_deref(), saved.target.as_deref()),
            (method, target)
        );
    }

    #[test]
    fn headers_are_read_with_and_without_a_request_line() {
        let of = |text: &str| Saved::of_parts(text.as_bytes(), Vec::new());
        check(&of("A: b\nC:d: e \n"), None, None, &[("A", "b"), ("C", "d: e")]);
        check(
            &of("PUT /x?y=1 HTTP/1.1\r\nA: b\r\n\r\n"),
            Some("PUT"),
            Some("/x?y=1"),
            &[("A", "b")],
        );
        check(&of("no header\n: empty\nA b: c\n"), None, None, &[]);
    }

    #[test]
    fn of_what_curl_printed_only_the_request_counts() {
        let text = "* Trying: 127.0.0.1\n> POST /x HTTP/1.1\n> Host: h:1\n> \n* done: yes\n< HTTP/1.1 200 OK\n< Server: s\n";
        let saved = Saved::of_parts(text.as_bytes(), Vec::new());
        check(&saved, Some("POST"), Some("/x"), &[("Host", "h:1")]);
    }

    #[test]
    fn a_whole_request_is_parted_at_the_first_empty_line() {
        for end in ["\n", "\r\n"] {
            let text = format!("POST / HTTP/1.1{end}A: b{end}{end}one{end}{end}two\n");
            let saved = Saved::of_request(text.as_bytes()).unwrap();
            check(&saved, Some("POST"), Some("/"), &[("A", "b")]);
            assert_eq!(saved.body, format!("one{end}{end}two\n"));
        }
        assert!(Saved::of_request(b"POST / HTTP/1.1\r\nA: b\r\n").is_none());
        assert!(Saved::of_request(b"").is_none());
    }
}
