// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The state that all connections of a server share: the store, the faults, the counters, the keys.

use std::sync::{Arc, Mutex, MutexGuard};

use time::{Duration, OffsetDateTime};

use crate::counter::Counters;
use crate::fault::{FaultControl, Faults};
use crate::sign::{Keys, hex};
use crate::store::Store;
use crate::wire::Total;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// Host and port to listen on; port 0 takes a free one.
    pub listen: String,
    /// Buckets that are there from the start.
    pub buckets: Vec<String>,
    /// The credentials that are taken.
    pub keys: Keys,
    /// Whether requests without a signature are taken; those with one are checked all the same.
    pub anonymous: bool,
    /// The faults at the start.
    pub faults: Faults,
    /// Whether tags are MD5 sums as on S3, or counted, which costs no time for large objects.
    pub etag_md5: bool,
    /// Parts other than the last have at least so many bytes; S3 has 5 MiB.
    pub least_part_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:0".to_owned(),
            buckets: Vec::new(),
            keys: Keys {
                access_key: "weft".to_owned(),
                secret_key: "weft-secret".to_owned(),
                session_token: None,
            },
            anonymous: false,
            faults: Faults::default(),
            etag_md5: true,
            least_part_bytes: 5 << 20,
        }
    }
}

/// What connections share.
#[derive(Debug)]
pub struct State {
    /// As it was started.
    pub options: Options,
    /// The faults now.
    pub faults: Arc<FaultControl>,
    /// The rates over all connections.
    pub total: Arc<Total>,
    /// What was counted.
    pub counters: Counters,
    store: Mutex<Store>,
    numbers: Mutex<u64>,
}

impl State {
    /// An empty store with the buckets of the options.
    pub fn new(options: Options) -> Self {
        let mut store = Store::default();
        for bucket in &options.buckets {
            store.make_bucket(bucket);
        }
        Self {
            faults: Arc::new(FaultControl::new(options.faults.clone())),
            total: Arc::new(Total::new()),
            counters: Counters::default(),
            store: Mutex::new(store),
            numbers: Mutex::new(0),
            options,
        }
    }

    /// The store, for one look-up or change.
    pub fn store(&self) -> MutexGuard<'_, Store> {
        crate::locked(&self.store)
    }

    /// What the server's clock shows.
    pub fn now(&self) -> OffsetDateTime {
        let ahead_s = self.faults.settings().clock_ahead_s;
        OffsetDateTime::now_utc() + Duration::seconds(ahead_s)
    }

    /// A number that was not given before.
    pub fn number(&self) -> u64 {
        let mut last = crate::locked(&self.numbers);
        *last += 1;
        *last
    }

    /// The tag of bytes with this MD5, or a tag that was not given before.
    pub fn etag(&self, md5: Option<&[u8]>) -> String {
        match md5 {
            Some(md5) => hex(md5),
            None => format!("{:032x}", u128::from(self.number()) << 64),
        }
    }
}
