// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of a draft: its bytes, and what is known of how they were written.
//! [`crate::draft`] has one.

use std::sync::Arc;

use crate::draft_node::DraftNode;
use crate::fault::Fault;
use crate::staging::content::Content;
use crate::staging::plan::PART_BYTES;
use crate::staging::publication::Publication;
use crate::staging::record::Note;
use crate::staging::ways::Ways;
use crate::version::Version;

/// Chosen: an upload begins when more was written in order. What is shorter is one request.
const STREAM_BYTES: u64 = PART_BYTES;

/// What the calls on a draft share; one at a time has it.
pub struct State {
    /// Its bytes, and their upload.
    pub file: Publication,
    /// It is not what the store has.
    pub is_changed: bool,
    /// Something was written since it was opened or published last.
    pub is_written: bool,
    /// Its name is gone.
    pub is_unlinked: bool,
    /// Every write since it was opened or published last was at the end.
    pub is_in_order: bool,
    /// Since then.
    pub appended_bytes: u64,
    /// Why something of it is lost.
    pub failed: Option<Fault>,
    /// A program heard of a failure.
    pub is_told: bool,
}

impl State {
    /// Of a file that nobody has written yet.
    pub fn new(content: Content, is_changed: bool) -> Self {
        Self {
            file: Publication::new(content),
            is_changed,
            is_written: false,
            is_unlinked: false,
            is_in_order: true,
            appended_bytes: 0,
            failed: None,
            is_told: false,
        }
    }

    /// Stages `data` at `offset`, or at the end.
    ///
    /// # Errors
    /// `NoSpace` before anything is taken; `TooLarge`.
    pub fn write(
        &mut self,
        ways: &Ways,
        key: &str,
        offset: Option<u64>,
        data: &[u8],
    ) -> Result<(), Fault> {
        let size = self.file.content.size();
        let offset = offset.unwrap_or(size);
        self.file.write(ways, key, offset, data)?;
        self.is_in_order &= offset == size;
        self.appended_bytes += data.len() as u64;
        self.is_changed = true;
        self.is_written = true;
        Ok(())
    }

    /// Makes what was written the object of `node`. Nothing is done if nothing was written.
    ///
    /// # Errors
    /// `Stale` where somebody else wrote the object meanwhile; what the store said.
    pub async fn publish(&mut self, node: &DraftNode) -> Result<(), Fault> {
        if !self.is_changed || self.is_unlinked {
            return Ok(());
        }
        let (key, ways) = (node.key()?, node.ways());
        self.file.content.note(Note::Whole)?;
        let etag = match self.file.publish(ways, &key).await {
            Ok(etag) => etag,
            Err(fault) => return Err(self.note_failure(ways, fault)),
        };
        let info = node.published(etag, self.file.content.size());
        let version = Arc::new(Version::new(key, &info));
        self.file.content.published(ways, &version);
        self.is_changed = false;
        self.is_written = false;
        self.is_in_order = true;
        self.appended_bytes = 0;
        self.is_told = false;
        Ok(())
    }

    /// Notes that it was not published. What may pass is tried again at the next close or fsync.
    fn note_failure(&mut self, ways: &Ways, fault: Fault) -> Fault {
        if !fault.may_pass() {
            self.failed = Some(fault.clone());
            self.file.upload.give_up(ways);
        }
        fault
    }

    /// Whether a part can be sent now.
    pub fn has_ready(&self) -> bool {
        let is_large = self.file.content.size() > STREAM_BYTES;
        let is_stream = self.is_in_order && is_large && self.appended_bytes > STREAM_BYTES;
        !self.is_unlinked && self.file.upload.has_ready(&self.file.content, is_stream)
    }

    /// Sends whole parts of what was written in order.
    ///
    /// # Errors
    /// Those of reading what is sent.
    pub async fn send_ready(&mut self, ways: &Ways, key: &str) -> Result<(), Fault> {
        let Publication {
            content, upload, ..
        } = &mut self.file;
        match upload.send_ready(ways, key, content).await {
            // The bytes are here: publishing tries again, and says what is wrong.
            Err(_) if upload.sending().is_none() => {
                self.appended_bytes = 0;
                Ok(())
            }
            sent => sent,
        }
    }
}
