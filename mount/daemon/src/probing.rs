// SPDX-License-Identifier: Apache-2.0 OR MIT
//! When the store is mounted, finds out what it cannot do, reports it, and uses replacements.
//! [`crate::serving`] calls it.

use std::sync::Arc;

use weft_files::HIDDEN;
use weft_store::{Ability, Careful, Failure, Store, StoreError};

use crate::log;
use crate::options::Options;

/// The store, behind something that stands in for what it lacks. S3 itself is not asked, nor a
/// store that is not written to.
pub async fn made_careful(
    store: Arc<dyn Store>,
    options: &Options,
    prefix: &str,
) -> Arc<dyn Store> {
    let Some(address) = options.reach.address() else {
        return store;
    };
    if options.access.read_only || address.contains("amazonaws.com") {
        return store;
    }
    match lacking(&store, prefix).await {
        Ok(lacks) if lacks.is_empty() => store,
        Ok(lacks) => {
            let names: Vec<&str> = lacks.iter().map(|ability| ability.operation()).collect();
            log::tell(&format!(
                "the store at {address} does not honour conditions (If-Match, If-None-Match) on \
                 {}: before each of these the mount asks whether the object is unchanged; if \
                 somebody else writes between the question and the request, that change is lost. \
                 Let one mount write at a time, or use a store that honours conditions",
                names.join(", ")
            ));
            Arc::new(Careful::new(store, lacks))
        }
        Err(error) => {
            log::tell(&format!(
                "it is not known whether the store at {address} honours conditions: {error}. {}",
                remedy(error.failure)
            ));
            Arc::new(Careful::new(store, Ability::ALL.to_vec()))
        }
    }
}

fn remedy(failure: Failure) -> &'static str {
    match failure {
        Failure::Denied => "If these credentials may only read, mount with --read-only",
        Failure::Refused | Failure::Unsupported => {
            "If it does not know CRC64NVME, give --upload-checksums off"
        }
        _ => "The mount asks before each write whether the object is unchanged",
    }
}

/// What the store does not keep; all are tried at once.
async fn lacking(store: &Arc<dyn Store>, prefix: &str) -> Result<Vec<Ability>, StoreError> {
    let tried = Ability::ALL.map(|ability| {
        let store = Arc::clone(store);
        let key = format!(
            "{prefix}{HIDDEN}/probe-{:016x}",
            fastrand::u64(..) ^ u64::from(std::process::id())
        );
        let task = tokio::spawn(async move { ability.is_kept(&*store, &key).await });
        (ability, task)
    });
    let mut lacks = Vec::new();
    for (ability, task) in tried {
        let is_kept = task.await.unwrap_or_else(|_| {
            let text = "the attempt failed";
            let operation = ability.operation();
            Err(StoreError::new(Failure::Refused, operation, "", text))
        });
        if !is_kept? {
            lacks.push(ability);
        }
    }
    Ok(lacks)
}
