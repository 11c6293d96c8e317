// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The upload of a staged file, from the request that begins it on. The program writes on until the
//! answer comes. [`crate::staging::publication`] holds one, and says what becomes of it.

use weft_store::ETag;

use crate::fault::{Fault, Reason};
use crate::staging::beginning::{Beginning, Begun};
use crate::staging::content::Content;
use crate::staging::plan::part_bytes;
use crate::staging::sending::{Sending, about};
use crate::staging::tail::Grid;
use crate::staging::ways::Ways;

#[derive(Default)]
enum Progress {
    /// There is no upload.
    #[default]
    None,
    /// Its name has not come.
    Begins(Beginning),
    /// Its parts are sent.
    Sends(Sending),
}

/// The upload of one file, if there is one.
#[derive(Default)]
pub struct Uploading {
    progress: Progress,
    begun_count: u64,
}

impl Uploading {
    /// The upload, once it has begun.
    pub fn sending(&self) -> Option<&Sending> {
        match &self.progress {
            Progress::Sends(sending) => Some(sending),
            Progress::None | Progress::Begins(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn sending_mut(&mut self) -> Option<&mut Sending> {
        match &mut self.progress {
            Progress::Sends(sending) => Some(sending),
            Progress::None | Progress::Begins(_) => None,
        }
    }

    /// All bytes before it are in parts.
    pub fn reached(&self) -> u64 {
        self.sending().map_or(0, Sending::reached)
    }

    /// Which parts come next.
    pub fn grid(&self) -> Grid {
        let first = Grid {
            start: 0,
            part_bytes: part_bytes(1),
        };
        self.sending().map_or(first, Sending::grid)
    }

    /// Whether whole parts can be sent, or an upload may begin.
    pub fn has_ready(&self, content: &Content, may_begin: bool) -> bool {
        match &self.progress {
            Progress::Sends(sending) => sending.has_whole_part(content),
            // The program writes on, while there is room for what it writes.
            Progress::Begins(_) => content.may_go_from().is_some(),
            Progress::None => may_begin,
        }
    }

    /// Has an upload begun, where there is none.
    pub fn begin(&mut self, ways: &Ways, key: &str, content: &Content) -> Option<Begun> {
        if !matches!(self.progress, Progress::None) {
            return None;
        }
        let (beginning, is_here) = Beginning::new(ways, key, about(content));
        self.progress = Progress::Begins(beginning);
        self.begun_count += 1;
        Some(Begun {
            number: self.begun_count,
            is_here,
        })
    }

    /// Whether this upload begins, and no later one.
    pub fn is_beginning(&self, number: u64) -> bool {
        matches!(self.progress, Progress::Begins(_)) && self.begun_count == number
    }

    /// Waits until the upload has begun, and asks for one where there is none.
    async fn begun(
        &mut self,
        ways: &Ways,
        key: &str,
        content: &mut Content,
    ) -> Result<&mut Sending, Fault> {
        self.begin(ways, key, content);
        self.progress = match std::mem::take(&mut self.progress) {
            Progress::Begins(beginning) => {
                let id = beginning.id.clone();
                let upload = beginning.answer().await?;
                Progress::Sends(Sending::new(ways, upload, id, content)?)
            }
            progress => progress,
        };
        self.sending_mut().ok_or_else(|| Reason::Broken.into())
    }

    /// Sends whole parts of what was written, once the upload has begun.
    ///
    /// # Errors
    /// What the store said to the beginning; those of reading what is sent.
    pub async fn send_ready(
        &mut self,
        ways: &Ways,
        key: &str,
        content: &mut Content,
    ) -> Result<(), Fault> {
        let sending = self.begun(ways, key, content).await?;
        if sending.has_whole_part(content) {
            sending.advance(ways, content, false).await?;
        }
        Ok(())
    }

    /// Sends the rest, and completes the upload.
    ///
    /// # Errors
    /// What the store said; those of reading what is sent.
    pub async fn finish(
        &mut self,
        ways: &Ways,
        key: &str,
        content: &mut Content,
    ) -> Result<ETag, Fault> {
        let was_asked = matches!(self.progress, Progress::Begins(_));
        match self.begun(ways, key, content).await.map(|_| ()) {
            // It failed while the program wrote on: it is asked now.
            Err(fault) if was_asked && fault.may_pass() => {}
            begun => begun?,
        }
        let sending = self.begun(ways, key, content).await?;
        let etag = sending.finish(ways, content).await?;
        self.progress = Progress::None;
        Ok(etag)
    }

    /// Gives the upload up, if there is one.
    pub fn give_up(&mut self, ways: &Ways) {
        match std::mem::take(&mut self.progress) {
            Progress::None => {}
            Progress::Begins(beginning) => beginning.give_up(ways),
            Progress::Sends(sending) => sending.give_up(ways),
        }
    }
}
