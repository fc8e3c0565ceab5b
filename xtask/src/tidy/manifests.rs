//! Rules about manifests. What a crate must not know is the design of hookgate, so its dependencies are the proof:
//!
//! ```text
//! gateway → claim, ledger → webhook → signature, billing        ledger → billing
//! ```

use std::fs;
use std::path::Path;

use toml::{Table, Value};

use super::{members, shown};

/// Which crates of ours a crate may depend on, and which crates of others it must not.
struct Arrows {
    from: &'static str,
    to: &'static [&'static str],
    never: &'static [&'static str],
}

/// Whatever does I/O or stores anything.
const OUTSIDE_WORLD: &[&str] = &["tokio", "sqlx", "redis", "deadpool-redis", "reqwest", "actix-web"];

const ARROWS: &[Arrows] = &[
    // Without a parser it cannot parse before it verifies.
    Arrows {
        from: "signature",
        to: &[],
        never: &["serde", "serde_json", "tokio", "sqlx", "redis", "reqwest"],
    },
    Arrows {
        from: "billing",
        to: &[],
        never: OUTSIDE_WORLD,
    },
    Arrows {
        from: "webhook",
        to: &["signature", "billing"],
        never: OUTSIDE_WORLD,
    },
    Arrows {
        from: "claim",
        to: &["webhook"],
        never: &["sqlx", "reqwest", "actix-web"],
    },
    Arrows {
        from: "ledger",
        to: &["webhook", "billing"],
        never: &["redis", "reqwest", "actix-web"],
    },
    Arrows {
        from: "gateway",
        to: &["claim", "ledger", "webhook", "signature", "billing"],
        never: &["sqlx", "redis"],
    },
    Arrows {
        from: "harness",
        to: &[],
        never: &["sqlx", "redis", "reqwest"],
    },
    Arrows {
        from: "model",
        to: &["gateway", "claim", "ledger", "webhook", "harness"],
        never: &["reqwest", "actix-web"],
    },
    // From outside only: it knows the gateway as a process.
    Arrows {
        from: "faults",
        to: &["webhook", "signature", "harness"],
        never: &["redis", "actix-web"],
    },
    Arrows {
        from: "benches",
        to: &[
            "gateway",
            "claim",
            "ledger",
            "webhook",
            "signature",
            "billing",
            "harness",
        ],
        never: &[],
    },
    Arrows {
        from: "xtask",
        to: &[],
        never: OUTSIDE_WORLD,
    },
];

/// Members that are tools of ours and never published.
const TOOLS: &[&str] = &["harness", "model", "faults", "benches", "xtask"];

/// What every manifest takes from the root.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "repository"];

pub(super) fn breaches(root: &Path) -> Vec<String> {
    let mut breaches = Vec::new();
    for member in members(root) {
        let path = member.join("Cargo.toml");
        let name = member
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let found = match read(&path) {
            Ok(manifest) => member_breaches(&name, &manifest),
            Err(error) => vec![error],
        };
        breaches.extend(
            found
                .into_iter()
                .map(|breach| format!("{}: {breach}", shown(root, &path))),
        );
    }
    match read(&root.join("Cargo.toml")) {
        Ok(manifest) => breaches.extend(version_breaches(section(
            &manifest,
            &["workspace", "dependencies"],
        ))),
        Err(error) => breaches.push(error),
    }
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        if !root.join(license).is_file() {
            breaches.push(format!("{license} is missing"));
        }
    }
    breaches
}

fn read(path: &Path) -> Result<Table, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    text.parse::<Table>()
        .map_err(|error| format!("is no TOML: {error}"))
}

fn member_breaches(name: &str, manifest: &Table) -> Vec<String> {
    let mut breaches = arrow_breaches(name, manifest);
    breaches.extend(package_breaches(name, manifest));
    for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
        breaches.extend(version_breaches(section(manifest, &[kind])));
    }
    breaches
}

fn arrow_breaches(name: &str, manifest: &Table) -> Vec<String> {
    let Some(arrows) = ARROWS.iter().find(|arrows| arrows.from == name) else {
        return vec![format!(
            "xtask knows no arrows for a crate called {name}: decide what it must not know"
        )];
    };
    let mut breaches = Vec::new();
    for kind in ["dependencies", "build-dependencies"] {
        for dependency in section(manifest, &[kind]).keys() {
            let ours = dependency.strip_prefix("hookgate-");
            if ours.is_some_and(|ours| !arrows.to.contains(&ours))
                || arrows.never.contains(&dependency.as_str())
            {
                breaches.push(format!("{name} must not know {dependency}"));
            }
        }
    }
    breaches
}

fn package_breaches(name: &str, manifest: &Table) -> Vec<String> {
    let package = section(manifest, &["package"]);
    let mut breaches = Vec::new();
    for field in INHERITED {
        if !is_inherited(package.get(*field)) {
            breaches.push(format!("`{field}.workspace = true` is missing"));
        }
    }
    if !is_inherited(manifest.get("lints")) {
        breaches.push("the workspace's lints are not inherited".to_owned());
    }
    if package.get("name").and_then(Value::as_str) != Some(&format!("hookgate-{name}")) {
        breaches.push(format!("the package is not called hookgate-{name}"));
    }
    if package.get("description").is_none() {
        breaches.push("`description` is missing".to_owned());
    }
    if TOOLS.contains(&name) != (package.get("publish").and_then(Value::as_bool) == Some(false)) {
        breaches.push("`publish = false` belongs to tools, and only to them".to_owned());
    }
    breaches
}

/// A dependency is inherited, ours by path, or from the registry with a version that says something.
fn version_breaches(dependencies: &Table) -> Vec<String> {
    let mut breaches = Vec::new();
    for (name, dependency) in dependencies {
        let version = dependency
            .as_str()
            .or(dependency.get("version").and_then(Value::as_str));
        let is_ours = name.starts_with("hookgate-") && dependency.get("path").is_some();
        let is_pinned = version.is_some_and(|version| !version.contains('*') && !version.starts_with('>'));
        if dependency.get("git").is_some() || !(is_inherited(Some(dependency)) || is_ours || is_pinned) {
            breaches.push(format!("the dependency {name} has no version of the registry"));
        }
    }
    breaches
}

fn is_inherited(value: Option<&Value>) -> bool {
    value
        .and_then(|value| value.get("workspace"))
        .and_then(Value::as_bool)
        == Some(true)
}

/// A table within the manifest; an empty one if it is not there.
fn section<'manifest>(manifest: &'manifest Table, path: &[&str]) -> &'manifest Table {
    static EMPTY: std::sync::LazyLock<Table> = std::sync::LazyLock::new(Table::new);
    let step = |table: Option<&'manifest Table>, key: &&str| table?.get(*key)?.as_table();
    path.iter().fold(Some(manifest), step).unwrap_or(&EMPTY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a manifest that is right but for `change`.
    fn check(name: &str, change: (&str, &str), expected: &[&str]) {
        let right = format!(
            "[package]\nname = 'hookgate-{name}'\ndescription = 'd'\nversion.workspace = true\n\
             edition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n\
             repository.workspace = true\n[lints]\nworkspace = true\n[dependencies]\n"
        );
        let manifest = right.replace(change.0, change.1);
        assert_eq!(
            member_breaches(name, &manifest.parse().unwrap()),
            expected,
            "{manifest}"
        );
    }

    #[test]
    fn an_arrow_that_points_back_is_a_breach() {
        let arrow = |to| format!("[dependencies]\n{to}.workspace = true\n");
        check("claim", ("[dependencies]\n", &arrow("hookgate-webhook")), &[]);
        let back = arrow("hookgate-claim");
        check(
            "webhook",
            ("[dependencies]\n", &back),
            &["webhook must not know hookgate-claim"],
        );
        let parser = arrow("serde_json");
        check(
            "signature",
            ("[dependencies]\n", &parser),
            &["signature must not know serde_json"],
        );
        let harness = arrow("hookgate-harness");
        check(
            "ledger",
            ("[dependencies]\n", &harness),
            &["ledger must not know hookgate-harness"],
        );
        check(
            "ledger",
            ("[dependencies]\n", &harness.replace("[dep", "[dev-dep")),
            &[],
        );
    }

    #[test]
    fn a_crate_without_arrows_is_a_breach() {
        let unknown = "xtask knows no arrows for a crate called seventh: decide what it must not know";
        check("seventh", ("", ""), &[unknown]);
    }

    #[test]
    fn what_is_not_inherited_is_a_breach() {
        let lints = ("[lints]\nworkspace = true\n", "");
        check("claim", lints, &["the workspace's lints are not inherited"]);
        let license = ("license.workspace = true", "license = 'MIT'");
        check("claim", license, &["`license.workspace = true` is missing"]);
    }

    #[test]
    fn a_tool_is_never_published() {
        check(
            "harness",
            ("", ""),
            &["`publish = false` belongs to tools, and only to them"],
        );
        check("harness", ("description", "publish = false\ndescription"), &[]);
    }

    #[test]
    fn a_dependency_without_a_version_is_a_breach() {
        for (dependency, right) in [
            ("a = '1.2'", true),
            ("a = { version = '1', features = ['x'] }", true),
            ("a = { workspace = true }", true),
            ("hookgate-a = { path = 'a' }", true),
            ("a = '*'", false),
            ("a = '>=1'", false),
            ("a = { path = 'a' }", false),
            ("a = { git = 'https://example.com/a', version = '1' }", false),
        ] {
            let breaches = version_breaches(&dependency.parse().unwrap());
            assert_eq!(breaches.is_empty(), right, "{dependency}: {breaches:?}");
        }
    }
}
