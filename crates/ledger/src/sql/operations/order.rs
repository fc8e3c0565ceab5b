//! A change as it was ordered: which events, who, why, and the request by which it knows itself again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hookgate_webhook::EventKey;

use super::{Direction, OperationsDialect, Selection, Touched};
use crate::columns::state;
use crate::{Bulk, Change, Changed, Filter, Reason, State};

/// A change to some events.
pub(crate) struct Order<'a> {
    pub(crate) change: Change,
    pub(crate) selection: Selection,
    pub(crate) dry_run: bool,
    /// The first becomes due so long after now…
    pub(crate) first_in: Duration,
    /// …and each next one so much later.
    pub(crate) spacing: Duration,
    pub(crate) reason: &'a Reason,
    pub(crate) request: [u8; 16],
    tried: AtomicBool,
}

impl<'a> Order<'a> {
    /// To one event.
    pub(super) fn one(key: &EventKey, change: Change, generation: Option<u32>, reason: &'a Reason) -> Self {
        let filter = Filter {
            source: Some(key.source.clone()),
            states: change.starts_from().to_vec(),
            ..Filter::default()
        };
        let mut order = Self::of(change, filter, reason);
        order.selection.one = Some((key.id.clone(), generation));
        order
    }

    /// To the next events of a bulk change.
    pub(crate) fn many(bulk: &Bulk, limit: u32, reason: &'a Reason) -> Self {
        let filter = Filter {
            states: bulk.states(),
            ..bulk.filter.clone()
        };
        let mut order = Self::of(bulk.change, filter, reason);
        order.selection.in_no_state = order.selection.filter.states.is_empty();
        order.selection.after.clone_from(&bulk.after);
        order.selection.limit = limit;
        order.dry_run = bulk.dry_run;
        order.first_in = bulk.first_in;
        order.spacing = bulk.spacing;
        order
    }

    fn of(change: Change, filter: Filter, reason: &'a Reason) -> Self {
        Self {
            change,
            selection: Selection {
                with_body: change.needs_body(),
                ..Selection::of(filter, Direction::OldestFirst)
            },
            dry_run: false,
            first_in: Duration::ZERO,
            spacing: Duration::ZERO,
            reason,
            request: rand::random(),
            tried: AtomicBool::new(false),
        }
    }

    /// Whether an earlier try may have been committed.
    fn is_repeated(&self) -> bool {
        self.tried.swap(true, Ordering::Relaxed)
    }
}

/// A pause or its end, as it was ordered.
pub(crate) struct PauseOrder<'a> {
    pub(crate) target: &'a str,
    pub(crate) reason: &'a Reason,
    pub(crate) request: [u8; 16],
}

impl<'a> PauseOrder<'a> {
    pub(super) fn new(target: &'a str, reason: &'a Reason) -> Self {
        Self {
            target,
            reason,
            request: rand::random(),
        }
    }
}

/// What a change to one event looks at.
#[derive(sqlx::FromRow)]
pub(crate) struct Standing {
    state: String,
    generation: i64,
    pruned: bool,
}

impl Standing {
    /// Why it cannot be changed so; `None` if it could be now.
    fn refuses(&self, change: Change, generation: Option<u32>) -> sqlx::Result<Option<Changed>> {
        let state: State = state(&self.state)?;
        let present = crate::columns::count(self.generation)?;
        Ok(if generation.is_some_and(|seen| seen != present) {
            Some(Changed::OtherGeneration(present))
        } else if !change.starts_from().contains(&state) {
            Some(Changed::WrongState(state))
        } else if self.pruned && change.needs_body() {
            Some(Changed::Pruned)
        } else {
            None
        })
    }
}

/// Changes one event, or says why not.
pub(super) async fn change_one<D: OperationsDialect>(
    conn: &mut D::Connection,
    order: &Order<'_>,
) -> sqlx::Result<Changed> {
    let (source, one) = (&order.selection.filter.source, &order.selection.one);
    let (Some(source), Some((id, generation))) = (source, one) else {
        return Ok(Changed::NotFound);
    };
    let key = EventKey {
        source: source.clone(),
        id: id.clone(),
    };
    loop {
        if let Some(touched) = change_many::<D>(conn, order).await?.first() {
            let generation = touched.generation()?;
            return Ok(Changed::Done { generation });
        }
        let Some(standing) = D::standing(conn, &key).await? else {
            return Ok(Changed::NotFound);
        };
        if let Some(refused) = standing.refuses(order.change, *generation)? {
            return Ok(refused);
        }
        // It came into that state between the two statements: ask again. The caller's limit ends this.
        tokio::task::yield_now().await;
    }
}

/// Changes the selected events, or finds that an earlier try of this order did. One that was cut off may still
/// run on the server: it is waited for. In case it begins only now, it is looked for before and after, and all
/// that either has changed is told.
pub(super) async fn change_many<D: OperationsDialect>(
    conn: &mut D::Connection,
    order: &Order<'_>,
) -> sqlx::Result<Vec<Touched>> {
    if order.dry_run {
        return D::count(conn, &order.selection).await;
    }
    if !order.is_repeated() {
        return D::change(conn, order).await;
    }
    D::await_earlier(conn, &order.request).await?;
    let written = D::written(conn, &order.request).await?;
    if !written.is_empty() {
        return Ok(written);
    }
    D::change(conn, order).await?;
    D::written(conn, &order.request).await
}
