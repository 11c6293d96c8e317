// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--libfabric` and WEFT_LIBFABRIC: another libfabric for the ranks than the one that their MPI
//! was linked to. docs/run.md says why.
//!
//! Called by `preloads.rs` and the doctor. The loader takes the preloaded library wherever the MPI
//! asks for `libfabric.so.1`, since it goes by the soname (ld.so(8), dlopen(3)).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::elf;
use crate::fault::Fault;
use crate::preload::{self, Library, Preloading};
use crate::rank_arguments::RankArguments;
use crate::transport::Transport;

/// The variable that names the file where no option does.
pub const VARIABLE: &str = "WEFT_LIBFABRIC";

/// The name by which every MPI asks for libfabric.
pub const SONAME: &str = "libfabric.so.1";

/// Libraries that measure the speed of the processor's counter when they are loaded, each for
/// 0.1 s (measured: libpsm2 11.2 and libinfinipath 3.3, those of Debian 12).
const SLOW_TO_LOAD: [&str; 2] = ["libpsm2.so", "libpsm_infinipath.so"];

/// The library that the option asks for, or else the variable. The variable does not matter to
/// programs that take no preloaded library.
///
/// # Errors
/// `Fault::Usage` if the file is no libfabric of this machine, is older than the MPI asks for, or
/// the loader could not take its path; if the option cannot serve this job.
pub(crate) fn library(
    rank: &RankArguments,
    job: &Preloading<'_>,
) -> Result<Option<Library>, Fault> {
    let (said_by, path) = match &rank.libfabric {
        Some(path) => {
            job.over_weft("--libfabric")?;
            preload::takes_preloads("--libfabric", job.program)?;
            ("--libfabric", check("--libfabric", path)?)
        }
        None if rank.plain || *job.transport != Transport::Weft => return Ok(None),
        None if preload::takes_preloads(VARIABLE, job.program).is_err() => return Ok(None),
        None => match named()? {
            Some(path) => (VARIABLE, path),
            None => return Ok(None),
        },
    };
    if let Some(libmpi) = job.libmpi {
        is_new_enough(said_by, &path, libmpi)?;
    }
    let variable = Some((VARIABLE, path.to_string_lossy().into_owned()));
    Ok(Some(Library { path, variable }))
}

/// The full path of what the variable names; `None` where it is not set or empty.
///
/// # Errors
/// `Fault::Usage` if that is no libfabric of this machine, or if the loader could not take its
/// path.
pub fn named() -> Result<Option<PathBuf>, Fault> {
    let named = std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
    named
        .map(|path| check(VARIABLE, Path::new(&path)))
        .transpose()
}

/// The full path of a file that is a libfabric. `said_by` is what names it.
fn check(said_by: &str, path: &Path) -> Result<PathBuf, Fault> {
    let refuse = |why: &str| {
        Fault::Usage(format!(
            "{said_by}: {} {why}; name the file {SONAME} of a libfabric",
            path.display()
        ))
    };
    let unreadable = |error: std::io::Error| refuse(&format!("cannot be read: {error}"));
    // A pipe would keep its reader waiting.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(refuse("is no file"));
    }
    let facts = elf::dynamic(path).map_err(|_| refuse("is no shared library"))?;
    if facts.soname.as_deref() != Some(OsStr::new(SONAME)) {
        let own = facts.soname.unwrap_or_default();
        return Err(refuse(&match own.to_string_lossy() {
            own if own.is_empty() => "is no shared library with a name".to_owned(),
            own => format!("is {own}"),
        }));
    }
    let own = elf::machine(Path::new("/proc/self/exe"));
    if own.is_ok_and(|own| elf::machine(path).is_ok_and(|its| its != own)) {
        return Err(refuse("is for another kind of machine"));
    }
    let path = path.canonicalize().map_err(unreadable)?;
    if !preload::can_be_named(&path) {
        return Err(Fault::Usage(format!(
            "{said_by}: the loader takes no spaces or colons in the path of a preloaded library \
             ({}); name a copy in another folder",
            path.display()
        )));
    }
    Ok(path)
}

/// Ranks whose MPI asks for versions that the file does not have would end before they begin.
fn is_new_enough(said_by: &str, path: &Path, libmpi: &Path) -> Result<(), Fault> {
    let defined = elf::versions_defined(path).unwrap_or_default();
    let is_lacking = |version: &String| !defined.contains(version);
    match versions_wanted(libmpi).into_iter().find(is_lacking) {
        None => Ok(()),
        Some(version) => Err(Fault::Usage(format!(
            "{said_by}: {} is too old for {}, which asks for {version}; name a newer libfabric, \
             or none for this MPI",
            path.display(),
            libmpi.display()
        ))),
    }
}

/// The versions of libfabric's symbols that a libmpi asks for when it is loaded, itself or by those
/// of its libraries that lie beside it.
fn versions_wanted(libmpi: &Path) -> Vec<String> {
    let Some(folder) = libmpi.parent() else {
        return Vec::new();
    };
    let (mut files, mut wanted) = (vec![libmpi.to_owned()], Vec::new());
    let mut next = 0;
    while let Some(file) = files.get(next) {
        wanted.extend(elf::versions_needed(file, SONAME).unwrap_or_default());
        let needed = elf::dynamic(file).unwrap_or_default().needed;
        let beside = needed.iter().map(|name| folder.join(name));
        let new: Vec<PathBuf> = beside
            .filter(|path| path.is_file() && !files.contains(path))
            .collect();
        files.extend(new);
        next += 1;
    }
    wanted
}

/// Which libraries of the libfabric at `path` delay the start of each rank: 0.1 s each.
#[must_use]
pub fn slow_to_load(path: &Path) -> Vec<String> {
    let needed = elf::dynamic(path).unwrap_or_default().needed;
    let names = needed.iter().filter_map(|name| name.to_str());
    let slow = |name: &&str| SLOW_TO_LOAD.iter().any(|slow| name.starts_with(slow));
    names.filter(slow).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::cc;

    /// A shared library with a soname.
    fn shared(folder: &Path, file: &str, soname: &str) -> PathBuf {
        let soname = format!("-Wl,-soname,{soname}");
        cc(folder, file, "", &["-shared", "-fPIC", &soname])
    }

    fn asked(path: &Path) -> RankArguments {
        RankArguments {
            libfabric: Some(path.to_owned()),
            ..RankArguments::without_preloads()
        }
    }

    #[test]
    fn only_a_libfabric_serves_and_only_weft() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        let fabric = shared(&here, "fabric.so", SONAME);
        let other = shared(&here, "other.so", "libother.so.2");
        let (program, weft, native) = ("/bin/true".as_ref(), Transport::Weft, Transport::Native);
        let over = |transport, path: &Path| {
            library(&asked(path), &Preloading::trial(transport, &here, program))
        };
        let found = over(&weft, &fabric).unwrap().unwrap();
        let said = Some((VARIABLE, fabric.display().to_string()));
        assert_eq!((found.path, found.variable), (fabric.clone(), said));
        let text = |refusal: Result<_, Fault>| match refusal {
            Err(fault) => fault.to_string(),
            Ok(found) => panic!("{found:?}"),
        };
        let refusal = text(over(&weft, &other));
        assert!(refusal.contains("is libother.so.2"), "{refusal}");
        let refusal = text(over(&weft, &here.join("none.so")));
        assert!(
            refusal.contains("cannot be read: No such file"),
            "{refusal}"
        );
        let refusal = text(over(&weft, &here));
        assert!(refusal.contains("is no file"), "{refusal}");
        let refusal = text(over(&native, &fabric));
        assert!(refusal.contains("not --transport native"), "{refusal}");
    }

    #[test]
    fn a_libfabric_older_than_the_mpi_asks_for_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        let make = |file: &str, source: &str, more: &[&str]| {
            cc(&here, file, source, &[&["-shared", "-fPIC"], more].concat())
        };
        std::fs::write(here.join("old.map"), "FABRIC_1.0 {};").unwrap();
        std::fs::write(here.join("new.map"), "FABRIC_1.0 {}; FABRIC_1.9 { f; };").unwrap();
        let soname = format!("-Wl,-soname,{SONAME}");
        let script = |name: &str| format!("-Wl,--version-script={}", here.join(name).display());
        let source = "int f(void) { return 1; }";
        let old = make("old.so", source, &[&soname, &script("old.map")]);
        let new = make("new.so", source, &[&soname, &script("new.map")]);
        // The libmpi asks through a library beside it.
        let user = "int f(void); int g(void) { return f(); }";
        let beside = make("libpart.so", user, &[new.to_str().unwrap()]);
        let libmpi = make(
            "libmpi.so",
            "int g(void); int h(void) { return g(); }",
            &[beside.to_str().unwrap(), "-Wl,-soname,libmpi.so"],
        );
        // It was linked by its path, and is asked for by its name.
        let part = elf::dynamic(&libmpi).unwrap().needed;
        assert!(
            part.iter()
                .any(|name| name.to_string_lossy().ends_with("libpart.so"))
        );
        is_new_enough("--libfabric", &new, &libmpi).unwrap();
        let refusal = is_new_enough("--libfabric", &old, &libmpi).unwrap_err();
        let refusal = refusal.to_string();
        assert!(refusal.contains("asks for FABRIC_1.9"), "{refusal}");
    }

    #[test]
    fn libraries_that_sleep_while_they_are_loaded_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        shared(here, "libpsm2.so", "libpsm2.so.2");
        let needs = ["-shared", "-fPIC", "-Wl,--no-as-needed", "-L.", "-lpsm2"];
        let fabric = cc(here, SONAME, "", &needs);
        assert_eq!(slow_to_load(&fabric), ["libpsm2.so.2"]);
        assert!(slow_to_load(Path::new("/bin/true")).is_empty());
    }
}
