//! Tells a way through the model as one would tell a colleague.

use hookgate_claim::cell::Value;

use crate::check::Check;
use crate::message::{Fate, Message, ToLedger, ToRedis};
use crate::path::{self, CallEnd};
use crate::state::{Close, Holding, Phase, State, Task, Worker};
use crate::step::{Action, Last, Renewal};
use crate::worker;

/// A line for each step of a path.
pub(crate) fn tell(check: &Check, path: Vec<(State, Option<Action>)>) -> Vec<String> {
    let afters = path.iter().skip(1).map(|(state, _)| state);
    let steps = path.iter().zip(afters).enumerate();
    let line = |(number, ((before, action), after)): (usize, (&(State, Option<Action>), &State))| {
        let action = (*action)?;
        let fault = if action.is_fault() { " [fault]" } else { "" };
        let told = step(check, before, action, after);
        Some(format!("{:>3}. {told}{fault}{}", number + 1, news(before, after)))
    };
    steps.filter_map(line).collect()
}

fn step(check: &Check, before: &State, action: Action, after: &State) -> String {
    match action {
        Action::Deliver(number, replica) => {
            format!("delivery {} comes to replica {}", number + 1, replica + 1)
        }
        Action::Ask(number, fate) => {
            let message = path::message(check, before, number.into());
            let sent = message.map_or_else(String::new, |message| sent(&message));
            let now = doing(after, number.into());
            format!("delivery {} {sent}: {}; {now}", number + 1, became(fate))
        }
        Action::CallEnds(number, end) => {
            format!(
                "the target {} delivery {}; {}",
                ended(end),
                number + 1,
                doing(after, number.into())
            )
        }
        Action::GiveUp(number) => {
            format!(
                "delivery {} has waited long enough; {}",
                number + 1,
                doing(after, number.into())
            )
        }
        Action::Work(replica, fate) => {
            let message = worker::message(check, before, replica.into());
            let sent = message.map_or_else(String::new, |message| sent(&message));
            let now = working(after.workers[usize::from(replica)]);
            format!(
                "the worker of replica {} {sent}: {}; {now}",
                replica + 1,
                became(fate)
            )
        }
        Action::WorkEnds(replica, end) => {
            format!("the target {} the worker of replica {}", ended(end), replica + 1)
        }
        Action::Rescue => "a worker frees the row, whose owner let the lease end".to_owned(),
        Action::Chore(number, fate) => {
            let chore = before.chores[usize::from(number)];
            let what = match chore.task {
                Task::FinishClaim(_) => "Redis",
                Task::FinishRow(_) => "the ledger",
            };
            let (replica, became) = (chore.replica + 1, became(fate));
            format!("replica {replica} tells {what} once more that the event is done: {became}")
        }
        Action::Arrive(number) => {
            let message = &before.late[usize::from(number)];
            format!(
                "late, after its sender gave it up or died, arrives: somebody {}",
                sent(message)
            )
        }
        Action::Tick(None) => "time passes, and whoever calls the target renews its leases".to_owned(),
        Action::Tick(Some((renewal, fate))) => {
            format!("time passes; one renewal, {}: {}", whose(renewal), became(fate))
        }
        Action::Renew(renewal) => format!("a renewal, {}: answered", whose(renewal)),
        Action::Crash(replica, last) => {
            let way = match last {
                None => String::new(),
                Some(Last::Delivery(number)) => {
                    format!("; the last message of delivery {} is on its way", number + 1)
                }
                Some(Last::Worker) => "; its worker's last message is on its way".to_owned(),
            };
            format!("replica {} crashes{way}", replica + 1)
        }
        Action::Pause(replica) => format!("replica {} stands still", replica + 1),
        Action::Resume(replica) => format!("replica {} goes on", replica + 1),
        Action::LoseKeys => "Redis loses the key".to_owned(),
        Action::Fork => "a replica of Redis stops following".to_owned(),
        Action::FailOver => "Redis fails over to that older copy".to_owned(),
    }
}

fn whose(renewal: Renewal) -> String {
    match renewal {
        Renewal::Claim(number) => format!("of the claim by delivery {}", number + 1),
        Renewal::Row(number) => format!("of the row by delivery {}", number + 1),
        Renewal::Worker(replica) => format!("of the row by the worker of replica {}", replica + 1),
    }
}

fn sent(message: &Message) -> String {
    let text = match message {
        Message::Redis(ToRedis::Set(_)) => "claims (SET NX)",
        Message::Redis(ToRedis::Replace { .. }) => "takes the old claim over",
        Message::Redis(ToRedis::Renew(_)) => "renews its claim",
        Message::Redis(ToRedis::Finish(_)) => "marks its claim done",
        Message::Redis(ToRedis::Release(_)) => "deletes its claim",
        Message::Redis(ToRedis::MarkDone) => "sets the done mark",
        Message::Redis(ToRedis::Look) => "looks at the claim",
        Message::Ledger(ToLedger::Append(_)) => "appends to the ledger",
        Message::Ledger(ToLedger::Adopt) => "adopts the row",
        Message::Ledger(ToLedger::Begin(_)) => "begins the row",
        Message::Ledger(ToLedger::Finish(_)) => "finishes the row",
        Message::Ledger(ToLedger::Release(..)) => "releases the row",
        Message::Ledger(ToLedger::Heartbeat(_)) => "renews the row",
        Message::Ledger(ToLedger::Fetch(_)) => "looks for events that are due",
        Message::Ledger(ToLedger::Settle(..)) => "settles the row",
        Message::Ledger(ToLedger::Look) => "looks at the row",
        Message::Target => "has the event take effect",
    };
    text.to_owned()
}

fn became(fate: Fate) -> &'static str {
    match fate {
        Fate::Answered => "answered",
        Fate::Refused => "turned away",
        Fate::Lost => "lost on the way",
        Fate::Unheard => "applied, but the answer is lost",
        Fate::Late => "no answer, and still on its way",
        Fate::Again => "applied, the connection breaks, it will ask again",
    }
}

fn ended(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Took => "takes the event and tells",
        CallEnd::Failed => "fails",
        CallEnd::TookUnheard => "takes the event, but the answer is lost to",
        CallEnd::TakesLate => "hangs, and will take the event later, for",
    }
}

fn doing(state: &State, number: usize) -> String {
    let delivery = &state.deliveries[number];
    let hold = match delivery.hold {
        Holding::Ours(_) => "it holds the claim",
        Holding::Others => "somebody else holds the claim",
        Holding::Unknown(_) => "nobody knows whose the claim is",
        Holding::Unclaimed => "it holds nothing yet",
    };
    match delivery.phase {
        Phase::Unsent | Phase::Over => "it is answered".to_owned(),
        Phase::Claiming(_) => "it will claim".to_owned(),
        Phase::Replacing { .. } => "it met a claim that has run out".to_owned(),
        Phase::Appending => format!("{hold}, it will append"),
        Phase::Adopting => "it met a forward's row".to_owned(),
        Phase::Beginning { .. } => format!("{hold}, it will begin the row"),
        Phase::Calling(_) => format!("{hold}, it calls the target"),
        Phase::Finishing(_) | Phase::Releasing(_) => "it will tell the ledger".to_owned(),
        Phase::AskingFirst | Phase::Waiting { .. } => format!("{hold}, it waits"),
        Phase::Closing(how, close) => {
            let close = match close {
                Close::MarkDone => "set the done mark",
                Close::Finish(_) | Close::FinishPossible(_) => "mark its claim done",
                Close::Release(_) => "delete its claim",
            };
            format!("it is {} and will {close}", how.outcome())
        }
    }
}

fn working(worker: Worker) -> &'static str {
    match worker {
        Worker::Idle => "it is idle",
        Worker::Calling(_) => "it calls the target",
        Worker::Settling(..) => "it will settle again",
    }
}

/// What the step changed that matters most.
fn news(before: &State, after: &State) -> String {
    let mut news = String::new();
    if after.effects > before.effects {
        news += &format!(" — effect number {}", after.effects);
    }
    let held = |state: &State| state.cell.0.map(|held| matches!(held.value, Value::Done(_)));
    if held(before) != held(after) {
        news += match held(after) {
            None => " — Redis: nothing",
            Some(true) => " — Redis: done",
            Some(false) => " — Redis: in flight",
        };
    }
    let row = |state: &State| state.row.as_ref().map(|row| row.state);
    if row(before) != row(after)
        && let Some(state) = row(after)
    {
        news += &format!(" — ledger: {state}");
    }
    if after.promised && !before.promised {
        news += " — answered 200";
    }
    news
}
