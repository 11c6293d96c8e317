// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The libfabric that this system's MPIs are linked to, or the one that WEFT_LIBFABRIC names: how
//! long it delays the start of a rank. docs/run.md says more.
//!
//! Called by `lib.rs`. Nothing is loaded: the doctor reads which libraries the file asks for.

use std::path::{Path, PathBuf};

use weft_launch::fault::Fault;
use weft_launch::libfabric::{SONAME, VARIABLE, named, slow_to_load};
use weft_launch::loader::Loader;

use crate::check::{Check, Status};

/// The one check of this file.
#[must_use]
pub fn check() -> Check {
    let loader = Loader::of_this_machine(None);
    judge(named(), loader.system_library(SONAME).as_deref())
}

fn judge(named: Result<Option<PathBuf>, Fault>, of_system: Option<&Path>) -> Check {
    let why =
        "each rank loads libfabric when it starts, with all libraries that libfabric asks for";
    let check = |value: String| Check::ok("libfabric", value, why);
    match (named, of_system) {
        (Err(fault), _) => check(fault.to_string()).but(
            Status::Fail,
            format!("set {VARIABLE} to the {SONAME} of a libfabric, or unset it"),
        ),
        (Ok(Some(path)), _) => check(format!("{VARIABLE} is {}{}", path.display(), cost(&path))),
        (Ok(None), Some(path)) => {
            let cost = cost(path);
            let advice = if cost.is_empty() {
                ""
            } else {
                "; WEFT_LIBFABRIC=FILE names another"
            };
            check(format!("{}{cost}{advice}", path.display()))
        }
        (Ok(None), None) => check("none of the system's; each MPI brings its own".to_owned()),
    }
}

/// What the file adds to the start of each rank; nothing where it adds nothing.
fn cost(path: &Path) -> String {
    let slow = slow_to_load(path);
    if slow.is_empty() {
        return String::new();
    }
    format!(
        " delays the start of each rank by 0.{} s or more ({})",
        slow.len(),
        slow.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_name_fails_and_a_good_one_is_said() {
        let bad = Fault::Usage("WEFT_LIBFABRIC: /x cannot be read".into());
        judge(Err(bad), None).assert_wrong(Status::Fail, "unset it");
        let program = Path::new("/bin/true");
        let good = judge(Ok(Some(program.to_owned())), None);
        assert_eq!(good.value, "WEFT_LIBFABRIC is /bin/true");
        assert_eq!(judge(Ok(None), Some(program)).value, "/bin/true");
        assert!(judge(Ok(None), None).value.starts_with("none"));
    }
}
