// SPDX-License-Identifier: Apache-2.0 OR MIT
//! An open file that another node has: its calls go there. [`crate::shared::shared_files`] has
//! them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::fault::{Fault, Reason};
use crate::job::Job;
use crate::mode::Mode;
use crate::shared::messages::{self, Ask, Call, FileAt, Seen};

#[derive(Default)]
struct State {
    /// Of the last call.
    number: u64,
    /// The owner is gone, and what it had not published with it.
    is_broken: bool,
}

/// Where a file is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its owner.
    pub node: usize,
    /// There.
    pub file: FileAt,
}

/// An open file of another node.
pub struct RemoteFile {
    /// The number of its node here.
    pub ino: u64,
    /// How it was opened.
    pub mode: Mode,
    /// When it was opened.
    pub key: String,
    /// Where it is.
    pub place: Place,
    job: Arc<Job>,
    state: Mutex<State>,
}

impl RemoteFile {
    /// Of a node of the job.
    pub fn new(job: Arc<Job>, place: Place, ino: u64, key: &str, mode: Mode) -> Self {
        Self {
            ino,
            mode,
            key: key.to_owned(),
            place,
            job,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        let mut state = self.state();
        state.number += 1;
        state.number
    }

    /// Asks the owner, and waits until it knows.
    async fn ask(&self, number: u64, question: &Ask) -> Result<Bytes, Fault> {
        let mut question = question.write();
        loop {
            if self.state().is_broken {
                return Err(self.gone("it did not answer before"));
            }
            let answer = match self.job.ask_node(self.place.node, question).await {
                Ok(answer) => messages::answered(answer)?,
                Err(unreached) => {
                    self.state().is_broken = true;
                    return Err(self.gone(&unreached.to_string()));
                }
            };
            if let Some(answer) = answer {
                return Ok(answer);
            }
            question = self.call(number, Call::Wait).write();
        }
    }

    fn gone(&self, why: &str) -> Fault {
        let text = format!(
            "node {} of the job had `{}` for all who write it, and is gone ({why}); what was not \
             published lies on that node",
            self.place.node, self.key
        );
        Fault::because(Reason::Broken, text)
    }

    fn call(&self, number: u64, call: Call) -> Ask {
        let file = self.place.file;
        Ask::Call { file, number, call }
    }

    /// Does a call; what the file is like then.
    ///
    /// # Errors
    /// What the owner says; `Broken` where it is gone.
    pub async fn do_call(&self, call: Call) -> Result<Seen, Fault> {
        let number = self.number();
        let mut answer = self.ask(number, &self.call(number, call)).await?;
        messages::seen(&mut answer).ok_or_else(|| messages::not_understood(&answer))
    }

    /// Writes at `offset`, or at the end of a file that is opened for appending.
    ///
    /// # Errors
    /// As [`RemoteFile::do_call`].
    pub async fn write(&self, offset: u64, data: Bytes) -> Result<(), Fault> {
        let number = self.number();
        let write = Ask::Write {
            file: self.place.file,
            number,
            offset: (!self.mode.appends).then_some(offset),
            data,
        };
        self.ask(number, &write).await.map(drop)
    }

    /// Up to `size` bytes from `offset` on; fewer only at the end of the file.
    ///
    /// # Errors
    /// As [`RemoteFile::do_call`].
    pub async fn read(&self, offset: u64, size: u64) -> Result<Bytes, Fault> {
        let read = Ask::Read {
            file: self.place.file,
            offset,
            size: size.min(messages::DATA_BYTES),
        };
        self.ask(self.number(), &read).await
    }
}
