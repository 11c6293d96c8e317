// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether crates import only what [`crate::edges`] lets them, and whether each crate from outside
//! has its reason. Reads `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::Finding;
use crate::edges::{EDGES, Edges, MOUNT_EDGES, TEST_EDGES, TOOL_EDGES};
use crate::room;

/// The packages of one `cargo metadata --no-deps` answer that matter here.
#[derive(Debug)]
pub struct Package {
    /// As in `Cargo.toml`.
    pub name: String,
    /// `crates`, `mount`, `tools`, `tests` or `fuzz`.
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
        ("crates" | "mount" | "tools", "tests") if dependency.is_dev => return None,
        ("crates", _) => &EDGES[..],
        // Servers for tests lie there too; nothing that ships may import them.
        ("mount", "mount") if dependency.is_dev => return None,
        ("mount", _) => &MOUNT_EDGES[..],
        (_, "mount") if !dependency.is_dev => &[],
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
        // flow. The edges of tests begin where the crate stands. All of crates/ is below mount/.
        let tables = [(&EDGES[..], &TEST_EDGES[..]), (&MOUNT_EDGES[..], &[])];
        for (table, of_tests) in tables {
            let at = |from: &str| table.iter().position(|edges| edges.from == from);
            for edges in table.iter().chain(of_tests) {
                let index = at(edges.from).expect("every crate is in the table");
                for to in edges.to {
                    let in_crates = EDGES.iter().any(|edges| edges.from == *to);
                    let below = at(to).or(in_crates.then_some(table.len()));
                    let below = below.expect("every target is in a table");
                    assert!(below > index, "{} -> {to} does not go down", edges.from);
                }
            }
        }
    }

    #[test]
    fn mount_stands_apart_from_the_job_and_the_tools() {
        let store = || package("mount/store", "weft-store", &[]);
        let files = |to| package("mount/files", "weft-files", &[(to, true)]);
        assert_eq!(check(&[store(), files("weft-store")]), []);
        let ring = package("crates/ring", "weft-ring", &[]);
        assert_eq!(check(&[ring, files("weft-ring")]).len(), 1);
        let tool = package("tools/bench", "weft-bench", &[("weft-store", true)]);
        assert_eq!(check(&[store(), tool]).len(), 1);
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
