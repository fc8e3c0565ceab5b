//! Sources with rules of their own about the identity of events, and events made to meet them.

use std::path::Path;

use hookgate_webhook::Provider;
use tempfile::TempDir;

use crate::deployment::Deployment;
use crate::gateway::Replica;
use crate::provider::{SECRET, Signed, sign};

/// A deployment whose sources have settings in a file.
pub struct Ruled {
    pub deployment: Deployment,
    _directory: TempDir,
}

impl Ruled {
    /// The deployment with this file beside its settings.
    pub fn by(deployment: Deployment, file: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = write(directory.path(), file);
        Self {
            deployment: deployment.set("HOOKGATE_CONFIG", &path),
            _directory: directory,
        }
    }
}

fn write(directory: &Path, file: &str) -> String {
    let path = directory.join("hookgate.toml");
    std::fs::write(&path, file).expect("the directory takes a file");
    path.display().to_string()
}

/// What a Stripe event says.
#[derive(Debug, Clone, Copy)]
pub struct Says<'a> {
    pub id: &'a str,
    pub event_type: &'a str,
    pub object: &'a str,
    /// What the object is like after the change.
    pub content: &'a str,
    /// In seconds after some moment.
    pub created: i64,
    /// As it stands in the body; empty: it is not there.
    pub livemode: &'a str,
    pub account: &'a str,
}

impl<'a> Says<'a> {
    /// A live invoice that was paid.
    pub fn new(id: &'a str) -> Self {
        Self {
            id,
            event_type: "invoice.paid",
            object: "in_1",
            content: "paid",
            created: 0,
            livemode: "true",
            account: "",
        }
    }

    /// As Stripe would send it.
    pub fn signed(self) -> Signed {
        let optional = |name: &str, value: &str| match value {
            "" => String::new(),
            value => format!(r#""{name}":{value},"#),
        };
        let account = optional("account", &quoted(self.account));
        let body = format!(
            r#"{{"id":"{}","type":"{}","created":{},{}{}"data":{{"object":{{"id":"{}","status":"{}"}}}}}}"#,
            self.id,
            self.event_type,
            1_790_000_000 + self.created,
            optional("livemode", self.livemode),
            account,
            self.object,
            self.content,
        );
        sign(Provider::Stripe, SECRET, self.id, body.as_bytes())
    }
}

fn quoted(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("\"{text}\""),
    }
}

/// An id that no other test has.
pub fn fresh_id() -> String {
    format!("evt_{:032x}", rand::random::<u128>())
}

/// Events of a source that were left aside for this reason.
pub async fn ignored(replica: &Replica, source: &str, reason: &str) -> f64 {
    let series = format!("hookgate_ignored_total{{reason=\"{reason}\",source=\"{source}\"}}");
    replica.metric(&series).await
}

/// A counter that only a source labels.
pub async fn counted(replica: &Replica, name: &str, source: &str) -> f64 {
    replica
        .metric(&format!("hookgate_{name}{{source=\"{source}\"}}"))
        .await
}
