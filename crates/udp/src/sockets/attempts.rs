// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How gathered datagrams leave through a socket that may first answer for earlier ones. Called by
//! sockets.rs, which gathers them.

use std::io;

use weft_os::outbound::SendFailure;

/// Calls for one datagram that may fail in a row. Chosen: a call that fails takes the error with
/// it, so that the next one fails only if another answer came between them.
const ATTEMPTS_MOST: usize = 4;

/// What ended the calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// All are done.
    All,
    /// The others must wait for room.
    Full,
    /// The others must leave one by one.
    CannotJoin,
}

/// What became of gathered datagrams.
#[derive(Debug)]
pub(super) struct Attempts {
    pub(super) end: End,
    /// So many of them need no further care: sent, or lost at once.
    pub(super) done_count: usize,
    /// System calls made.
    pub(super) call_count: u64,
    /// There may be something in the socket's error queue.
    pub(super) has_error: bool,
    /// Why one was given up last.
    pub(super) failure: Option<io::Error>,
}

/// Sends so many. `are_joined`: some may be, and could leave one by one instead. `send` is one call
/// for those from a place on, and answers how many it took. What lies in the error queue is read
/// afterwards: to take one answer makes the next call fail for the one behind it
/// (sock_dequeue_err_skb, net/core/skbuff.c). Fast path.
#[inline]
pub(super) fn attempt(
    count: usize,
    are_joined: bool,
    mut send: impl FnMut(usize) -> io::Result<usize>,
) -> Attempts {
    let mut attempts = Attempts {
        end: End::All,
        done_count: 0,
        call_count: 0,
        has_error: false,
        failure: None,
    };
    let mut failed_count = 0;
    while attempts.done_count < count {
        attempts.call_count += 1;
        let error = match send(attempts.done_count) {
            Ok(sent_count) => {
                attempts.done_count += sent_count;
                // sendmmsg(2) does not say what stopped it.
                attempts.has_error |= attempts.done_count < count;
                failed_count = 0;
                continue;
            }
            Err(error) => error,
        };
        failed_count += 1;
        let is_last = failed_count == ATTEMPTS_MOST;
        match SendFailure::of(&error) {
            SendFailure::Full => attempts.end = End::Full,
            SendFailure::CannotJoin if are_joined => attempts.end = End::CannotJoin,
            // Newer kernels say so where the parts are longer than the route carries. A host may
            // say it of an earlier datagram, too.
            SendFailure::TooLong if are_joined && is_last => attempts.end = End::CannotJoin,
            failure => {
                attempts.has_error = true;
                if is_last {
                    failed_count = 0;
                    attempts.done_count += 1;
                    if failure != SendFailure::TooLong {
                        attempts.failure = Some(error);
                    }
                }
            }
        }
        if attempts.end != End::All {
            break;
        }
    }
    attempts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux: EAGAIN, EINVAL, EMSGSIZE, ECONNREFUSED.
    const FULL: i32 = 11;
    const INVALID: i32 = 22;
    const TOO_LONG: i32 = 90;
    const REFUSED: i32 = 111;

    /// Each call gets the next of these answers: so many are taken, or an error. Answers also for
    /// which places calls were made.
    fn attempted(
        count: usize,
        are_joined: bool,
        answers: &[Result<usize, i32>],
    ) -> (Attempts, Vec<usize>) {
        let mut places = Vec::new();
        let attempts = attempt(count, are_joined, |place| {
            places.push(place);
            answers[places.len() - 1].map_err(io::Error::from_raw_os_error)
        });
        assert_eq!(places.len() as u64, attempts.call_count);
        assert_eq!(places.len(), answers.len(), "all were asked for");
        (attempts, places)
    }

    #[test]
    fn a_call_that_fails_is_made_again_at_once() {
        let answers = [Err(REFUSED), Err(REFUSED), Err(REFUSED), Ok(2)];
        let (attempts, places) = attempted(2, true, &answers);
        assert_eq!((attempts.end, attempts.done_count), (End::All, 2));
        assert_eq!(places, [0; 4]);
        assert!(attempts.has_error && attempts.failure.is_none());
    }

    #[test]
    fn what_fails_again_and_again_is_given_up_and_the_next_one_has_as_many_attempts() {
        let refused = [Err(REFUSED); ATTEMPTS_MOST];
        let (attempts, places) = attempted(2, false, &refused.repeat(2));
        assert_eq!((attempts.end, attempts.done_count), (End::All, 2));
        assert_eq!(places, [0, 0, 0, 0, 1, 1, 1, 1]);
        assert!(attempts.failure.is_some());
    }

    #[test]
    fn what_stopped_a_call_behind_a_datagram_is_looked_for() {
        assert!(!attempted(3, true, &[Ok(3)]).0.has_error);
        assert!(attempted(3, true, &[Ok(1), Ok(2)]).0.has_error);
    }

    #[test]
    fn what_finds_no_room_waits() {
        let (attempts, _) = attempted(3, true, &[Ok(1), Err(FULL)]);
        assert_eq!((attempts.end, attempts.done_count), (End::Full, 1));
    }

    /// Linux 6.18 says that parts of 1,600 bytes on a route of 1,500 are too long; older ones say
    /// that the call is not valid.
    #[test]
    fn parts_that_are_too_long_for_the_route_leave_one_by_one_from_then_on() {
        let too_long = [Err(TOO_LONG); ATTEMPTS_MOST];
        for answers in [&too_long[..], &[Err(INVALID)]] {
            let answers = [&[Ok(1)], answers].concat();
            let (attempts, _) = attempted(3, true, &answers);
            assert_eq!((attempts.end, attempts.done_count), (End::CannotJoin, 1));
            assert!(attempts.failure.is_none());
        }
        let answers = [Err(TOO_LONG), Err(TOO_LONG), Err(TOO_LONG), Ok(1)];
        let (attempts, _) = attempted(1, true, &answers);
        assert_eq!(attempts.end, End::All, "it was said of an earlier one");
        let (attempts, _) = attempted(1, false, &too_long);
        assert_eq!((attempts.end, attempts.done_count), (End::All, 1));
        assert!(attempts.failure.is_none(), "as a probe may be");
    }
}
