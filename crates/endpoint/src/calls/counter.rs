// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls on counters: opening, reading, changing, closing. fi_cntr(3).

use weft_contract::Route;

use crate::completion::counter::Counter;
use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::ids::CounterId;
use crate::shared_objects::SharedObjects;

/// The counters of a domain, for one call.
///
/// Every method answers [`Error::NoSuch`] for an id that names nothing.
pub struct CounterCalls<'a, P> {
    pub(crate) endpoints: &'a mut Endpoints<P>,
    pub(crate) objects: &'a mut SharedObjects,
}

impl<P: Route> CounterCalls<'_, P> {
    /// Opens a counter at 0. Setup.
    pub fn open(self) -> CounterId {
        let counters = &mut self.objects.completions.counters;
        CounterId(counters.insert(Counter::default()))
    }

    /// How many operations succeeded; makes progress first.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn read(self, counter: CounterId) -> Result<u64, Error> {
        self.endpoints.progress_counter(self.objects, counter);
        let counter = self.objects.completions.counter(counter)?;
        counter.read.0 = counter.value;
        Ok(counter.value)
    }

    /// How many operations failed; makes progress first.
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn read_errors(self, counter: CounterId) -> Result<u64, Error> {
        self.endpoints.progress_counter(self.objects, counter);
        let counter = self.objects.completions.counter(counter)?;
        counter.read.1 = counter.errors;
        Ok(counter.errors)
    }

    /// Adds to the successes and to the failures (fi_cntr_add, fi_cntr_adderr).
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn add(self, counter: CounterId, value: u64, errors: u64) -> Result<(), Error> {
        let counter = self.objects.completions.counter(counter)?;
        counter.add(value);
        counter.add_errors(errors);
        Ok(())
    }

    /// Sets the successes (fi_cntr_set).
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn set(self, counter: CounterId, value: u64) -> Result<(), Error> {
        let counter = self.objects.completions.counter(counter)?;
        counter.value = value;
        counter.alarm.sound();
        Ok(())
    }

    /// Sets the failures (fi_cntr_seterr).
    ///
    /// # Errors
    /// Only [`Error::NoSuch`].
    pub fn set_errors(self, counter: CounterId, errors: u64) -> Result<(), Error> {
        let counter = self.objects.completions.counter(counter)?;
        counter.errors = errors;
        counter.alarm.sound();
        Ok(())
    }

    /// Closes a counter. Setup.
    ///
    /// # Errors
    /// [`Error::Busy`] while an endpoint is bound to it.
    pub fn close(self, counter: CounterId) -> Result<(), Error> {
        let completions = &mut self.objects.completions;
        if !completions.counter(counter)?.bound.is_empty() {
            return Err(Error::Busy);
        }
        completions.counters.remove(counter.0);
        Ok(())
    }
}
