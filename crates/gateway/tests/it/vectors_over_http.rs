//! Every recorded delivery over HTTP, at the moment of its recording: what its sender's own SDK takes is accepted, and
//! what it refuses is refused for the same reason.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookgate_webhook::{Provider, UrlUse};
use serde_json::Value;

use crate::provider::Signed;
use crate::test_app::TestApp;

/// The one recording that is genuine and no event: its body is not JSON.
const NO_EVENT: &str = "github-ok-documentation-example";

/// A moment of the recordings, for those that do not care.
const ANY_TIME: i64 = 1_790_000_000;

struct Recording {
    vector: Value,
    provider: Provider,
}

fn recordings() -> Vec<Recording> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../webhook/tests/vectors");
    let files = std::fs::read_dir(directory).expect("the recordings are there");
    let mut lines: Vec<Value> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("text");
        lines.extend(
            text.lines()
                .map(|line| serde_json::from_str::<Value>(line).expect("JSON")),
        );
    }
    let recording = |vector: Value| {
        let provider = vector["provider"].as_str().expect("a provider");
        let provider = provider.parse().expect("it is built in");
        Recording { vector, provider }
    };
    lines.into_iter().map(recording).collect()
}

impl Recording {
    fn text(&self, field: &str) -> Option<&str> {
        self.vector[field].as_str()
    }

    fn name(&self) -> &str {
        self.text("name").expect("a name")
    }

    /// The table of a source that is set up as the endpoint of this recording was.
    fn table(&self) -> String {
        let known = self.provider.knowledge();
        let mut table = format!(
            "provider = \"{}\"\nsecrets = {}\n",
            known.name, self.vector["secrets"]
        );
        let checked = self.vector["now"].is_number();
        match self.vector["tolerance_s"].as_u64().filter(|_| checked) {
            Some(seconds) => table += &format!("tolerance = \"{seconds}s\"\n"),
            None if known.signs_time() => table += "tolerance = \"off\"\n",
            None => {}
        }
        match (known.url, self.text("url")) {
            (UrlUse::Whole, Some(url)) => table += &format!("public_url = \"{url}\"\n"),
            (UrlUse::Query, Some(url)) => {
                let base = url.split('?').next().unwrap_or_default();
                table += &format!("public_url = \"{base}\"\n");
            }
            (UrlUse::Unused, _) | (_, None) => {}
        }
        table
    }

    /// The query of the request, where it is a query that is signed.
    fn query(&self) -> &str {
        let query = self
            .text("url")
            .and_then(|url| url.find('?').map(|at| &url[at..]));
        query
            .filter(|_| self.provider.knowledge().url == UrlUse::Query)
            .unwrap_or_default()
    }

    fn delivery(&self, source: &str) -> Signed {
        let headers = self.vector["headers"].as_array().expect("a list of headers");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        Signed {
            source: source.to_owned(),
            event_id: self.text("event_id").unwrap_or_default().to_owned(),
            headers: headers
                .iter()
                .map(|pair| (text(&pair[0]), text(&pair[1])))
                .collect(),
            body: STANDARD
                .decode(self.text("body_b64").expect("a body"))
                .expect("base64"),
        }
    }
}

#[tokio::test]
async fn every_recording_is_judged_over_http_as_its_sdk_judges_it() {
    let recordings = recordings();
    let mut sources = BTreeMap::<String, String>::new();
    for recording in &recordings {
        let next = format!("endpoint-{}", sources.len());
        sources.entry(recording.table()).or_insert(next);
    }
    let tables = sources
        .iter()
        .map(|(table, name)| format!("[sources.{name}]\n{table}\n"));
    let app = TestApp::start(&[], Some(&tables.collect::<String>()), ANY_TIME).await;
    for recording in &recordings {
        let source = &sources[&recording.table()];
        let now = recording.vector["now"].as_i64().unwrap_or(ANY_TIME);
        let path = format!("/webhooks/{source}{}", recording.query());
        let answer = app.deliver_to_at(now, &path, &recording.delivery(source)).await;
        let (name, status) = (recording.name(), answer.status);
        match recording.text("expect").expect("an expectation") {
            "ok" if name == NO_EVENT => {
                assert_eq!((status, answer.error()), (400, "malformed_body"), "{name}");
            }
            "ok" => assert!((200..300).contains(&status), "{name}: {answer:?}"),
            reason => {
                let expected = recording.provider.knowledge().refusal_status;
                assert_eq!((status, answer.error()), (expected, reason), "{name}");
            }
        }
    }
    let genuine = recordings
        .iter()
        .filter(|recording| recording.text("expect") == Some("ok"));
    assert_eq!((genuine.count(), recordings.len()), (127, 237));
    app.stop().await;
}
