//! What a source's settings say of one event: whether it is for this source at all, and by what else than its id it may
//! turn out to be known.

use hookgate_ledger::{ContentKey, Subject};
use hookgate_webhook::{Event, Field, Provider};

use crate::config::{Identity, ReplayGuard, TwinRule, Twins};

/// Why an event is kept and not handled: it is somebody else's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Aside {
    /// It is of another mode than the source is for.
    Mode,
    /// It is of none of the accounts that the source is for.
    Account,
}

impl Aside {
    /// What the ledger keeps as the reason.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Mode => "other_mode",
            Self::Account => "other_account",
        }
    }

    /// Label of `hookgate_ignored_total`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Account => "account",
        }
    }

    /// All labels, so that counters can be present at zero from the start.
    pub const LABELS: [&'static str; 2] = ["mode", "account"];
}

/// Whether the event is for somebody else.
pub fn aside(identity: &Identity, provider: Provider, event: &Event) -> Option<Aside> {
    if !identity.mode.takes(event.mode, provider.knowledge().says_mode()) {
        return Some(Aside::Mode);
    }
    let account = event.account.as_ref().map(Field::as_str);
    let is_listed = |accounts: &Vec<String>| {
        account.is_some_and(|account| accounts.iter().any(|listed| listed == account))
    };
    match &identity.accounts {
        Some(accounts) if !is_listed(accounts) => Some(Aside::Account),
        Some(_) | None => None,
    }
}

/// By what else the event may be known. What a source does not ask for is not computed.
pub fn content_keys(identity: &Identity, provider: Provider, event: &Event) -> Vec<ContentKey> {
    let body = match identity.replay_guard {
        ReplayGuard::Off => None,
        ReplayGuard::Flag => Some(ContentKey::of_body(&event.body_sha256, false)),
        ReplayGuard::Suppress => Some(ContentKey::of_body(&event.body_sha256, true)),
    };
    let twin = identity
        .twins
        .as_ref()
        .and_then(|twins| twin_key(twins, provider, event));
    body.into_iter().chain(twin).collect()
}

/// An event that does not say its type or its object has no twins.
fn twin_key(twins: &Twins, provider: Provider, event: &Event) -> Option<ContentKey> {
    let subject = Subject {
        mode: event.mode,
        account: event.account.as_ref(),
        event_type: event.event_type.as_ref()?,
        object_id: event.object_id.as_ref()?,
    };
    let is_listed = twins
        .types
        .iter()
        .any(|listed| listed == subject.event_type.as_str());
    if !twins.types.is_empty() && !is_listed {
        return None;
    }
    match twins.rule {
        TwinRule::Object => Some(ContentKey::of_object(subject, twins.suppresses)),
        TwinRule::Content { window } => {
            let sha256 = provider.content_sha256(&event.body)?;
            Some(ContentKey::of_content(subject, sha256, window, twins.suppresses))
        }
    }
}
