//! The witness of which timeline is written: see [`crate::history`].

use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::time::{sleep, timeout};

use super::store::{Postgres, Shown};
use crate::fault::Fault;
use crate::history::{
    Chronicle, DOUBT_INTERVAL, Histories, History, Nudge, WITNESS_INTERVAL, WITNESS_TIMEOUT,
};
use crate::sessions::Store as _;

impl Chronicle for Postgres {
    fn histories(&self) -> Option<&Histories> {
        Some(self.common_histories())
    }

    async fn witness(&self) -> Fault {
        let Err(fault) = self.stand().await;
        fault
    }
}

impl Postgres {
    async fn stand(&self) -> Result<std::convert::Infallible, Fault> {
        let histories = self.common_histories();
        // A listener is the one connection that says when it breaks without being asked. It listens to nothing.
        let one = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(WITNESS_TIMEOUT)
            .connect_lazy_with(self.options().clone());
        let mut witness = in_time(PgListener::connect_with(&one)).await?;
        witness.eager_reconnect(false);
        loop {
            let history = self.ask(&mut witness).await?;
            histories.tell(history);
            let rest = match history {
                History::Doubted => DOUBT_INTERVAL,
                History::Timeline(_) => WITNESS_INTERVAL,
            };
            tokio::select! {
                biased;
                lost = witness.try_recv() => return Err(broken(lost.err())),
                nudge = histories.nudged() => if let Nudge::Moved = nudge {
                    return Err(broken(None));
                },
                () = sleep(rest) => {}
            }
        }
    }

    /// A standby writes no history, and may be about to begin one.
    async fn ask(&self, witness: &mut PgListener) -> Result<History, Fault> {
        let answer = timeout(WITNESS_TIMEOUT, self.timeline_shown(witness)).await;
        match answer.map_err(|_| broken(None))?? {
            Shown::Timeline(timeline) => Ok(History::Timeline(timeline)),
            Shown::Hidden => Ok(History::Timeline(0)),
            Shown::Standby => Ok(History::Doubted),
        }
    }
}

async fn in_time<T>(answer: impl Future<Output = sqlx::Result<T>>) -> Result<T, Fault> {
    match timeout(WITNESS_TIMEOUT, answer).await {
        Ok(answer) => answer.map_err(|error| Postgres::judge(&error)),
        Err(_) => Err(broken(None)),
    }
}

fn broken(error: Option<sqlx::Error>) -> Fault {
    Fault::Broken(error.map_or_else(|| "the database did not answer".into(), |error| error.to_string()))
}
