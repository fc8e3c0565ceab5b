//! Other URLs that may have been signed: the one as the sender knows it, and not as it is seen behind a proxy.
//!
//! What proxies say of the request in headers is only tried here. The gateway itself never believes it.

use std::collections::HashSet;

use super::Cause;
use super::trial::{Examination, Fit, Trial};
use crate::UrlUse;

/// Four hosts with three ports, two schemes, four paths and three queries would be more; the likely ones come first.
const URLS_MAX: usize = 96;

/// The URL that was signed, seen from the one that was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlChange {
    /// What differs, in words.
    pub differs: Vec<&'static str>,
    /// The one that fits, up to its query, which may hold what is secret.
    pub fits: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Parts<'a> {
    scheme: &'a str,
    host: &'a str,
    port: &'a str,
    path: &'a str,
    query: &'a str,
}

impl Examination<'_> {
    pub(super) fn url(&self) -> Option<(Cause, Fit)> {
        if self.case.endpoint.provider.knowledge().url == UrlUse::Unused {
            return None;
        }
        let given = Parts::of(self.case.delivery.url.unwrap_or_default());
        let slashed = format!("{}/", given.path);
        let mut seen = HashSet::from([given.text()]);
        let others = self.candidates(given, &slashed).into_iter();
        let others = others.filter(|other| seen.insert(other.text())).take(URLS_MAX);
        others.collect::<Vec<_>>().into_iter().find_map(|other| {
            let url = other.text();
            let trial = Trial {
                url: Some(&url),
                ..Trial::of(self.case)
            };
            let fit = self.fits(&trial)?;
            let change = UrlChange {
                differs: given.differences(other),
                fits: Parts { query: "", ..other }.text(),
            };
            Some((Cause::Url(change), fit))
        })
    }

    /// Single changes first, then all of them together.
    fn candidates<'p>(&'p self, given: Parts<'p>, slashed: &'p str) -> Vec<Parts<'p>> {
        let said = self.said(given, slashed);
        let mut singles = Vec::new();
        singles.extend(said.schemes.iter().map(|&scheme| Parts { scheme, ..given }));
        singles.extend(
            said.hosts
                .iter()
                .map(|&(host, port)| Parts { host, port, ..given }),
        );
        singles.extend(said.ports.iter().map(|&port| Parts { port, ..given }));
        singles.extend(said.paths.iter().map(|&path| Parts { path, ..given }));
        singles.extend(said.queries.iter().map(|&query| Parts { query, ..given }));
        for &(host, port) in &said.hosts {
            for &scheme in &said.schemes {
                for &path in &said.paths {
                    for &query in &said.queries {
                        singles.push(Parts {
                            scheme,
                            host,
                            port,
                            path,
                            query,
                        });
                        singles.push(Parts {
                            scheme,
                            host,
                            port: "",
                            path,
                            query,
                        });
                    }
                }
            }
        }
        singles
    }

    /// What the request and its proxies say, beside what is given.
    fn said<'p>(&'p self, given: Parts<'p>, slashed: &'p str) -> Said<'p> {
        let first = |name| {
            let value = self.case.delivery.headers.text(name)?;
            value
                .split(',')
                .next()
                .map(str::trim)
                .filter(|value| !value.is_empty())
        };
        let forwarded = self.case.delivery.headers.text("forwarded").unwrap_or_default();
        let forwarded = forwarded
            .split([';', ','])
            .find_map(|item| item.trim().strip_prefix("host="));
        let hosts = [
            first("x-forwarded-host"),
            first("x-original-host"),
            forwarded,
            first("host"),
        ];
        let hosts = hosts
            .into_iter()
            .flatten()
            .map(|host| host_and_port(host.trim_matches('"')));
        let targets = [
            self.case.target,
            first("x-forwarded-uri"),
            first("x-original-uri"),
            first("x-original-url"),
        ];
        let targets: Vec<_> = targets.into_iter().flatten().map(path_and_query).collect();
        let slash = given.path.strip_suffix('/').unwrap_or(slashed);
        Said {
            schemes: vec!["https", "http"],
            hosts: [(given.host, given.port)]
                .into_iter()
                .chain(hosts)
                .take(4)
                .collect(),
            ports: [""]
                .into_iter()
                .chain(first("x-forwarded-port"))
                .chain(["443", "80"])
                .collect(),
            paths: [given.path, slash]
                .into_iter()
                .chain(targets.iter().map(|(path, _)| *path))
                .take(4)
                .collect(),
            queries: [given.query, ""]
                .into_iter()
                .chain(targets.iter().map(|(_, query)| *query))
                .take(3)
                .collect(),
        }
    }
}

struct Said<'a> {
    schemes: Vec<&'a str>,
    hosts: Vec<(&'a str, &'a str)>,
    ports: Vec<&'a str>,
    paths: Vec<&'a str>,
    queries: Vec<&'a str>,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = host_and_port(authority);
        let (path, query) = path_and_query(target);
        Self {
            scheme,
            host,
            port,
            path,
            query,
        }
    }

    fn text(self) -> String {
        let colon = if self.port.is_empty() { "" } else { ":" };
        let mark = if self.query.is_empty() { "" } else { "?" };
        let Self {
            scheme,
            host,
            port,
            path,
            query,
        } = self;
        format!("{scheme}://{host}{colon}{port}{path}{mark}{query}")
    }

    fn differences(self, other: Self) -> Vec<&'static str> {
        let parts = [
            ("scheme", self.scheme != other.scheme),
            ("host", self.host != other.host),
            ("port", self.port != other.port),
            ("path", self.path != other.path),
            ("query", self.query != other.query),
        ];
        parts
            .into_iter()
            .filter_map(|(part, differs)| differs.then_some(part))
            .collect()
    }
}

/// Without a user: it never belongs to a registered URL, and its password to no sentence.
fn host_and_port(authority: &str) -> (&str, &str) {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
        _ => (host, ""),
    }
}

fn path_and_query(target: &str) -> (&str, &str) {
    target.split_once('?').unwrap_or((target, ""))
}
