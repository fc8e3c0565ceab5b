//! What a source asks of the identity of its events: whose they may be, and what counts as the same. These settings
//! stand in a source's table only; docs/identity.md says which to choose.

use std::time::Duration;

use hookgate_webhook::{Mode, Provider, SourceName};
use serde::{Deserialize, Deserializer};

use super::reader::{self, Wrong};

/// The window for twins unless one is set.
const TWIN_WINDOW: Duration = Duration::from_secs(600);

/// Which side of a provider's account a source is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModeWanted {
    /// Real money.
    Live,
    /// The test side.
    Test,
    /// Both.
    #[default]
    Any,
}

/// What happens to a body that came before under another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReplayGuard {
    /// It is not noticed.
    Off,
    /// It is counted and linked, and handled as any other.
    Flag,
    /// It is kept as a twin, and not handled.
    Suppress,
}

/// What makes two events twins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TwinRule {
    /// Type and object.
    Object,
    /// Type, object and data, and the provider's times no further apart.
    Content {
        /// How far.
        window: Duration,
    },
}

/// How twins are told, and what happens to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twins {
    /// What makes two events twins.
    pub rule: TwinRule,
    /// Whether the second one is suppressed, and not only counted.
    pub suppresses: bool,
    /// Types that the rule holds for; empty: all.
    pub types: Vec<String>,
}

/// What a source asks of the identity of its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Which mode's events are handled.
    pub mode: ModeWanted,
    /// Which accounts' events are handled; `None`: all.
    pub accounts: Option<Vec<String>>,
    /// What happens to a body under a second id.
    pub replay_guard: ReplayGuard,
    /// How twins are told; `None`: they are not.
    pub twins: Option<Twins>,
    /// A setting that somebody made and that only a ledger can keep.
    pub needs_ledger: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleName {
    #[default]
    Off,
    Object,
    Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Suppress,
    Shadow,
}

/// The part of a source's table that speaks of identity.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdentityTable {
    #[serde(default)]
    mode: ModeWanted,
    accounts: Option<Vec<String>>,
    replay_guard: Option<ReplayGuard>,
    #[serde(default)]
    twin_rule: RuleName,
    twin_action: Option<Action>,
    twin_types: Option<Vec<String>>,
    #[serde(default, deserialize_with = "window")]
    twin_window: Option<Duration>,
}

/// What a key of this part takes; `None` if there is no such key.
fn form(key: &str) -> Option<&'static str> {
    Some(match key {
        "mode" => "\"live\", \"test\" or \"any\"",
        "accounts" => "a list of accounts as the provider names them, e.g. [\"acct_1\"]",
        "replay_guard" => "\"off\", \"flag\" or \"suppress\"",
        "twin_rule" => "\"off\", \"object\" or \"content\"",
        "twin_action" => "\"suppress\" or \"shadow\"",
        "twin_types" => "a list of event types, e.g. [\"invoice.paid\"]",
        "twin_window" => "a duration such as \"10m\"",
        _ => return None,
    })
}

/// Takes this part out of a source's table. What is left is for others to read.
///
/// # Errors
/// A sentence without values: which key is at fault, and what it takes.
pub(super) fn take(table: &toml::Value) -> Result<(IdentityTable, toml::Value), String> {
    let Some(all) = table.as_table() else {
        return Ok((IdentityTable::default(), table.clone()));
    };
    let (ours, rest): (toml::Table, toml::Table) = all
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .partition(|(key, _)| form(key).is_some());
    for (key, value) in &ours {
        let alone = toml::Table::from_iter([(key.clone(), value.clone())]);
        if let (Err(_), Some(form)) = (alone.try_into::<IdentityTable>(), form(key)) {
            return Err(format!("{key} is not accepted: expected {form}"));
        }
    }
    let ours = ours.try_into().map_err(|_| "it cannot be read".to_owned())?;
    Ok((ours, toml::Value::Table(rest)))
}

/// Completes what the table says by what is known about the provider.
///
/// # Errors
/// [`Wrong::Combination`] if settings have no effect, or if nothing would ever pass them.
pub(super) fn complete(
    source: &SourceName,
    provider: Provider,
    table: IdentityTable,
) -> Result<Identity, Wrong> {
    let refuse = |problem: String| Err(Wrong::Combination(format!("source {source}: {problem}")));
    let name = provider.name();
    if let Some(problem) = nothing_passes(provider, &table) {
        return refuse(problem);
    }
    let types = table.twin_types.unwrap_or_default();
    let rule = match table.twin_rule {
        RuleName::Off => {
            let idle = [
                ("twin_action", table.twin_action.is_some()),
                ("twin_types", !types.is_empty()),
                ("twin_window", table.twin_window.is_some()),
            ];
            if let Some((key, _)) = idle.into_iter().find(|(_, is_set)| *is_set) {
                return refuse(format!(
                    "{key} has no effect without twin_rule: set twin_rule to \"object\" or \"content\", or take it out"
                ));
            }
            None
        }
        RuleName::Object if types.is_empty() => {
            return refuse(
                "twin_rule = \"object\" needs twin_types: list the types that happen to an object only once, for of any other it would swallow the second honest event".to_owned(),
            );
        }
        RuleName::Object if table.twin_window.is_some() => {
            return refuse(
                "twin_window has no effect with twin_rule = \"object\": take it out, or use \"content\""
                    .to_owned(),
            );
        }
        RuleName::Object => Some(TwinRule::Object),
        RuleName::Content if provider.knowledge().content_path.is_none() => {
            return refuse(format!(
                "twin_rule = \"content\" cannot be: the bodies of {name} do not set apart what changed; use \"object\" with twin_types, or off"
            ));
        }
        RuleName::Content => Some(TwinRule::Content {
            window: table.twin_window.unwrap_or(TWIN_WINDOW),
        }),
    };
    let unsigned = !provider.knowledge().id_is_signed;
    let guard = table.replay_guard;
    let needs_ledger = match guard {
        _ if rule.is_some() => Some("twin_rule"),
        Some(ReplayGuard::Flag | ReplayGuard::Suppress) => Some("replay_guard"),
        Some(ReplayGuard::Off) | None => None,
    };
    Ok(Identity {
        mode: table.mode,
        accounts: table.accounts,
        replay_guard: guard.unwrap_or(if unsigned {
            ReplayGuard::Flag
        } else {
            ReplayGuard::Off
        }),
        twins: rule.map(|rule| Twins {
            rule,
            suppresses: table.twin_action != Some(Action::Shadow),
            types,
        }),
        needs_ledger,
    })
}

/// Why every event would be set aside, if that is so.
fn nothing_passes(provider: Provider, table: &IdentityTable) -> Option<String> {
    let name = provider.name();
    if table.mode == ModeWanted::Test && !provider.knowledge().says_mode() {
        return Some(format!(
            "mode = \"test\" would set every event aside: {name} never says which mode an event is of; use a source for each side"
        ));
    }
    let accounts = table.accounts.as_ref()?;
    if accounts.is_empty() {
        return Some("accounts = [] would set every event aside: list accounts, or take it out".to_owned());
    }
    (!provider.knowledge().says_account()).then(|| {
        format!("accounts would set every event aside: {name} never says which account an event is of; use a source for each")
    })
}

/// A setting that is accepted and does nothing.
pub(super) fn without_effect(identity: &Identity, provider: Provider) -> Option<String> {
    (identity.mode == ModeWanted::Live && !provider.knowledge().says_mode()).then(|| {
        format!(
            "mode = \"live\" has no effect: {} never says which mode an event is of, and such events pass; use a source for each side",
            provider.name()
        )
    })
}

impl Identity {
    /// As people are shown it.
    pub(super) fn shown(&self) -> String {
        let mode = match self.mode {
            ModeWanted::Live => "live",
            ModeWanted::Test => "test",
            ModeWanted::Any => "any",
        };
        let accounts = self.accounts.as_ref();
        let accounts = accounts.map_or_else(|| "all".to_owned(), |accounts| accounts.join(" "));
        let guard = match self.replay_guard {
            ReplayGuard::Off => "off",
            ReplayGuard::Flag => "flag",
            ReplayGuard::Suppress => "suppress",
        };
        let twins = self.twins.as_ref().map_or_else(|| "off".to_owned(), Twins::shown);
        format!("mode {mode}, accounts {accounts}, replay guard {guard}, twins {twins}")
    }
}

impl Twins {
    fn shown(&self) -> String {
        let rule = match self.rule {
            TwinRule::Object => "by object".to_owned(),
            TwinRule::Content { window } => {
                format!("by content within {}", humantime::format_duration(window))
            }
        };
        let action = if self.suppresses { "suppress" } else { "shadow" };
        format!("{rule} ({action})")
    }
}

impl ModeWanted {
    /// Whether an event of this mode is handled. One that does not say passes as live, unless its provider does say it:
    /// then something is odd about this one, and it must not pass for real money.
    pub fn takes(self, mode: Mode, provider_says: bool) -> bool {
        match (self, mode) {
            (Self::Any, _) | (Self::Live, Mode::Live) | (Self::Test, Mode::Test) => true,
            (Self::Live, Mode::Unknown) => !provider_says,
            (Self::Live, Mode::Test) | (Self::Test, Mode::Live | Mode::Unknown) => false,
        }
    }
}

fn window<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let duration = reader::duration(&text);
    duration
        .map(Some)
        .ok_or_else(|| serde::de::Error::custom("not a duration"))
}
