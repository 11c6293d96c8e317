// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the MPI library that a process belongs to: a list of files to try, best first, each with
//! the reason why it is on the list.
//!
//! Called by session through [`candidates`]; library opens them. A rank does not know which MPI
//! started it, but there are three sources: `WEFT_MPI_LIBRARY` names the library, the launcher sets
//! variables, and the launcher itself is an ancestor of the process and is installed beside its
//! library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use weft_mpi_abi::Abi;

/// The variable that names the library outright (set by `weft run`).
pub const LIBRARY_VARIABLE: &str = "WEFT_MPI_LIBRARY";
/// How many ancestors to look at: rank, shell wrapper, proxy, launcher and a little room (chosen).
const ANCESTOR_LIMIT: usize = 6;

/// A file or soname to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Path, or a bare soname for the loader to find.
    pub path: PathBuf,
    /// Why it is on the list.
    pub why: String,
}

/// What the decision depends on; taken from the process by [`Surroundings::of_this_process`], made
/// up in tests.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Environment of the process.
    pub variables: Vec<(OsString, OsString)>,
    /// Executables of the ancestors, nearest first.
    pub ancestors: Vec<PathBuf>,
}

impl Surroundings {
    /// Reads the environment and `/proc`. Setup.
    pub fn of_this_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            ancestors: ancestor_executables(),
        }
    }

    fn value(&self, name: &str) -> Option<&OsString> {
        self.variables
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value)
            .filter(|value| !value.is_empty())
    }

    fn any_with_prefix(&self, prefix: &str) -> bool {
        self.variables
            .iter()
            .any(|(key, _)| key.to_string_lossy().starts_with(prefix))
    }

    /// The family whose launcher started the process, as far as variables tell.
    fn family(&self) -> Option<Abi> {
        if self.any_with_prefix("OMPI_COMM_WORLD_") {
            return Some(Abi::OpenMpi);
        }
        if self.value("PMI_RANK").is_some()
            || self.value("MPI_LOCALRANKID").is_some()
            || self.any_with_prefix("HYDRA_")
        {
            return Some(Abi::Mpich);
        }
        self.any_with_prefix("PMIX_").then_some(Abi::OpenMpi)
    }

    /// The nearest ancestor that is an MPI launcher, and the family its name shows.
    fn launcher(&self) -> Option<(&Path, Option<Abi>)> {
        self.ancestors.iter().find_map(|path| {
            let name = path.file_name()?.to_string_lossy();
            let open_mpi =
                ["prted", "prterun", "prte", "orted", "orterun"].contains(&name.as_ref());
            let mpich = name.starts_with("hydra_") || name.contains("hydra");
            let unclear = name.starts_with("mpiexec") || name.starts_with("mpirun");
            let family = if open_mpi {
                Some(Abi::OpenMpi)
            } else {
                mpich.then_some(Abi::Mpich)
            };
            (open_mpi || mpich || unclear).then_some((path.as_path(), family))
        })
    }
}

/// The list of libraries to try, best first. Never empty; with [`LIBRARY_VARIABLE`] set it has that
/// one entry, because a named library that cannot be opened must not silently become another one.
pub fn candidates(surroundings: &Surroundings) -> Vec<Candidate> {
    if let Some(path) = surroundings.value(LIBRARY_VARIABLE) {
        return vec![Candidate {
            path: path.into(),
            why: format!("named by {LIBRARY_VARIABLE}"),
        }];
    }
    let launcher = surroundings.launcher();
    let family = surroundings
        .family()
        .or(launcher.and_then(|(_, family)| family));
    let mut list = Vec::new();
    if let Some((executable, _)) = launcher {
        beside_launcher(executable, family, &mut list);
    }
    let prefixes: [(&str, Abi); 2] = [("OPAL_PREFIX", Abi::OpenMpi), ("I_MPI_ROOT", Abi::Mpich)];
    for (variable, prefix_family) in prefixes {
        if let Some(root) = surroundings
            .value(variable)
            .filter(|_| family.is_none_or(|known| known == prefix_family))
        {
            let path = Path::new(root)
                .join("lib")
                .join(sonames(Some(prefix_family))[0]);
            list.push(Candidate {
                path,
                why: format!("{variable} is set"),
            });
        }
    }
    let why = match family {
        Some(known) => format!("started by a launcher of {}", known.name()),
        None => "no launcher recognised; tried by name".to_owned(),
    };
    list.extend(sonames(family).iter().map(|name| Candidate {
        path: name.into(),
        why: why.clone(),
    }));
    list
}

/// Sonames of a family, or of all families when none is known.
fn sonames(family: Option<Abi>) -> &'static [&'static str] {
    match family {
        Some(Abi::OpenMpi) => &["libmpi.so.40", "libmpi.so.80"],
        Some(Abi::Mpich) => &["libmpi.so.12", "libmpich.so.12"],
        // The standard interface is refused (abi).
        Some(Abi::Standard) | None => &["libmpi.so.40", "libmpi.so.12", "libmpich.so.12"],
    }
}

/// Library folders next to `bin/launcher`, in the layouts of wheels, distributions and vendors;
/// only files that exist.
fn beside_launcher(executable: &Path, family: Option<Abi>, list: &mut Vec<Candidate>) {
    let Some(root) = executable.parent().and_then(Path::parent) else {
        return;
    };
    let multiarch = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    for folder in ["lib", "lib64", "lib/release", multiarch.as_str()] {
        for soname in sonames(family) {
            let path = root.join(folder).join(soname);
            if path.exists() {
                list.push(Candidate {
                    path,
                    why: format!("beside the launcher {}", executable.display()),
                });
            }
        }
    }
}

fn ancestor_executables() -> Vec<PathBuf> {
    let mut list = Vec::new();
    let mut process = std::os::unix::process::parent_id();
    for _ in 0..ANCESTOR_LIMIT {
        if process <= 1 {
            break;
        }
        if let Ok(executable) = std::fs::read_link(format!("/proc/{process}/exe")) {
            list.push(executable);
        }
        // The name in it need not be UTF-8.
        let Some(parent) = std::fs::read(format!("/proc/{process}/stat"))
            .ok()
            .and_then(|stat| parent_in_stat(&String::from_utf8_lossy(&stat)))
        else {
            break;
        };
        process = parent;
    }
    list
}

/// The parent's id is the second field after the parenthesised name, which may itself hold spaces
/// and parentheses (proc(5)).
fn parent_in_stat(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variables: &[(&str, &str)], ancestors: &[&str]) -> Surroundings {
        Surroundings {
            variables: variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            ancestors: ancestors.iter().map(PathBuf::from).collect(),
        }
    }

    fn paths(list: &[Candidate]) -> Vec<&str> {
        list.iter()
            .map(|candidate| candidate.path.to_str().expect("utf-8"))
            .collect()
    }

    #[test]
    fn named_library_is_the_only_candidate() {
        let list = candidates(&with(
            &[(LIBRARY_VARIABLE, "/x/libmpi.so"), ("PMI_RANK", "0")],
            &[],
        ));
        assert_eq!(paths(&list), ["/x/libmpi.so"]);
    }

    #[test]
    fn empty_variable_counts_as_unset() {
        let list = candidates(&with(&[(LIBRARY_VARIABLE, ""), ("PMI_RANK", "0")], &[]));
        assert_eq!(paths(&list), ["libmpi.so.12", "libmpich.so.12"]);
    }

    #[test]
    fn variables_of_each_launcher_choose_its_family() {
        let open = candidates(&with(
            &[("OMPI_COMM_WORLD_RANK", "1"), ("PMIX_RANK", "1")],
            &[],
        ));
        assert_eq!(paths(&open)[0], "libmpi.so.40");
        let intel = candidates(&with(
            &[("MPI_LOCALRANKID", "1"), ("I_MPI_ROOT", "/opt/impi")],
            &[],
        ));
        assert_eq!(
            paths(&intel),
            [
                "/opt/impi/lib/libmpi.so.12",
                "libmpi.so.12",
                "libmpich.so.12"
            ]
        );
    }

    #[test]
    fn prefix_of_the_other_family_is_ignored() {
        let list = candidates(&with(
            &[("OMPI_COMM_WORLD_RANK", "1"), ("I_MPI_ROOT", "/opt/impi")],
            &[],
        ));
        assert!(
            paths(&list)
                .iter()
                .all(|path| !path.starts_with("/opt/impi"))
        );
    }

    #[test]
    fn without_a_launcher_every_family_is_tried() {
        assert_eq!(
            paths(&candidates(&with(&[], &["/usr/bin/bash"]))),
            ["libmpi.so.40", "libmpi.so.12", "libmpich.so.12"]
        );
    }

    #[test]
    fn library_beside_the_launcher_comes_first() {
        let root = std::env::temp_dir().join(format!("weft-locate-{}", std::process::id()));
        let folder = root.join("lib");
        std::fs::create_dir_all(&folder).expect("temporary folder");
        let library = folder.join("libmpi.so.12");
        std::fs::write(&library, b"").expect("temporary file");
        let launcher = root.join("bin/hydra_pmi_proxy");
        let list = candidates(&with(
            &[("PMI_RANK", "0")],
            &["/bin/bash", launcher.to_str().expect("utf-8")],
        ));
        std::fs::remove_dir_all(&root).expect("removable");
        assert_eq!(list[0].path, library);
        assert!(list[0].why.contains("hydra_pmi_proxy"));
    }

    #[test]
    fn parent_is_found_behind_a_name_with_parentheses() {
        assert_eq!(parent_in_stat("42 (a) b (c) S 7 42 0"), Some(7));
    }
}
