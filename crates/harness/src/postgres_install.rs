//! Where Postgres is installed, and as whom it runs: Debian keeps `initdb` out of PATH, and Postgres refuses root.

use std::cmp::Reverse;
use std::env;
use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The installed Postgres.
pub(crate) struct Installation {
    binaries: PathBuf,
    /// The user and group to run as, if we are root.
    user: Option<(u32, u32)>,
}

impl Installation {
    /// Looks in PATH first, then where Debian, Fedora, Alpine and Homebrew keep versions side by side.
    pub(crate) fn find() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let binaries = env::split_paths(&path)
            .chain(
                VERSIONED
                    .iter()
                    .flat_map(|(parent, inner)| versions(parent, inner)),
            )
            .find(|directory| {
                ["initdb", "postgres", "psql"]
                    .iter()
                    .all(|name| directory.join(name).is_file())
            })
            .expect("Postgres (initdb, postgres, psql) is not installed: run `cargo xtask setup`");
        Self {
            binaries,
            user: user_instead_of_root(),
        }
    }

    /// A program of Postgres, run as us.
    pub(crate) fn client(&self, program: &str) -> Command {
        let mut command = Command::new(self.binaries.join(program));
        command.env("LC_ALL", "C");
        command
    }

    /// A program of Postgres, run in `directory` as a user that is not root.
    pub(crate) fn server(&self, program: &str, directory: &Path) -> Command {
        self.as_server(self.client(program), directory)
    }

    /// Any program, run in `directory` as that user.
    pub(crate) fn as_server(&self, mut command: Command, directory: &Path) -> Command {
        command.current_dir(directory);
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }

    /// Hands `directory` to the user that the server runs as.
    pub(crate) fn give(&self, directory: &Path) {
        if let Some((user, group)) = self.user {
            chown(directory, Some(user), Some(group)).expect("root can give a directory away");
        }
    }
}

/// Directories with one entry a version, and where in an entry the programs stand.
const VERSIONED: [(&str, &str); 5] = [
    ("/usr/lib/postgresql", "bin"),
    ("/usr/lib64/pgsql", "bin"),
    ("/usr/libexec", ""),
    ("/opt/homebrew/opt", "bin"),
    ("/usr/local/opt", "bin"),
];

/// Where each version's programs stand, newest version first.
fn versions(parent: &str, inner: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let numbered = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let number = name.trim_start_matches("postgresql").trim_start_matches('@');
        Some((number.parse::<u32>().ok()?, entry.path().join(inner)))
    });
    let mut versions: Vec<_> = numbered.collect();
    versions.sort_by_key(|(number, _)| Reverse(*number));
    versions.into_iter().map(|(_, directory)| directory).collect()
}

/// `None` unless we are root; then the user `postgres`, or whoever is nobody here.
fn user_instead_of_root() -> Option<(u32, u32)> {
    if id(&["-u"])? != 0 {
        return None;
    }
    ["postgres", "nobody"]
        .iter()
        .find_map(|name| Some((id(&["-u", name])?, id(&["-g", name])?)))
}

fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
