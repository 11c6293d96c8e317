// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The FI_WEFT_* variables. The provider announces and reads them by these rows, the doctor judges
//! by them.
//!
//! To add one: a constant here, its line in [`ALL`], and the provider's `parameters.rs`, which acts
//! on it.

use std::ffi::CStr;

use crate::Unit;
use crate::limit::{INJECT_BYTES, INTERFACES, LONG_INJECT_BYTES};

/// What values a parameter takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// A whole number.
    Number(Range),
    /// One of these words; the first holds where none is set.
    Words(&'static [&'static str]),
    /// Names of network interfaces or addresses of this machine, separated by commas: at most so
    /// many.
    Interfaces(usize),
    /// The absolute path of an existing folder.
    Folder,
    /// A job key, which is never shown.
    Key,
    /// The absolute path of a file with a job key that nobody else may read.
    KeyFile,
    /// 1, or the name of a socket, which `weft run` sets.
    Socket,
}

/// The numbers that a parameter takes, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// What they count.
    pub unit: Unit,
    /// The least.
    pub least: u64,
    /// The most.
    pub most: u64,
    /// What holds where none is set.
    pub default: u64,
}

/// One variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// The variable of the environment.
    pub variable: &'static str,
    /// Its name in libfabric's calls (fi_provider(3)): without `FI_WEFT_`, in small letters.
    pub key: &'static CStr,
    /// What it may be set to.
    pub values: Values,
    /// What holds where it is not set, in words.
    pub default: &'static str,
    /// What it does; no full stop at the end.
    pub meaning: &'static str,
    /// The first version that reads it.
    pub since: &'static str,
}

/// How long a silent remote is waited for.
pub const DEAD_AFTER: Parameter = Parameter {
    variable: "FI_WEFT_DEAD_AFTER",
    key: c"dead_after",
    values: Values::Number(DEAD_AFTER_S),
    default: "5",
    meaning: "seconds without an answer after which a process on another host counts as dead",
    since: "0.1.0",
};

/// Values of [`DEAD_AFTER`]. Chosen: less than one second loses processes that only wait for a
/// processor; 5 are longer than any pause of a process that is well.
pub const DEAD_AFTER_S: Range = Range {
    unit: Unit::Seconds,
    least: 1,
    most: 3600,
    default: 5,
};

/// Whether datagrams are encrypted.
pub const ENCRYPT: Parameter = Parameter {
    variable: "FI_WEFT_ENCRYPT",
    key: c"encrypt",
    values: Values::Words(&["0", "1"]),
    default: "0",
    meaning: "1: encrypt what is sent to other hosts, under the job's key",
    since: "0.1.0",
};

/// Which interfaces are used.
pub const INTERFACE: Parameter = Parameter {
    variable: "FI_WEFT_IFACE",
    key: c"iface",
    values: Values::Interfaces(INTERFACES),
    default: "the first that is up and not loopback, and up to 3 others of the same kind, speed \
              and MTU",
    meaning: "network interfaces, or their addresses, to use together; an endpoint gets the \
              address of the first one, unless the application names an address",
    since: "0.1.0",
};

/// What inject calls take.
pub const INJECT_SIZE: Parameter = Parameter {
    variable: "FI_WEFT_INJECT_SIZE",
    key: c"inject_size",
    values: Values::Number(INJECT_SIZE_BYTES),
    default: "8192",
    meaning: "longest message in bytes that fi_inject and similar calls take; weft run and weft \
              exec set 32768 for MPICH and Intel MPI where each host has one rank",
    since: "0.1.0",
};

/// Values of [`INJECT_SIZE`]. The least is specified by MPICH, whose control messages are up to 64
/// bytes. The default is the longest message that every route takes without waiting for the other
/// side; longer ones cost a copy more inside a host (docs/adr/0020).
pub const INJECT_SIZE_BYTES: Range = Range {
    unit: Unit::Bytes,
    least: 64,
    most: LONG_INJECT_BYTES as u64,
    default: INJECT_BYTES as u64,
};

/// The job's key. Read from the environment alone: libfabric would log the value.
pub const JOB_KEY: Parameter = Parameter {
    variable: "FI_WEFT_JOB_KEY",
    key: c"job_key",
    values: Values::Key,
    default: "none: Weft talks only to processes of this host, unless there is a key file or \
              FI_WEFT_TRUST_NETWORK=1",
    meaning: "the key that all processes of a job have; between hosts they accept messages only \
              from processes with the same key; weft run makes one for each job",
    since: "0.1.0",
};

/// Where the job's key is.
pub const JOB_KEY_FILE: Parameter = Parameter {
    variable: "FI_WEFT_JOB_KEY_FILE",
    key: c"job_key_file",
    values: Values::KeyFile,
    default: "none",
    meaning: "file with the job's key, if FI_WEFT_JOB_KEY is not set",
    since: "0.1.0",
};

/// Where shared memory lies.
pub const REGION_DIRECTORY: Parameter = Parameter {
    variable: "FI_WEFT_REGION_DIR",
    key: c"region_dir",
    values: Values::Folder,
    default: "none (anonymous memory)",
    meaning: "folder for files without a name that hold the shared memory; for use where \
              memfd_create must not be called",
    since: "0.1.0",
};

/// Who hears of endpoints.
pub const REPORT: Parameter = Parameter {
    variable: "FI_WEFT_REPORT",
    key: c"report",
    values: Values::Socket,
    default: "no report",
    meaning: "1: when rank 0 ends, it says in one line on stderr what Weft carried for it; any \
              other value: the abstract unix socket to which each endpoint reports when it \
              opens, and what it has counted when it closes; weft run sets it",
    since: "0.1.0",
};

/// How remotes are reached.
pub const ROUTE: Parameter = Parameter {
    variable: "FI_WEFT_ROUTE",
    key: c"route",
    values: Values::Words(&["auto", "shm", "srd"]),
    default: "auto",
    meaning: "auto: shared memory to remotes on this host, and datagrams over many paths to all \
              others; shm or srd: this route alone, to compare",
    since: "0.1.0",
};

/// Whether receivers read the sender's memory.
pub const SINGLE_COPY: Parameter = Parameter {
    variable: "FI_WEFT_SINGLE_COPY",
    key: c"single_copy",
    values: Values::Words(&["auto", "always", "never"]),
    default: "auto",
    meaning: "whether a receiver reads long messages straight from the sender's memory \
              (process_vm_readv). auto: if the kernel permits it and it is faster; always: if \
              the kernel permits it; never: in no case",
    since: "0.1.0",
};

/// Whether a key is needed.
pub const TRUST_NETWORK: Parameter = Parameter {
    variable: "FI_WEFT_TRUST_NETWORK",
    key: c"trust_network",
    values: Values::Words(&["0", "1"]),
    default: "0",
    meaning: "1: talk to other hosts without a job key, because everybody on the network is \
              trusted; 0 without a key: talk only to processes of this host",
    since: "0.1.0",
};

/// All of them, by name.
pub const ALL: [&Parameter; 11] = [
    &DEAD_AFTER,
    &ENCRYPT,
    &INTERFACE,
    &INJECT_SIZE,
    &JOB_KEY,
    &JOB_KEY_FILE,
    &REGION_DIRECTORY,
    &REPORT,
    &ROUTE,
    &SINGLE_COPY,
    &TRUST_NETWORK,
];

impl Parameter {
    /// The row of a variable.
    #[must_use]
    pub fn find(variable: &str) -> Option<&'static Self> {
        ALL.into_iter().find(|one| one.variable == variable)
    }

    /// Whether its value is never shown.
    #[must_use]
    pub const fn is_secret(&self) -> bool {
        matches!(self.values, Values::Key)
    }
}

impl Range {
    /// The number that `text` names, if it is one of these.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<u64> {
        let number = text.trim().parse().ok();
        number.filter(|number| (self.least..=self.most).contains(number))
    }
}

impl Values {
    /// The values in words, to follow "must be".
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Number(range) => {
                let (unit, least, most) = (range.unit.name(), range.least, range.most);
                format!("a number of {unit} from {least} to {most}")
            }
            Self::Words([others @ .., last]) => format!("{} or {last}", others.join(", ")),
            Self::Words([]) => String::new(),
            Self::Interfaces(most) => format!(
                "names of network interfaces or addresses of this machine, separated by commas, \
                 at most {most}"
            ),
            Self::Folder => "the absolute path of an existing folder".to_owned(),
            Self::Key => "64 random hexadecimal digits (openssl rand -hex 32)".to_owned(),
            Self::KeyFile => {
                "a file with 64 random hexadecimal digits that nobody else may read (chmod 600)"
                    .to_owned()
            }
            Self::Socket => "1, or the name of an abstract unix socket".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_their_names_agree() {
        assert!(ALL.is_sorted_by_key(|one| one.variable));
        for one in ALL {
            let key = one.key.to_str().expect("ASCII").to_uppercase();
            assert_eq!(one.variable, format!("FI_WEFT_{key}"));
            assert_eq!(Parameter::find(one.variable), Some(one));
            assert!(!one.meaning.ends_with('.'), "{}", one.meaning);
        }
        assert_eq!(Parameter::find("FI_WEFT_DEAD"), None);
    }

    #[test]
    fn defaults_in_words_are_those_in_the_values() {
        for one in ALL {
            match one.values {
                Values::Number(range) => {
                    assert_eq!(range.parse(one.default), Some(range.default));
                }
                Values::Words(words) => assert_eq!(words[0], one.default),
                _ => {}
            }
        }
    }

    #[test]
    fn numbers_are_taken_within_their_range_alone() {
        for wrong in ["abc", "-1", "63", "65537", "", "1e3"] {
            assert_eq!(INJECT_SIZE_BYTES.parse(wrong), None, "{wrong}");
        }
        assert_eq!(INJECT_SIZE_BYTES.parse(" 64 "), Some(64));
        assert_eq!(INJECT_SIZE_BYTES.parse("65536"), Some(65536));
    }

    #[test]
    fn values_are_described() {
        let said = |one: &Parameter| one.values.describe();
        assert_eq!(said(&DEAD_AFTER), "a number of seconds from 1 to 3600");
        assert_eq!(said(&SINGLE_COPY), "auto, always or never");
        assert!(said(&INTERFACE).ends_with("at most 4"));
    }
}
