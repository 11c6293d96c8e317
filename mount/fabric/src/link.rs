// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the threads that ask and the endpoint's thread send each other. [`crate::fabric`] and
//! [`crate::owner`] use it.

use std::fmt;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;

use bytes::Bytes;
use thiserror::Error;
use tokio::sync::oneshot;
use weft_udp::seal::Trust;

/// Specified (docs/job-cache.md, 2.2): the longest question.
pub const QUESTION_LIMIT_BYTES: usize = (1 << 20) + (8 << 10);
/// Specified (docs/job-cache.md, 2.3): the longest answer.
pub const ANSWER_LIMIT_BYTES: usize = (1 << 20) + 4096;

/// Who the nodes are.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where each node's mount listens; the same list on each.
    pub nodes: Vec<SocketAddr>,
    /// Which of them this one is.
    pub own: usize,
    /// The job's key.
    pub trust: Trust,
    /// Takes what is wrong and no answer can tell, one line each.
    pub tell: fn(&str),
}

/// A node did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence(pub String);

impl fmt::Display for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Silence {}

/// What another node asks; to be answered.
pub struct Asked {
    /// The bytes of the question.
    pub question: Bytes,
    /// Who asks: the question came from this node's address.
    pub node: usize,
    pub(crate) tag: u64,
    pub(crate) link: Link,
}

/// To the thread that has the endpoint.
#[derive(Clone)]
pub(crate) struct Link {
    pub(crate) commands: Sender<Command>,
    pub(crate) bell: std::sync::Arc<UnixStream>,
}

impl Link {
    pub(crate) fn tell(&self, command: Command) {
        // The thread may have ended; then nobody answers, and that is told.
        let _ = self.commands.send(command);
        // A full bell rings already.
        let _ = (&*self.bell).write(&[1]);
    }
}

impl Asked {
    /// Answers. What is longer than [`ANSWER_LIMIT_BYTES`] together is cut, so nobody sends it.
    pub fn answer(self, parts: [Bytes; 2]) {
        self.link.tell(Command::Answer {
            node: self.node,
            tag: self.tag,
            parts,
        });
    }
}

/// What other threads want.
pub(crate) enum Command {
    /// Ask a node.
    Ask {
        node: usize,
        question: Bytes,
        reply: Reply,
    },
    /// Answer a node.
    Answer {
        node: usize,
        tag: u64,
        parts: [Bytes; 2],
    },
    /// Close the endpoint.
    End,
}

pub(crate) type Reply = oneshot::Sender<Result<Bytes, Silence>>;

/// The endpoint of a node could not be opened.
#[derive(Debug, Error)]
pub enum Refused {
    /// The system refused a thread or a socket.
    #[error("cannot make the mount's endpoint: {0}")]
    System(#[from] io::Error),
    /// The endpoint refused, with what it says of the cause.
    #[error("{cause}")]
    Endpoint {
        /// In the endpoint's words.
        cause: String,
    },
    /// The same, where somebody has the port.
    #[error(
        "{cause}. A mount with the port before this one on the same host answers heartbeats here: \
         leave a port between two mounts"
    )]
    Taken {
        /// In the endpoint's words.
        cause: String,
    },
    /// Its thread ended before it could say.
    #[error("the mount's endpoint failed")]
    Ended,
}

impl From<weft_endpoint::Error> for Refused {
    fn from(error: weft_endpoint::Error) -> Self {
        Self::Endpoint {
            cause: error.to_string(),
        }
    }
}
