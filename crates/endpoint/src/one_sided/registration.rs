// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registering memory and taking it back, as the provider calls it. What is registered: region.rs.
//! fi_mr(3).

use weft_contract::{DirectAccess, Route};

use super::region::RegionSettings;
use crate::domain::Domain;
use crate::error::Error;
use crate::ids::CounterId;

impl<P: Route> Domain<P> {
    /// Registers memory: remotes may touch it under the key answered. Setup.
    ///
    /// # Errors
    /// [`Error::KeyInUse`] if the user's key names a region already.
    pub fn register(&mut self, settings: RegionSettings) -> Result<u64, Error> {
        let key = self.sinks.regions.insert(settings)?;
        if let Some(registration) = self.sinks.regions.shown(key) {
            let endpoints = self.endpoints.iter_mut();
            for endpoint in endpoints.filter(|endpoint| !endpoint.core.report.hears_accesses()) {
                if let Some(direct) = endpoint.local.as_mut().and_then(Route::direct) {
                    direct.publish_registration(&registration);
                }
            }
        }
        Ok(key)
    }

    /// Has no remote touch a region without our help from now on; false if one is at it and does
    /// not come to an end.
    fn withdraw(&mut self, key: u64) -> bool {
        let mut is_left = true;
        for endpoint in self.endpoints.iter_mut() {
            if let Some(direct) = endpoint.local.as_mut().and_then(Route::direct) {
                is_left &= direct.withdraw_registration(key);
            }
        }
        is_left
    }

    /// Ends a registration: its key leads nowhere from now on, and what remotes announced for it is
    /// refused. Setup; waits for remotes of this host that touch the memory by themselves at this
    /// moment.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the key names no region. [`Error::Busy`] while messages move its bytes,
    /// or a remote was stopped while it touches them: the memory must stay, and the call be
    /// repeated after some progress.
    pub fn deregister(&mut self, key: u64) -> Result<(), Error> {
        self.sinks.regions.begin_close(key)?;
        let mut is_left = self.withdraw(key);
        for endpoint in self.endpoints.iter_mut() {
            if let Some(one_sided) = &mut endpoint.core.one_sided {
                is_left &= one_sided.leave(key);
            }
        }
        if !is_left {
            return Err(Error::Busy);
        }
        self.sinks.regions.forget(key);
        Ok(())
    }

    /// Counts every write of a remote to a region (FI_RMA_EVENT). Setup.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the key names no region, [`Error::Busy`] if it has a counter.
    pub fn bind_region_counter(&mut self, key: u64, counter: CounterId) -> Result<(), Error> {
        self.sinks.counters.get(counter.0).ok_or(Error::NoSuch)?;
        // Only what we carry out ourselves can be counted.
        let left = self.withdraw(key);
        self.sinks.regions.bind_counter(key, counter, left)
    }
}
