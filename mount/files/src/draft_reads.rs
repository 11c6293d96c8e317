// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reads of a file that is being written: bytes of its log, and of the objects that it was made of.
//! [`crate::draft`] has one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as PlainMutex, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::Mutex;
use weft_store::Range;

use crate::draft_state::State;
use crate::fault::{Fault, Reason};
use crate::pieces::Pieces;
use crate::reader::Reader;
use crate::staging::extents::Source;
use crate::version::{Version, VersionId};

/// Of one draft.
#[derive(Default)]
pub struct DraftReads {
    by_version: PlainMutex<HashMap<VersionId, Arc<Reader>>>,
}

impl DraftReads {
    /// Reads of this object go on in order, whoever asks.
    fn reader(&self, version: &Arc<Version>) -> Arc<Reader> {
        let readers = self.by_version.lock();
        let mut readers = readers.unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Reader::new(Arc::clone(version)));
        Arc::clone(readers.entry(version.id).or_insert_with(new))
    }

    /// The bytes of `range`; fewer only at the end of the file.
    ///
    /// # Errors
    /// Those of the disk and of the store.
    pub async fn read(
        &self,
        state: &Mutex<State>,
        pieces: &Pieces,
        range: Range,
    ) -> Result<Bytes, Fault> {
        match self.read_once(state, pieces, range).await {
            // It was published meanwhile: its bytes lie elsewhere now.
            Err(fault) if matches!(fault.reason, Reason::Stale | Reason::NotFound) => {
                let again = self.read_once(state, pieces, range).await;
                again.map_err(|fault| match fault.reason {
                    Reason::NotFound => Reason::Stale.into(),
                    _ => fault,
                })
            }
            read => read,
        }
    }

    async fn read_once(
        &self,
        state: &Mutex<State>,
        pieces: &Pieces,
        range: Range,
    ) -> Result<Bytes, Fault> {
        let mut state = state.lock().await;
        let (start, end) = (range.start, range.end.min(state.file.content.size()));
        if start >= end {
            return Ok(Bytes::new());
        }
        let mut whole = BytesMut::zeroed((end - start) as usize);
        let stretches = state.file.content.places.stretches(Range::new(start, end));
        let place = |at: Range| (at.start - start) as usize..(at.end - start) as usize;
        for stretch in &stretches {
            if let Some(Source::Staged(at)) = stretch.source {
                let into = &mut whole[place(stretch.range)];
                state.file.content.read_staged(stretch.range, at, into)?;
            }
        }
        // The store may take long, and the program writes meanwhile.
        drop(state);
        for stretch in &stretches {
            if let Some(Source::Object(version, at)) = &stretch.source {
                let reader = self.reader(version);
                let length = stretch.range.byte_count();
                let bytes = reader.read(pieces, *at, length).await?;
                whole[place(stretch.range)].copy_from_slice(&bytes);
            }
        }
        Ok(whole.freeze())
    }
}
