// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--heap`: libweft-heap.so, preloaded into the ranks and into nothing else of the job.
//!
//! Called by `job.rs` once the command is composed: the launcher then starts env(1), which sets
//! LD_PRELOAD and becomes the program, so the launcher and its own processes keep their memory as
//! it is. Source: ld.so(8).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::arguments::{Arguments, Heap, Variable};
use crate::command::Launch;
use crate::elf;
use crate::fault::Fault;
use crate::transport::Transport;

/// The file name of the library; it lies beside the provider.
pub const FILE_NAME: &str = "libweft-heap.so";

/// What sets a variable for one program.
const ENV: &str = "/usr/bin/env";

/// The variable that names preloaded libraries.
const PRELOAD: &str = "LD_PRELOAD";

/// Tells the library to share what is sent again and again, and to leave alone what would lose its
/// large pages (crates/heap).
const AS_IT_SEES_FIT: &str = "WEFT_HEAP=auto";

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
/// With `--heap shared`: `Fault::Usage` with a transport that does not use it,
/// `Fault::ProviderMissing` when it is not there, or when the loader could not take its path. With
/// `auto` such a job has no shared heap.
pub fn library(
    arguments: &Arguments,
    provider_folder: Option<&Path>,
    program: &Path,
) -> Result<Option<Library>, Fault> {
    match arguments.heap {
        Heap::Private => Ok(None),
        Heap::Auto if arguments.plain => Ok(None),
        Heap::Auto if has_allocator(program) || says_how_to_copy(arguments) => Ok(None),
        Heap::Auto => Ok(find(&arguments.transport, provider_folder)
            .ok()
            .map(|path| Library {
                path,
                is_for_all: false,
            })),
        Heap::Shared => {
            let path = find(&arguments.transport, provider_folder)?;
            Ok(Some(Library {
                path,
                is_for_all: true,
            }))
        }
    }
}

/// Whether the job's variables, or this process's, say how long messages are to be copied.
fn says_how_to_copy(arguments: &Arguments) -> bool {
    let is_it = |variable: &Variable| variable.name == COPIES;
    arguments.variables.iter().any(is_it) || std::env::var_os(COPIES).is_some()
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
    let set = launch.set.iter().find(|(name, _)| name == PRELOAD);
    let before = set.map(|(_, value)| value.clone()).or(inherited);
    let mut word = OsString::from(format!("{PRELOAD}="));
    if let Some(before) = before.filter(|text| !text.is_empty()) {
        word.push(before);
        word.push(":");
    }
    word.push(&library.path);
    let fit = (!library.is_for_all).then(|| OsString::from(AS_IT_SEES_FIT));
    let words = [Some(ENV.into()), fit, Some(word)];
    launch
        .arguments
        .splice(program_at..program_at, words.into_iter().flatten());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(set: &[(&str, &str)]) -> Launch {
        Launch {
            mpiexec: "mpiexec".into(),
            arguments: ["-n", "2", "./a", "x"].map(OsString::from).to_vec(),
            set: set
                .iter()
                .map(|&(name, value)| (name.to_owned(), value.into()))
                .collect(),
            remove: Vec::new(),
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
                AS_IT_SEES_FIT,
                "LD_PRELOAD=/w/libweft-heap.so"
            ]
        );
    }

    fn asked(heap: &str, transport: &str) -> Arguments {
        let words = ["--heap", heap, "--transport", transport, "-n", "2", "a"];
        <Arguments as clap::Parser>::try_parse_from(words).expect("they are right")
    }

    #[test]
    fn a_heap_that_cannot_be_had_is_an_error_only_where_it_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new("/no/program");
        let ask = |heap, transport| library(&asked(heap, transport), Some(folder.path()), program);
        assert_eq!(ask("private", "native").unwrap(), None);
        assert_eq!(ask("auto", "native").unwrap(), None);
        assert_eq!(ask("auto", "weft").unwrap(), None, "it is not there");
        assert!(matches!(ask("shared", "native"), Err(Fault::Usage(_))));
        let missing = ask("shared", "weft").unwrap_err();
        assert!(missing.to_string().contains("make build"), "{missing}");
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, "").unwrap();
        for (heap, is_for_all) in [("shared", true), ("auto", false)] {
            let path = path.clone();
            assert_eq!(
                ask(heap, "weft").unwrap(),
                Some(Library { path, is_for_all })
            );
        }
        let mut decided = asked("auto", "weft");
        decided
            .variables
            .push("FI_WEFT_SINGLE_COPY=never".parse().unwrap());
        assert_eq!(
            library(&decided, Some(folder.path()), program).unwrap(),
            None
        );
        let mut plain = asked("auto", "weft");
        plain.plain = true;
        assert_eq!(library(&plain, Some(folder.path()), program).unwrap(), None);
        let odd = folder.path().join("a folder");
        std::fs::create_dir(&odd).unwrap();
        std::fs::write(odd.join(FILE_NAME), "").unwrap();
        let refused = library(&asked("shared", "weft"), Some(&odd), program).unwrap_err();
        assert!(refused.to_string().contains("spaces"), "{refused}");
        assert_eq!(
            library(&asked("auto", "weft"), Some(&odd), program).unwrap(),
            None
        );
    }

    #[test]
    fn a_program_with_an_allocator_of_its_own_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), "").unwrap();
        let cc = |output: &str, source: &str, options: &[&str]| {
            let output = folder.path().join(output);
            let input = output.with_extension("c");
            std::fs::write(&input, source).unwrap();
            let mut compiler = std::process::Command::new("cc");
            let built = compiler.arg(&input).arg("-o").arg(&output).args(options);
            assert!(built.status().unwrap().success());
            output
        };
        let soname = "-Wl,-soname,libjemalloc.so.2";
        let allocator = cc("libjemalloc.so.2", "", &["-shared", "-fPIC", soname]);
        let main = "int main(void) { return 0; }\n";
        let plain = cc("plain", main, &[]);
        let linked = cc(
            "linked",
            main,
            &["-Wl,--no-as-needed", allocator.to_str().unwrap()],
        );
        for (program, has_one) in [(plain, false), (linked, true)] {
            let ask = |heap| library(&asked(heap, "weft"), Some(folder.path()), &program).unwrap();
            assert_eq!(ask("auto").is_none(), has_one);
            assert!(ask("shared").is_some());
        }
    }
}
