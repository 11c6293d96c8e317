// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Asks another node, and receives the questions of others. `mount/daemon` opens it; any thread may
//! call it.

use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};

use crate::link::{Asked, Command, Link, Refused, Settings, Silence};
use crate::owner;

/// Chosen: questions that wait for answers at once; each has a buffer of an answer.
const ASKING: usize = 32;
/// Chosen: who does not answer for so long is taken for dead: longer than the store's own attempts
/// at one request take while it is well.
const PATIENCE: Duration = Duration::from_secs(20);

/// Chosen: the same of questions that must not wait behind those.
const PRESSING: usize = 32;

/// The endpoint of this node. To drop it closes the endpoint: it says farewell, for which it takes
/// two seconds at most, and then its address is free.
pub struct Fabric {
    link: Link,
    thread: Option<JoinHandle<()>>,
    asking: Semaphore,
    pressing: Semaphore,
    settings: Settings,
}

impl Drop for Fabric {
    fn drop(&mut self) {
        self.link.tell(Command::End);
        if let Some(thread) = self.thread.take() {
            // Its panic was told.
            let _ = thread.join();
        }
    }
}

impl Fabric {
    /// Opens the endpoint of this node. What others ask comes out of the second.
    ///
    /// # Errors
    /// An address that is not of this host, or is taken; a key that is none.
    pub fn open(settings: Settings) -> Result<(Self, mpsc::UnboundedReceiver<Asked>), Refused> {
        let (asked, receiver) = mpsc::unbounded_channel();
        let (link, thread) = owner::start(settings.clone(), asked)?;
        let fabric = Self {
            link,
            thread: Some(thread),
            asking: Semaphore::new(ASKING),
            pressing: Semaphore::new(PRESSING),
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
        self.send(node, question, PATIENCE).await
    }

    /// The same for a question that waits for none of [`Fabric::ask`], and no longer than
    /// `patience` in all.
    ///
    /// # Errors
    /// As [`Fabric::ask`].
    pub async fn ask_soon(
        &self,
        node: usize,
        question: Bytes,
        patience: Duration,
    ) -> Result<Bytes, Silence> {
        let until = Instant::now() + patience;
        let Ok(_permit) = timeout_at(until, self.pressing.acquire()).await else {
            let text = "other questions about locks are not answered";
            return Err(Silence(text.to_owned()));
        };
        let left = until.saturating_duration_since(Instant::now());
        self.send(node, question, left).await
    }

    async fn send(
        &self,
        node: usize,
        question: Bytes,
        patience: Duration,
    ) -> Result<Bytes, Silence> {
        let (reply, answer) = oneshot::channel();
        self.link.tell(Command::Ask {
            node,
            question,
            reply,
        });
        match tokio::time::timeout(patience, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Silence("this node's endpoint has ended".to_owned())),
            Err(_) => Err(Silence(format!(
                "{} did not answer for {} s",
                self.settings.nodes[node],
                patience.as_secs()
            ))),
        }
    }
}
