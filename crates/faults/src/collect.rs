//! Gathers what a run leaves behind, and lets its processes end as they should.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::join_all;
use hookgate_harness::Request;

use crate::evidence::{Call, Counters, Evidence, Key, Source};
use crate::provider::Provider;
use crate::rows;
use crate::scene::{Role, Running, Scene};
use crate::settings::{CANARY, SECRET, TARGET_SECRET};

/// Everything but what the run itself knows.
pub(crate) async fn evidence(scene: &Scene, provider: &Provider) -> Evidence {
    let counters = counters(scene, provider).await;
    let (events, sends, mut findings) = provider.journal();
    let mut session = scene.slot.session(&scene.database).await;
    let rows = rows::events(&mut session).await;
    let attempts = rows::attempts(&mut session).await;
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
    let everybody = || scene.places.iter().flat_map(|place| place.all());
    findings.extend(everybody().flat_map(|running| log_findings(&running.name, &running.process.lines())));
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
        (SECRET, "the provider's secret"),
        (TARGET_SECRET, "the target's secret"),
        (CANARY, "a body"),
    ];
    let finding = |(text, what): (&str, &str)| {
        let line = lines.iter().find(|line| line.contains(text))?;
        Some(format!("the log of {process} holds {what}: {line}"))
    };
    unwanted.into_iter().filter_map(finding).collect()
}

fn call(scene: &Scene, request: &Request) -> Option<Call> {
    let (source, id) = request.id()?.split_once(':')?;
    Some(Call {
        key: Key {
            source: Source::named(source)?,
            id: id.to_owned(),
        },
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
    fn a_log_with_a_panic_a_secret_or_a_body_is_a_finding() {
        let found = |line: &str| log_findings("receive-0.0", &[line.to_owned()]).len();
        assert_eq!(found("all is well"), 0);
        assert_eq!(found("thread 'main' panicked at src/lib.rs"), 1);
        assert_eq!(found(&format!("the key is {SECRET}")), 1);
        assert_eq!(
            found(&format!("the body is {CANARY}, the key {TARGET_SECRET}")),
            2
        );
    }
}
