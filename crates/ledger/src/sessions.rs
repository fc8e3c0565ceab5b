//! Connections, and the bounds of everything done on one.
//!
//! A server that hangs answers no statement timeout, so each attempt has a limit on this side too, and a
//! connection that broke or was left in the middle of something is thrown away, never handed on. sqlx's own
//! pool does not fit: it pings on every return without a limit, which a hanging server turns into an empty
//! pool, and it repeats a refused login until the wait ends, which hides the reason.

use std::time::Duration;

use deadpool::Runtime;
use deadpool::managed::{self, Metrics, Object, PoolError, RecycleError, RecycleResult};
use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout_at};

use crate::fault::{Fault, Pauses};
use crate::history::{Chronicle, History};
use crate::{LedgerError, Limits};

/// A connection is replaced after this age, so that memory and plans the server keeps for it do not grow for
/// ever, and a moved address is noticed.
const AGE_MAX: Duration = Duration::from_secs(30 * 60);

/// What the server's own statement timeout is given before this side stops waiting: its answer says more.
const GRACE: Duration = Duration::from_millis(100);

/// For how long the session behind a connection is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tenure {
    /// As long as the connection stands.
    Kept,
    /// For a transaction: a pooler lends it, and another one for the next. Everything is done by [`Store::lent`].
    Lent,
}

/// A connection that was just made.
pub(crate) struct Opened<C> {
    pub(crate) connection: C,
    pub(crate) tenure: Tenure,
    /// The timeline that its server writes; 0 if none is known.
    pub(crate) timeline: u32,
}

impl<C> Opened<C> {
    /// Of a database without poolers and histories.
    pub(crate) fn plain(connection: C) -> Self {
        Self {
            connection,
            tenure: Tenure::Kept,
            timeline: 0,
        }
    }
}

/// A kind of database: how to connect, and what its errors mean.
pub(crate) trait Store: Chronicle + Send + Sync + Sized + 'static {
    /// Its connection.
    type Connection: Send + 'static;

    /// Opens a connection, ready for use.
    fn open(&self) -> impl Future<Output = Result<Opened<Self::Connection>, Fault>> + Send;

    /// Does it on a session that is lent, in one transaction, and gives the session back as it was. After an error the
    /// connection is thrown away, and with it what was done on the session.
    fn lent<A: Sync, T: Send, E: From<sqlx::Error> + Send>(
        &self,
        conn: &mut Self::Connection,
        args: &A,
        act: Act<Self, A, T, E>,
    ) -> impl Future<Output = Result<T, E>> + Send {
        async move { act(conn, args).await }
    }

    /// Hears every error, for what it says about the database as a whole.
    fn learn(&self, _error: &sqlx::Error) {}

    /// What an error means.
    fn judge(error: &sqlx::Error) -> Fault;

    /// The timeline seen at the latest connect; 0 where there is none.
    fn timeline(&self) -> u32 {
        0
    }
}

/// One thing to do on a connection. The arguments are borrowed, so that a repetition costs no copy.
pub(crate) type Act<S, A, T, E = sqlx::Error> =
    for<'c> fn(&'c mut <S as Store>::Connection, &'c A) -> BoxFuture<'c, Result<T, E>>;

/// A bounded set of connections.
pub(crate) struct Sessions<S: Store> {
    pool: managed::Pool<Opener<S>>,
    limits: Limits,
}

impl<S: Store> Sessions<S> {
    /// At most `size` connections, opened when first needed.
    pub(crate) fn new(store: S, size: usize, limits: Limits) -> Self {
        let pool = managed::Pool::builder(Opener(store))
            .max_size(size.max(1))
            .wait_timeout(Some(limits.pool_wait))
            .runtime(Runtime::Tokio1)
            .build()
            .expect("a pool with a time limit needs a runtime, and has one");
        Self { pool, limits }
    }

    /// The store behind the connections.
    pub(crate) fn store(&self) -> &S {
        &self.pool.manager().0
    }

    /// The bounds of what is done here.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Does it, repeating what may pass, within the limit of a whole call.
    pub(crate) async fn run<A: Sync, T: Send>(&self, args: &A, act: Act<S, A, T>) -> Result<T, LedgerError> {
        Ok(self.attempt(args, act).await?)
    }

    /// As [`Self::run`], for those who look closer at why it failed.
    pub(crate) async fn attempt<A: Sync, T: Send>(&self, args: &A, act: Act<S, A, T>) -> Result<T, Fault> {
        let deadline = Instant::now() + self.limits.append;
        let mut pauses = Pauses::new();
        loop {
            let fault = match self.once(deadline, args, act).await {
                Ok(done) => return Ok(done),
                Err(fault) => fault,
            };
            let resume = Instant::now() + pauses.next();
            if !fault.passes() || resume >= deadline {
                return Err(fault);
            }
            tokio::time::sleep_until(resume).await;
        }
    }

    /// Does it once.
    pub(crate) async fn once<A: Sync, T: Send>(
        &self,
        deadline: Instant,
        args: &A,
        act: Act<S, A, T>,
    ) -> Result<T, Fault> {
        let mut session = self.open(deadline).await?;
        session.at_rest = false;
        let end = deadline.min(Instant::now() + self.limits.statement + GRACE);
        let acted = timeout_at(end, self.act(&mut session, args, act)).await;
        let result = match acted {
            Ok(result) => result.map_err(|error| self.judge(&error)),
            Err(_) => Err(Fault::Broken("the database did not answer in time".into())),
        };
        self.put_back(session, result.as_ref().err());
        result
    }

    /// Does it on a session, which is borrowed for it if it is not ours.
    pub(crate) async fn act<A: Sync, T: Send, E: From<sqlx::Error> + Send>(
        &self,
        session: &mut Session<S::Connection>,
        args: &A,
        act: Act<S, A, T, E>,
    ) -> Result<T, E> {
        match session.tenure {
            Tenure::Kept => act(&mut session.connection, args).await,
            Tenure::Lent => self.store().lent(&mut session.connection, args, act).await,
        }
    }

    /// Back to the others, or away if it may no longer be used.
    pub(crate) fn put_back(&self, mut session: Object<Opener<S>>, fault: Option<&Fault>) {
        match fault {
            // What broke one connection has likely broken those that rest beside it.
            Some(Fault::Broken(_)) => {
                drop(Object::take(session));
                self.pool.retain(|_, _| false);
                if let Some(histories) = self.store().histories() {
                    histories.doubt();
                }
            }
            Some(_) if session.tenure == Tenure::Lent => drop(Object::take(session)),
            _ => session.at_rest = true,
        }
    }

    fn judge(&self, error: &sqlx::Error) -> Fault {
        self.store().learn(error);
        S::judge(error)
    }

    /// A connection. Waiting for one that others use has its own, shorter limit; making a new one, which on a
    /// long line takes several round trips, has that of a whole call.
    pub(crate) async fn open(&self, deadline: Instant) -> Result<Object<Opener<S>>, Fault> {
        let end = deadline.min(Instant::now() + self.limits.append);
        match timeout_at(end, self.pool.get()).await {
            Ok(Ok(session)) => Ok(session),
            Ok(Err(PoolError::Backend(fault))) => Err(fault),
            Ok(Err(PoolError::Closed)) => Err(Fault::Overloaded("the ledger is closed".into())),
            Ok(Err(_)) => Err(Fault::Overloaded(
                "no connection to the database came free in time".into(),
            )),
            Err(_) => Err(Fault::Broken(
                "the database did not accept a connection in time".into(),
            )),
        }
    }

    /// Hands out no more connections; those at rest are closed, the others when they come back.
    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

/// A connection, and whether it was left between two acts.
pub(crate) struct Session<C> {
    pub(crate) connection: C,
    tenure: Tenure,
    timeline: u32,
    /// False while something runs, and for good if its future was dropped meanwhile.
    pub(crate) at_rest: bool,
}

/// Opens connections for the pool and judges those that come back.
pub(crate) struct Opener<S>(S);

impl<S: Store> managed::Manager for Opener<S> {
    type Type = Session<S::Connection>;
    type Error = Fault;

    async fn create(&self) -> Result<Self::Type, Fault> {
        let opened = self.0.open().await?;
        Ok(Session {
            connection: opened.connection,
            tenure: opened.tenure,
            timeline: opened.timeline,
            at_rest: true,
        })
    }

    async fn recycle(&self, session: &mut Self::Type, metrics: &Metrics) -> RecycleResult<Fault> {
        match session.at_rest && metrics.age() < AGE_MAX && self.is_current(session) {
            true => Ok(()),
            false => Err(RecycleError::message(
                "left in the middle of something, too old, or to a server that is no longer the one",
            )),
        }
    }
}

impl<S: Store> Opener<S> {
    /// Whether it leads to the server whose history the witness named, as far as both are known. Behind a pooler a
    /// connection leads to whichever server is the one.
    fn is_current(&self, session: &Session<S::Connection>) -> bool {
        let told = self.0.histories().map(|histories| histories.told());
        match told {
            Some(History::Timeline(told)) if session.tenure == Tenure::Kept => {
                told == 0 || session.timeline == 0 || told == session.timeline
            }
            _ => true,
        }
    }
}
