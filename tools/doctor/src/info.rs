// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft info`: what is here. Version, provider, MPIs, machine, protocols, choices, parameters; as
//! text or as one JSON object.
//!
//! Called by `lib.rs`; takes its facts from the same files as the doctor, without judging them.

use std::ffi::OsString;
use std::path::Path;

use serde::Serialize;
use serde_json::json;
use weft_facts::parameter::{self, Parameter, Values};
use weft_facts::protocol::{self, Protocol};
use weft_launch::discover::Installation;
use weft_launch::provider;

use crate::check::{Check, Status};
use crate::measure::{self, Timing};
use crate::running::{self, Running};
use crate::text::Look;
use crate::tree::Tree;
use crate::{contact, direct, heap, launcher, memory, parameters, processor, single_copy, text};

/// Everything that `weft info` shows.
#[derive(Debug, Serialize)]
pub struct Info {
    /// Weft's version.
    pub weft: &'static str,
    /// This executable.
    pub executable: Option<String>,
    /// The provider's library, if it is in its place.
    pub provider: Option<String>,
    /// The MPIs found, in the order of search.
    pub mpis: Vec<Installation>,
    /// The machine: name and value.
    pub machine: Vec<Fact>,
    /// The protocols of messages inside a machine.
    pub protocols: Vec<LocalProtocol>,
    /// What this machine leads to where there is a choice: name and value.
    pub choices: Vec<Fact>,
    /// What the jobs that run now have chosen.
    pub running: Vec<Running>,
    /// The copy methods for a long message, timed.
    pub timings: Vec<Timing>,
    /// The parameters with their current values.
    pub parameters: Vec<Setting>,
}

/// One thing known about the machine.
#[derive(Debug, Serialize)]
pub struct Fact {
    /// What.
    pub name: String,
    /// How it is.
    pub value: String,
}

/// A protocol of messages inside a machine.
#[derive(Debug, Serialize)]
pub struct LocalProtocol {
    /// Its name, as in the reports of `weft run`.
    pub name: &'static str,
    /// Longest message that it carries; `None` for no limit but the longest message's.
    pub longest_bytes: Option<usize>,
    /// What happens to the message.
    pub meaning: &'static str,
}

/// A parameter and its value in this environment.
#[derive(Debug, Serialize)]
pub struct Setting {
    /// The variable.
    pub name: &'static str,
    /// What holds when it is not set, in words.
    pub default: &'static str,
    /// What it may be set to.
    pub values: serde_json::Value,
    /// What it does.
    pub meaning: &'static str,
    /// The first version that reads it.
    pub since: &'static str,
    /// What it is set to, if it is.
    pub current: Option<String>,
}

impl LocalProtocol {
    fn of(protocol: &Protocol) -> Self {
        Self {
            name: protocol.name,
            longest_bytes: protocol.longest_bytes,
            meaning: protocol.meaning,
        }
    }
}

impl Setting {
    fn of(parameter: &Parameter, environment: &[(OsString, OsString)]) -> Self {
        let name = parameter.variable;
        let current = environment.iter().find(|(set, _)| set == name);
        Self {
            name,
            default: parameter.default,
            values: values(&parameter.values),
            meaning: parameter.meaning,
            since: parameter.since,
            current: current.map(|(_, value)| parameters::shown(name.as_ref(), value)),
        }
    }
}

/// What a parameter may be set to, for programs.
fn values(values: &Values) -> serde_json::Value {
    match values {
        Values::Number(range) => {
            json!({ range.unit.name(): { "least": range.least, "most": range.most } })
        }
        Values::Words(words) => json!({ "words": words }),
        Values::Interfaces(_) => json!("interface"),
        Values::Folder => json!("folder"),
        Values::Key => json!("key"),
        Values::KeyFile => json!("key_file"),
        Values::Socket => json!("internal"),
    }
}

impl Info {
    /// Looks at the machine; asks every MPI's launcher for its version.
    #[must_use]
    pub fn gather(
        tree: &Tree,
        executable: Option<&Path>,
        environment: &[(OsString, OsString)],
    ) -> Self {
        let library = provider::find_for_this_process()
            .ok()
            .map(|folder| folder.join(provider::FILE_NAME));
        let single = single_copy::check(tree, executable);
        let works = single.status == Status::Ok;
        let timings = measure::timings(works).unwrap_or_default();
        Self {
            choices: choices([single, direct::check(executable), heap::check()], &timings),
            timings,
            running: running::endpoints(),
            weft: env!("CARGO_PKG_VERSION"),
            executable: executable.map(|path| path.display().to_string()),
            provider: library.map(|path| path.display().to_string()),
            mpis: launcher::installations(),
            machine: machine(tree),
            protocols: protocol::ALL.iter().map(LocalProtocol::of).collect(),
            parameters: parameter::ALL
                .into_iter()
                .map(|parameter| Setting::of(parameter, environment))
                .collect(),
        }
    }

    /// The text for people.
    #[must_use]
    pub fn text(&self, look: Look) -> String {
        let none = || "not found".to_owned();
        let installed = [
            row(&["executable", &self.executable.clone().unwrap_or_else(none)]),
            row(&["provider", &self.provider.clone().unwrap_or_else(none)]),
        ];
        let tables: [(&str, &[Vec<String>]); 7] = [
            (&format!("Weft {}", self.weft), &installed),
            ("MPIs, in the order of search", &self.mpi_rows()),
            ("Machine", &fact_rows(&self.machine)),
            (
                "Messages inside a machine, by length in bytes",
                &self.protocols.iter().map(protocol_row).collect::<Vec<_>>(),
            ),
            ("Choices on this machine", &fact_rows(&self.choices)),
            (
                "Choices of the jobs that run now",
                &running::rows(&self.running),
            ),
            (
                "Parameters",
                &self
                    .parameters
                    .iter()
                    .flat_map(setting_rows)
                    .collect::<Vec<_>>(),
            ),
        ];
        let look = look.for_tables();
        tables
            .map(|(heading, rows)| text::table(heading, rows, look))
            .join("\n")
    }

    fn mpi_rows(&self) -> Vec<Vec<String>> {
        if self.mpis.is_empty() {
            return vec![row(&["none found; see weft doctor"])];
        }
        let usable = |mpi: &Installation| {
            if mpi.can_use_libfabric().is_ok() {
                "can use Weft"
            } else {
                "cannot use Weft"
            }
        };
        let show = |mpi: &Installation| {
            let library = mpi
                .libmpi
                .as_ref()
                .map_or_else(none_found, |path| path.display().to_string());
            let name = format!("{} {}", mpi.family, mpi.version);
            let mpiexec = mpi.mpiexec.display().to_string();
            [
                row(&[&name, usable(mpi), &mpiexec]),
                row(&["", "", &library]),
            ]
        };
        self.mpis.iter().flat_map(show).collect()
    }
}

/// What the machine leads to, before a job has measured anything of its own.
fn choices(checks: [Check; 3], timings: &[Timing]) -> Vec<Fact> {
    let fact = |name: &str, value: String| Fact {
        name: name.to_owned(),
        value,
    };
    let mut facts: Vec<Fact> = checks
        .into_iter()
        .map(|check| fact(&check.name, check.value))
        .collect();
    facts.extend(timings.iter().map(|timing| {
        let name = format!(
            "messages of {}",
            weft_launch::number_text::size(timing.bytes as u64)
        );
        fact(&name, timing.describe())
    }));
    let crossover = timings
        .iter()
        .find(|timing| timing.best() == "single copy")
        .map_or_else(
            || "two copies win at all sizes that were timed".to_owned(),
            |timing| {
                let bytes = timing.bytes as u64;
                format!(
                    "single copy wins from {} on",
                    weft_launch::number_text::size(bytes)
                )
            },
        );
    facts.push(fact("crossover", crossover));
    facts.push(fact(
        "bidirectional",
        "when two ranks send each other long messages at the same time, one of the two chooses the \
         copy method for both directions, by the time that both take together"
            .to_owned(),
    ));
    let cores = weft_launch::cores::allowed().processors.len();
    facts.push(fact(
        "send buffer",
        format!(
            "64 KiB of shared memory for each remote; more (a wide lane) for at most 2 remotes \
             to which a rank sends much, unless more than {cores} ranks share the {cores} \
             processors"
        ),
    ));
    let sleeping = if weft_os::sleep::join_barriers() {
        "a rank that waits in a blocking call sleeps until a message comes"
    } else {
        "never: the barrier that makes it safe (membarrier) is refused"
    };
    facts.push(fact("sleeping", sleeping.to_owned()));
    facts
}

fn none_found() -> String {
    "libmpi not found".to_owned()
}

fn fact_rows(facts: &[Fact]) -> Vec<Vec<String>> {
    let cells = facts.iter().map(|fact| row(&[&fact.name, &fact.value]));
    cells.collect()
}

fn row(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|&cell| cell.to_owned()).collect()
}

fn protocol_row(protocol: &LocalProtocol) -> Vec<String> {
    let length = protocol
        .longest_bytes
        .map_or_else(|| "longer".to_owned(), |bytes| format!("up to {bytes}"));
    vec![
        protocol.name.to_owned(),
        length,
        protocol.meaning.to_owned(),
    ]
}

/// The variable with its value; below it what it does, and what it may be set to.
fn setting_rows(setting: &Setting) -> [Vec<String>; 3] {
    let value = setting.current.as_ref().map_or_else(
        || format!("default: {}", setting.default),
        |value| format!("set to {value}"),
    );
    let described = Parameter::find(setting.name).map(|one| one.values.describe());
    let values = format!("values: {}", described.unwrap_or_default());
    [
        row(&[setting.name, &value]),
        row(&["", setting.meaning]),
        row(&["", &values]),
    ]
}

fn machine(tree: &Tree) -> Vec<Fact> {
    let model = tree
        .field("/proc/cpuinfo", "model name")
        .map(|text| text.trim_start_matches([':', '\t', ' ']).to_owned());
    let kernel = tree.text("/proc/sys/kernel/osrelease");
    let named = [("processor", model), ("kernel", kernel)];
    let named = named.into_iter().filter_map(|(name, value)| {
        Some(Fact {
            name: name.to_owned(),
            value: value?,
        })
    });
    let shared = processor::facts(tree);
    let locked = ("locked memory", memory::locked());
    let facts = shared.into_iter().chain([locked]);
    let facts = facts.map(|(name, value)| Fact {
        name: name.to_owned(),
        value,
    });
    let checks = [
        processor::checks(tree),
        memory::checks(tree),
        vec![contact::check()],
    ]
    .concat();
    let checks = checks
        .into_iter()
        .map(|Check { name, value, .. }| Fact { name, value });
    named.chain(checks).chain(facts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_within_their_columns_but_for_a_long_path() {
        let info = Info::gather(&Tree::of_this_machine(), None, &[]);
        for (columns, most) in [(None, 100), (Some(300), 100), (Some(72), 72)] {
            let text = info.text(Look {
                columns,
                ..Look::PLAIN
            });
            for line in text.lines().filter(|line| !line.contains('/')) {
                assert!(line.chars().count() <= most, "{most}: {line}");
            }
            // Nothing is cut off.
            let words: Vec<&str> = text.split_whitespace().collect();
            for setting in &info.parameters {
                let meaning: Vec<&str> = setting.meaning.split_whitespace().collect();
                let mut places = words.windows(meaning.len());
                assert!(places.any(|place| place == meaning), "{}", setting.name);
            }
        }
    }

    #[test]
    fn limits_that_users_are_told_are_those_of_the_shared_memory_queues() {
        use weft_facts::limit;
        use weft_ring::layout::{LANE_BYTES, REGION_BYTES, SHARED_BYTES, SLOT_COUNT};
        assert_eq!(weft_ring::INLINE_PAYLOAD_BYTES, limit::INLINE_BYTES);
        assert_eq!(REGION_BYTES, limit::REGION_BYTES);
        assert_eq!(SHARED_BYTES + LANE_BYTES, limit::REMOTE_BYTES);
        assert_eq!(SLOT_COUNT, limit::LOCAL_REMOTES);
    }

    #[test]
    fn a_set_parameter_shows_its_value_and_an_unset_one_its_default() {
        let environment = [("FI_WEFT_INJECT_SIZE".into(), "128".into())];
        let info = Info::gather(&Tree::of_this_machine(), None, &environment);
        let text = info.text(Look::PLAIN);
        let line = |name: &str| {
            text.lines()
                .find(|line| line.trim_start().starts_with(name))
                .unwrap_or_default()
                .to_owned()
        };
        assert!(
            line("FI_WEFT_INJECT_SIZE").ends_with("  set to 128"),
            "{text}"
        );
        assert!(
            line("FI_WEFT_IFACE").contains("  default: the first that is up"),
            "{text}"
        );
        let below = format!("\n{:25}values: a number of bytes from 64 to 65536\n", "");
        assert!(text.contains(&below), "{text}");
        assert!(line("single copy ").contains("longer"));
        assert!(
            line("messages of 1.0 MiB").contains("non-temporal"),
            "{text}"
        );
        assert!(line("crossover").contains("win"), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for choice in [
            "bidirectional when two ranks send each other long messages at the same time, one of \
             the two chooses the copy method",
            "send buffer 64 KiB of shared memory for each remote; more (a wide lane) for at most \
             2 remotes",
        ] {
            assert!(words.contains(choice), "{text}");
        }
        assert!(text.contains("Choices of the jobs that run now"), "{text}");
        let json = serde_json::to_value(&info).unwrap();
        let parameters = json["parameters"].as_array().unwrap();
        let named = |name| move |parameter: &&serde_json::Value| parameter["name"] == name;
        let inject_size = parameters.iter().find(named("FI_WEFT_INJECT_SIZE"));
        assert_eq!(inject_size.unwrap()["current"], "128");
        assert_eq!(
            json["protocols"][0]["longest_bytes"],
            weft_ring::INLINE_PAYLOAD_BYTES
        );
        assert_eq!(json["weft"], env!("CARGO_PKG_VERSION"));
    }
}
