//! The house rules that no compiler knows. Each rule is a function from what it reads to what is wrong with it, so
//! that its own test can show it something wrong.

mod manifests;
mod migrations;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

/// Checks the whole workspace; the error lists every breach, one a line.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let breaches = [
        manifests::breaches(root),
        sources::breaches(root),
        migrations::breaches(root),
    ]
    .concat();
    if breaches.is_empty() {
        Ok(())
    } else {
        Err(breaches.join("\n"))
    }
}

/// The directories of all members, as the root manifest lists them.
fn members(root: &Path) -> Vec<PathBuf> {
    let mut members = entries(&root.join("crates"));
    members.extend([root.join("benches"), root.join("xtask")]);
    members.retain(|member| member.join("Cargo.toml").is_file());
    members
}

/// What stands in a directory, sorted; nothing if there is none.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A path as a reader of the message knows it.
fn shown(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_keeps_the_house_rules() {
        if let Err(breaches) = super::run(crate::root()) {
            panic!("{breaches}");
        }
    }

    #[test]
    fn every_member_is_looked_at() {
        let members = super::members(crate::root());
        assert!(members.len() >= 8, "{members:?}");
        assert!(members.contains(&crate::root().join("xtask")));
    }
}
