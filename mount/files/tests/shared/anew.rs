// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What tests of times and modes share: times that programs set, and what a mount shows of a path
//! that begins when all is written.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weft_files::{Attributes, BucketFiles, Publish, Settings, Writes};

use crate::{ROOT, World};

/// For what one node writes behind its programs, and another one's time to live.
pub const LATER: Duration = Duration::from_millis(2500);

/// Some nanoseconds after so many seconds.
pub fn time(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::new(seconds, 123_456_789)
}

/// What a mount shows of a path that begins now.
pub fn see_anew(world: &World, path: &[&str]) -> Attributes {
    let settings = Settings {
        prefix: "p/".to_owned(),
        ttl: Duration::ZERO,
        cache_bytes: 64 << 20,
        writes: Writes::temporary(Publish::Close).unwrap(),
    };
    let (over, handle) = (
        Arc::clone(&world.store) as _,
        world.runtime.handle().clone(),
    );
    let files = BucketFiles::new(over, handle, settings, |_| {});
    let find = |parent, name: &&str| {
        let found = world.runtime.block_on(files.lookup(parent, name));
        found.expect("it is there").attributes.ino
    };
    let ino = path.iter().fold(ROOT, find);
    let seen = world.runtime.block_on(files.attributes(ino));
    seen.unwrap().attributes
}
