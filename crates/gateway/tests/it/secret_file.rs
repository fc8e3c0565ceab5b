//! A file with secrets, as an operator or an orchestrator changes it under a running gateway.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::gateway::Replica;
use crate::patience::until;

/// The file that a setting names.
pub struct SecretFile {
    path: PathBuf,
}

impl SecretFile {
    /// A file in this directory with these secrets.
    pub fn new(directory: &TempDir, secrets: &[&str]) -> Self {
        let path = directory.path().join("secrets");
        let file = Self { path };
        file.replace(secrets);
        file
    }

    /// Its path, as a setting names it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a whole new file in the place of the old one.
    pub fn replace(&self, secrets: &[&str]) {
        self.replace_bytes(format!("{}\n", secrets.join("\n")).as_bytes());
    }

    /// As [`Self::replace`], with any content.
    pub fn replace_bytes(&self, content: &[u8]) {
        let next = self.path.with_extension("next");
        std::fs::write(&next, content).expect("the directory takes a file");
        std::fs::rename(next, &self.path).expect("a file can take another's place");
    }
}

/// Sends SIGHUP, and waits until the gateway has said what came of it.
pub async fn hang_up(replica: &Replica) {
    let answers = || {
        let lines = replica.process().lines();
        lines.iter().filter(|line| line.contains("SIGHUP: ")).count()
    };
    let before = answers();
    replica.process().signal("HUP");
    until("the gateway answers SIGHUP", async || answers() > before).await;
}

/// Lists of secrets that were read again, by outcome.
pub async fn reloads(replica: &Replica, outcome: &str) -> f64 {
    let series = format!("hookgate_secret_reloads_total{{outcome=\"{outcome}\"}}");
    replica.metric(&series).await
}

/// Deliveries that the secret in this slot verified; `None` if there is no such slot.
pub async fn used(replica: &Replica, slot: usize) -> Option<f64> {
    let series = format!("hookgate_secret_used_total{{slot=\"{slot}\",source=\"stripe\"}}");
    replica.series().await.get(&series).copied()
}

/// A mounted secret as Kubernetes keeps it: the file is a link through `..data`, which is a link to a directory
/// of its own for each version, and a new version swaps that one link.
pub struct Mounted {
    directory: TempDir,
    versions: usize,
}

impl Mounted {
    /// Mounts the first version.
    pub fn new(secrets: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        symlink("..data/secrets", directory.path().join("secrets")).expect("a link can be made");
        let mut mounted = Self {
            directory,
            versions: 0,
        };
        mounted.swap(secrets);
        mounted
    }

    /// What the setting names.
    pub fn path(&self) -> PathBuf {
        self.directory.path().join("secrets")
    }

    /// Puts another version in place, and removes the one before.
    pub fn swap(&mut self, secrets: &[&str]) {
        let at = |version: usize| self.directory.path().join(format!("..version_{version}"));
        let (last, next) = (at(self.versions), at(self.versions + 1));
        std::fs::create_dir(&next).expect("the directory takes another");
        std::fs::write(next.join("secrets"), secrets.join("\n")).expect("the directory takes a file");
        let link = self.directory.path().join("..data_next");
        symlink(next.file_name().expect("it has a name"), &link).expect("a link can be made");
        std::fs::rename(link, self.directory.path().join("..data")).expect("a link can take another's place");
        if last.exists() {
            std::fs::remove_dir_all(last).expect("nobody needs the version before");
        }
        self.versions += 1;
    }
}
