// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Describes the machine, and its state when the figures were measured.
//!
//! Called by compare before the first run; kept in the journal and shown by pages. Sources:
//! proc(5), sysfs (Linux, Documentation/ABI/stable/sysfs-devices-system-cpu,
//! Documentation/admin-guide/cgroup-v2.rst).

use super::cores;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// What is recorded. What cannot be read is empty or 0.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Version of weft.
    pub weft: String,
    /// The commit it was built from, with `-dirty` when the tree was changed; empty outside a
    /// checkout.
    pub commit: String,
    /// Seconds since 1970 when the comparison began.
    pub unix_seconds: u64,
    /// Host name.
    pub host: String,
    /// Command line of the comparison.
    pub command: Vec<String>,
    /// The hardware and the kernel.
    pub machine: Machine,
    /// What the process may use of it.
    pub limits: Limits,
    /// The cores that two ranks run on.
    pub cores: cores::Cores,
}

/// The hardware and the kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Processor model.
    pub processor: String,
    /// Cores of the machine.
    pub core_count: usize,
    /// Who the hypervisor says it is; empty on bare metal.
    pub hypervisor: String,
    /// Kernel release.
    pub kernel: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Frequency governor of the first core; empty where the kernel does not control it, as in most
    /// virtual machines.
    pub governor: String,
    /// Load average over the last minute, before the first run: on a quiet machine near 0.
    pub load: f64,
}

/// What the process may use.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Cores of the affinity mask, within the time quota of the control group.
    pub usable_cores: usize,
    /// The control group's processor quota as the kernel states it; empty without one.
    pub cgroup_cpu: String,
    /// The control group's memory limit; empty without one.
    pub cgroup_memory: String,
    /// Size of /dev/shm in bytes.
    pub shm_bytes: u64,
}

/// Reads it.
pub fn of_this_machine() -> Environment {
    Environment {
        weft: env!("CARGO_PKG_VERSION").to_owned(),
        commit: option_env!("WEFT_COMMIT").unwrap_or_default().to_owned(),
        unix_seconds: now(),
        host: line("/proc/sys/kernel/hostname"),
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        machine: machine(),
        limits: limits(),
        cores: cores::chosen(),
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs())
}

fn machine() -> Machine {
    let processors = read("/proc/cpuinfo");
    let virtual_machine = field(&processors, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    let vendor = line("/sys/class/dmi/id/sys_vendor");
    Machine {
        processor: field(&processors, "model name")
            .unwrap_or_default()
            .to_owned(),
        core_count: processors
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count(),
        hypervisor: match (virtual_machine, vendor.is_empty()) {
            (false, _) => String::new(),
            (true, true) => "virtual machine".to_owned(),
            (true, false) => format!("virtual machine ({vendor})"),
        },
        kernel: line("/proc/sys/kernel/osrelease"),
        memory_bytes: kibibytes(&read("/proc/meminfo")) * 1024,
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        load: read("/proc/loadavg")
            .split(' ')
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0.0),
    }
}

fn limits() -> Limits {
    let group = group_folder(&read("/proc/self/cgroup"));
    let of_group = |name: &str| {
        let text = line(&format!("{}/{name}", group.display()));
        if text.starts_with("max") {
            String::new()
        } else {
            text
        }
    };
    let shm = nix::sys::statvfs::statvfs("/dev/shm");
    Limits {
        usable_cores: std::thread::available_parallelism().map_or(0, usize::from),
        cgroup_cpu: of_group("cpu.max"),
        cgroup_memory: of_group("memory.max"),
        shm_bytes: shm.map_or(0, |shm| shm.blocks() * shm.fragment_size()),
    }
}

/// Folder of the process's control group (version 2).
fn group_folder(text: &str) -> PathBuf {
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    Path::new("/sys/fs/cgroup").join(path.unwrap_or("/").trim_start_matches('/'))
}

/// Version of the libfabric that an MPI library brings or finds; empty when none is found. Read
/// from the file, since asking the library would mean loading it.
pub fn libfabric_beside(library: &str) -> String {
    let folder = Path::new(library).parent().unwrap_or(Path::new("/"));
    let beside = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut candidates = vec![folder.join("libfabric.so.1")];
    candidates.extend(
        beside
            .filter(|path| path.is_dir())
            .map(|path| path.join("libfabric.so.1")),
    );
    candidates
        .iter()
        .find_map(|path| fs::read(path).ok())
        .and_then(|bytes| version_within(&bytes))
        .unwrap_or_default()
}

/// The first text of the form 1.17.0 that stands alone between NUL bytes.
fn version_within(bytes: &[u8]) -> Option<String> {
    bytes
        .split(|byte| *byte == 0)
        .filter(|word| (5..=9).contains(&word.len()) && word[0].is_ascii_digit())
        .filter_map(|word| std::str::from_utf8(word).ok())
        .find(|word| {
            let parts: Vec<&str> = word.split('.').collect();
            parts.len() == 3
                && matches!(parts[0], "1" | "2")
                && parts.iter().all(|part| part.parse::<u16>().is_ok())
        })
        .map(str::to_owned)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn line(path: &str) -> String {
    read(path).trim().to_owned()
}

/// The first `name : value` of a list.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}

fn kibibytes(meminfo: &str) -> u64 {
    field(meminfo, "MemTotal")
        .and_then(|value| value.split(' ').next()?.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t\t: 1\nmodel name\t: Some CPU @ 2.0GHz\nflags : fpu hypervisor\n";
        assert_eq!(field(text, "model name"), Some("Some CPU @ 2.0GHz"));
        assert_eq!(field(text, "name"), None);
        assert_eq!(
            kibibytes("MemTotal:       24675432 kB\nMemFree: 1 kB\n"),
            24_675_432
        );
    }

    #[test]
    fn control_group_is_the_one_of_version_2() {
        let folder = group_folder("12:cpu:/old\n0::/user.slice/job\n");
        assert_eq!(folder, Path::new("/sys/fs/cgroup/user.slice/job"));
        assert_eq!(group_folder(""), Path::new("/sys/fs/cgroup"));
    }

    #[test]
    fn version_is_a_text_that_stands_alone() {
        assert_eq!(
            version_within(b"x\x00GLIBC_2.2.5\x002.5.1\x00"),
            Some("2.5.1".into())
        );
        assert_eq!(version_within(b"1.2\x00192.168.0.1\x00"), None);
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores_and_survives_json() {
        let here = of_this_machine();
        assert!(
            !here.machine.kernel.is_empty()
                && here.limits.usable_cores > 0
                && here.machine.memory_bytes > 0
        );
        let text = serde_json::to_string(&here).expect("JSON");
        let back: Environment = serde_json::from_str(&text).expect("JSON");
        assert_eq!(back.host, here.host);
    }
}
