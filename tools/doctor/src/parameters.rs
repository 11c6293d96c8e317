// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The FI_WEFT_* parameters as a table: name, default, range and meaning; and whether those in the environment are right.
//!
//! Called by `lib.rs` and `info.rs`. A test compares the names with those that the provider defines.

use std::path::Path;

use serde::Serialize;

use crate::check::{Check, Status};

/// What values a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// A number of bytes, both ends included.
    Bytes {
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// A number of seconds, both ends included.
    Seconds {
        /// Least.
        least: u64,
        /// Most.
        most: u64,
    },
    /// The name of a network interface, or an address of this machine.
    Interface,
    /// One of these words.
    Words(&'static [&'static str]),
    /// The absolute path of a folder that is there.
    Folder,
    /// A job key, which is never shown.
    Key,
    /// The absolute path of a file with a job key that nobody else may read.
    KeyFile,
    /// Set by `weft run`, not by people.
    Internal,
}

/// One parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Parameter {
    /// The variable.
    pub name: &'static str,
    /// What holds when it is not set, in words.
    pub default: &'static str,
    /// What it takes.
    pub values: Values,
    /// What it does.
    pub meaning: &'static str,
}

/// All parameters.
pub const PARAMETERS: [Parameter; 11] = [
    Parameter {
        name: "FI_WEFT_DEAD_AFTER",
        default: "5",
        values: Values::Seconds {
            least: 1,
            most: 3600,
        },
        meaning: "seconds that a process on another host may be silent, while something is expected of it, before it is dead",
    },
    Parameter {
        name: "FI_WEFT_ENCRYPT",
        default: "0",
        values: Values::Words(&["0", "1"]),
        meaning: "encrypt what goes to other hosts with the job's key",
    },
    Parameter {
        name: "FI_WEFT_IFACE",
        default: "the first that is up and not loopback, and up to 3 others like it",
        values: Values::Interface,
        meaning: "network interfaces, or their addresses, to use together; the first is the one to be known by",
    },
    Parameter {
        name: "FI_WEFT_INJECT_SIZE",
        default: "8192",
        values: Values::Bytes {
            least: 64,
            most: 8192,
        },
        meaning: "longest message in bytes that fi_inject and its kin take",
    },
    Parameter {
        name: "FI_WEFT_JOB_KEY",
        default: "none: this host alone, unless there is a file or trust",
        values: Values::Key,
        meaning: "the key by which the processes of a job know each other between hosts; weft run makes one for each job",
    },
    Parameter {
        name: "FI_WEFT_JOB_KEY_FILE",
        default: "none",
        values: Values::KeyFile,
        meaning: "file with the job's key, where FI_WEFT_JOB_KEY is not set",
    },
    Parameter {
        name: "FI_WEFT_REGION_DIR",
        default: "none: anonymous memory",
        values: Values::Folder,
        meaning: "folder for the nameless files that hold shared memory, where memfd_create is not wanted",
    },
    Parameter {
        name: "FI_WEFT_REPORT",
        default: "no report",
        values: Values::Internal,
        meaning: "abstract unix socket that hears of each endpoint: that it is open, and its counts when it closes; weft run sets it",
    },
    Parameter {
        name: "FI_WEFT_ROUTE",
        default: "auto",
        values: Values::Words(&["auto", "shm", "srd"]),
        meaning: "shared memory on this host and datagrams over many paths beyond it; or all remotes by one of them, to compare",
    },
    Parameter {
        name: "FI_WEFT_SINGLE_COPY",
        default: "auto",
        values: Values::Words(&["auto", "always", "never"]),
        meaning: "fetch large messages straight from the sender's memory: where permitted and faster, where permitted, or never",
    },
    Parameter {
        name: "FI_WEFT_TRUST_NETWORK",
        default: "0",
        values: Values::Words(&["0", "1"]),
        meaning: "talk to other hosts without a job key, because everybody on the network is trusted",
    },
];

impl Values {
    /// The values in words.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::Bytes { least, most } => format!("{least} to {most} bytes"),
            Self::Seconds { least, most } => format!("{least} to {most} seconds"),
            Self::Interface => "an interface's name or an address of this machine".to_owned(),
            Self::Words(words) => words.join(", "),
            Self::Folder => "the absolute path of a folder that is there".to_owned(),
            Self::Key => "64 random hexadecimal digits (openssl rand -hex 32)".to_owned(),
            Self::KeyFile => {
                "a file with 64 random hexadecimal digits that nobody else may read (chmod 600)"
                    .to_owned()
            }
            Self::Internal => "set by weft run".to_owned(),
        }
    }

    /// Whether `text` is one of them; `known` are the interfaces' names and addresses.
    fn allow(self, text: &str, known: &[String]) -> bool {
        match self {
            Self::Bytes { least, most } => text
                .trim()
                .parse::<u64>()
                .is_ok_and(|bytes| (least..=most).contains(&bytes)),
            Self::Seconds { least, most } => text
                .trim()
                .parse::<u64>()
                .is_ok_and(|seconds| (least..=most).contains(&seconds)),
            Self::Interface => {
                let mut words = text.split(',').map(str::trim);
                words.clone().count() <= MOST_INTERFACES
                    && words.all(|word| known.iter().any(|one| one == word))
            }
            Self::Words(words) => words.contains(&text.trim()),
            Self::Folder => Path::new(text).is_absolute() && Path::new(text).is_dir(),
            Self::Key => weft_seal::JobKey::parse(text).is_ok(),
            Self::KeyFile => weft_seal::key_file::read(Path::new(text)).is_ok(),
            Self::Internal => true,
        }
    }
}

/// How many of them FI_WEFT_IFACE may name.
const MOST_INTERFACES: usize = 1 + crate::contact::FURTHER_ADDRESSES;

/// The names and addresses that FI_WEFT_IFACE may be.
#[must_use]
pub fn known_interfaces() -> Vec<String> {
    let all = weft_os::interface::addresses().unwrap_or_default();
    all.into_iter()
        .flat_map(|entry| [entry.name, entry.address.to_string()])
        .collect()
}

/// One check for each FI_WEFT_* variable that is wrong, or a single good one.
#[must_use]
pub fn checks(environment: &[(String, String)], known: &[String]) -> Vec<Check> {
    let set: Vec<&(String, String)> = environment
        .iter()
        .filter(|(name, _)| name.starts_with("FI_WEFT_"))
        .collect();
    let bad: Vec<Check> = set
        .iter()
        .filter_map(|(name, value)| judge(name, value, known))
        .collect();
    if !bad.is_empty() {
        return bad;
    }
    let value = match set.as_slice() {
        [] => "none set".to_owned(),
        some => some
            .iter()
            .map(|(name, value)| format!("{name}={}", shown(name, value)))
            .collect::<Vec<_>>()
            .join(" "),
    };
    vec![Check::ok(
        "parameters",
        value,
        "FI_WEFT_* variables change the provider's defaults, which need no tuning",
    )]
}

/// What may be shown of a value: of a key only that it is one.
pub(crate) fn shown<'a>(name: &str, value: &'a str) -> &'a str {
    let secret = PARAMETERS
        .iter()
        .any(|parameter| parameter.name == name && parameter.values == Values::Key);
    if secret { "(set, not shown)" } else { value }
}

fn judge(name: &str, value: &str, known: &[String]) -> Option<Check> {
    let Some(parameter) = PARAMETERS.iter().find(|parameter| parameter.name == name) else {
        let names = PARAMETERS.map(|parameter| parameter.name).join(", ");
        let check = Check::ok(
            name,
            format!("\"{value}\", but there is no such parameter"),
            "an unknown parameter is ignored",
        );
        return Some(check.but(Status::Warn, format!("unset {name}; there are {names}")));
    };
    if parameter.values.allow(value, known) {
        return None;
    }
    let wrong = match parameter.values {
        Values::Key => weft_seal::JobKey::parse(value)
            .err()
            .map(|error| error.to_string()),
        Values::KeyFile => weft_seal::key_file::read(Path::new(value))
            .err()
            .map(|error| error.to_string()),
        _ => None,
    };
    let wrong = wrong.unwrap_or_else(|| format!("it must be {}", parameter.values.describe()));
    let why = "the provider refuses to open with a wrong parameter";
    let check = Check::ok(
        name,
        format!("\"{}\", but {wrong}", shown(name, value)),
        why,
    );
    let choice = if parameter.values == Values::Interface {
        format!(" (here: {})", known.join(", "))
    } else {
        String::new()
    };
    Some(check.but(Status::Fail, format!("correct or unset {name}{choice}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn the_table_names_what_the_provider_defines() {
        let source = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../crates/provider/src/parameters.rs"
        );
        let text = std::fs::read_to_string(source).unwrap();
        let defined = text
            .lines()
            .filter_map(|line| line.split_once(": &CStr = c\"")?.1.strip_suffix("\";"));
        let mut defined: Vec<String> = defined
            .map(|name| format!("FI_WEFT_{}", name.to_uppercase()))
            .collect();
        defined.sort();
        let mut listed: Vec<&str> = PARAMETERS.iter().map(|one| one.name).collect();
        listed.sort_unstable();
        assert_eq!(
            listed, defined,
            "tools/doctor/src/parameters.rs and crates/provider/src/parameters.rs must name the same parameters"
        );
    }

    #[test]
    fn what_is_wrong_with_a_key_file_is_said() {
        use std::os::unix::fs::PermissionsExt;
        let file = std::env::temp_dir().join(format!("weft-doctor-key-{}", std::process::id()));
        let said = |path: &Path| {
            let path = path.to_string_lossy();
            let check = checks(&pairs(&[("FI_WEFT_JOB_KEY_FILE", &path)]), &[]).remove(0);
            assert_eq!(check.status, Status::Fail);
            check.value
        };
        assert!(
            said(&file).contains("cannot be read: No such file"),
            "{}",
            said(&file)
        );
        std::fs::write(&file, "0123456789abcdef".repeat(4)).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = said(&file);
        std::fs::write(&file, "short").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let short = said(&file);
        std::fs::remove_file(&file).unwrap();
        assert!(open.contains("chmod 600"), "{open}");
        assert!(short.contains("5 characters"), "{short}");
    }

    #[test]
    fn a_key_is_told_to_be_set_and_never_shown() {
        let key = "0123456789abcdef".repeat(4);
        let good = checks(&pairs(&[("FI_WEFT_JOB_KEY", &key)]), &[]).remove(0);
        assert_eq!(good.status, Status::Ok);
        let bad = checks(&pairs(&[("FI_WEFT_JOB_KEY", &key[1..])]), &[]).remove(0);
        assert_eq!(bad.status, Status::Fail);
        for check in [good, bad] {
            assert!(check.value.contains("set, not shown"), "{}", check.value);
            assert!(!check.value.contains(&key[1..9]) && !check.fix.contains(&key[1..9]));
        }
    }

    #[test]
    fn unknown_parameters_warn_and_wrong_values_fail() {
        let known = ["lo".to_owned(), "127.0.0.1".to_owned()];
        let check = |name: &str, value: &str| {
            checks(&pairs(&[("PATH", "x"), (name, value)]), &known).remove(0)
        };
        assert_eq!(check("FI_WEFT_INJECTSIZE", "64").status, Status::Warn);
        for bad in ["63", "8193", "abc", ""] {
            assert_eq!(
                check("FI_WEFT_INJECT_SIZE", bad).status,
                Status::Fail,
                "{bad}"
            );
        }
        assert_eq!(check("FI_WEFT_INJECT_SIZE", "64").status, Status::Ok);
        assert_eq!(check("FI_WEFT_IFACE", "lo").status, Status::Ok);
        assert_eq!(check("FI_WEFT_IFACE", "lo, 127.0.0.1").status, Status::Ok);
        for bad in ["lo,eth9", "lo,", "lo,lo,lo,lo,lo"] {
            assert_eq!(check("FI_WEFT_IFACE", bad).status, Status::Fail, "{bad}");
        }
        assert_eq!(check("FI_WEFT_SINGLE_COPY", "never").status, Status::Ok);
        assert_eq!(check("FI_WEFT_SINGLE_COPY", "no").status, Status::Fail);
        assert_eq!(check("FI_WEFT_REGION_DIR", "/").status, Status::Ok);
        assert_eq!(check("FI_WEFT_REGION_DIR", "relative").status, Status::Fail);
        for (good, bad) in [("FI_WEFT_ENCRYPT", "1"), ("FI_WEFT_TRUST_NETWORK", "0")]
            .map(|(name, value)| (check(name, value), check(name, "yes")))
        {
            assert_eq!((good.status, bad.status), (Status::Ok, Status::Fail));
        }
        assert!(check("FI_WEFT_IFACE", "eth9").fix.contains("lo, 127.0.0.1"));
        assert_eq!(
            checks(&pairs(&[("PATH", "x")]), &known)[0].value,
            "none set"
        );
    }
}
