// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asks another node, and takes what others ask. `mount/daemon` opens it; any thread may call it.

use std::fmt;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, oneshot};
use weft_udp::seal::Trust;

use crate::owner::{self, Command};

/// Specified (docs/job-cache.md, 2.2): the longest question.
pub const QUESTION_LIMIT_BYTES: usize = 8 << 10;
/// Specified (docs/job-cache.md, 2.3): the longest answer.
pub const ANSWER_LIMIT_BYTES: usize = (1 << 20) + 4096;
/// Chosen: questions that wait for answers at once; each has a buffer of an answer.
const ASKING: usize = 32;
/// Chosen: who does not answer for so long is taken for dead: longer than the store's own attempts
/// at one request take while it is well.
const PATIENCE: Duration = Duration::from_secs(20);

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
    pub(crate) node: usize,
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

/// The endpoint of this node.
pub struct Fabric {
    link: Link,
    asking: Semaphore,
    settings: Settings,
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.link.tell(Command::End);
    }
}

impl Fabric {
    /// Opens the endpoint of this node. What others ask comes out of the second.
    ///
    /// # Errors
    /// In words: an address that is not of this host, or is taken; a key that is none.
    pub fn open(settings: Settings) -> Result<(Self, mpsc::UnboundedReceiver<Asked>), String> {
        let (asked, receiver) = mpsc::unbounded_channel();
        let link = owner::start(settings.clone(), asked)?;
        let fabric = Self {
            link,
            asking: Semaphore::new(ASKING),
            settings,
        };
        Ok((fabric, receiver))
    }

    /// Which node this is.
    pub fn own(&self) -> usize {
        self.settings.own
    }

    /// How many nodes there are.
    pub fn node_count(&self) -> usize {
        self.settings.nodes.len()
    }

    /// Asks a node, and waits for its answer.
    ///
    /// # Errors
    /// The node is gone, or does not answer.
    pub async fn ask(&self, node: usize, question: Bytes) -> Result<Bytes, Silence> {
        // Closed never, so that there is always a permit to wait for.
        let _permit = self.asking.acquire().await;
        let (reply, answer) = oneshot::channel();
        self.link.tell(Command::Ask {
            node,
            question,
            reply,
        });
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Silence("this node's endpoint has ended".to_owned())),
            Err(_) => Err(Silence(format!(
                "{} did not answer for {} s",
                self.settings.nodes[node],
                PATIENCE.as_secs()
            ))),
        }
    }
}
