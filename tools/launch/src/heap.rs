// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--heap shared`: libweft-heap.so, preloaded into the ranks and into nothing else of the job.
//!
//! Called by `plan.rs` once the command is composed: the launcher then starts env(1), which sets LD_PRELOAD and becomes the program, so
//! the launcher and its own processes keep their memory as it is. Source: ld.so(8).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::arguments::{Arguments, Heap};
use crate::command::Launch;
use crate::fault::Fault;
use crate::transport::Transport;

/// The file name of the library; it lies beside the provider.
pub const FILE_NAME: &str = "libweft-heap.so";

/// What sets a variable for one program.
const ENV: &str = "/usr/bin/env";

/// The variable that names preloaded libraries.
const PRELOAD: &str = "LD_PRELOAD";

/// The library that `--heap` asks for, if it asks for one; `provider_folder` is where it should be.
///
/// # Errors
/// `Fault::Usage` with a transport that does not use it, `Fault::ProviderMissing` when it is not there, or when the loader could not take its path.
pub fn library(
    arguments: &Arguments,
    provider_folder: Option<&Path>,
) -> Result<Option<PathBuf>, Fault> {
    find(arguments.heap, &arguments.transport, provider_folder)
}

fn find(
    heap: Heap,
    transport: &Transport,
    provider_folder: Option<&Path>,
) -> Result<Option<PathBuf>, Fault> {
    if heap == Heap::Private {
        return Ok(None);
    }
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
            "--heap shared: the loader takes no spaces or colons in the path of a preloaded library ({text}); put Weft into another folder, or leave \
             --heap shared out"
        )));
    }
    Ok(Some(library))
}

/// What processes that this one starts preload already.
pub fn inherited() -> Option<OsString> {
    std::env::var_os(PRELOAD)
}

/// Has the ranks of a composed command load the library, if there is one, after what they would preload anyway. The command ends with the program and
/// `argument_count` arguments; `inherited` is LD_PRELOAD of this process.
pub fn preload(
    launch: &mut Launch,
    library: Option<&Path>,
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
    word.push(library);
    launch
        .arguments
        .splice(program_at..program_at, [ENV.into(), word]);
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
        let library = Path::new("/w/libweft-heap.so");
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
            preload(&mut launch, Some(library), 1, inherited.map(OsString::from));
            assert_eq!(
                launch.arguments,
                ["-n", "2", "/usr/bin/env", word, "./a", "x"]
            );
        }
    }

    #[test]
    fn a_heap_that_cannot_be_had_is_an_error_and_a_private_one_never() {
        let folder = tempfile::tempdir().unwrap();
        let ask = |heap, transport: Transport| find(heap, &transport, Some(folder.path()));
        assert!(matches!(ask(Heap::Private, Transport::Native), Ok(None)));
        assert!(matches!(
            ask(Heap::Shared, Transport::Native),
            Err(Fault::Usage(_))
        ));
        let missing = ask(Heap::Shared, Transport::Weft).unwrap_err();
        assert!(missing.to_string().contains("make build"), "{missing}");
        let file = folder.path().join(FILE_NAME);
        std::fs::write(&file, "").unwrap();
        assert_eq!(ask(Heap::Shared, Transport::Weft).unwrap(), Some(file));
        let odd = folder.path().join("a folder");
        std::fs::create_dir(&odd).unwrap();
        std::fs::write(odd.join(FILE_NAME), "").unwrap();
        let refused = find(Heap::Shared, &Transport::Weft, Some(&odd)).unwrap_err();
        assert!(refused.to_string().contains("spaces"), "{refused}");
    }
}
