// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The domain: every object of one libfabric domain in one structure, so that one lock, or none, guards it.
//!
//! Called by the provider. Queues, counters and address vectors are opened, read and closed here; endpoints
//! in endpoint.rs; data calls are in send.rs and receive.rs. fi_domain(3), fi_cq(3), fi_cntr(3), fi_av(3).

use std::net::SocketAddr;

use weft_contract::Route;
use weft_memory::CqBuffer;

use crate::address_vector::AddressVector;
use crate::completion::Sinks;
use crate::completion_queue::{Completion, CompletionQueue, ErrorCompletion};
use crate::counter::Counter;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::ids::{CounterId, FiAddr, QueueId, Table, VectorId};
use crate::one_sided::Regions;
use crate::settings::{DomainSettings, QueueSettings, VectorKind};

/// One libfabric domain. Not synchronised: the provider locks it, or the user promised not to share it.
///
/// Every method answers [`Error::NoSuch`] for an id that names nothing.
pub struct Domain<P: Route> {
    pub(crate) settings: DomainSettings,
    pub(crate) local_settings: P::Settings,
    pub(crate) endpoints: Table<Endpoint<P>>,
    pub(crate) sinks: Sinks,
    pub(crate) vectors: Table<AddressVector>,
    pub(crate) last_failure: Option<String>,
    /// Reads of queues in a row whose own endpoints had nothing to do, while there were others.
    pub(crate) idle_reads_count: u32,
}

impl<P: Route> Domain<P> {
    /// A domain with nothing in it, whose local transports are opened with their default settings. Setup.
    pub fn new(settings: DomainSettings) -> Self {
        Self::with_local_settings(settings, P::Settings::default())
    }

    /// A domain with nothing in it, whose local transports are opened with `local`. Setup.
    pub fn with_local_settings(settings: DomainSettings, local: P::Settings) -> Self {
        Self {
            settings,
            local_settings: local,
            endpoints: Table::new(),
            sinks: Sinks {
                queues: Table::new(),
                counters: Table::new(),
                regions: Regions::default(),
            },
            vectors: Table::new(),
            last_failure: None,
            idle_reads_count: 0,
        }
    }

    /// The settings it was opened with.
    pub fn settings(&self) -> &DomainSettings {
        &self.settings
    }

    /// Why the last call that the system refused failed, in words, for the log.
    pub fn last_failure(&self) -> Option<&str> {
        self.last_failure.as_deref()
    }

    /// Whether nothing is open in the domain, so that it may be closed.
    pub fn is_empty(&self) -> bool {
        self.endpoints.iter().next().is_none()
            && self.vectors.iter().next().is_none()
            && self.sinks.queues.iter().next().is_none()
            && self.sinks.counters.iter().next().is_none()
            && self.sinks.regions.is_empty()
    }
}

/// Address vectors.
impl<P: Route> Domain<P> {
    /// Opens an address vector. Setup.
    pub fn open_vector(&mut self, kind: VectorKind) -> VectorId {
        VectorId(self.vectors.insert(AddressVector::new(kind)))
    }

    /// Which kind a vector is.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn vector_kind(&self, vector: VectorId) -> Result<VectorKind, Error> {
        Ok(self.vectors.get(vector.0).ok_or(Error::NoSuch)?.kind())
    }

    /// Gives `address` a name: the lowest free number. The same address may have several. Slow path.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn insert(&mut self, vector: VectorId, address: SocketAddr) -> Result<FiAddr, Error> {
        self.insert_as(vector, address, None)
    }

    /// As [`Domain::insert`]; messages from there are reported as coming from `source` (FI_AV_USER_ID). Slow path.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn insert_as(
        &mut self,
        vector: VectorId,
        address: SocketAddr,
        source: Option<FiAddr>,
    ) -> Result<FiAddr, Error> {
        let table = self.vectors.get_mut(vector.0).ok_or(Error::NoSuch)?;
        let name = table.insert(address);
        if let Some(source) = source {
            table.set_source(address, source);
        }
        let first = table.reported(&address);
        for endpoint in self
            .endpoints
            .iter_mut()
            .filter(|endpoint| endpoint.vector == Some(vector))
        {
            endpoint.learn(name, address, first);
        }
        Ok(name)
    }

    /// Takes a name back; sends to it are [`Error::Invalid`] from now on. Slow path.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the name leads to no address.
    pub fn remove(&mut self, vector: VectorId, name: FiAddr) -> Result<(), Error> {
        let table = self.vectors.get_mut(vector.0).ok_or(Error::NoSuch)?;
        let address = table.remove(name).ok_or(Error::NoSuch)?;
        let first = table.reported(&address);
        for endpoint in self
            .endpoints
            .iter_mut()
            .filter(|endpoint| endpoint.vector == Some(vector))
        {
            endpoint.core.remotes.clear_name(name, first);
        }
        Ok(())
    }

    /// The address of a name. Slow path.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the name leads to no address.
    pub fn lookup(&self, vector: VectorId, name: FiAddr) -> Result<SocketAddr, Error> {
        self.vectors
            .get(vector.0)
            .and_then(|table| table.lookup(name))
            .ok_or(Error::NoSuch)
    }

    /// Closes an address vector. Setup.
    ///
    /// # Errors
    /// [`Error::Busy`] while an endpoint is bound to it.
    pub fn close_vector(&mut self, vector: VectorId) -> Result<(), Error> {
        if self
            .endpoints
            .iter()
            .any(|endpoint| endpoint.vector == Some(vector))
        {
            return Err(Error::Busy);
        }
        self.vectors.remove(vector.0).map(drop).ok_or(Error::NoSuch)
    }
}

/// Completion queues.
impl<P: Route> Domain<P> {
    /// Opens a completion queue. Setup.
    pub fn open_queue(&mut self, settings: QueueSettings) -> QueueId {
        QueueId(self.sinks.queues.insert(CompletionQueue::new(settings)))
    }

    /// Hands up to `max` completions to `take`, oldest first; makes progress first if there are none.
    /// Answers how many; 0 only if `max` is 0. Fast path.
    ///
    /// # Errors
    /// [`Error::Again`] if there are none, [`Error::ErrorAvailable`] if the next entry is an error.
    #[inline(always)]
    pub fn read_queue(
        &mut self,
        queue: QueueId,
        max: usize,
        take: impl FnMut(&Completion),
    ) -> Result<usize, Error> {
        let entries = self.sinks.queues.get(queue.0).ok_or(Error::NoSuch)?;
        let was_empty = entries.is_empty();
        if was_empty || max == 0 {
            let something_moved = self.progress_queue(queue);
            if was_empty && !something_moved {
                return Err(Error::Again);
            }
        }
        self.sinks
            .queues
            .get_mut(queue.0)
            .ok_or(Error::NoSuch)?
            .read(max, take)
    }

    /// As [`Domain::read_queue`], into an application's array with room for `max` entries, that
    /// `buffer` gives; what progress brings goes there without waiting in the queue. Fast path.
    ///
    /// # Errors
    /// As [`Domain::read_queue`].
    #[inline(always)]
    pub fn read_queue_into(
        &mut self,
        queue: QueueId,
        max: usize,
        buffer: impl Fn() -> CqBuffer,
    ) -> Result<usize, Error> {
        let known = self.sinks.queues.get_mut(queue.0).ok_or(Error::NoSuch)?;
        if max == 0 || known.bound.len() != 1 {
            return self.read_seldom(queue, max, buffer());
        }
        if !known.is_empty() {
            return known.read_into(max, buffer());
        }
        let endpoint = self.endpoints.get_mut(known.bound[0].0);
        let endpoint = endpoint.ok_or(Error::Again)?;
        if endpoint.pass() {
            if self.endpoints.count() == 1 || !self.others_are_due() {
                return Err(Error::Again);
            }
            return self.read_with_others(queue, max, buffer());
        }
        known.hold_out(&buffer);
        let event_count = endpoint.make_progress(&mut self.sinks);
        let known = self.sinks.queues.get_mut(queue.0).ok_or(Error::NoSuch)?;
        let count = known.take_back();
        if count > 0 {
            return Ok(count);
        }
        let has_nothing = known.is_empty();
        if event_count == 0 && self.endpoints.count() > 1 && self.others_are_due() {
            return self.read_with_others(queue, max, buffer());
        }
        if has_nothing {
            return Err(Error::Again);
        }
        self.read_waiting(queue, max, buffer())
    }

    /// Reads what waits in the queue; makes progress first if that is nothing, or if nothing is asked for.
    #[inline(never)]
    fn read_seldom(
        &mut self,
        queue: QueueId,
        max: usize,
        buffer: CqBuffer,
    ) -> Result<usize, Error> {
        let known = self.sinks.queues.get(queue.0).ok_or(Error::NoSuch)?;
        if known.is_empty() || max == 0 {
            self.progress_queue(queue);
        }
        self.read_waiting(queue, max, buffer)
    }

    /// The same after a round of the domain's other endpoints.
    #[cold]
    fn read_with_others(
        &mut self,
        queue: QueueId,
        max: usize,
        buffer: CqBuffer,
    ) -> Result<usize, Error> {
        self.progress_all();
        self.read_waiting(queue, max, buffer)
    }

    /// Reads what waits in the queue.
    #[inline(never)]
    fn read_waiting(
        &mut self,
        queue: QueueId,
        max: usize,
        buffer: CqBuffer,
    ) -> Result<usize, Error> {
        let known = self.sinks.queues.get_mut(queue.0).ok_or(Error::NoSuch)?;
        known.read_into(max, buffer)
    }

    /// Takes the next entry of the queue, if it is an error.
    ///
    /// # Errors
    /// [`Error::Again`] if it is not.
    pub fn read_error(&mut self, queue: QueueId) -> Result<ErrorCompletion, Error> {
        self.sinks
            .queues
            .get_mut(queue.0)
            .ok_or(Error::NoSuch)?
            .read_error()
            .ok_or(Error::Again)
    }

    /// Closes a completion queue; entries not read are lost. Setup.
    ///
    /// # Errors
    /// [`Error::Busy`] while an endpoint is bound to it.
    pub fn close_queue(&mut self, queue: QueueId) -> Result<(), Error> {
        match self.sinks.queues.get(queue.0) {
            Some(entries) if !entries.bound.is_empty() => Err(Error::Busy),
            _ => self
                .sinks
                .queues
                .remove(queue.0)
                .map(drop)
                .ok_or(Error::NoSuch),
        }
    }
}

/// Counters.
impl<P: Route> Domain<P> {
    /// Opens a counter at 0. Setup.
    pub fn open_counter(&mut self) -> CounterId {
        CounterId(self.sinks.counters.insert(Counter::default()))
    }

    /// How many operations succeeded; makes progress first.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn read_counter(&mut self, counter: CounterId) -> Result<u64, Error> {
        self.progress_counter(counter);
        let counter = self.counter(counter)?;
        counter.read.0 = counter.value;
        Ok(counter.value)
    }

    /// How many operations failed; makes progress first.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn read_counter_errors(&mut self, counter: CounterId) -> Result<u64, Error> {
        self.progress_counter(counter);
        let counter = self.counter(counter)?;
        counter.read.1 = counter.errors;
        Ok(counter.errors)
    }

    /// Adds to the successes and to the failures (fi_cntr_add, fi_cntr_adderr).
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn add_to_counter(
        &mut self,
        counter: CounterId,
        value: u64,
        errors: u64,
    ) -> Result<(), Error> {
        let counter = self.counter(counter)?;
        counter.add(value);
        counter.add_errors(errors);
        Ok(())
    }

    /// Sets the successes (fi_cntr_set).
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn set_counter(&mut self, counter: CounterId, value: u64) -> Result<(), Error> {
        let counter = self.counter(counter)?;
        counter.value = value;
        counter.alarm.sound();
        Ok(())
    }

    /// Sets the failures (fi_cntr_seterr).
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn set_counter_errors(&mut self, counter: CounterId, errors: u64) -> Result<(), Error> {
        let counter = self.counter(counter)?;
        counter.errors = errors;
        counter.alarm.sound();
        Ok(())
    }

    fn counter(&mut self, counter: CounterId) -> Result<&mut Counter, Error> {
        self.sinks.counters.get_mut(counter.0).ok_or(Error::NoSuch)
    }

    /// Closes a counter. Setup.
    ///
    /// # Errors
    /// [`Error::Busy`] while an endpoint is bound to it.
    pub fn close_counter(&mut self, counter: CounterId) -> Result<(), Error> {
        match self.sinks.counters.get(counter.0) {
            Some(counts) if !counts.bound.is_empty() => Err(Error::Busy),
            _ => self
                .sinks
                .counters
                .remove(counter.0)
                .map(drop)
                .ok_or(Error::NoSuch),
        }
    }
}
