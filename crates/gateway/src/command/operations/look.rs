//! Lists of events, and one event whole.

use hookgate_ledger::{Filter, Operations};
use hookgate_webhook::EventKey;

use super::super::{Failure, print};
use super::filter::PageArgs;
use super::{Desk, safe};
use crate::view::{EventDetailView, EventView, ListingView};

/// Prints one page, newest first.
pub(super) fn list(desk: &Desk, filter: &Filter, page: &PageArgs) -> Result<(), Failure> {
    let listing =
        desk.attend(async |ledger| Ok(ledger.list(filter, page.cursor.as_ref(), page.limit).await?))?;
    let view = ListingView::from(listing);
    desk.show(&view, || table(&view))?;
    match view.events.is_empty() {
        true => Err(Failure::nothing("no such event")),
        false => Ok(()),
    }
}

fn table(view: &ListingView) -> String {
    let heading = [
        "RECEIVED", "STATE", "EVENT", "TYPE", "OBJECT", "ATTEMPTS", "ERROR",
    ];
    let mut text = safe::table(heading, view.events.iter().map(row));
    if let Some(next) = &view.next {
        text += &format!("\nthere is more: --cursor {next}\n");
    }
    text
}

fn row(event: &EventView) -> [String; 7] {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let twin_of = event
        .twin_of
        .as_ref()
        .map(|original| format!("twin of {original}"));
    [
        event.received_at.clone(),
        event.state.clone(),
        format!("{}:{}", event.source, event.event_id),
        text(&event.event_type),
        text(&event.object_id),
        event.attempts.to_string(),
        safe::short(event.last_error.as_deref().or(twin_of.as_deref())),
    ]
}

/// Prints all of one event but its body.
pub(super) fn show(desk: &Desk, key: &EventKey) -> Result<(), Failure> {
    let detail = desk.attend(async |ledger| found(&*ledger, key).await)?;
    desk.show(&detail, || whole(&detail))
}

async fn found(ledger: &dyn Operations, key: &EventKey) -> Result<EventDetailView, Failure> {
    let detail = ledger.event(key).await?;
    detail.map(EventDetailView::from).ok_or_else(|| missing(key))
}

/// There is no such event.
pub(super) fn missing(key: &EventKey) -> Failure {
    Failure::nothing(format!("there is no event {}", safe::text(&key.to_string())))
}

fn whole(detail: &EventDetailView) -> String {
    let event = &detail.event;
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    let facts = [
        ("event", format!("{}:{}", event.source, event.event_id)),
        ("provider", event.provider.clone()),
        ("account", text(&event.account)),
        ("mode", text(&event.mode)),
        ("type", text(&event.event_type)),
        ("object", text(&event.object_id)),
        ("provider time", text(&event.provider_time)),
        ("received", event.received_at.clone()),
        ("path", event.path.clone()),
        ("state", event.state.clone()),
        ("attempts", event.attempts.to_string()),
        ("tries", event.tries.to_string()),
        ("generation", event.generation.to_string()),
        ("next attempt", text(&event.next_attempt_at)),
        ("twin of", text(&event.twin_of)),
        ("processed", text(&event.processed_at)),
        ("pruned", text(&event.pruned_at)),
        (
            "body",
            format!("{} bytes, sha256 {}", event.body_bytes, detail.body_sha256),
        ),
        ("last error", text(&event.last_error)),
    ];
    let facts = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
    let lines = facts.map(|(name, fact)| format!("{name:14} {}\n", safe::text(&fact)));
    lines.collect::<String>() + &headers(detail) + &attempts(detail) + &audit(detail)
}

fn headers(detail: &EventDetailView) -> String {
    let lines = detail.headers.iter().map(|header| {
        let (name, value) = (safe::text(&header.name), safe::text(&header.value));
        format!("  {name}: {value}\n")
    });
    section("headers", &lines.collect::<String>())
}

fn attempts(detail: &EventDetailView) -> String {
    let rows = detail.attempt_log.iter().map(|run| {
        [
            run.generation.to_string(),
            run.attempt.to_string(),
            run.started_at.clone(),
            run.finished_at.clone(),
            run.outcome.clone(),
            safe::short(run.error.as_deref()),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let heading = ["GENERATION", "ATTEMPT", "STARTED", "FINISHED", "OUTCOME", "ERROR"];
    match rows.is_empty() {
        true => String::new(),
        false => section("attempts", &safe::table(heading, rows)),
    }
}

fn audit(detail: &EventDetailView) -> String {
    let rows = detail.audit_log.iter().map(|record| {
        let generation = record.generation.map(|number| number.to_string());
        [
            record.at.clone(),
            record.actor.clone(),
            record.action.clone(),
            generation.unwrap_or_default(),
            safe::short(record.detail.as_deref()),
        ]
    });
    let rows: Vec<_> = rows.collect();
    match rows.is_empty() {
        true => String::new(),
        false => section(
            "audit",
            &safe::table(["AT", "WHO", "ACTION", "GENERATION", "WHY"], rows),
        ),
    }
}

fn section(name: &str, text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("\n{name}\n{text}"),
    }
}

/// Prints a body byte for byte; on a terminal without characters that act on it.
pub(super) fn body(desk: &Desk, key: &EventKey) -> Result<(), Failure> {
    use std::io::{IsTerminal as _, Write as _};

    use hookgate_ledger::StoredBody;

    let body = desk.attend(async |ledger| Ok(ledger.body(key).await?))?;
    match body {
        None => Err(missing(key)),
        Some(StoredBody::Pruned) => Err(Failure::refused(format!(
            "the body of {} was pruned: retention keeps it for a time only",
            safe::text(&key.to_string())
        ))),
        Some(StoredBody::Raw(bytes)) if std::io::stdout().is_terminal() => {
            print(&safe::lines(&bytes));
            Ok(())
        }
        Some(StoredBody::Raw(bytes)) => {
            let mut out = std::io::stdout().lock();
            out.write_all(&bytes)
                .and_then(|()| out.flush())
                .map_err(|error| Failure::new(format!("the body cannot be written: {error}")))
        }
    }
}
