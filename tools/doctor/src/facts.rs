// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a host is, in a few words that must be alike on all hosts of a job.
//!
//! Called by `lib.rs` for `weft doctor --json`; `hosts.rs` compares the facts of several hosts.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::statvfs::statvfs;
use weft_launch::discover::Installation;

use crate::tree::Tree;

/// Names and values; a fact that cannot be found is not there.
pub type Facts = BTreeMap<String, String>;

/// Those of this host.
#[must_use]
pub fn of_here(tree: &Tree, mpis: &[Installation]) -> Facts {
    let mut facts = Facts::new();
    let mut add = |name: &str, value: Option<String>| {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    let list: Vec<String> = mpis
        .iter()
        .map(|mpi| format!("{} {}", mpi.family, mpi.version))
        .collect();
    add("weft", Some(env!("CARGO_PKG_VERSION").to_owned()));
    add("MPIs", Some(list.join(", ")));
    add("kernel", tree.text("proc/sys/kernel/osrelease"));
    add(
        "memory",
        tree.text("proc/meminfo").as_deref().and_then(memory),
    );
    add("/dev/shm", shm());
    add("MTU", tree.text("proc/net/dev").map(|text| mtus(&text)));
    add("Slurm's PMI", pmi());
    facts
}

/// In GiB, rounded: machines of one kind differ by what firmware keeps.
fn memory(meminfo: &str) -> Option<String> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(format!("{} GiB", (kib + (1 << 19)) >> 20))
}

fn shm() -> Option<String> {
    let found = statvfs(Path::new("/dev/shm")).ok()?;
    let bytes = found.blocks().saturating_mul(found.fragment_size());
    Some(format!("{} MiB", bytes >> 20))
}

/// Of each interface of this network namespace but loopback.
fn mtus(net_dev: &str) -> String {
    let names = net_dev.lines().filter_map(|line| line.split_once(':'));
    let names = names
        .map(|(name, _)| name.trim())
        .filter(|name| *name != "lo");
    let mtu = |name: &str| std::fs::read_to_string(format!("/sys/class/net/{name}/mtu")).ok();
    let found = names.filter_map(|name| Some(format!("{name} {}", mtu(name)?.trim())));
    found.collect::<Vec<_>>().join(", ")
}

/// What `srun` of this host offers programs to start by.
fn pmi() -> Option<String> {
    let mut srun = Command::new("srun");
    let output = srun.arg("--mpi=list").stdin(Stdio::null()).output().ok()?;
    // Slurm 22.05 writes the list to stderr.
    let text = [output.stdout, output.stderr].concat();
    Some(plugins(&String::from_utf8_lossy(&text)))
}

/// The names of a list that begins with a line of its own and may be indented.
fn plugins(text: &str) -> String {
    let words = text.lines().filter(|line| !line.contains(':'));
    let words = words.flat_map(|line| line.split([',', ' ', '\t']));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_lists_are_read() {
        let text = "MemTotal:       24631236 kB\nMemFree: 1 kB\n";
        assert_eq!(memory(text).as_deref(), Some("23 GiB"));
        assert_eq!(memory("nothing"), None);
        let list = "MPI plugin types are...\n\tcray_shasta\n\tpmi2\n\tnone\n";
        let list = list.replace("are...", "are:");
        assert_eq!(plugins(&list), "cray_shasta, pmi2, none");
    }
}
