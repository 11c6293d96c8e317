// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--heap`: libweft-heap.so, preloaded into the ranks and into nothing else of the job.
//!
//! Called by `job.rs` once the command is composed: the launcher then starts env(1), which sets
//! LD_PRELOAD and becomes the program, so the launcher and its own processes keep their memory as
//! it is. Called by `ranks.rs` for a rank that is there already. Source: ld.so(8).

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::command::Launch;
use crate::elf;
use crate::environment::Environment;
use crate::fault::Fault;
use crate::rank_arguments::{Heap, RankArguments};
use crate::transport::Transport;

/// The file name of the library; it lies beside the provider.
pub const FILE_NAME: &str = "libweft-heap.so";

/// What sets a variable for one program.
const ENV: &str = "/usr/bin/env";

/// The variable that names preloaded libraries.
const PRELOAD: &str = "LD_PRELOAD";

/// Tells the library, as `auto`, to share what is sent again and again, and to leave alone what
/// would lose its large pages (crates/heap).
const WHEN: &str = "WEFT_HEAP";

/// Whoever says by this variable how long messages are copied has `auto` keep out of it.
const COPIES: &str = weft_facts::parameter::SINGLE_COPY.variable;

/// Libraries that put something else in the place of malloc, and want to be first: those of
/// sanitizers end a program that preloads another.
const ALLOCATORS: [&str; 8] = [
    "libasan.so",
    "libhwasan.so",
    "liblsan.so",
    "libtsan.so",
    "libclang_rt.",
    "libjemalloc.so",
    "libtcmalloc",
    "libmimalloc.so",
];

/// What is preloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// The file.
    pub path: PathBuf,
    /// It shares all that is long at the first send; else it waits, and leaves alone what would
    /// lose its large pages.
    pub is_for_all: bool,
}

/// The library that `--heap` asks for, if it asks for one; `provider_folder` is where it should be,
/// `program` what is started.
///
/// # Errors
/// With `--heap shared`: `Fault::Usage` with a transport or a program that cannot use it,
/// `Fault::ProviderMissing` when it is not there, or when the loader could not take its path. With
/// `auto` such a job has no shared heap.
pub fn library(
    rank: &RankArguments,
    transport: &Transport,
    provider_folder: Option<&Path>,
    program: &Path,
) -> Result<Option<Library>, Fault> {
    let is_for_all = match rank.heap {
        Heap::Private => return Ok(None),
        Heap::Auto if rank.plain || has_allocator(program) => return Ok(None),
        // Whoever says how long messages are to be copied has said enough.
        Heap::Auto if rank.says(|name| name == COPIES) => return Ok(None),
        Heap::Auto => false,
        Heap::Shared => true,
    };
    let found = takes_preloads(program).and_then(|()| find(transport, provider_folder));
    match found {
        Ok(path) => Ok(Some(Library { path, is_for_all })),
        Err(fault) if is_for_all => Err(fault),
        Err(_) => Ok(None),
    }
}

/// Whether the loader preloads libraries into this program.
fn takes_preloads(program: &Path) -> Result<(), Fault> {
    let refuse = |why: &str| {
        Err(Fault::Usage(format!(
            "--heap shared: {} {why}, so no library can be preloaded into it; leave --heap shared \
             out",
            program.display()
        )))
    };
    let mode = std::fs::metadata(program).map_or(0, |facts| facts.permissions().mode());
    if mode & 0o6000 != 0 {
        return refuse("is setuid or setgid");
    }
    match elf::dynamic(program) {
        Ok(facts) if facts == elf::Dynamic::default() => refuse("is a static program"),
        _ => Ok(()),
    }
}

/// Whether a program is linked to an allocator of its own.
fn has_allocator(program: &Path) -> bool {
    let needed = elf::dynamic(program).map_or_else(|_| Vec::new(), |facts| facts.needed);
    let is_one = |name: &String| ALLOCATORS.iter().any(|stem| name.starts_with(stem));
    needed.iter().any(is_one)
}

fn find(transport: &Transport, provider_folder: Option<&Path>) -> Result<PathBuf, Fault> {
    let (Transport::Weft, Some(folder)) = (transport, provider_folder) else {
        return Err(Fault::Usage(format!(
            "--heap shared serves Weft, not --transport {transport}; leave one of the two out"
        )));
    };
    let library = folder.join(FILE_NAME);
    if !library.is_file() {
        return Err(Fault::ProviderMissing(format!(
            "{} is missing; build it with `make build`, or leave out --heap shared",
            library.display()
        )));
    }
    let text = library.to_string_lossy();
    if text.contains([' ', ':', char::REPLACEMENT_CHARACTER]) {
        return Err(Fault::ProviderMissing(format!(
            "--heap shared: the loader takes no spaces or colons in the path of a preloaded \
             library ({text}); put Weft into another folder, or leave --heap shared out"
        )));
    }
    Ok(library)
}

/// What processes that this one starts preload already.
pub fn inherited() -> Option<OsString> {
    std::env::var_os(PRELOAD)
}

/// Has a rank load the library, after what it would preload anyway: what is set for it, else what
/// it inherits.
pub fn add(rank: &mut Environment, library: &Library, inherited: Option<OsString>) {
    if !library.is_for_all {
        rank.set(WHEN, "auto");
    }
    let set = rank.value(PRELOAD).cloned();
    let mut list = set.or(inherited).unwrap_or_default();
    if !list.is_empty() {
        list.push(":");
    }
    list.push(&library.path);
    rank.set(PRELOAD, list);
}

/// Has the ranks of a composed command load the library, if there is one, after what they would
/// preload anyway. The command ends with the program and `argument_count` arguments; `inherited` is
/// LD_PRELOAD of this process.
pub fn preload(
    launch: &mut Launch,
    library: Option<&Library>,
    argument_count: usize,
    inherited: Option<OsString>,
) {
    let Some(library) = library else { return };
    let program_at = launch.arguments.len() - argument_count - 1;
    let mut rank = Environment::default();
    if let Some(set) = launch.environment.value(PRELOAD) {
        rank.set(PRELOAD, set);
    }
    add(&mut rank, library, inherited);
    let words = rank.set.into_iter().map(|(name, value)| {
        let mut word = OsString::from(name);
        word.push("=");
        word.push(value);
        word
    });
    let words = std::iter::once(ENV.into()).chain(words);
    launch.arguments.splice(program_at..program_at, words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi_choice::MpiChoice;

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

    #[test]
    fn the_library_is_loaded_by_the_ranks_after_what_they_load_anyway() {
        let library = |is_for_all| Library {
            path: "/w/libweft-heap.so".into(),
            is_for_all,
        };
        for (set, inherited, word) in [
            (&[][..], None, "LD_PRELOAD=/w/libweft-heap.so"),
            (&[], Some("/i.so"), "LD_PRELOAD=/i.so:/w/libweft-heap.so"),
            (
                &[("LD_PRELOAD", "/s.so")],
                Some("/i.so"),
                "LD_PRELOAD=/s.so:/w/libweft-heap.so",
            ),
            (&[("LD_PRELOAD", "")], None, "LD_PRELOAD=/w/libweft-heap.so"),
        ] {
            let mut launch = launch(set);
            preload(
                &mut launch,
                Some(&library(true)),
                1,
                inherited.map(OsString::from),
            );
            assert_eq!(
                launch.arguments,
                ["-n", "2", "/usr/bin/env", word, "./a", "x"]
            );
        }
        let mut launch = launch(&[]);
        preload(&mut launch, Some(&library(false)), 1, None);
        assert_eq!(
            launch.arguments[2..5],
            [
                "/usr/bin/env",
                "WEFT_HEAP=auto",
                "LD_PRELOAD=/w/libweft-heap.so"
            ]
        );
    }

    fn asked(heap: Heap) -> RankArguments {
        RankArguments {
            mpi: MpiChoice::Auto,
            heap,
            plain: false,
            variables: Vec::new(),
        }
    }

    #[test]
    fn a_heap_that_cannot_be_had_is_an_error_only_where_it_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new("/no/program");
        let place = Some(folder.path());
        let ask = |heap, transport| library(&asked(heap), &transport, place, program);
        let (native, weft) = (Transport::Native, Transport::Weft);
        assert_eq!(ask(Heap::Private, native.clone()).unwrap(), None);
        assert_eq!(ask(Heap::Auto, native.clone()).unwrap(), None);
        assert_eq!(ask(Heap::Auto, weft.clone()).unwrap(), None, "not there");
        assert!(matches!(ask(Heap::Shared, native), Err(Fault::Usage(_))));
        let missing = ask(Heap::Shared, weft.clone()).unwrap_err();
        assert!(missing.to_string().contains("make build"), "{missing}");
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, "").unwrap();
        for (heap, is_for_all) in [(Heap::Shared, true), (Heap::Auto, false)] {
            let path = path.clone();
            assert_eq!(
                ask(heap, weft.clone()).unwrap(),
                Some(Library { path, is_for_all })
            );
        }
        let with = |rank: &RankArguments, at| library(rank, &weft, Some(at), program);
        let mut decided = asked(Heap::Auto);
        let never = "FI_WEFT_SINGLE_COPY=never".parse().unwrap();
        decided.variables.push(never);
        assert_eq!(with(&decided, folder.path()).unwrap(), None);
        let mut plain = asked(Heap::Auto);
        plain.plain = true;
        assert_eq!(with(&plain, folder.path()).unwrap(), None);
        let odd = folder.path().join("a folder");
        std::fs::create_dir(&odd).unwrap();
        std::fs::write(odd.join(FILE_NAME), "").unwrap();
        let refused = with(&asked(Heap::Shared), &odd).unwrap_err();
        assert!(refused.to_string().contains("spaces"), "{refused}");
        assert_eq!(with(&asked(Heap::Auto), &odd).unwrap(), None);
    }

    fn cc(folder: &Path, output: &str, source: &str, options: &[&str]) -> PathBuf {
        let output = folder.join(output);
        let input = output.with_extension("c");
        std::fs::write(&input, source).unwrap();
        let mut compiler = std::process::Command::new("cc");
        let built = compiler.arg(&input).arg("-o").arg(&output).args(options);
        assert!(built.status().unwrap().success());
        output
    }

    const MAIN: &str = "int main(void) { return 0; }\n";

    #[test]
    fn static_and_setuid_programs_take_no_preloaded_library() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), "").unwrap();
        let bare = cc(folder.path(), "bare", MAIN, &["-static"]);
        let dynamic = cc(folder.path(), "setuid", MAIN, &[]);
        let ask = |heap, program: &Path| {
            library(&asked(heap), &Transport::Weft, Some(folder.path()), program)
        };
        assert!(ask(Heap::Shared, &dynamic).unwrap().is_some());
        let mode = std::fs::Permissions::from_mode(0o4755);
        std::fs::set_permissions(&dynamic, mode).unwrap();
        for (program, why) in [(&bare, "a static program"), (&dynamic, "setuid")] {
            assert_eq!(ask(Heap::Auto, program).unwrap(), None);
            let refused = ask(Heap::Shared, program).unwrap_err();
            assert!(refused.to_string().contains(why), "{refused}");
        }
    }

    #[test]
    fn a_program_with_an_allocator_of_its_own_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), "").unwrap();
        let soname = "-Wl,-soname,libjemalloc.so.2";
        let allocator = cc(
            folder.path(),
            "libjemalloc.so.2",
            "",
            &["-shared", "-fPIC", soname],
        );
        let plain = cc(folder.path(), "plain", MAIN, &[]);
        let linked = cc(
            folder.path(),
            "linked",
            MAIN,
            &["-Wl,--no-as-needed", allocator.to_str().unwrap()],
        );
        for (program, has_one) in [(plain, false), (linked, true)] {
            let place = Some(folder.path());
            let ask = |heap| library(&asked(heap), &Transport::Weft, place, &program).unwrap();
            assert_eq!(ask(Heap::Auto).is_none(), has_one);
            assert!(ask(Heap::Shared).is_some());
        }
    }
}
