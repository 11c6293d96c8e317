// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is only read of the kernel: its version, and how it sets the processors' speed.
//!
//! Called by `lib.rs`. Sources: memfd_create(2) (3.17), udp(7) (UDP_SEGMENT 4.18, UDP_GRO 5.0),
//! user_namespaces(7) (FUSE for ordinary users 4.18);
//! Documentation/admin-guide/pm/cpufreq.rst.

use std::collections::BTreeSet;

use crate::check::{Check, Status};
use crate::tree::Tree;

/// The first version that has all that Weft uses.
const WANTED: (u32, u32) = (5, 0);
/// Drivers whose `powersave` raises the speed under load all the same.
const SELF_DRIVEN: [&str; 3] = ["intel_pstate", "amd-pstate", "amd-pstate-epp"];

/// Both checks.
#[must_use]
pub fn checks(tree: &Tree) -> Vec<Check> {
    let release = tree.text("/proc/sys/kernel/osrelease");
    vec![version(release.as_deref()), governor(tree)]
}

fn version(release: Option<&str>) -> Check {
    let why = "joined datagrams came with 5.0, and buckets without root with 4.18; without them \
               Weft is slower, or refuses --mount";
    let Some(release) = release else {
        return Check::ok("kernel", "its version cannot be read", why).not_tried("mount /proc");
    };
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || numbers.next()?.parse::<u32>().ok();
    let found = number().zip(number());
    Check::ok("kernel", format!("{release}, read and not tried"), why)
        .but_if(
            found.is_some_and(|found| found < WANTED),
            Status::Warn,
            "boot a newer kernel",
        )
        .limited_by(format!("{}.{} is wanted", WANTED.0, WANTED.1))
}

fn governor(tree: &Tree) -> Check {
    let why = "a processor that stays slow, or takes long to become fast, makes short messages \
               take longer";
    let folder = "/sys/devices/system/cpu";
    let of = |what: &str| {
        let processors = tree.names(folder).into_iter();
        let texts =
            processors.filter_map(|one| tree.text(format!("{folder}/{one}/cpufreq/{what}")));
        texts.collect::<BTreeSet<_>>()
    };
    let (governors, drivers) = (of("scaling_governor"), of("scaling_driver"));
    if governors.is_empty() {
        return Check::ok("processor speed", "this machine shows no governor", why);
    }
    let listed = |set: &BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
    let value = format!(
        "governor {}, driver {}",
        listed(&governors),
        listed(&drivers)
    );
    let is_slow = governors.contains("powersave")
        && !drivers
            .iter()
            .all(|one| SELF_DRIVEN.contains(&one.as_str()));
    Check::ok("processor speed", value, why).but_if(
        is_slow,
        Status::Warn,
        "as root: cpupower frequency-set -g performance",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_kernel_is_a_warning() {
        assert_eq!(version(Some("6.18.44-fc-v657")).status, Status::Ok);
        assert_eq!(version(Some("5.0.0")).status, Status::Ok);
        let old = version(Some("4.18.0-553.el8.x86_64"));
        old.assert_wrong(Status::Warn, "boot a newer kernel");
        assert_eq!(old.limit, "5.0 is wanted");
        assert_eq!(version(Some("of another kind")).status, Status::Ok);
        assert_eq!(version(None).status, Status::NotTried);
    }

    #[test]
    fn a_governor_that_keeps_processors_slow_is_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let set = |processor: &str, governor: &str, driver: &str| {
            let place = folder.path().join("sys/devices/system/cpu").join(processor);
            std::fs::create_dir_all(place.join("cpufreq")).unwrap();
            std::fs::write(place.join("cpufreq/scaling_governor"), governor).unwrap();
            std::fs::write(place.join("cpufreq/scaling_driver"), driver).unwrap();
        };
        let tree = Tree::below(folder.path());
        assert_eq!(governor(&tree).status, Status::Ok);
        set("cpu0", "performance\n", "acpi-cpufreq\n");
        assert_eq!(governor(&tree).status, Status::Ok);
        set("cpu1", "powersave\n", "acpi-cpufreq\n");
        let check = governor(&tree);
        check.assert_wrong(Status::Warn, "cpupower frequency-set -g performance");
        assert_eq!(
            check.value,
            "governor performance, powersave, driver acpi-cpufreq"
        );
        for processor in ["cpu0", "cpu1"] {
            set(processor, "powersave\n", "intel_pstate\n");
        }
        assert_eq!(governor(&tree).status, Status::Ok);
    }
}
