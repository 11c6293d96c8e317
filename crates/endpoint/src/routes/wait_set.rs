// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One descriptor for those of all routes of a list. Made by routes.rs when it opens them.

use weft_contract::{RouteError, RouteErrorKind, Sleep};
use weft_os::sleep::WaitSet;

/// Puts the descriptors of all routes into one.
pub(super) fn of<F: Sleep, O: Sleep>(first: &F, others: &[O]) -> Result<WaitSet, RouteError> {
    let refused = |error: std::io::Error| RouteError {
        kind: RouteErrorKind::NoResources,
        words: format!(
            "cannot make a descriptor to wait on: {error}; see the limit of open files (ulimit -n)"
        ),
    };
    let wait_set = WaitSet::new().map_err(refused)?;
    let descriptors = others.iter().map(Sleep::wait_fd);
    for descriptor in descriptors.chain([first.wait_fd()]).flatten() {
        wait_set.add_raw(descriptor).map_err(refused)?;
    }
    Ok(wait_set)
}
