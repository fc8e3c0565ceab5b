//! Rules about source files: each says why it exists, fits into a head, is called after what it holds, and is
//! finished.

use std::fs;
use std::path::{Path, PathBuf};

use super::{entries, members, shown};

/// Past this many lines a file holds a second idea.
const LINES_MAX: usize = 400;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "common", "helpers", "helper", "types", "manager"];

/// What no file contains, and why. Spelt in two parts, so that this file does not contain them either.
const UNWANTED: &[(&str, &str)] = &[
    (concat!("todo", "!("), "is not finished"),
    (concat!("unimplemented", "!("), "is not finished"),
    (
        concat!("thread::", "sleep"),
        "hopes instead of waiting for the thing itself",
    ),
];

pub(super) fn breaches(root: &Path) -> Vec<String> {
    let mut breaches = Vec::new();
    for file in members(root).iter().flat_map(|member| source_files(member)) {
        let found = match fs::read_to_string(&file) {
            Ok(text) => file_breaches(&file, &text),
            Err(error) => vec![format!("cannot be read: {error}")],
        };
        breaches.extend(
            found
                .into_iter()
                .map(|breach| format!("{}: {breach}", shown(root, &file))),
        );
    }
    breaches
}

/// All `.rs` files beneath a directory.
fn source_files(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in entries(directory) {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            files.extend(source_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn file_breaches(path: &Path, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    if !text.starts_with("//! ") {
        breaches.push("does not open with a `//!` paragraph that says why it exists".to_owned());
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        breaches.push(format!(
            "has {lines} lines, {LINES_MAX} at most: look for the second idea"
        ));
    }
    // A `mod.rs` is called after its directory.
    let own = path.file_stem().filter(|stem| *stem != "mod");
    let name = own
        .or(path.parent().and_then(Path::file_name))
        .unwrap_or_default();
    if EMPTY_NAMES.iter().any(|empty| name == *empty) {
        breaches.push("has a name that says nothing about what is inside".to_owned());
    }
    for (unwanted, why) in UNWANTED {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| line.contains(unwanted));
        breaches.extend(lines.map(|(index, _)| format!("line {}: `{unwanted}` {why}", index + 1)));
    }
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, text: &str, expected: &[&str]) {
        assert_eq!(file_breaches(Path::new(path), text), expected);
    }

    #[test]
    fn a_file_says_why_it_exists() {
        check("src/claim.rs", "//! Why.\n", &[]);
        let silent = "does not open with a `//!` paragraph that says why it exists";
        check("src/claim.rs", "use std::fs;\n", &[silent]);
        check("src/claim.rs", "", &[silent]);
    }

    #[test]
    fn a_file_fits_into_a_head() {
        let long = format!("//! Why.\n{}", "\n".repeat(LINES_MAX));
        check(
            "src/claim.rs",
            &long,
            &["has 401 lines, 400 at most: look for the second idea"],
        );
    }

    #[test]
    fn a_name_says_what_is_inside() {
        let empty = "has a name that says nothing about what is inside";
        check("src/utils.rs", "//! Why.\n", &[empty]);
        check("src/common/mod.rs", "//! Why.\n", &[empty]);
        check("src/provider/mod.rs", "//! Why.\n", &[]);
    }

    #[test]
    fn unfinished_work_and_naps_are_named_with_their_line() {
        for (unwanted, why) in UNWANTED {
            let text = format!("//! Why.\n\n    {unwanted}\n");
            check("src/claim.rs", &text, &[&format!("line 3: `{unwanted}` {why}")]);
        }
    }

    #[test]
    fn every_source_file_is_found() {
        let files = source_files(&crate::root().join("xtask"));
        assert!(
            files.contains(&crate::root().join("xtask/src/tidy/sources.rs")),
            "{files:?}"
        );
    }
}
