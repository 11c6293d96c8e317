// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls on completion queues: opening, reading, closing. fi_cq(3).

use weft_contract::Route;
use weft_memory::CqBuffer;

use crate::completion::queue::{Completion, CompletionQueue, ErrorCompletion};
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::ids::QueueId;
use crate::settings::QueueSettings;
use crate::shared_objects::SharedObjects;

/// The completion queues of a domain, for one call.
pub struct QueueCalls<'a, P> {
    pub(crate) endpoints: &'a mut Endpoints<P>,
    pub(crate) objects: &'a mut SharedObjects,
}

impl<P: Route> QueueCalls<'_, P> {
    /// Opens a completion queue. Setup.
    pub fn open(self, settings: QueueSettings) -> QueueId {
        let queues = &mut self.objects.completions.queues;
        QueueId(queues.insert(CompletionQueue::new(settings)))
    }

    /// Hands up to `max` completions to `take`, oldest first; makes progress first if there are
    /// none. Returns how many; 0 only if `max` is 0. Fast path.
    ///
    /// # Errors
    /// [`Error::Again`] if there are none, [`Error::ErrorAvailable`] if the next entry is an error.
    #[inline(always)]
    pub fn read(
        self,
        queue: QueueId,
        max: usize,
        take: impl FnMut(&Completion),
    ) -> Result<usize, Error> {
        let was_empty = self.objects.completions.queue(queue)?.is_empty();
        if was_empty || max == 0 {
            let something_moved = self.endpoints.progress_queue(self.objects, queue);
            if was_empty && !something_moved {
                return Err(Error::Again);
            }
        }
        self.objects.completions.queue(queue)?.read(max, take)
    }

    /// As [`Self::read`], but into an application's array with room for `max` entries, which
    /// `buffer` gives. Completions that progress brings go there directly, past the queue. Fast
    /// path.
    ///
    /// # Errors
    /// As [`Self::read`].
    #[inline(always)]
    pub fn read_into(
        self,
        queue: QueueId,
        max: usize,
        buffer: impl Fn() -> CqBuffer,
    ) -> Result<usize, Error> {
        let known = self.objects.completions.queue(queue)?;
        if max == 0 || known.bound.len() != 1 {
            return self.read_seldom(queue, max, buffer());
        }
        if !known.is_empty() {
            return known.read_into(max, buffer());
        }
        let endpoint = self.endpoints.get_mut(known.bound[0]);
        let endpoint = endpoint.map_err(|_| Error::Again)?;
        if endpoint.pass() {
            if !self.endpoints.others_are_due(1) {
                return Err(Error::Again);
            }
            return self.read_with_others(queue, max, buffer());
        }
        known.hold_out(&buffer);
        let event_count = endpoint.make_progress(self.objects);
        let known = self.objects.completions.queue(queue)?;
        let count = known.take_back();
        if count > 0 {
            return Ok(count);
        }
        let has_nothing = known.is_empty();
        if event_count == 0 && self.endpoints.others_are_due(1) {
            return self.read_with_others(queue, max, buffer());
        }
        if has_nothing {
            return Err(Error::Again);
        }
        read_waiting(self.objects, queue, max, buffer())
    }

    /// Reads what waits in the queue; makes progress first if that is nothing, or if nothing is
    /// asked for.
    #[inline(never)]
    fn read_seldom(self, queue: QueueId, max: usize, buffer: CqBuffer) -> Result<usize, Error> {
        if max == 0 || self.objects.completions.queue(queue)?.is_empty() {
            self.endpoints.progress_queue(self.objects, queue);
        }
        read_waiting(self.objects, queue, max, buffer)
    }

    /// The same after a round of the domain's other endpoints.
    #[cold]
    fn read_with_others(
        self,
        queue: QueueId,
        max: usize,
        buffer: CqBuffer,
    ) -> Result<usize, Error> {
        self.endpoints.progress_all(self.objects);
        read_waiting(self.objects, queue, max, buffer)
    }

    /// Takes the next entry of the queue, if it is an error.
    ///
    /// # Errors
    /// [`Error::Again`] if it is not.
    pub fn read_error(self, queue: QueueId) -> Result<ErrorCompletion, Error> {
        let known = self.objects.completions.queue(queue)?;
        known.read_error().ok_or(Error::Again)
    }

    /// Closes a completion queue; entries not read are lost. Setup.
    ///
    /// # Errors
    /// [`Error::Busy`] while an endpoint is bound to it.
    pub fn close(self, queue: QueueId) -> Result<(), Error> {
        let completions = &mut self.objects.completions;
        if !completions.queue(queue)?.bound.is_empty() {
            return Err(Error::Busy);
        }
        completions.queues.remove(queue.0);
        Ok(())
    }
}

/// Reads what waits in the queue.
#[inline(never)]
fn read_waiting(
    objects: &mut SharedObjects,
    queue: QueueId,
    max: usize,
    buffer: CqBuffer,
) -> Result<usize, Error> {
    objects.completions.queue(queue)?.read_into(max, buffer)
}
