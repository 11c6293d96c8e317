// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state of a draft: its bytes, and what is known of how they were written.
//! [`crate::draft`] has one.

use crate::fault::Fault;
use crate::staging::content::Content;
use crate::staging::plan::PART_BYTES;
use crate::staging::publication::Publication;
use crate::staging::ways::Ways;

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

    /// Notes that it was not published. What may pass is tried again at the next close or fsync.
    pub fn note_failure(&mut self, ways: &Ways, fault: Fault) -> Fault {
        if !fault.may_pass() {
            self.failed = Some(fault.clone());
            self.file.give_up(ways);
        }
        fault
    }

    /// Whether a part can be sent now.
    pub fn has_ready(&self) -> bool {
        let is_large = self.file.content.size() > STREAM_BYTES;
        let is_stream = self.is_in_order && is_large && self.appended_bytes > STREAM_BYTES;
        !self.is_unlinked && self.file.has_ready(is_stream)
    }

    /// Sends whole parts of what was written in order.
    ///
    /// # Errors
    /// Those of reading what is sent.
    pub async fn send_ready(&mut self, ways: &Ways, key: &str) -> Result<(), Fault> {
        match self.file.send_ready(ways, key).await {
            // The bytes are here: publishing tries again, and says what is wrong.
            Err(_) if !self.file.is_sending() => {
                self.appended_bytes = 0;
                Ok(())
            }
            sent => sent,
        }
    }
}
