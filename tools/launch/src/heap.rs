// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--heap`: whether libweft-heap.so is preloaded into the ranks. Called by `job.rs` and
//! `ranks.rs`.

use std::ffi::OsString;
use std::path::Path;

use crate::elf;
use crate::fault::Fault;
use crate::preload::{Library, Preloading};
use crate::rank_arguments::{Heap, RankArguments};

/// The file name of the library; it lies beside the provider.
pub const FILE_NAME: &str = "libweft-heap.so";

/// Tells the library to share what is sent again and again, and to leave alone what would lose its
/// large pages (crates/heap). Without it the library shares all that is long at the first send.
const AUTO: (&str, &str) = ("WEFT_HEAP", "auto");

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

/// The library that `--heap` asks for, if it asks for one.
///
/// # Errors
/// With `--heap shared`: as [`Preloading::find_over_weft`]. With `auto` a job that cannot use it
/// has no shared heap.
pub fn library(rank: &RankArguments, job: &Preloading<'_>) -> Result<Option<Library>, Fault> {
    let is_for_all = match rank.heap {
        Heap::Private => return Ok(None),
        Heap::Auto if rank.plain || has_allocator(job.program) => return Ok(None),
        // Whoever says how long messages are to be copied has said enough.
        Heap::Auto if rank.says(|name| name == COPIES) => return Ok(None),
        Heap::Auto => false,
        Heap::Shared => true,
    };
    match job.find_over_weft("--heap shared", FILE_NAME) {
        Ok(path) => Ok(Some(Library {
            path,
            variable: (!is_for_all).then(|| (AUTO.0, AUTO.1.to_owned())),
        })),
        Err(fault) if is_for_all => Err(fault),
        Err(_) => Ok(None),
    }
}

/// Whether a program is linked to an allocator of its own.
pub(crate) fn has_allocator(program: &Path) -> bool {
    let needed = elf::dynamic(program).map_or_else(|_| Vec::new(), |facts| facts.needed);
    let is_one = |name: &OsString| {
        let name = name.as_encoded_bytes();
        ALLOCATORS
            .iter()
            .any(|stem| name.starts_with(stem.as_bytes()))
    };
    needed.iter().any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::cc;
    use crate::rank_arguments::Variable;
    use crate::transport::Transport;
    use std::os::unix::fs::PermissionsExt;

    fn asked(heap: Heap) -> RankArguments {
        RankArguments {
            heap,
            ..RankArguments::without_preloads()
        }
    }

    #[test]
    fn a_heap_that_cannot_be_had_is_an_error_only_where_it_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let program = Path::new("/no/program");
        let ask = |heap, transport| {
            let job = Preloading::trial(&transport, folder.path(), program);
            library(&asked(heap), &job)
        };
        let (native, weft) = (Transport::Native, Transport::Weft);
        assert_eq!(ask(Heap::Private, native.clone()).unwrap(), None);
        assert_eq!(ask(Heap::Auto, native.clone()).unwrap(), None);
        assert_eq!(ask(Heap::Auto, weft.clone()).unwrap(), None, "not there");
        assert!(matches!(ask(Heap::Shared, native), Err(Fault::Usage(_))));
        let missing = ask(Heap::Shared, weft.clone()).unwrap_err();
        assert!(missing.to_string().contains("make build"), "{missing}");
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, "").unwrap();
        for (heap, variable) in [(Heap::Shared, None), (Heap::Auto, Some(AUTO))] {
            let path = path.clone();
            let variable = variable.map(|(name, value)| (name, value.to_owned()));
            assert_eq!(
                ask(heap, weft.clone()).unwrap(),
                Some(Library { path, variable })
            );
        }
        let with = |rank: &RankArguments, at| library(rank, &Preloading::trial(&weft, at, program));
        let mut decided = asked(Heap::Auto);
        decided.variables.push(Variable {
            name: "FI_WEFT_SINGLE_COPY".to_owned(),
            value: "never".into(),
        });
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

    const MAIN: &str = "int main(void) { return 0; }\n";

    #[test]
    fn static_and_setuid_programs_take_no_preloaded_library() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE_NAME), "").unwrap();
        let bare = cc(folder.path(), "bare", MAIN, &["-static"]);
        let dynamic = cc(folder.path(), "setuid", MAIN, &[]);
        let ask = |heap, program: &Path| {
            let job = Preloading::trial(&Transport::Weft, folder.path(), program);
            library(&asked(heap), &job)
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
            let job = Preloading::trial(&Transport::Weft, folder.path(), &program);
            let ask = |heap| library(&asked(heap), &job).unwrap();
            assert_eq!(ask(Heap::Auto).is_none(), has_one);
            assert!(ask(Heap::Shared).is_some());
        }
    }
}
