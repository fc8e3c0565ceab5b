//! Forwards of events that are the same under another id: the second one is not run, and waits where the first one
//! still may fail.

use hookgate_ledger::{Alike, Appended, Begun, Ledger, NewEvent, OnFailure, State};

use crate::database::Database;
use crate::on_both;
use crate::sample::{LONG, key, with_body};
use crate::twins::{TWIN, append, says, state, twin_of};

on_both!(
    a_forward_of_a_twin_is_not_run,
    a_forward_waits_for_the_forward_of_its_original,
    a_forward_that_failed_is_no_original_and_may_turn_out_a_twin,
    it_is_judged_anew_also_if_the_next_try_has_another_body,
    an_inbox_event_is_no_twin_of_a_forward_that_runs,
);

async fn begin(ledger: &dyn Ledger, event: &NewEvent) -> Begun {
    ledger.begin(event, LONG).await.unwrap()
}

const TWIN_BEGUN: Begun = Begun::Twin(Alike {
    body: false,
    twin: true,
});

async fn a_forward_of_a_twin_is_not_run(db: Database) {
    let ledger = db.ledger().await;
    let Begun::Run { lease, .. } = begin(&*ledger, &says("evt_1", 1, 0)).await else {
        panic!("nobody has it")
    };
    let _ = ledger.finish(&lease).await.unwrap();
    let second = says("evt_2", 1, 1);
    assert_eq!(begin(&*ledger, &second).await, TWIN_BEGUN);
    assert_eq!(begin(&*ledger, &second).await, TWIN_BEGUN, "the answer was lost");
    let entry = ledger.entry(&key("evt_2")).await.unwrap().unwrap();
    assert_eq!(
        (entry.state, entry.attempts),
        (State::Twin, 0),
        "it was never run"
    );
    assert_eq!(twin_of(&db, "evt_2").await, "evt_1");
    let again = begin(&*ledger, &says("evt_2", 1, 1)).await;
    assert!(
        matches!(
            again,
            Begun::Settled {
                state: State::Twin,
                ..
            }
        ),
        "{again:?}"
    );
}

async fn a_forward_waits_for_the_forward_of_its_original(db: Database) {
    let ledger = db.ledger().await;
    let (first, second) = (says("evt_1", 1, 0), says("evt_2", 1, 1));
    let Begun::Run { lease, .. } = begin(&*ledger, &first).await else {
        panic!("nobody has it")
    };
    assert_eq!(begin(&*ledger, &second).await, Begun::Running);
    assert_eq!(
        ledger.entry(&key("evt_2")).await.unwrap(),
        None,
        "it left nothing behind"
    );
    let _ = ledger.finish(&lease).await.unwrap();
    assert_eq!(begin(&*ledger, &second).await, TWIN_BEGUN);

    // Where the provider never tries again the original is queued if it fails, so it is as good as kept.
    let (mut first, mut second) = (says("evt_3", 9, 0), says("evt_4", 9, 1));
    (first.provider, second.provider) = ("github", "github");
    assert!(matches!(begin(&*ledger, &first).await, Begun::Run { .. }));
    assert_eq!(begin(&*ledger, &second).await, TWIN_BEGUN);
}

async fn a_forward_that_failed_is_no_original_and_may_turn_out_a_twin(db: Database) {
    let ledger = db.ledger().await;
    let (first, second) = (says("evt_1", 1, 0), says("evt_2", 1, 1));
    let Begun::Run { lease, .. } = begin(&*ledger, &first).await else {
        panic!("nobody has it")
    };
    let _ = ledger
        .release(&lease, "no", OnFailure::ProviderRetries)
        .await
        .unwrap();
    let Begun::Run { lease, .. } = begin(&*ledger, &second).await else {
        panic!("the first one failed")
    };
    assert_eq!(
        begin(&*ledger, &first).await,
        Begun::Running,
        "the second one may still fail"
    );
    assert_eq!(state(&*ledger, "evt_1").await, State::Failed);
    let _ = ledger.finish(&lease).await.unwrap();
    let copy = says("evt_1", 1, 0);
    assert_eq!(begin(&*ledger, &copy).await, TWIN_BEGUN);
    assert_eq!(twin_of(&db, "evt_1").await, "evt_2");
    let entry = ledger.entry(&key("evt_1")).await.unwrap().unwrap();
    assert_eq!((entry.state, entry.attempts), (State::Twin, 1));
}

/// Some providers change a counter in the body from try to try; what the event says is the same.
async fn it_is_judged_anew_also_if_the_next_try_has_another_body(db: Database) {
    let ledger = db.ledger().await;
    let (first, second) = (says("evt_1", 1, 0), says("evt_2", 1, 1));
    let Begun::Run { lease, .. } = begin(&*ledger, &first).await else {
        panic!("nobody has it")
    };
    let _ = ledger
        .release(&lease, "no", OnFailure::ProviderRetries)
        .await
        .unwrap();
    let Begun::Run { lease, .. } = begin(&*ledger, &second).await else {
        panic!("the first one failed")
    };
    let _ = ledger.finish(&lease).await.unwrap();
    let mut again = says("evt_1", 1, 0);
    let body = [&again.body[..], b" "].concat();
    again.body_sha256 = with_body("evt_1", body.clone()).body_sha256;
    again.body = body.into();
    assert_eq!(begin(&*ledger, &again).await, TWIN_BEGUN);
    assert_eq!(state(&*ledger, "evt_1").await, State::Twin);
    assert_eq!(twin_of(&db, "evt_1").await, "evt_2");
}

async fn an_inbox_event_is_no_twin_of_a_forward_that_runs(db: Database) {
    let ledger = db.ledger().await;
    let first = ledger.begin(&says("evt_1", 1, 0), LONG).await.unwrap();
    assert!(matches!(first, Begun::Run { .. }));
    assert_eq!(append(&*ledger, says("evt_2", 1, 1)).await, Appended::Accepted);
    assert_eq!(append(&*ledger, says("evt_3", 1, 2)).await, TWIN);
    assert_eq!(twin_of(&db, "evt_3").await, "evt_2");
}
