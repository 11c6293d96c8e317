// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which MPIs are on this machine: the places to look in, in a fixed order, and what each `mpiexec`
//! found there says of itself.
//!
//! Called by `lib.rs`, the doctor and `weft info`; uses `family.rs`. Setup only: every launcher is
//! asked once, all at the same time.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};

use crate::family::{self, Family, Version};
use crate::loader::Loader;

/// An `mpiexec` that may be there, and why it is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The path of the launcher.
    pub mpiexec: PathBuf,
    /// The place in the order of search, in words for the user.
    pub origin: String,
}

/// An MPI that is installed here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Installation {
    /// Whose implementation it is.
    pub family: Family,
    /// The launcher's version.
    pub version: Version,
    /// The launcher, as it was found.
    #[serde(serialize_with = "shown")]
    pub mpiexec: PathBuf,
    /// The C library that belongs to the launcher; `None` where it could not be found.
    #[serde(serialize_with = "shown_if_any")]
    pub libmpi: Option<PathBuf>,
    /// MPICH: network modules built in, if it says so.
    pub netmods: Vec<String>,
    /// Where it was found, in words.
    pub origin: String,
}

/// The path in JSON, which holds UTF-8 alone: other bytes become U+FFFD.
fn shown<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

fn shown_if_any<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => shown(path, to),
        None => to.serialize_none(),
    }
}

/// An MPI that can use no libfabric provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{mpi} was built with the network module {netmods} alone, without ofi (libfabric), so it \
     cannot use Weft or any libfabric provider; the MPICH wheel can: pip install mpich"
)]
pub struct NoLibfabric {
    mpi: String,
    netmods: String,
}

impl Installation {
    /// Family, version and launcher in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "{} {} ({})",
            self.family,
            self.version,
            self.mpiexec.display()
        )
    }

    /// Whether it can be told to use a libfabric provider at all.
    ///
    /// # Errors
    /// It was built without libfabric.
    pub fn can_use_libfabric(&self) -> Result<(), NoLibfabric> {
        if self.family == Family::Mpich
            && !self.netmods.is_empty()
            && !self.netmods.iter().any(|name| name == "ofi")
        {
            return Err(NoLibfabric {
                mpi: self.describe(),
                netmods: self.netmods.join(", "),
            });
        }
        Ok(())
    }

    /// The folder of the C library.
    #[must_use]
    pub fn library_folder(&self) -> Option<&Path> {
        self.libmpi.as_deref().and_then(Path::parent)
    }

    /// Whether `path` is this MPI's C library, or the one of the standard ABI beside it, seen
    /// through links.
    #[must_use]
    pub fn owns_library(&self, path: &Path) -> bool {
        let own = self.libmpi.as_deref().map(Path::canonicalize);
        let (Some(Ok(own)), Ok(real)) = (own, path.canonicalize()) else {
            return false;
        };
        own == real || own.parent() == real.parent() && self.has_as_standard(&real)
    }

    /// Whether the library at `path`, in the folder of this MPI's own, is this MPI with the
    /// standard ABI (MPI 5.0, 20). A folder of the system may hold libraries of several MPIs.
    fn has_as_standard(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libmpi_abi.so") && family::of_library(path) == Some(self.family)
    }
}

/// The environment that the search depends on, so that it can be tested.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// WEFT_MPI_PATH: prefixes, before all others.
    pub weft_mpi_path: Option<OsString>,
    /// The folder of the running `weft` executable.
    pub executable_folder: Option<PathBuf>,
    /// VIRTUAL_ENV.
    pub virtual_env: Option<OsString>,
    /// PATH.
    pub path: Option<OsString>,
    /// I_MPI_ROOT.
    pub intel_root: Option<OsString>,
}

impl Surroundings {
    /// Those of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let executable = std::env::current_exe().and_then(std::fs::canonicalize).ok();
        Self {
            weft_mpi_path: std::env::var_os("WEFT_MPI_PATH"),
            executable_folder: executable.and_then(|path| path.parent().map(Path::to_owned)),
            virtual_env: std::env::var_os("VIRTUAL_ENV"),
            path: std::env::var_os("PATH"),
            intel_root: std::env::var_os("I_MPI_ROOT"),
        }
    }

    /// The checkout in which this `weft` was built: dist/bin/weft and target/release/weft lie two
    /// folders below it. An installed `weft` has none, and must not take the folder above its
    /// prefix for one: below /tmp that may be anybody's.
    fn checkout(&self) -> Option<&Path> {
        let above = self.executable_folder.as_deref()?.parent()?;
        (above.ends_with("dist") || above.ends_with("target")).then(|| above.parent())?
    }

    /// The virtual environment in which pip has put this `weft`, which need not be the active one.
    /// Source: PEP 405, pyvenv.cfg.
    fn own_virtual_environment(&self) -> Option<&Path> {
        let prefix = self.executable_folder.as_deref()?.parent()?;
        prefix.join("pyvenv.cfg").is_file().then_some(prefix)
    }

    /// The prefixes of WEFT_MPI_PATH, in order.
    fn named_prefixes(&self) -> impl Iterator<Item = PathBuf> {
        let paths = self.weft_mpi_path.iter().flat_map(std::env::split_paths);
        paths.filter(|prefix| !prefix.as_os_str().is_empty())
    }

    /// The prefixes of WEFT_MPI_PATH that have no launcher, as after a wrong letter.
    #[must_use]
    pub fn empty_prefixes(&self) -> Vec<PathBuf> {
        let named = self.named_prefixes();
        named
            .filter(|prefix| !prefix.join("bin/mpiexec").is_file())
            .collect()
    }

    /// All places to look in, in order, whether or not anything is there.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
        let mut list = Vec::new();
        let mut add = |mpiexec: PathBuf, origin: &str| {
            list.push(Candidate {
                mpiexec,
                origin: origin.to_owned(),
            })
        };
        for prefix in self.named_prefixes() {
            add(prefix.join("bin/mpiexec"), "WEFT_MPI_PATH");
        }
        if let Some(checkout) = self.checkout() {
            for name in ["openmpi", "mpich", "intel"] {
                add(
                    checkout.join(".env/mpi").join(name).join("bin/mpiexec"),
                    "the checkout's .env/mpi",
                );
            }
        }
        if let Some(folder) = &self.virtual_env {
            add(Path::new(folder).join("bin/mpiexec"), "VIRTUAL_ENV");
        }
        if let Some(folder) = self.own_virtual_environment() {
            add(
                folder.join("bin/mpiexec"),
                "the virtual environment of weft",
            );
        }
        for folder in self.path.iter().flat_map(std::env::split_paths) {
            if folder.is_absolute() {
                add(folder.join("mpiexec"), "PATH");
            }
        }
        add(
            PathBuf::from("/usr/bin/mpiexec.openmpi"),
            "Debian's openmpi-bin",
        );
        add(PathBuf::from("/usr/bin/mpiexec.mpich"), "Debian's mpich");
        if let Some(root) = &self.intel_root {
            add(Path::new(root).join("bin/mpiexec"), "I_MPI_ROOT");
        }
        list
    }
}

#[cfg(test)]
impl Installation {
    /// An MPI of this family and major version, for tests: nothing of it is on the disk.
    pub(crate) fn nowhere(family: Family, major: u32) -> Self {
        Self {
            family,
            version: Version {
                major,
                minor: 0,
                patch: 0,
            },
            mpiexec: "/m/bin/mpiexec".into(),
            libmpi: None,
            netmods: Vec::new(),
            origin: String::new(),
        }
    }
}

/// Asks each launcher once; those that are missing, fail or are of an unknown family are left out,
/// and so are second names of one launcher.
#[must_use]
pub fn installations(candidates: &[Candidate]) -> Vec<Installation> {
    let mut seen = HashSet::new();
    let loader = Loader::of_this_machine(None);
    let present: Vec<&Candidate> = candidates
        .iter()
        .filter(|candidate| {
            candidate
                .mpiexec
                .canonicalize()
                .is_ok_and(|real| real.is_file() && seen.insert(real))
        })
        .collect();
    std::thread::scope(|scope| {
        let asked: Vec<_> = present
            .into_iter()
            .map(|candidate| scope.spawn(|| installation(candidate, &loader)))
            .collect();
        asked
            .into_iter()
            .filter_map(|thread| thread.join().ok().flatten())
            .collect()
    })
}

/// Asks the launcher of one candidate; `None` if it is missing or of an unknown family.
#[must_use]
pub fn installation(candidate: &Candidate, loader: &Loader) -> Option<Installation> {
    let identity = family::recognise(&output_of(&candidate.mpiexec, "--version")?)?;
    let libmpi = libmpi_of(&candidate.mpiexec, identity.family, loader);
    Some(Installation {
        family: identity.family,
        version: identity.version,
        mpiexec: candidate.mpiexec.clone(),
        libmpi,
        netmods: identity.netmods,
        origin: candidate.origin.clone(),
    })
}

/// How long a launcher may take to say its version. Chosen; the slowest seen took 0.1 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// What `program argument` prints on its standard output; `None` if it cannot be started or hangs.
fn output_of(program: &Path, argument: &str) -> Option<String> {
    let mut child = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut pipe = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut pipe, &mut bytes).map(|_| bytes)
    });
    let started = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if started.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let bytes = reader.join().ok()?.ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Names of the C library, the one that programs are linked to first.
fn library_names(family: Family) -> &'static [&'static str] {
    match family {
        Family::OpenMpi => &["libmpi.so.40", "libmpi.so"],
        Family::Mpich => &["libmpi.so.12", "libmpich.so.12", "libmpi.so"],
        Family::Intel => &["libmpi.so.12", "libmpi.so"],
    }
}

/// The C library that belongs to a launcher: in a lib folder beside the launcher's (seen without
/// and with links), else the system's.
fn libmpi_of(mpiexec: &Path, family: Family, loader: &Loader) -> Option<PathBuf> {
    let multiarch = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let folders = ["lib", "lib64", multiarch.as_str(), "lib/release"];
    let real = mpiexec.canonicalize().ok();
    let prefixes = [Some(mpiexec), real.as_deref()]
        .into_iter()
        .flatten()
        .filter_map(|path| path.parent()?.parent());
    let beside = prefixes.flat_map(|prefix| {
        folders
            .iter()
            .map(|folder| prefix.join(folder))
            .collect::<Vec<_>>()
    });
    let named = beside.flat_map(|folder| {
        library_names(family)
            .iter()
            .map(|name| folder.join(name))
            .collect::<Vec<_>>()
    });
    let of_the_system = library_names(family)
        .iter()
        .filter_map(|name| loader.system_library(name));
    let found = named
        .chain(of_the_system)
        .find(|path| path.is_file() && family::of_library(path) == Some(family))?;
    std::path::absolute(&found).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::cc;

    /// Written by another process, as a file that this one (or a child forked meanwhile) has open
    /// for writing cannot be executed.
    fn launcher(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("bin/mpiexec");
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        let script = format!("#!/bin/sh\ncat <<'END'\n{text}\nEND\n");
        let write = "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\"";
        let status = Command::new("sh")
            .args(["-c", write])
            .arg(&path)
            .arg(script)
            .status()
            .unwrap();
        assert!(status.success());
        path
    }

    #[test]
    fn places_are_searched_in_the_documented_order() {
        let surroundings = Surroundings {
            weft_mpi_path: Some("/a:/b".into()),
            executable_folder: Some("/src/weft/dist/bin".into()),
            virtual_env: Some("/venv".into()),
            path: Some("/p1:relative:/p2".into()),
            intel_root: Some("/intel".into()),
        };
        let found: Vec<String> = surroundings
            .candidates()
            .iter()
            .map(|c| c.mpiexec.display().to_string())
            .collect();
        let expected = [
            "/a/bin/mpiexec",
            "/b/bin/mpiexec",
            "/src/weft/.env/mpi/openmpi/bin/mpiexec",
            "/src/weft/.env/mpi/mpich/bin/mpiexec",
            "/src/weft/.env/mpi/intel/bin/mpiexec",
            "/venv/bin/mpiexec",
            "/p1/mpiexec",
            "/p2/mpiexec",
            "/usr/bin/mpiexec.openmpi",
            "/usr/bin/mpiexec.mpich",
            "/intel/bin/mpiexec",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_installed_weft_looks_in_its_virtual_environment_and_in_no_checkout() {
        let folder = tempfile::tempdir().unwrap();
        let surroundings = Surroundings {
            executable_folder: Some(folder.path().join("bin")),
            ..Surroundings::default()
        };
        let origins = || -> Vec<String> {
            let candidates = surroundings.candidates().into_iter();
            candidates.map(|candidate| candidate.origin).collect()
        };
        let of_the_system = ["Debian's openmpi-bin", "Debian's mpich"];
        assert_eq!(origins(), of_the_system);
        std::fs::write(folder.path().join("pyvenv.cfg"), "").unwrap();
        assert_eq!(origins()[0], "the virtual environment of weft");
        assert_eq!(origins()[1..], of_the_system);
    }

    #[test]
    fn two_names_of_one_launcher_count_once_and_strangers_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let open = launcher(&folder.path().join("open"), "mpiexec (Open MPI) 5.0.11");
        let strange = launcher(&folder.path().join("strange"), "something else 1.0");
        let link = folder.path().join("mpiexec");
        std::os::unix::fs::symlink(&open, &link).unwrap();
        let missing = folder.path().join("missing");
        let candidates: Vec<Candidate> = [&open, &link, &strange, &missing]
            .map(|path| Candidate {
                mpiexec: path.clone(),
                origin: "test".into(),
            })
            .to_vec();
        let found = installations(&candidates);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].family, &found[0].mpiexec),
            (Family::OpenMpi, &open)
        );
    }

    fn mpich(libmpi: Option<PathBuf>) -> Installation {
        Installation {
            family: Family::Mpich,
            version: Version::find("4.0.2").unwrap(),
            mpiexec: "/usr/bin/mpiexec.mpich".into(),
            libmpi,
            netmods: vec!["ucx".into()],
            origin: String::new(),
        }
    }

    #[test]
    fn mpich_without_ofi_says_why_it_cannot_use_libfabric() {
        let mut mpich = mpich(None);
        assert!(
            mpich
                .can_use_libfabric()
                .unwrap_err()
                .to_string()
                .contains("ucx alone")
        );
        mpich.netmods.push("ofi".into());
        assert!(mpich.can_use_libfabric().is_ok());
    }

    #[test]
    fn the_library_of_the_standard_abi_belongs_to_the_mpi_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let library = |name: &str, function: &str| {
            let source = format!("int {function}(void) {{ return 0; }}");
            cc(folder.path(), name, &source, &["-shared"])
        };
        std::fs::create_dir(folder.path().join("elsewhere")).unwrap();
        let mpich = mpich(Some(library("libmpi.so.12", "MPI_Init")));
        for (name, function, is_own) in [
            ("libmpi_abi.so.1", "MPI_Init", true),
            ("libmpi_abi.so.2", "I_MPI_Check_image_status", false),
            ("libmpich.so.0", "MPI_Init", false),
            ("elsewhere/libmpi_abi.so.1", "MPI_Init", false),
        ] {
            let path = library(name, function);
            assert_eq!(mpich.owns_library(&path), is_own, "{name}");
        }
        let link = folder.path().join("elsewhere/link.so");
        std::os::unix::fs::symlink(folder.path().join("libmpi_abi.so.1"), &link).unwrap();
        assert!(mpich.owns_library(&link));
    }
}
