// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which crate may import which, and that each crate from outside has its reason. Reads `cargo
//! metadata`.

// structure: allow file-length because the table grows with the crates

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::Finding;
use crate::room;

/// What one crate of the user's job may import.
#[derive(Debug)]
pub struct Edges {
    /// Package name.
    pub from: &'static str,
    /// Package names, all further down.
    pub to: &'static [&'static str],
    /// Why these and no others.
    pub reason: &'static str,
}

/// The edges between crates/, from the top down. Imports go downwards only.
pub const EDGES: [Edges; 19] = [
    Edges {
        from: "weft-provider",
        to: &[
            "weft-endpoint",
            "weft-shm",
            "weft-udp",
            "weft-contract",
            "weft-memory",
            "weft-os",
            "weft-fabric-sys",
            "weft-facts",
        ],
        reason: "turns C calls into operations of the endpoint, in the contract's words, on user \
            memory; names the routes",
    },
    Edges {
        from: "weft-endpoint",
        to: &[
            "weft-matching",
            "weft-contract",
            "weft-memory",
            "weft-os",
            "weft-facts",
        ],
        reason: "owns the routes, known by traits alone, and the matching; registers user \
                 memory; reads the clock",
    },
    Edges {
        from: "weft-matching",
        to: &["weft-contract"],
        reason: "pure: no memory, no system",
    },
    Edges {
        from: "weft-shm",
        to: &["weft-contract", "weft-ring", "weft-memory", "weft-os"],
        reason: "moves messages through rings in mappings, and copies by CMA",
    },
    Edges {
        from: "weft-udp",
        to: &[
            "weft-contract",
            "weft-srd",
            "weft-seal",
            "weft-memory",
            "weft-os",
        ],
        reason: "drives the SRD machine over sockets, behind the guard of the job's key",
    },
    Edges {
        from: "weft-seal",
        to: &["weft-wire"],
        reason: "tags and encrypts datagrams: knows where the header's fields lie",
    },
    Edges {
        from: "weft-srd",
        to: &["weft-wire"],
        reason: "sans-IO: sees packets and a handed-in clock, nothing else",
    },
    Edges {
        from: "weft-wire",
        to: &[],
        reason: "packet formats stand alone",
    },
    Edges {
        from: "weft-ring",
        to: &["weft-memory", "weft-os"],
        reason: "queues lie in mappings; waiting asks the system",
    },
    Edges {
        from: "weft-intercept",
        to: &["weft-collectives", "weft-memory", "weft-os", "weft-mpi-abi"],
        reason: "stands before MPI's collectives: maps a communicator's segment, knows MPIs' \
            handles",
    },
    Edges {
        from: "weft-collectives",
        to: &["weft-memory"],
        reason: "pure above memory: who has a communicator maps the segment and waits",
    },
    Edges {
        from: "weft-contract",
        to: &["weft-memory"],
        reason: "the vocabulary names user buffers",
    },
    Edges {
        from: "weft-memory",
        to: &["weft-os"],
        reason: "mappings are system calls",
    },
    Edges {
        from: "weft-os",
        to: &[],
        reason: "the bottom",
    },
    Edges {
        from: "weft-heap",
        to: &[],
        reason: "preloaded by itself: nothing it uses may allocate",
    },
    Edges {
        from: "weft-yield",
        to: &[],
        reason: "preloaded by itself into any program",
    },
    Edges {
        from: "weft-mpi-abi",
        to: &[],
        reason: "tables of MPIs' constants stand alone",
    },
    Edges {
        from: "weft-fabric-sys",
        to: &[],
        reason: "C structures stand alone",
    },
    Edges {
        from: "weft-facts",
        to: &[],
        reason: "what users can look up or set: constants alone",
    },
];

/// What tests, benches and examples of a crate may import besides: crates further down that the
/// crate itself knows by traits alone. Crates that exist for tests (`tests/`) are open to all.
pub const TEST_EDGES: [Edges; 2] = [
    Edges {
        from: "weft-endpoint",
        to: &["weft-shm", "weft-udp"],
        reason: "the conformance suite runs over the routes that users have",
    },
    Edges {
        from: "weft-shm",
        to: &["weft-facts"],
        reason: "the counters' numbers of copy methods are those that tools print names for",
    },
];

/// The few edges from tools down into crates/: tools talk to a job from outside it.
pub const TOOL_EDGES: [Edges; 4] = [
    Edges {
        from: "weft-launch",
        to: &["weft-seal", "weft-os", "weft-facts"],
        reason: "makes the job's key, sets endpoints' parameters; asks whether a file is in use",
    },
    Edges {
        from: "weft-doctor",
        to: &[
            "weft-ring",
            "weft-memory",
            "weft-os",
            "weft-seal",
            "weft-facts",
        ],
        reason: "reads published counters; judges parameters; tells whether a key is one",
    },
    Edges {
        from: "weft-netsim",
        to: &["weft-srd", "weft-wire"],
        reason: "runs the SRD machine on simulated hosts",
    },
    Edges {
        from: "weft-soak",
        to: &["weft-fabric-sys"],
        reason: "talks to the provider through libfabric's tables, as a program does",
    },
];

/// The packages of one `cargo metadata --no-deps` answer that matter here.
#[derive(Debug)]
pub struct Package {
    /// As in `Cargo.toml`.
    pub name: String,
    /// `crates`, `tools`, `tests` or `fuzz`.
    pub area: String,
    /// Its folder relative to the root.
    pub folder: String,
    /// Each dependency: name, whether it lies in this repository, and whether it is for tests only.
    pub dependencies: Vec<Dependency>,
}

/// One line of a `[dependencies]` table.
#[derive(Debug)]
pub struct Dependency {
    /// As in `Cargo.toml`.
    pub name: String,
    /// Lies in this repository.
    pub is_ours: bool,
    /// Only for tests, benches and examples.
    pub is_dev: bool,
}

/// Reads the answer of `cargo metadata --format-version 1 --no-deps`.
///
/// # Panics
/// When a field that cargo documents is missing.
pub fn packages(metadata: &str) -> Vec<Package> {
    let metadata: Value = serde_json::from_str(metadata).expect("cargo metadata prints JSON");
    let root = metadata["workspace_root"]
        .as_str()
        .expect("cargo metadata names the root")
        .to_owned();
    let list = metadata["packages"]
        .as_array()
        .expect("cargo metadata lists packages");
    list.iter()
        .map(|package| read_package(package, &root))
        .collect()
}

fn read_package(package: &Value, root: &str) -> Package {
    let manifest = package["manifest_path"]
        .as_str()
        .expect("a package has a manifest");
    let folder = manifest
        .trim_start_matches(root)
        .trim_start_matches('/')
        .trim_end_matches("/Cargo.toml");
    let dependencies = package["dependencies"]
        .as_array()
        .expect("a package lists its dependencies");
    let read = |dependency: &Value| Dependency {
        name: dependency["name"]
            .as_str()
            .expect("a dependency has a name")
            .to_owned(),
        is_ours: dependency["path"].is_string(),
        is_dev: dependency["kind"] == "dev",
    };
    Package {
        name: package["name"]
            .as_str()
            .expect("a package has a name")
            .to_owned(),
        area: folder.split('/').next().unwrap_or_default().to_owned(),
        folder: folder.to_owned(),
        dependencies: dependencies.iter().map(read).collect(),
    }
}

/// All findings about edges between the repository's own packages.
pub fn check(packages: &[Package]) -> Vec<Finding> {
    let areas: BTreeMap<&str, &str> = packages
        .iter()
        .map(|package| (package.name.as_str(), package.area.as_str()))
        .collect();
    let mut findings = Vec::new();
    for package in packages {
        findings.extend(check_name(package));
        for dependency in &package.dependencies {
            if dependency.is_ours {
                let area = areas.get(dependency.name.as_str()).unwrap_or(&"");
                findings.extend(check_edge(package, dependency, area));
            }
        }
        findings.extend(check_libc(package));
    }
    findings
}

/// A package is named after its folder, so that an edge in `Cargo.toml` can be read as an edge
/// between folders.
fn check_name(package: &Package) -> Option<Finding> {
    let folder_name = package.folder.rsplit('/').next().unwrap_or_default();
    let expected = if folder_name == "weft" {
        "weft".to_owned()
    } else {
        format!("weft-{folder_name}")
    };
    (package.name != expected && package.area != "fuzz").then(|| {
        Finding::new(
            &package.folder,
            format!(
                "the package is called `{}`, not `{expected}`.",
                package.name
            ),
        )
    })
}

fn check_edge(package: &Package, dependency: &Dependency, into: &str) -> Option<Finding> {
    let edges = match (package.area.as_str(), into) {
        ("crates" | "tools", "tests") if dependency.is_dev => return None,
        ("crates", _) => &EDGES[..],
        ("tools", "crates" | "tests") => &TOOL_EDGES[..],
        // Between tools the compiler's ban on cycles is enough, and packages of tests may look at
        // everything.
        _ => return None,
    };
    let for_tests = TEST_EDGES.iter().filter(|_| dependency.is_dev);
    let own: Vec<&Edges> = edges
        .iter()
        .chain(for_tests)
        .filter(|edges| edges.from == package.name)
        .collect();
    let allowed: Vec<&str> = own.iter().flat_map(|edges| edges.to).copied().collect();
    let reasons: Vec<&str> = own.iter().map(|edges| edges.reason).collect();
    (!allowed.contains(&dependency.name.as_str())).then(|| {
        let text = format!(
            "`{}` imports `{}`{}; allowed are {allowed:?} ({}).",
            package.name,
            dependency.name,
            if dependency.is_dev {
                " for its tests"
            } else {
                ""
            },
            reasons.join("; ")
        );
        Finding::new(format!("{}/Cargo.toml", package.folder), text)
    })
}

fn check_libc(package: &Package) -> Option<Finding> {
    let names_libc = package
        .dependencies
        .iter()
        .any(|dependency| dependency.name == "libc" && !dependency.is_dev);
    let is_room = room::LIBC.iter().any(|room| room.folder == package.folder);
    (names_libc && !is_room).then(|| {
        Finding::new(
            format!("{}/Cargo.toml", package.folder),
            "libc outside its rooms; crates/os calls the system.",
        )
    })
}

/// Every crate from outside that a package names has a line `# direct: NAME: REASON` in deny.toml,
/// and no line is left over.
pub fn check_reasons(packages: &[Package], deny: &str) -> Vec<Finding> {
    let used: BTreeSet<&str> = packages
        .iter()
        .flat_map(|package| &package.dependencies)
        .filter(|dependency| !dependency.is_ours)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let reasons = deny
        .lines()
        .filter_map(|line| line.strip_prefix("# direct: ")?.split_once(": "));
    let stated: BTreeSet<&str> = reasons
        .filter(|(_, reason)| reason.split_whitespace().count() >= 3)
        .map(|(name, _)| name)
        .collect();
    let missing = used.difference(&stated).map(|name| {
        Finding::new(
            "deny.toml",
            format!(
                "no reason for `{name}`. Add `# direct: {name}: why it \
            is needed`, three words or more."
            ),
        )
    });
    let left_over = stated.difference(&used).map(|name| {
        Finding::new(
            "deny.toml",
            format!("a reason for `{name}`, which no package names any more. Remove the line."),
        )
    });
    missing.chain(left_over).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &str, name: &str, dependencies: &[(&str, bool)]) -> Package {
        let read = |(name, is_ours): &(&str, bool)| Dependency {
            name: (*name).to_owned(),
            is_ours: *is_ours,
            is_dev: false,
        };
        Package {
            name: name.to_owned(),
            area: folder.split('/').next().unwrap().to_owned(),
            folder: folder.to_owned(),
            dependencies: dependencies.iter().map(read).collect(),
        }
    }

    #[test]
    fn edges_upwards_are_found() {
        let shm = package("crates/shm", "weft-shm", &[("weft-endpoint", true)]);
        assert_eq!(check(&[shm]).len(), 1);
        let shm = package(
            "crates/shm",
            "weft-shm",
            &[("weft-ring", true), ("proptest", false)],
        );
        assert_eq!(check(&[shm]), []);
    }

    fn for_tests(mut package: Package) -> Package {
        for dependency in &mut package.dependencies {
            dependency.is_dev = true;
        }
        package
    }

    #[test]
    fn tests_of_a_crate_may_import_what_lies_below_and_crates_for_tests_only() {
        let wire = || package("tests/routes/simulated-wire", "weft-simulated-wire", &[]);
        let udp = |to| package("crates/udp", "weft-udp", &[(to, true)]);
        let doctor = || {
            package(
                "tools/doctor",
                "weft-doctor",
                &[("weft-simulated-wire", true)],
            )
        };
        for to in ["weft-srd", "weft-simulated-wire"] {
            assert_eq!(check(&[wire(), for_tests(udp(to))]), [], "{to}");
        }
        for to in ["weft-endpoint", "weft-shm"] {
            assert_eq!(check(&[wire(), for_tests(udp(to))]).len(), 1, "{to}");
        }
        assert_eq!(check(&[wire(), for_tests(doctor())]), []);
        for shipped in [udp("weft-simulated-wire"), doctor()] {
            assert_eq!(check(&[wire(), shipped]).len(), 1, "it ships");
        }
        let endpoint = || package("crates/endpoint", "weft-endpoint", &[("weft-udp", true)]);
        assert_eq!(check(&[for_tests(endpoint())]), []);
        assert_eq!(check(&[endpoint()]).len(), 1);
    }

    #[test]
    fn table_of_edges_has_no_cycle() {
        // Each crate may only name those below it in the table, or the two that stand beside the
        // flow. The edges of tests begin where the crate stands.
        let at = |from: &str| EDGES.iter().position(|edges| edges.from == from);
        for edges in EDGES.iter().chain(&TEST_EDGES) {
            let index = at(edges.from).expect("every crate is in the table");
            for to in edges.to {
                let below = at(to).expect("every target is in the table");
                assert!(below > index, "{} -> {to} does not go down", edges.from);
            }
        }
    }

    #[test]
    fn tools_stay_out_of_the_job_except_where_listed() {
        let ring = || package("crates/ring", "weft-ring", &[]);
        assert_eq!(
            check(&[
                ring(),
                package("tools/bench", "weft-bench", &[("weft-ring", true)])
            ])
            .len(),
            1
        );
        assert_eq!(
            check(&[
                ring(),
                package("tools/doctor", "weft-doctor", &[("weft-ring", true)])
            ]),
            []
        );
    }

    #[test]
    fn package_is_named_after_its_folder() {
        assert_eq!(check(&[package("crates/ring", "weft-queue", &[])]).len(), 1);
    }

    #[test]
    fn every_outside_crate_needs_a_reason_and_no_reason_is_left_over() {
        let packages = [package("tools/weft", "weft", &[("clap", false)])];
        assert_eq!(
            check_reasons(&packages, "# direct: clap: reads the command line\n"),
            []
        );
        assert_eq!(
            check_reasons(&packages, "# direct: clap: arguments\n").len(),
            1
        );
        assert_eq!(
            check_reasons(
                &packages,
                "# direct: clap: reads the command line\n# direct: gone: no longer used here\n"
            )
            .len(),
            1
        );
    }
}
