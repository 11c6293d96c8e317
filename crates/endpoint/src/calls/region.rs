// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The calls on registered memory: registering it, and taking it back while messages use it
//! (docs/one-sided.md, clause 8). fi_mr(3).

use weft_contract::{DirectAccess, Route};

use crate::endpoints::Endpoints;
use crate::error::Error;
use crate::ids::CounterId;
use crate::one_sided::region::RegionSettings;
use crate::shared_objects::SharedObjects;

/// The registered memory of a domain, for one call.
pub struct RegionCalls<'a, P> {
    pub(crate) endpoints: &'a mut Endpoints<P>,
    pub(crate) objects: &'a mut SharedObjects,
}

impl<P: Route> RegionCalls<'_, P> {
    /// Registers memory. Remotes may access it under the key that is returned. Setup.
    ///
    /// # Errors
    /// [`Error::KeyInUse`] if the user's key names a region already.
    pub fn register(self, settings: RegionSettings) -> Result<u64, Error> {
        let regions = &mut self.objects.regions;
        let key = regions.insert(settings)?;
        if let Some(registration) = regions.shown(key) {
            for endpoint in self.endpoints.iter_mut() {
                let is_counted = endpoint.core.receiving.delivery.reports.counts_accesses();
                let direct = endpoint.route.as_mut().and_then(Route::direct);
                if let (false, Some(direct)) = (is_counted, direct) {
                    direct.publish_registration(&registration);
                }
            }
        }
        Ok(key)
    }

    /// Has no remote access a region without our help from now on; false if one is at it and does
    /// not come to an end.
    fn withdraw(&mut self, key: u64) -> bool {
        let mut is_left = true;
        for endpoint in self.endpoints.iter_mut() {
            if let Some(direct) = endpoint.route.as_mut().and_then(Route::direct) {
                is_left &= direct.withdraw_registration(key);
            }
        }
        is_left
    }

    /// Ends a registration. From now on its key is invalid, and payload that remotes announced for
    /// it is refused. Setup; waits for remotes of this host that are accessing the memory directly
    /// at this moment.
    ///
    /// # Errors [`Error::NoSuch`] if the key names no region. [`Error::Busy`] while messages move
    /// its bytes, or if a remote was stopped during an access to them. Then the memory must stay,
    /// and the call must be repeated after some progress.
    pub fn deregister(mut self, key: u64) -> Result<(), Error> {
        self.objects.regions.begin_close(key)?;
        let mut is_left = self.withdraw(key);
        for endpoint in self.endpoints.iter_mut() {
            if let Some(one_sided) = &mut endpoint.core.one_sided {
                is_left &= one_sided.leave(key);
            }
        }
        if !is_left {
            return Err(Error::Busy);
        }
        self.objects.regions.forget(key);
        Ok(())
    }

    /// Counts every write of a remote to a region (FI_RMA_EVENT). Setup.
    ///
    /// # Errors
    /// [`Error::NoSuch`] if the key names no region, [`Error::Busy`] if it has a counter.
    pub fn bind_counter(mut self, key: u64, counter: CounterId) -> Result<(), Error> {
        self.objects.completions.counter(counter)?;
        // Only what we carry out ourselves can be counted.
        let left = self.withdraw(key);
        self.objects.regions.bind_counter(key, counter, left)
    }
}
