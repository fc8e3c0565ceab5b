//! Gathers what a run leaves behind, and lets its processes end as they should.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::future::join_all;
use hookgate_harness::Request;

use crate::evidence::{Call, Counters, Evidence, Key, Source};
use crate::provider::Provider;
use crate::rows;
use crate::scene::{Role, Running, Scene};
use crate::settings::{CANARY, SECRETS, TARGET_SECRET};

/// Everything but what the run itself knows.
pub(crate) async fn evidence(scene: &Scene, provider: &Provider) -> Evidence {
    let counters = counters(scene, provider).await;
    let (events, sends, mut findings) = provider.journal();
    let mut session = scene.slot.session(&scene.database).await;
    let (rows, attempts) = (
        rows::events(&mut session).await,
        rows::attempts(&mut session).await,
    );
    for error in [rows.as_ref().err(), attempts.as_ref().err()]
        .into_iter()
        .flatten()
    {
        findings.push(format!("the rows cannot be read: {error}"));
    }
    let requests = scene.target.requests();
    let calls: Vec<_> = requests
        .iter()
        .filter_map(|request| call(scene, request))
        .collect();
    if calls.len() < requests.len() {
        findings.push(format!(
            "{} calls lack their id or attempt",
            requests.len() - calls.len()
        ));
    }
    findings.extend(endings(scene).await);
    let mut unsettled = BTreeSet::new();
    for running in scene.places.iter().flat_map(|place| place.all()) {
        let lines = running.process.lines();
        findings.extend(log_findings(&running.name, &lines));
        unsettled.extend(
            self::unsettled(&lines)
                .into_iter()
                .map(|key| (running.name.clone(), key)),
        );
    }
    Evidence {
        missed: scene.missed(),
        disturbances: scene.disturbances(),
        events,
        sends,
        calls,
        rows: rows.unwrap_or_default(),
        attempts: attempts.unwrap_or_default(),
        counters,
        findings,
        unsettled,
        ..Evidence::default()
    }
}

/// Of the replicas that live. Those that died took theirs with them.
async fn counters(scene: &Scene, provider: &Provider) -> Vec<Counters> {
    let replicas = scene.places.iter().filter(|place| place.role == Role::Receive);
    let alive = replicas
        .map(|place| place.present())
        .filter(|running| running.stays());
    let pages = alive.map(|running| async move {
        let page = provider.metrics(&running).await.unwrap_or_default();
        Counters {
            process: running.name.clone(),
            series: series(&page),
        }
    });
    join_all(pages).await
}

/// All series of a metrics page.
fn series(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#'));
    let value = |line: &str| {
        let (name, value) = line.rsplit_once(' ')?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    lines.filter_map(value).collect()
}

/// Whoever lives is told to end, and must do so by itself.
async fn endings(scene: &Scene) -> Vec<String> {
    let alive = scene.places.iter().map(|place| place.present());
    let endings = alive
        .filter(|running| running.stays())
        .map(|running: Arc<Running>| async move {
            running.process.signal("TERM");
            let code = running.process.wait_exit().await;
            (code != Some(0)).then(|| format!("{} ended with {code:?} after SIGTERM", running.name))
        });
    join_all(endings).await.into_iter().flatten().collect()
}

/// What no log may hold.
fn log_findings(process: &str, lines: &[String]) -> Vec<String> {
    let unwanted = [
        ("panicked", "a panic"),
        (SECRETS[0], "a provider's secret"),
        (SECRETS[1], "a provider's secret"),
        (TARGET_SECRET, "the target's secret"),
        (CANARY, "a body"),
    ];
    let finding = |(text, what): (&str, &str)| {
        let line = lines.iter().find(|line| line.contains(text))?;
        Some(format!("the log of {process} holds {what}: {line}"))
    };
    unwanted.into_iter().filter_map(finding).collect()
}

/// Events of which a log says that the ledger did not take their note in time.
fn unsettled(lines: &[String]) -> Vec<Key> {
    const SAID: [&str; 4] = [
        "could not be settled",
        "outlived its lease",
        "was taken over while it was delivered",
        "the ledger cannot be told yet",
    ];
    let said = lines
        .iter()
        .filter(|line| SAID.iter().any(|said| line.contains(said)));
    let key = |line: &String| {
        let line: serde_json::Value = serde_json::from_str(line).ok()?;
        key(line["event.key"].as_str()?)
    };
    said.filter_map(key).collect()
}

/// As `stripe:evt_1`.
fn key(text: &str) -> Option<Key> {
    let (source, id) = text.split_once(':')?;
    Some(Key {
        source: Source::named(source)?,
        id: id.to_owned(),
    })
}

fn call(scene: &Scene, request: &Request) -> Option<Call> {
    Some(Call {
        key: key(request.id()?)?,
        attempt: request.header("hookgate-attempt")?.parse().ok()?,
        caller: request.path.trim_start_matches('/').to_owned(),
        began: scene.at(request.began_at),
        ended: request.ended_at.map(|ended| scene.at(ended)),
        answered: request.answered,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metrics_page_is_read_by_series() {
        let page = "# HELP a b\na_total{x=\"y z\"} 3\nb 0.5\n";
        let expected = [("a_total{x=\"y z\"}".to_owned(), 3.0), ("b".to_owned(), 0.5)];
        assert_eq!(series(page), BTreeMap::from(expected));
    }

    #[test]
    fn an_event_that_could_not_be_settled_is_read_from_the_log() {
        let line = r#"{"level":"WARN","message":"stripe:evt_1 could not be settled; its lease will end","event.key":"stripe:evt_1"}"#;
        let other = r#"{"level":"WARN","message":"stripe:evt_2 try 1 of 50","event.key":"stripe:evt_2"}"#;
        let [key] = &unsettled(&[other.to_owned(), line.to_owned()])[..] else {
            panic!("one line says so");
        };
        assert_eq!(key.to_string(), "stripe:evt_1");
    }

    #[test]
    fn a_log_with_a_panic_a_secret_or_a_body_is_a_finding() {
        let found = |line: &str| log_findings("receive-0.0", &[line.to_owned()]).len();
        assert_eq!(found("all is well"), 0);
        assert_eq!(found("thread 'main' panicked at src/lib.rs"), 1);
        assert_eq!(found(&format!("the key is {}", SECRETS[1])), 1);
        assert_eq!(
            found(&format!("the body is {CANARY}, the key {TARGET_SECRET}")),
            2
        );
    }
}
