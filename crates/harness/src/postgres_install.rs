//! Where Postgres is installed, and as whom it runs: Debian keeps `initdb` out of PATH, and Postgres refuses root.

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
    /// Looks in PATH first, then where Debian and Fedora keep the versions side by side, newest first.
    pub(crate) fn find() -> Self {
        let path = env::var_os("PATH").unwrap_or_default();
        let binaries = env::split_paths(&path)
            .chain(versioned_directories("/usr/lib/postgresql"))
            .chain(versioned_directories("/usr/lib64/pgsql"))
            .chain([PathBuf::from("/usr/libexec/postgresql")])
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
        let mut command = self.client(program);
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

fn versioned_directories(parent: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut versions: Vec<_> = entries.map(|entry| entry.path()).collect();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    versions.sort_by_key(|path| std::cmp::Reverse(number(path)));
    versions.into_iter().map(|version| version.join("bin")).collect()
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
