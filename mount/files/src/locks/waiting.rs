// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Waits for a lock: asks its keeper, and hears when it is held. For [`crate::lock_calls`].

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::fault::{Fault, Reason};
use crate::locks::messages::{Reply, Session, Wish};
use crate::locks::seat::{Asked, Granted, Place};
use crate::locks::{Locks, Wanted, no_locks, too_many};

/// One who waits.
struct Waiter {
    session: Session,
    wanted: Wanted,
    granted: oneshot::Receiver<Granted>,
}

/// Takes a lock as soon as nothing is in its way, unless `interrupted` ends before.
///
/// # Errors
/// `Interrupted`; `Deadlock`; `NoLocks` where the node that keeps the locks does not answer.
pub async fn wait(
    locks: &Arc<Locks>,
    key: String,
    asked: &Asked,
    interrupted: impl Future<Output = ()>,
) -> Result<(), Fault> {
    let using = locks.using(asked.ino, key);
    let place = &using.place;
    let mut interrupted = pin!(interrupted);
    let mut is_interrupted = false;
    loop {
        let Some(mut waiter) = begin_to_wait(locks, place, asked).await? else {
            return Ok(());
        };
        let mut granted = None;
        if !is_interrupted {
            tokio::select! {
                heard = &mut waiter.granted => granted = Some(heard),
                () = &mut interrupted => is_interrupted = true,
            }
        }
        if granted.is_none() {
            let (session, wish) = (waiter.session, Wish::Cancel);
            let wanted = Wanted {
                wish,
                ..waiter.wanted
            };
            let cancelled = locks.ask_in(place, session, wanted).await;
            if cancelled == Some(Reply::Done) {
                locks.seat.forget(wanted.ticket);
                return Err(Reason::Interrupted.into());
            }
            // It has the lock by now, and hears so, or that the session is over.
        }
        let granted = match granted {
            Some(granted) => granted,
            None => waiter.granted.await,
        };
        match granted {
            Ok(Granted::Held) => return Ok(()),
            Ok(Granted::Again) => {}
            Ok(Granted::Over) | Err(_) => return Err(no_locks(place)),
        }
    }
}

/// Asks for a lock; nothing where it is held at once.
async fn begin_to_wait(
    locks: &Arc<Locks>,
    place: &Place,
    asked: &Asked,
) -> Result<Option<Waiter>, Fault> {
    let _turn = locks.turns.take(asked.ino).await;
    let Some(session) = locks.session(place).await else {
        return Err(no_locks(place));
    };
    let keeper = place.keeper;
    let (ticket, granted) = locks.seat.expect(keeper, session.number, *asked);
    let wanted = Wanted {
        wish: Wish::Wait,
        lock: asked.lock,
        ticket,
    };
    let reply = locks.ask_in(place, session, wanted).await;
    if reply != Some(Reply::Waits) {
        locks.seat.forget(ticket);
    }
    match reply {
        Some(Reply::Waits) => Ok(Some(Waiter {
            session,
            wanted,
            granted,
        })),
        Some(Reply::Done) if locks.seat.holds(keeper, session.number, asked) => Ok(None),
        Some(Reply::Deadlock) => Err(Reason::Deadlock.into()),
        Some(Reply::Full(what)) => Err(too_many(place, what)),
        _ => Err(no_locks(place)),
    }
}
