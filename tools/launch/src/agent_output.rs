// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What comes from a node agent and the remote shell that starts it: words of `agent_protocol.rs`
//! on standard output, complaints on standard error. A remote host may write a greeting in any
//! encoding on both.
//!
//! Called by `node_agents.rs`, which closes neither stream; each is read by a thread to its end.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::agent_protocol::FromAgent;

/// Lines of a remote shell's complaints that are kept for the message.
const KEPT: usize = 3;

/// The words of a node agent; the channel ends with the stream.
///
/// # Errors
/// When there is no thread for it.
pub(crate) fn words(stream: impl Read + Send + 'static) -> io::Result<Receiver<FromAgent>> {
    let (sender, words) = channel();
    spawn(move || {
        for line in lines(stream) {
            if serde_json::from_slice(&line).is_ok_and(|word| sender.send(word).is_err()) {
                return;
            }
        }
    })?;
    Ok(words)
}

/// What a remote shell complains of.
#[derive(Debug)]
pub(crate) struct Complaints {
    last: Arc<Mutex<VecDeque<String>>>,
    /// Ends with the stream.
    end: Receiver<()>,
}

impl Complaints {
    /// Reads the stream from now on.
    ///
    /// # Errors
    /// When there is no thread for it.
    pub(crate) fn read(stream: impl Read + Send + 'static) -> io::Result<Self> {
        let last = Arc::new(Mutex::new(VecDeque::new()));
        let kept = Arc::clone(&last);
        let (held, end) = channel();
        spawn(move || {
            let _until_the_end = held;
            for line in lines(stream) {
                let text = String::from_utf8_lossy(&line)
                    .trim_end_matches('\r')
                    .to_owned();
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.push_back(text);
                if kept.len() > KEPT {
                    kept.pop_front();
                }
            }
        })?;
        Ok(Self { last, end })
    }

    /// The last lines, indented, each behind a line break; nothing where there are none. Waits for
    /// the end of the stream, but not longer than `patience`.
    pub(crate) fn text(&self, patience: Duration) -> String {
        // Nobody sends: either the stream ends, or the time.
        let _ = self.end.recv_timeout(patience);
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().map(|line| format!("\n    {line}")).collect()
    }
}

/// The lines of a stream, of any bytes, until its end or an error.
fn lines(stream: impl Read) -> impl Iterator<Item = Vec<u8>> {
    BufReader::new(stream).split(b'\n').map_while(Result::ok)
}

fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = std::thread::Builder::new().name("node-agent".into());
    thread.spawn(work).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Until the stream ends, which it does at once here.
    const AT_THE_END: Duration = Duration::from_secs(1000);

    #[test]
    fn a_greeting_in_another_encoding_hides_no_word() {
        let heard = words(&b"Gr\xfc\xdf Gott\n\"tick\"\nno word\n\"tick\"\n"[..]).unwrap();
        let all: Vec<FromAgent> = heard.iter().collect();
        assert_eq!(all, [FromAgent::Tick, FromAgent::Tick]);
    }

    #[test]
    fn the_last_complaints_are_kept_whatever_their_bytes() {
        let complaints = Complaints::read(&b"1\n2\nGr\xfc\xdf\r\n3\ndenied"[..]).unwrap();
        let text = complaints.text(AT_THE_END);
        assert_eq!(text, "\n    Gr\u{fffd}\u{fffd}\n    3\n    denied");
    }
}
