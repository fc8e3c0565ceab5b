//! `hookgate providers`: what is known about how each provider signs, identifies and retries.

use clap::Args;
use hookgate_webhook::Provider;

use super::operations::safe;
use super::{Failure, print};
use crate::view::knowledge;

/// Arguments of `hookgate providers`.
#[derive(Debug, Args)]
pub struct Providers {
    /// Everything about one provider
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// JSON instead of a table
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// The whole page of the documentation, docs/providers.md
    #[arg(long, conflicts_with_all = ["json", "name"])]
    markdown: bool,
}

impl Providers {
    /// Prints; a name that is unknown is answered with those that are known.
    pub fn run(&self) -> Result<(), Failure> {
        let wanted: Vec<Provider> = match &self.name {
            Some(name) => vec![name.parse().map_err(Failure::usage)?],
            None => Provider::ALL.to_vec(),
        };
        let text = match (&*wanted, self.json, self.markdown) {
            (_, _, true) => knowledge::page(),
            (all, true, _) => knowledge::json(all),
            ([one], false, _) => details(*one),
            (all, false, _) => table(all),
        };
        print(&text);
        Ok(())
    }
}

fn table(providers: &[Provider]) -> String {
    let row = |provider: &Provider| {
        let facts = knowledge::facts(*provider);
        [
            facts.name.to_owned(),
            provider.knowledge().scheme.header().to_owned(),
            facts.tolerance,
            plain(&facts.id),
            plain(facts.success),
            facts.answer_budget,
            facts.resend,
        ]
    };
    let heading = [
        "NAME",
        "SIGNATURE IN",
        "TIME",
        "ID FROM",
        "SUCCESS",
        "ANSWER WITHIN",
        "SAME ID AGAIN FOR",
    ];
    safe::table(heading, providers.iter().map(row))
        + "\n`hookgate providers NAME` shows everything about one.\n"
}

fn details(provider: Provider) -> String {
    knowledge::facts(provider)
        .lines()
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| format!("{name:<18} {}\n", plain(&value)))
        .collect()
}

/// Without the marks of Markdown.
fn plain(text: &str) -> String {
    text.replace('`', "")
}
