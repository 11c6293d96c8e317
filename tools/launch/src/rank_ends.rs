// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How the ranks of this host end, as the launcher's processes tell it by libweft-ends.so
//! (crates/ends), which is preloaded into them: the socket for their words.
//!
//! Called by `lib.rs` and `supervise.rs`; what the words mean, `rank_ledger.rs` knows. The name of
//! the socket can be seen by every user of this host, so each word begins with a secret, which is
//! in the environment of the job's processes alone.

use std::io;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::endpoints::Endpoints;
use crate::rank_ledger::{Ledger, Word};
use crate::report;
use crate::zombies::Zombies;

/// The variable that names the socket and the secret to it.
pub const VARIABLE: &str = "WEFT_RANK_ENDS";
/// No word is longer. Chosen: 24 letters of the secret and three short words.
const LONGEST_BYTES: usize = 128;
/// The word by which this process ends the listening.
const OVER: &str = "over";

/// Hears the words of one job.
#[derive(Debug)]
pub struct Listener {
    name: String,
    secret: String,
    socket: UnixDatagram,
    /// Who has opened an endpoint of Weft; nobody, where Weft does not carry the job's messages.
    pub endpoints: Endpoints,
}

impl Listener {
    /// Opens the socket.
    ///
    /// # Errors
    /// When the system gives no random bytes or no socket.
    pub fn open() -> io::Result<Self> {
        let name = format!("weft-ends-{}", report::random_hex()?);
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let secret = report::random_hex()?;
        Ok(Self {
            name,
            secret,
            socket,
            endpoints: Endpoints::default(),
        })
    }

    /// The value of [`VARIABLE`].
    pub fn value(&self) -> String {
        format!("{}:{}", self.name, self.secret)
    }

    /// Starts to listen. `tell` is called with what is known when the first rank has ended.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn listen(
        self,
        tell: impl FnMut(&Arc<Mutex<Ledger>>) + Send + 'static,
    ) -> io::Result<Ends> {
        let ledger = Arc::new(Mutex::new(Ledger::default()));
        let (name, secret, kept) = (self.name.clone(), self.secret.clone(), ledger.clone());
        let thread = std::thread::Builder::new()
            .name("rank ends".into())
            .spawn(move || hear(&self, &kept, tell))?;
        Ok(Ends {
            name,
            secret,
            ledger,
            thread,
        })
    }
}

fn hear(
    listener: &Listener,
    ledger: &Arc<Mutex<Ledger>>,
    mut tell: impl FnMut(&Arc<Mutex<Ledger>>),
) {
    let mut zombies = Zombies::default();
    let mut enter = |word: Word| {
        if locked(ledger).hear(word) {
            tell(ledger);
        }
    };
    loop {
        if zombies.wait(listener.socket.as_fd()) {
            match listener.next() {
                Ok(Heard::Word(word)) => {
                    match word {
                        Word::Rank(process, _) => zombies.begin(process),
                        Word::Ended(process, _) => zombies.is_told(process),
                        Word::Sent(..) => {}
                    }
                    enter(word);
                }
                Ok(Heard::Over) | Err(_) => return,
                Ok(Heard::Other) => {}
            }
        }
        for (process, status) in zombies.left() {
            enter(Word::Ended(process, status));
        }
    }
}

/// What came.
enum Heard {
    Word(Word),
    /// The end of the listening.
    Over,
    /// What is none of the job's words.
    Other,
}

impl Listener {
    fn next(&self) -> io::Result<Heard> {
        let mut bytes = [0; LONGEST_BYTES];
        let length = match self.socket.recv(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
            received => received?,
        };
        let text = std::str::from_utf8(&bytes[..length]).ok();
        let word = text
            .and_then(|text| text.strip_prefix(&self.secret))
            .map(str::trim_start);
        Ok(match word {
            Some(OVER) => Heard::Over,
            Some(word) => Word::read(word).map_or(Heard::Other, Heard::Word),
            None => Heard::Other,
        })
    }
}

pub(crate) fn locked(ledger: &Mutex<Ledger>) -> MutexGuard<'_, Ledger> {
    // A ledger is whole after each word.
    ledger.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A listening that was begun.
#[derive(Debug)]
pub struct Ends {
    name: String,
    secret: String,
    ledger: Arc<Mutex<Ledger>>,
    thread: JoinHandle<()>,
}

impl Ends {
    /// Ends the listening. A word that was sent before this call is heard.
    #[must_use]
    pub fn finish(self) -> Ledger {
        let word = format!("{} {OVER}", self.secret);
        let said = SocketAddr::from_abstract_name(&self.name)
            .and_then(|address| UnixDatagram::unbound()?.send_to_addr(word.as_bytes(), &address));
        if said.is_ok() {
            let _ = self.thread.join();
        }
        std::mem::take(&mut *locked(&self.ledger))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_the_secret_are_heard_and_others_are_not() {
        let listener = Listener::open().unwrap();
        let (name, secret) = (listener.name.clone(), listener.secret.clone());
        let ends = listener.listen(|_| {}).unwrap();
        let say = |text: String| {
            let address = SocketAddr::from_abstract_name(&name).unwrap();
            let socket = UnixDatagram::unbound().unwrap();
            socket.send_to_addr(text.as_bytes(), &address).unwrap();
        };
        say("x rank 70 0".to_owned());
        say(format!("{secret} rank 71 1"));
        say(format!("{secret} rank 72"));
        say("ended 71 768".to_owned());
        say(format!("{secret} ended 70 768"));
        say(format!("{secret} ended 71 1792"));
        let first = ends.finish().first.unwrap();
        assert_eq!((first.rank, first.exit_code()), (1, 7));
    }
}
