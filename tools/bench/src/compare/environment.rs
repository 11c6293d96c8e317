// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The machine and the moment that figures belong to.
//!
//! Called by compare before the first run; written by files. Source: proc(5).

use serde::Serialize;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is recorded.
#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// Version of weft.
    pub weft: &'static str,
    /// Seconds since 1970 when the comparison began.
    pub unix_seconds: u64,
    /// Host name.
    pub host: String,
    /// Processor model.
    pub processor: String,
    /// Cores this process may use.
    pub core_count: usize,
    /// Whether the processor says that a hypervisor is below.
    pub virtual_machine: bool,
    /// Kernel release.
    pub kernel: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Load average over the last minute, before the first run: on a quiet machine near 0.
    pub load: f64,
    /// Command line of the comparison.
    pub command: Vec<String>,
}

/// Reads it. What cannot be read is empty or 0.
pub fn of_this_machine() -> Environment {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    Environment {
        weft: env!("CARGO_PKG_VERSION"),
        unix_seconds: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_secs()),
        host: read("/proc/sys/kernel/hostname").trim().to_owned(),
        processor: field(&processors, "model name")
            .unwrap_or_default()
            .to_owned(),
        core_count: std::thread::available_parallelism().map_or(0, usize::from),
        virtual_machine: field(&processors, "flags")
            .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        memory_bytes: kibibytes(&read("/proc/meminfo")) * 1024,
        load: read("/proc/loadavg")
            .split(' ')
            .next()
            .and_then(|word| word.parse().ok())
            .unwrap_or(0.0),
        command: std::env::args_os()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
    }
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
    }

    #[test]
    fn memory_is_read_in_kibibytes() {
        assert_eq!(
            kibibytes("MemTotal:       24675432 kB\nMemFree: 1 kB\n"),
            24_675_432
        );
    }

    #[test]
    fn this_machine_has_a_kernel_and_cores() {
        let environment = of_this_machine();
        assert!(
            !environment.kernel.is_empty()
                && environment.core_count > 0
                && environment.memory_bytes > 0
        );
    }
}
