// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The ranks that a keeper serves, from their coming until their programs have ended.
//!
//! Called by `keeper.rs`. Each rank is a connection, which breaks when the rank is killed. The last
//! one is not let go before the buckets are unmounted, so that it can fail where something is not
//! published; the others go at once.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crate::mounts::keeper_message::KeeperMessage;

#[derive(Debug)]
struct Guest {
    stream: UnixStream,
    /// Its program has ended, and it waits to be let go.
    has_ended: bool,
}

/// Those that came and did not go.
#[derive(Debug, Default)]
pub(crate) struct ServedRanks {
    list: Vec<Guest>,
}

impl ServedRanks {
    /// One more; its stream does not block.
    pub(crate) fn add(&mut self, stream: UnixStream) {
        self.list.push(Guest {
            stream,
            has_ended: false,
        });
    }

    /// Whether a program of theirs may still run.
    pub(crate) fn are_busy(&self) -> bool {
        self.list.iter().any(|guest| !guest.has_ended)
    }

    /// Each connection, to wait for.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.list.iter().map(|guest| guest.stream.as_fd())
    }

    /// Takes what they say. Those whose programs have ended are let go while others run.
    pub(crate) fn hear(&mut self) {
        self.list.retain_mut(|guest| guest.is_there());
        if self.are_busy() {
            let (waiting, busy) = std::mem::take(&mut self.list)
                .into_iter()
                .partition(|guest| guest.has_ended);
            self.list = busy;
            tell(waiting, &KeeperMessage::Done);
        }
    }

    /// Tells those that wait how it ended.
    pub(crate) fn dismiss(self, word: &KeeperMessage) {
        tell(self.list, word);
    }
}

impl Guest {
    /// Hears it; false once the connection is broken.
    fn is_there(&mut self) -> bool {
        let mut bytes = [0; 64];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                // It has one thing to say.
                Ok(_) => self.has_ended = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == ErrorKind::WouldBlock,
            }
        }
    }
}

fn tell(guests: Vec<Guest>, word: &KeeperMessage) {
    for mut guest in guests {
        // Who went away meanwhile is not told.
        let _ = guest.stream.write_all(word.to_line().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::keeper_message::{self, ENDED};

    fn pair(guests: &mut ServedRanks) -> UnixStream {
        let (here, there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        guests.add(here);
        there
    }

    #[test]
    fn all_but_the_last_are_let_go_at_once_and_the_killed_are_forgotten() {
        let mut guests = ServedRanks::default();
        let [mut one, mut two, three] = [(); 3].map(|()| pair(&mut guests));
        assert!(guests.are_busy());
        one.write_all(ENDED).unwrap();
        guests.hear();
        assert_eq!(
            keeper_message::read(&mut one).unwrap(),
            Some(KeeperMessage::Done)
        );
        drop(three);
        two.write_all(ENDED).unwrap();
        guests.hear();
        assert!(!guests.are_busy() && guests.descriptors().count() == 1);
        guests.dismiss(&KeeperMessage::Failed("lost".to_owned()));
        let failed = Some(KeeperMessage::Failed("lost".to_owned()));
        assert_eq!(keeper_message::read(&mut two).unwrap(), failed);
    }
}
