//! Rules about migrations: both dialects tell the same story, step by step, under the same numbers and names.

use std::collections::BTreeSet;
use std::path::Path;

use super::entries;

const DIALECTS: [&str; 2] = ["postgres", "sqlite"];

pub(super) fn breaches(root: &Path) -> Vec<String> {
    let migrations = root.join("crates/ledger/migrations");
    let [postgres, sqlite] = DIALECTS.map(|dialect| steps(&migrations.join(dialect)));
    let mut breaches = twin_breaches(&postgres, &sqlite);
    breaches.extend(number_breaches(&postgres));
    breaches
        .into_iter()
        .map(|breach| format!("crates/ledger/migrations: {breach}"))
        .collect()
}

/// The file names of a dialect's migrations.
fn steps(directory: &Path) -> BTreeSet<String> {
    let files = entries(directory)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "sql"));
    files
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect()
}

fn twin_breaches(postgres: &BTreeSet<String>, sqlite: &BTreeSet<String>) -> Vec<String> {
    postgres
        .symmetric_difference(sqlite)
        .map(|step| format!("{step} stands in one dialect only"))
        .collect()
}

/// Numbers are unique: of two steps with one number nobody knows which comes first.
fn number_breaches(steps: &BTreeSet<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut breaches = Vec::new();
    for step in steps {
        match step.split_once('_').map(|(number, _)| number.parse::<u64>()) {
            Some(Ok(number)) if seen.insert(number) => {}
            Some(Ok(number)) => breaches.push(format!("{step} repeats the number {number}")),
            _ => breaches.push(format!("{step} does not begin with its number and `_`")),
        }
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps_of(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn a_step_without_its_twin_is_a_breach() {
        let (both, one) = (
            steps_of(&["0001_events.sql", "0002_outbox.sql"]),
            steps_of(&["0001_events.sql"]),
        );
        assert!(twin_breaches(&both, &both).is_empty());
        assert_eq!(
            twin_breaches(&both, &one),
            ["0002_outbox.sql stands in one dialect only"]
        );
        assert_eq!(
            twin_breaches(&one, &both),
            ["0002_outbox.sql stands in one dialect only"]
        );
    }

    #[test]
    fn a_number_is_there_and_is_unique() {
        assert!(number_breaches(&steps_of(&["0001_events.sql", "0002_outbox.sql"])).is_empty());
        let repeated = number_breaches(&steps_of(&["0001_events.sql", "0001_outbox.sql"]));
        assert_eq!(repeated, ["0001_outbox.sql repeats the number 1"]);
        assert_eq!(
            number_breaches(&steps_of(&["events.sql"])),
            ["events.sql does not begin with its number and `_`"]
        );
    }
}
