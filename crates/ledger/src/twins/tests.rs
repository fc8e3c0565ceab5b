//! Who is whose twin, in tables: one event meets one holder, and several events meet each other.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use hookgate_webhook::{EventId, EventKey, Field, Mode, ProviderTime, SourceName};

use super::{Fate, Holder, Place, Standing, claims, in_order, judge};
use crate::{ContentKey, DeliveryId, NewEvent, Path, State, Subject};

const WINDOW: Duration = Duration::from_secs(600);

/// An event about one object that says this of it at this second.
fn event(id: &str, content: u8, second: Option<i64>, key: fn(Subject<'_>, u8) -> ContentKey) -> NewEvent {
    let (event_type, object_id) = (Field::parse("a.b").unwrap(), Field::parse("o_1").unwrap());
    let subject = Subject {
        mode: Mode::Live,
        account: None,
        event_type: &event_type,
        object_id: &object_id,
    };
    NewEvent {
        content_keys: vec![key(subject, content)],
        key: EventKey {
            source: SourceName::parse("stripe").unwrap(),
            id: EventId::parse(id).unwrap(),
        },
        provider: "stripe",
        account: None,
        mode: Mode::Live,
        event_type: Some(event_type),
        object_id: Some(object_id),
        provider_time: second.map(|second| ProviderTime {
            text: "".into(),
            unix_ms: second * 1000,
        }),
        body_sha256: [content; 32],
        headers: Vec::new(),
        body: Bytes::new(),
        delivery: DeliveryId(0),
    }
}

fn by_content(subject: Subject<'_>, content: u8) -> ContentKey {
    ContentKey::of_content(subject, [content; 32], WINDOW, true)
}

fn in_shadow(subject: Subject<'_>, content: u8) -> ContentKey {
    ContentKey::of_content(subject, [content; 32], WINDOW, false)
}

fn by_object(subject: Subject<'_>, _: u8) -> ContentKey {
    ContentKey::of_object(subject, true)
}

fn guarded(_: Subject<'_>, content: u8) -> ContentKey {
    ContentKey::of_body(&[content; 32], true)
}

fn flagged(_: Subject<'_>, content: u8) -> ContentKey {
    ContentKey::of_body(&[content; 32], false)
}

/// The holder of the event's only key.
fn held(event: &NewEvent, holder: Holder) -> BTreeMap<Place, Holder> {
    claims(&[event])
        .into_keys()
        .map(|place| (place, holder.clone()))
        .collect()
}

fn holder(content: u8, second: Option<i64>, age_s: i64, standing: Standing) -> Holder {
    Holder {
        event_id: "first".to_owned(),
        provider_ms: second.map(|second| second * 1000),
        age_ms: age_s * 1000,
        sha256: Some([content; 32]),
        standing,
    }
}

/// What becomes of an event that meets this holder, whether it is found alike, and whether it takes the key.
fn meet(event: &NewEvent, holder: Holder, forwards: bool) -> (Fate, bool, bool) {
    let judgement = judge(&[event], held(event, holder), forwards);
    let (_, verdict) = &judgement.verdicts[0];
    assert_eq!(verdict.alike.any(), verdict.twin_of.is_some());
    (verdict.fate, verdict.alike.any(), !judgement.taken.is_empty())
}

#[test]
fn only_an_original_that_somebody_sees_through_suppresses() {
    let second = event("second", 1, Some(5), by_content);
    let of = |state, path, provider, ended| holder(1, Some(0), 9, Standing::of(state, path, provider, ended));
    let inbox = |state| meet(&second, of(state, Path::Inbox, "stripe", false), false);
    for state in [State::Queued, State::Running, State::Parked, State::Done] {
        assert_eq!(inbox(state), (Fate::Twin, true, false), "{state}");
    }
    for state in [State::Dead, State::Discarded, State::Failed, State::Twin] {
        assert_eq!(inbox(state), (Fate::Run, false, true), "{state}");
    }
    let running = |provider, ended, forwards| {
        meet(
            &second,
            of(State::Running, Path::Forward, provider, ended),
            forwards,
        )
    };
    assert_eq!(running("stripe", false, true), (Fate::Wait, false, false));
    assert_eq!(running("stripe", false, false), (Fate::Run, false, true));
    assert_eq!(
        running("stripe", true, true),
        (Fate::Run, false, true),
        "its replica died"
    );
    assert_eq!(
        running("github", false, true),
        (Fate::Twin, true, false),
        "it is queued if it fails"
    );
}

#[test]
fn content_counts_within_the_window_only() {
    let check = |ours: Option<i64>, theirs: Option<i64>, age_s, expected| {
        let met = meet(
            &event("second", 1, ours, by_content),
            holder(1, theirs, age_s, Standing::Kept),
            false,
        );
        assert_eq!(met, expected, "{ours:?} {theirs:?} {age_s}");
    };
    let (twin, own) = ((Fate::Twin, true, false), (Fate::Run, false, true));
    check(Some(1000), Some(400), 90_000, twin);
    check(Some(400), Some(1000), 90_000, twin);
    check(Some(1001), Some(400), 0, own);
    check(Some(400), Some(1001), 0, own);
    check(Some(i64::MAX / 1000), Some(i64::MIN / 1000), 0, own);
    check(None, None, 600, twin);
    check(None, None, 601, own);
    check(None, None, -1, twin);
    check(Some(400), None, 0, own);
    check(None, Some(400), 0, own);
}

#[test]
fn other_content_takes_the_key_and_an_object_keeps_it_for_ever() {
    let other = event("second", 2, Some(0), by_content);
    assert_eq!(
        meet(&other, holder(1, Some(0), 0, Standing::Kept), false),
        (Fate::Run, false, true)
    );
    let object = event("second", 2, Some(90_000), by_object);
    assert_eq!(
        meet(&object, holder(1, Some(0), 0, Standing::Kept), false),
        (Fate::Twin, true, false)
    );
}

#[test]
fn a_shadow_and_a_flag_suppress_nothing() {
    let shadow = event("second", 1, Some(0), in_shadow);
    assert_eq!(
        meet(&shadow, holder(1, Some(0), 0, Standing::Kept), false),
        (Fate::Run, true, false)
    );
    assert_eq!(
        meet(&shadow, holder(1, Some(0), 0, Standing::Forwarded), true),
        (Fate::Run, false, true)
    );
    let flag = event("second", 1, Some(0), flagged);
    assert_eq!(
        meet(&flag, holder(1, Some(0), 0, Standing::Kept), false),
        (Fate::Run, true, false)
    );
    assert_eq!(
        meet(&flag, holder(1, Some(0), 0, Standing::Void), false),
        (Fate::Run, true, true)
    );
    let guard = event("second", 1, Some(0), guarded);
    assert_eq!(
        meet(&guard, holder(1, Some(0), 0, Standing::Kept), false),
        (Fate::Twin, true, false)
    );
    assert_eq!(
        meet(&guard, holder(1, Some(0), 0, Standing::Void), false),
        (Fate::Run, true, true)
    );
}

#[test]
fn the_holder_of_its_own_key_is_no_twin() {
    let first = event("first", 1, Some(0), by_content);
    for standing in [Standing::Kept, Standing::Forwarded, Standing::Void] {
        assert_eq!(
            meet(&first, holder(1, Some(0), 0, standing), true),
            (Fate::Run, false, false)
        );
    }
}

/// What becomes of events that come in one batch, in the order of their times, where nothing was before.
fn together(events: &[NewEvent]) -> Vec<(String, Fate)> {
    let events = in_order(events.iter());
    let new = |claim: super::Claim<'_>| claim.held(Standing::Void);
    let held = claims(&events)
        .into_iter()
        .map(|(place, claim)| (place, new(claim)))
        .collect();
    let judgement = judge(&events, held, false);
    let verdict =
        |(event, verdict): &(&NewEvent, super::Verdict)| (event.key.id.as_str().to_owned(), verdict.fate);
    judgement.verdicts.iter().map(verdict).collect()
}

#[test]
fn in_one_batch_the_earliest_is_the_original_and_what_came_in_between_counts() {
    let at = |id, content, second| event(id, content, Some(second), by_content);
    let found = together(&[at("c", 1, 1), at("a", 1, 2), at("b", 1, 3)]);
    assert_eq!(
        found,
        [
            ("c".into(), Fate::Run),
            ("a".into(), Fate::Twin),
            ("b".into(), Fate::Twin)
        ]
    );
    let found = together(&[at("a", 1, 1), at("b", 1, 3), at("c", 2, 2)]);
    assert_eq!(
        found,
        [
            ("a".into(), Fate::Run),
            ("c".into(), Fate::Run),
            ("b".into(), Fate::Run)
        ]
    );
}

#[test]
fn a_twin_takes_no_key() {
    let mut second = event("second", 1, Some(0), by_object);
    second
        .content_keys
        .insert(0, ContentKey::of_body(&[1; 32], false));
    let body = second.content_keys[0].clone();
    let mut held = held(&second, holder(1, Some(0), 0, Standing::Kept));
    for (place, holder) in &mut held {
        if place.kind == "body" {
            "dead".clone_into(&mut holder.event_id);
            holder.standing = Standing::Void;
        }
    }
    let judgement = judge(&[&second], held, false);
    let (_, verdict) = &judgement.verdicts[0];
    assert_eq!(
        (verdict.fate, verdict.twin_of.as_deref()),
        (Fate::Twin, Some("first"))
    );
    assert!(verdict.alike.body && verdict.alike.twin, "{body:?}");
    assert!(judgement.taken.is_empty());
}
