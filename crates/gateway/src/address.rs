//! The URL by which a source is known to its provider, for schemes that sign it: what the operator configured,
//! and the query of the request.
//!
//! `X-Forwarded-Proto`, `X-Forwarded-Host` and their like are never read, and `Host` only in dev: whoever sends
//! a request writes them. A signature made for one endpoint, which a thief has, must not pass at another
//! because the thief says where he is; what the operator says cannot be forged.

use std::net::SocketAddr;

use hookgate_webhook::UrlUse;

use crate::config::{Config, SourceConfig};

/// Where one source is.
#[derive(Debug, Clone)]
pub enum Address {
    /// As it is registered with the provider, letter by letter.
    Configured(String),
    /// In dev: wherever the request says it came.
    OfRequest {
        /// Where we listen, if the request does not say.
        listen: SocketAddr,
        /// `/webhooks/<source>`.
        path: String,
    },
    /// Nobody said: good for nothing but its query.
    Unknown {
        /// Where we listen.
        listen: SocketAddr,
        /// `/webhooks/<source>`.
        path: String,
    },
}

impl Address {
    /// Of a source.
    pub fn of(config: &Config, source: &SourceConfig) -> Self {
        let (listen, path) = (config.listen, format!("/webhooks/{}", source.name));
        // Where only the query is signed, that of the request is meant, and the registered one came with it.
        let query_alone = source.provider.knowledge().url == UrlUse::Query;
        match source.public_url.as_deref() {
            Some(url) if query_alone => {
                Self::Configured(url.split_once('?').map_or(url, |(base, _)| base).to_owned())
            }
            Some(url) => Self::Configured(url.to_owned()),
            None if config.dev => Self::OfRequest { listen, path },
            None => Self::Unknown { listen, path },
        }
    }

    /// The URL of a request with this `Host` and this query.
    pub fn url(&self, host: Option<&str>, query: Option<&str>) -> String {
        let query = query.filter(|query| !query.is_empty());
        match self {
            Self::Configured(url) => with_query(url, query),
            Self::OfRequest { listen, path } => match host {
                Some(host) => with_query(&format!("http://{host}{path}"), query),
                None => with_query(&format!("http://{listen}{path}"), query),
            },
            Self::Unknown { listen, path } => with_query(&format!("http://{listen}{path}"), query),
        }
    }
}

/// A configured query stands, unless that of the request only goes on from it: some providers append to what
/// was registered.
fn with_query(url: &str, query: Option<&str>) -> String {
    let goes_on = |registered: &str, query: &str| {
        query
            .strip_prefix(registered)
            .is_some_and(|rest| rest.starts_with('&'))
    };
    match (url.split_once('?'), query) {
        (_, None) => url.to_owned(),
        (None, Some(query)) => format!("{url}?{query}"),
        (Some((base, registered)), Some(query)) if goes_on(registered, query) => format!("{base}?{query}"),
        (Some(_), Some(_)) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &Address, host: Option<&str>, query: Option<&str>, expected: &str) {
        assert_eq!(
            address.url(host, query),
            expected,
            "{address:?} {host:?} {query:?}"
        );
    }

    #[test]
    fn what_is_configured_stands_whatever_the_request_says_of_its_host() {
        let plain = Address::Configured("https://hooks.example.com/webhooks/square".to_owned());
        let base = "https://hooks.example.com/webhooks/square";
        check(&plain, Some("evil.example"), None, base);
        check(&plain, Some("evil.example"), Some(""), base);
        check(
            &plain,
            None,
            Some("data.id=1&type=payment"),
            &format!("{base}?data.id=1&type=payment"),
        );
    }

    #[test]
    fn a_registered_query_stands_unless_the_request_goes_on_from_it() {
        let asked = Address::Configured("https://h.example/in?shop=7".to_owned());
        check(&asked, None, None, "https://h.example/in?shop=7");
        check(&asked, None, Some("shop=7"), "https://h.example/in?shop=7");
        check(&asked, None, Some("shop=8"), "https://h.example/in?shop=7");
        check(&asked, None, Some("shop=78"), "https://h.example/in?shop=7");
        check(
            &asked,
            None,
            Some("shop=7&sum=ab"),
            "https://h.example/in?shop=7&sum=ab",
        );
    }

    #[test]
    fn only_dev_takes_the_word_of_a_request() {
        let listen: SocketAddr = ([127, 0, 0, 1], 8080).into();
        let path = || "/webhooks/square".to_owned();
        let dev = Address::OfRequest { listen, path: path() };
        check(
            &dev,
            Some("localhost:9"),
            Some("a=1"),
            "http://localhost:9/webhooks/square?a=1",
        );
        check(&dev, None, None, "http://127.0.0.1:8080/webhooks/square");
        let unknown = Address::Unknown { listen, path: path() };
        check(
            &unknown,
            Some("evil.example"),
            Some("a=1"),
            "http://127.0.0.1:8080/webhooks/square?a=1",
        );
    }
}
