//! Rotation: reads the secrets again while the process runs, on SIGHUP and whenever the files that hold them
//! have changed. No delivery waits for it or is refused because of it.
//!
//! Files are read and compared rather than watched: an orchestrator that mounts secrets swaps a symbolic link
//! far above the file, which a watch of the file does not see. What cannot be used changes nothing: the secrets
//! before it stay valid, and one line says what to do. Sources neither come nor go, and every other setting
//! waits for the next start.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::keyring::{self, Exchanged};
use crate::metrics::Metrics;
use crate::receiver::Source;

/// A changed file counts once two looks so far apart have seen the same: one that is being written in place
/// is seen empty or cut.
const SETTLING: Duration = Duration::from_millis(250);

/// Reads secrets again.
pub struct Rotation {
    watched: Vec<Watched>,
    interval: Option<Duration>,
    asked: Arc<Notify>,
    metrics: Arc<Metrics>,
}

/// A source whose secrets may change, and the last problem with them that was told.
struct Watched {
    source: Arc<Source>,
    told: Option<String>,
}

/// Why secrets are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Somebody asked for it, by SIGHUP: whatever comes of it is told.
    Asked,
    /// It was time: only what is new is told.
    Time,
}

/// What came of it, over all sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[must_use]
pub struct Reread {
    /// Sources with other secrets now.
    pub changed: usize,
    /// Sources with the same.
    pub unchanged: usize,
    /// Sources whose secrets could not be used.
    pub failed: usize,
}

/// What stands where the secrets come from.
type Look = Result<Vec<SecretString>, String>;

impl Rotation {
    /// Of these sources: those whose secrets stand in files.
    pub fn new<'a>(
        sources: impl Iterator<Item = &'a Arc<Source>>,
        interval: Option<Duration>,
        asked: Arc<Notify>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let watched = sources
            .filter(|source| source.keyring.origin().can_change())
            .map(|source| Watched {
                source: Arc::clone(source),
                told: None,
            });
        Self {
            watched: watched.collect(),
            interval,
            asked,
            metrics,
        }
    }

    /// Reads again whenever it is asked to or it is time, until `stop`.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let why = tokio::select! {
                () = stop.cancelled() => return,
                () = self.asked.notified() => Why::Asked,
                () = next(self.interval.filter(|_| !self.watched.is_empty())) => Why::Time,
            };
            let reread = stop.run_until_cancelled(self.run_once(why)).await;
            if why == Why::Asked
                && let Some(reread) = reread
            {
                tell(reread);
            }
        }
    }

    /// Reads once.
    pub async fn run_once(&mut self, why: Why) -> Reread {
        let mut reread = Reread::default();
        let mut looks = Vec::new();
        for watched in &self.watched {
            looks.push(watched.look().await);
        }
        let news = self
            .watched
            .iter()
            .zip(&looks)
            .any(|(watched, look)| watched.is_news(look));
        if why == Why::Time && news {
            sleep(SETTLING).await;
        }
        for (watched, look) in self.watched.iter_mut().zip(looks) {
            let outcome = match why {
                Why::Asked => Some(watched.take(look)),
                Why::Time => watched.take_if_settled(look).await,
            };
            if let Some(outcome) = outcome {
                self.metrics.secrets.reloaded(outcome);
                reread.add(outcome);
            }
        }
        reread
    }
}

impl Watched {
    /// On a thread where files may take their time.
    async fn look(&self) -> Look {
        let origin = self.source.keyring.origin().clone();
        let read = tokio::task::spawn_blocking(move || origin.read()).await;
        let read = read.map_err(|_| "reading was interrupted".to_owned())?;
        let list = read.map_err(|wrong| wrong.to_string())?;
        list.ok_or_else(|| "there is nothing to read".to_owned())
    }

    /// Whether it is neither what is valid nor a problem that was told.
    fn is_news(&self, look: &Look) -> bool {
        let problem = match look {
            Ok(list) if self.source.keyring.valid().are(list) => return false,
            Ok(list) => self.source.keyring.problem_of(list).map(|bad| bad.to_string()),
            Err(problem) => Some(problem.clone()),
        };
        problem.is_none() || problem != self.told
    }

    /// Takes what two looks have seen; otherwise the next one will tell. Also forgets a problem that is over.
    async fn take_if_settled(&mut self, look: Look) -> Option<&'static str> {
        if !self.is_news(&look) {
            if look.is_ok_and(|list| self.source.keyring.valid().are(&list)) {
                self.told = None;
            }
            return None;
        }
        let again = self.look().await;
        same(&look, &again).then(|| self.take(again))
    }

    /// Makes what was seen valid, if it can be used; says and returns what came of it.
    fn take(&mut self, look: Look) -> &'static str {
        let name = &self.source.name;
        let exchanged = look.and_then(|list| {
            let exchanged = self.source.keyring.exchange(list);
            exchanged.map_err(|bad| bad.to_string())
        });
        match exchanged {
            Ok(Exchanged::Changed { before, now }) => {
                self.told = None;
                tracing::info!(
                    source = name.as_str(),
                    "source {name}: other secrets are valid now: {now}, where there were {before}"
                );
                "changed"
            }
            Ok(Exchanged::Unchanged) => {
                self.told = None;
                "unchanged"
            }
            Err(problem) => {
                tracing::error!(
                    source = name.as_str(),
                    "source {name}: its new secrets cannot be used, and those before them stay valid: {problem}; \
                     mend what it names, it is read again by itself and on SIGHUP"
                );
                self.told = Some(problem);
                "failed"
            }
        }
    }
}

impl Reread {
    fn add(&mut self, outcome: &str) {
        match outcome {
            "changed" => self.changed += 1,
            "unchanged" => self.unchanged += 1,
            _ => self.failed += 1,
        }
    }
}

fn same(one: &Look, other: &Look) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => keyring::same(one, other),
        (Err(one), Err(other)) => one == other,
        (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
    }
}

/// The end of the pause between two looks; never, if nobody wants them.
async fn next(interval: Option<Duration>) {
    match interval {
        Some(interval) => sleep(interval).await,
        None => std::future::pending().await,
    }
}

fn tell(reread: Reread) {
    let Reread {
        changed,
        unchanged,
        failed,
    } = reread;
    if reread == Reread::default() {
        tracing::info!(
            "SIGHUP: no secret that is used here stands in a file, so nothing was read again; other settings need a restart"
        );
    } else {
        tracing::info!(
            changed,
            unchanged,
            failed,
            "SIGHUP: secrets were read again, and nothing else: {changed} source(s) changed, {unchanged} unchanged, \
             {failed} failed; other settings need a restart"
        );
    }
}
