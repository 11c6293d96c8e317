// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Libraries of Weft that are preloaded into the ranks and into nothing else of the job.
//!
//! Which ones, `preloads.rs` says. Called by `job.rs` once the
//! command is composed: the launcher then starts env(1), which sets LD_PRELOAD and becomes the
//! program, so the launcher and its own processes stay as they are. Called by `ranks.rs` for a rank
//! that is there already.
//! Source: ld.so(8).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::command::Launch;
use crate::elf;
use crate::environment::Environment;
use crate::family::Family;
use crate::fault::Fault;
use crate::transport::Transport;

/// What sets a variable for one program.
const ENV: &str = "/usr/bin/env";

/// The variable that names preloaded libraries.
pub(crate) const PRELOAD: &str = "LD_PRELOAD";

/// A library to preload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The file.
    pub path: PathBuf,
    /// What it is told: a variable and its value.
    pub variable: Option<(&'static str, String)>,
}

/// What decides, beside the options, which libraries the ranks of a job preload.
#[derive(Debug, Clone, Copy)]
pub struct Preloading<'a> {
    /// What carries their messages.
    pub transport: &'a Transport,
    /// The folder of libweft-fi.so and of these libraries; known over Weft.
    pub provider_folder: Option<&'a Path>,
    /// What is started.
    pub program: &'a Path,
    /// Whose MPI they have.
    pub family: Family,
    /// The file of that MPI, where it is known.
    pub libmpi: Option<&'a Path>,
    /// Ranks of the whole job, where anybody knows.
    pub ranks: Option<u32>,
}

impl Preloading<'_> {
    /// A job of four ranks of MPICH.
    #[cfg(test)]
    pub(crate) fn trial<'a>(
        transport: &'a Transport,
        folder: &'a Path,
        program: &'a Path,
    ) -> Preloading<'a> {
        Preloading {
            transport,
            provider_folder: Some(folder),
            program,
            family: Family::Mpich,
            libmpi: None,
            ranks: Some(4),
        }
    }

    /// A library that serves Weft and no other transport.
    ///
    /// # Errors
    /// `Fault::Usage` over another transport, else as [`find`].
    pub fn find_over_weft(&self, option: &str, file_name: &str) -> Result<PathBuf, Fault> {
        find(option, file_name, self.over_weft(option)?, self.program)
    }

    /// The folder of the libraries, for an option that serves Weft and no other transport.
    ///
    /// # Errors
    /// `Fault::Usage` over another transport.
    pub(crate) fn over_weft(&self, option: &str) -> Result<&Path, Fault> {
        match (self.transport, self.provider_folder) {
            (Transport::Weft, Some(folder)) => Ok(folder),
            (transport, _) => Err(Fault::Usage(format!(
                "{option} serves Weft, not --transport {transport}; leave one of the two out"
            ))),
        }
    }
}

/// The library of this name beside the provider, for a program that takes it.
///
/// # Errors
/// `Fault::Usage` with a program that takes no preloaded libraries; `Fault::ProviderMissing` when
/// the library is not there, or when the loader could not take its path. `option` is what asks for
/// it, as the user writes it.
pub fn find(
    option: &str,
    file_name: &str,
    folder: &Path,
    program: &Path,
) -> Result<PathBuf, Fault> {
    takes_preloads(option, program)?;
    let library = folder.join(file_name);
    if !library.is_file() {
        return Err(Fault::ProviderMissing(format!(
            "{} is missing; build it with `make build`, or leave out {option}",
            library.display()
        )));
    }
    if !can_be_named(&library) {
        return Err(Fault::ProviderMissing(format!(
            "{option}: the loader takes no spaces or colons in the path of a preloaded library \
             ({}); put Weft into another folder, or leave {option} out",
            library.display()
        )));
    }
    Ok(library)
}

/// Whether LD_PRELOAD can name the file.
pub(crate) fn can_be_named(library: &Path) -> bool {
    let bytes = library.as_os_str().as_bytes();
    !bytes.iter().any(|byte| b" :".contains(byte))
}

/// Whether the loader preloads libraries into this program.
///
/// # Errors
/// `Fault::Usage` if it does not.
pub(crate) fn takes_preloads(option: &str, program: &Path) -> Result<(), Fault> {
    match takes_none(program) {
        None => Ok(()),
        Some(why) => Err(Fault::Usage(format!("{option}: {why}; leave {option} out"))),
    }
}

/// Why the loader preloads no library into this program; `None` if it does.
pub(crate) fn takes_none(program: &Path) -> Option<String> {
    let mode = std::fs::metadata(program).map_or(0, |facts| facts.permissions().mode());
    let why = if mode & 0o6000 != 0 {
        "is setuid or setgid"
    } else {
        let dynamic = elf::dynamic(program).ok()?;
        if dynamic == elf::Dynamic::default() {
            "is a static program"
        } else if dynamic.needed.iter().any(|name| is_address_sanitizer(name)) {
            "is built with the address sanitizer, which must be loaded before all other libraries"
        } else {
            return None;
        }
    };
    Some(format!(
        "{} {why}, so no library can be preloaded into it",
        program.display()
    ))
}

/// Whether this is the sanitizer's library as gcc or clang (`-shared-libasan`) links it. It ends a
/// process that preloads another library before it (compiler-rt, asan_linux.cpp).
fn is_address_sanitizer(soname: &OsStr) -> bool {
    let name = soname.as_bytes();
    name.starts_with(b"libasan.so") || name.starts_with(b"libclang_rt.asan")
}

/// What processes that this one starts preload already.
pub fn inherited() -> Option<OsString> {
    std::env::var_os(PRELOAD)
}

/// Has a rank load the libraries, after what it would preload anyway: what is set for it, else
/// what it inherits.
pub fn add(rank: &mut Environment, libraries: &[Library], inherited: Option<OsString>) {
    if libraries.is_empty() {
        return;
    }
    let set = rank.value(PRELOAD).cloned();
    let mut list = set.or(inherited).unwrap_or_default();
    for library in libraries {
        if let Some((name, value)) = &library.variable {
            rank.set(name, value);
        }
        append(&mut list, &library.path);
    }
    rank.set(PRELOAD, list);
}

/// Puts a library behind those that a value of LD_PRELOAD names.
pub(crate) fn append(list: &mut OsString, library: &Path) {
    if !list.is_empty() {
        list.push(":");
    }
    list.push(library);
}

/// Has the ranks of a composed command load the libraries, after what they would preload anyway.
/// The command ends with the program and `argument_count` arguments; `inherited` is LD_PRELOAD of
/// this process. With `only_launchers` the launcher gets a library of its own and these
/// variables with it, and the ranks are to have none of them.
pub fn into_command(
    launch: &mut Launch,
    libraries: &[Library],
    argument_count: usize,
    inherited: Option<OsString>,
    only_launchers: &[&str],
) {
    if libraries.is_empty() && only_launchers.is_empty() {
        return;
    }
    let program_at = launch.arguments.len() - argument_count - 1;
    let mut rank = Environment::default();
    if let Some(set) = launch.environment.value(PRELOAD) {
        rank.set(PRELOAD, set);
    }
    match inherited {
        Some(inherited) if libraries.is_empty() && rank.value(PRELOAD).is_none() => {
            rank.set(PRELOAD, inherited);
        }
        inherited => add(&mut rank, libraries, inherited),
    }
    // Where nothing is set for the ranks, what the launcher has must go.
    let goes = !only_launchers.is_empty() && rank.value(PRELOAD).is_none();
    let names = only_launchers.iter().copied();
    let unset = names
        .chain(goes.then_some(PRELOAD))
        .flat_map(|name| ["-u".into(), OsString::from(name)]);
    let words = rank.set.into_iter().map(|(name, value)| {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(value);
        word
    });
    let words = std::iter::once(ENV.into()).chain(unset).chain(words);
    launch.arguments.splice(program_at..program_at, words);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(set: &[(&str, &str)]) -> Launch {
        let mut environment = Environment::default();
        for &(name, value) in set {
            environment.set(name, value);
        }
        Launch {
            mpiexec: "mpiexec".into(),
            arguments: ["-n", "2", "./a", "x"].map(OsString::from).to_vec(),
            environment,
        }
    }

    fn library(path: &str, variable: Option<(&'static str, &str)>) -> Library {
        Library {
            path: path.into(),
            variable: variable.map(|(name, value)| (name, value.to_owned())),
        }
    }

    #[test]
    fn libraries_are_loaded_by_the_ranks_after_what_they_load_anyway() {
        for (set, inherited, word) in [
            (&[][..], None, "LD_PRELOAD=/w/h.so"),
            (&[], Some("/i.so"), "LD_PRELOAD=/i.so:/w/h.so"),
            (
                &[("LD_PRELOAD", "/s.so")],
                Some("/i.so"),
                "LD_PRELOAD=/s.so:/w/h.so",
            ),
            (&[("LD_PRELOAD", "")], None, "LD_PRELOAD=/w/h.so"),
        ] {
            let mut launch = launch(set);
            let one = [library("/w/h.so", None)];
            into_command(&mut launch, &one, 1, inherited.map(OsString::from), &[]);
            assert_eq!(
                launch.arguments,
                ["-n", "2", "/usr/bin/env", word, "./a", "x"]
            );
        }
    }

    #[test]
    fn each_library_is_told_its_own_and_none_changes_nothing() {
        let mut told = launch(&[]);
        let both = [
            library("/w/h.so", Some(("WEFT_HEAP", "auto"))),
            library("/w/y.so", None),
        ];
        into_command(&mut told, &both, 1, None, &[]);
        assert_eq!(
            told.arguments[2..5],
            [
                "/usr/bin/env",
                "WEFT_HEAP=auto",
                "LD_PRELOAD=/w/h.so:/w/y.so"
            ]
        );
        let mut same = launch(&[]);
        into_command(&mut same, &[], 1, Some("/i.so".into()), &[]);
        assert_eq!(same.arguments, launch(&[]).arguments);
    }

    #[test]
    fn what_the_launcher_alone_is_to_have_is_kept_from_the_ranks() {
        let words = |set: &[(&str, &str)], libraries: &[Library], inherited: Option<&str>| {
            let mut launch = launch(set);
            let inherited = inherited.map(OsString::from);
            into_command(&mut launch, libraries, 1, inherited, &["ENDS"]);
            let between = launch.arguments[3..launch.arguments.len() - 2].iter();
            let words: Vec<_> = between.map(|word| word.to_str().unwrap()).collect();
            words.join(" ")
        };
        let one = [library("/w/h.so", None)];
        assert_eq!(words(&[], &[], None), "-u ENDS -u LD_PRELOAD");
        assert_eq!(words(&[], &[], Some("/i")), "-u ENDS LD_PRELOAD=/i");
        let set = [("LD_PRELOAD", "/s")];
        assert_eq!(words(&set, &[], Some("/i")), "-u ENDS LD_PRELOAD=/s");
        assert_eq!(words(&[], &one, None), "-u ENDS LD_PRELOAD=/w/h.so");
    }
}
