//! The server that all commands go to: one place, or a cluster of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use redis::Pipeline;

use super::answer::{Answer, Failure};
use super::cluster::Cluster;
use super::connection::Source;
use super::lanes::{Deadline, Lanes, closed};
use super::scripts::Call;

/// Where claims live.
pub(super) struct Server {
    form: Form,
    limit: Duration,
    closed: AtomicBool,
}

enum Form {
    /// One server, or the primary of the moment.
    Place(Lanes),
    Cluster(Cluster),
}

impl Server {
    pub(super) fn at(source: Source, connections: usize, limit: Duration) -> Self {
        Self::new(Form::Place(Lanes::new(source, connections)), limit)
    }

    pub(super) fn cluster(cluster: Cluster, limit: Duration) -> Self {
        Self::new(Form::Cluster(cluster), limit)
    }

    fn new(form: Form, limit: Duration) -> Self {
        Self {
            form,
            limit,
            closed: AtomicBool::new(false),
        }
    }

    /// Sends all commands, which are about `key`, in one write, within the limit.
    pub(super) async fn send(&self, key: &str, commands: &Pipeline) -> Result<Answer, Failure> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(closed());
        }
        match &self.form {
            Form::Place(lanes) => lanes.send(commands, Deadline::after(self.limit)).await,
            Form::Cluster(cluster) => cluster.send(key, commands).await,
        }
    }

    /// Runs a script, giving the server its text if it does not know it.
    pub(super) async fn run(&self, call: Call) -> Result<Answer, Failure> {
        let by_hash = self.send(call.key(), &call.by_hash()).await?;
        if !by_hash.lacks_script() {
            return Ok(by_hash);
        }
        let by_text = self.send(call.key(), &call.by_text()).await;
        // A first try by hash may have taken effect where the script was known, and the second place not know it.
        let by_text = by_text.map_err(|failure| {
            if by_hash.resent {
                failure.after_another()
            } else {
                failure
            }
        })?;
        Ok(Answer {
            resent: by_hash.resent || by_text.resent,
            ..by_text
        })
    }

    /// What every server answers to commands without a key.
    pub(super) async fn ask_all(&self, commands: &Pipeline) -> Vec<Result<Answer, Failure>> {
        match &self.form {
            Form::Place(lanes) => vec![lanes.send(commands, Deadline::after(self.limit)).await],
            Form::Cluster(cluster) => cluster.send_to_all(commands).await,
        }
    }

    /// Lets all connections end and makes no more.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        match &self.form {
            Form::Place(lanes) => lanes.close(),
            Form::Cluster(cluster) => cluster.close(),
        }
    }
}
