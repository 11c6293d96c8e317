// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--collectives`: libweft-mpi.so, which serves the MPI's collectives inside a host.
//!
//! Called by `job.rs` and `ranks.rs`, which hand what comes out to `preload.rs`.
//! docs/collectives.md says what is served.

use std::path::Path;

use crate::fault::Fault;
use crate::preload::{self, Library};
use crate::rank_arguments::{Collectives, RankArguments};
use crate::transport::Transport;

/// The file name of the library; it lies beside the provider.
pub const FILE_NAME: &str = "libweft-mpi.so";

/// Tells the library how many ranks have it: all of the job's, since it waits for an answer of each
/// (crates/intercept).
const RANKS: &str = "WEFT_COLLECTIVES_RANKS";

/// The library that `--collectives` asks for, if it asks for one, for a job of so many `ranks`;
/// `provider_folder` is where it should be, `program` what is started.
///
/// # Errors
/// With `--collectives weft`: `Fault::Usage` where nobody knows how many ranks there are, and as
/// [`preload::find`]. With `auto` such a job keeps the MPI's own.
pub fn library(
    rank: &RankArguments,
    transport: &Transport,
    provider_folder: Option<&Path>,
    program: &Path,
    ranks: Option<u32>,
) -> Result<Option<Library>, Fault> {
    let is_asked_for = match rank.collectives {
        Collectives::Mpi => return Ok(None),
        Collectives::Auto => false,
        Collectives::Weft => true,
    };
    let Some(ranks) = ranks else {
        let unknown = || {
            Err(Fault::Usage(
                "--collectives weft needs to know how many ranks the job has, and nobody says so \
                 here; start the ranks with weft run, or with weft exec under mpirun, mpiexec or \
                 srun, or leave --collectives weft out"
                    .to_owned(),
            ))
        };
        return if is_asked_for { unknown() } else { Ok(None) };
    };
    let option = "--collectives weft";
    let find = || match (transport, provider_folder) {
        (Transport::Weft, Some(folder)) => preload::find(option, FILE_NAME, folder, program),
        _ => Err(Fault::Usage(format!(
            "{option} serves Weft, not --transport {transport}; leave one of the two out"
        ))),
    };
    match find() {
        Ok(path) => Ok(Some(Library {
            path,
            variable: Some((RANKS, ranks.to_string())),
        })),
        Err(fault) if is_asked_for => Err(fault),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi_choice::MpiChoice;
    use crate::rank_arguments::{Heap, Yield};

    #[test]
    fn collectives_that_cannot_be_served_are_an_error_only_where_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let ask = |collectives, transport: &Transport| {
            let rank = RankArguments {
                mpi: MpiChoice::Auto,
                heap: Heap::Private,
                yielding: Yield::System,
                collectives,
                plain: false,
                variables: Vec::new(),
            };
            let program = Path::new("/no/program");
            library(&rank, transport, Some(folder.path()), program, Some(4))
        };
        let (native, weft) = (Transport::Native, Transport::Weft);
        assert_eq!(ask(Collectives::Mpi, &weft).unwrap(), None);
        assert_eq!(ask(Collectives::Auto, &weft).unwrap(), None, "not there");
        let missing = ask(Collectives::Weft, &weft).unwrap_err();
        assert!(missing.to_string().contains(FILE_NAME), "{missing}");
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, "").unwrap();
        for collectives in [Collectives::Auto, Collectives::Weft] {
            let found = ask(collectives, &weft).unwrap().unwrap();
            assert_eq!(
                (found.path, found.variable),
                (path.clone(), Some((RANKS, "4".into())))
            );
        }
        assert_eq!(ask(Collectives::Auto, &native).unwrap(), None);
        assert!(matches!(
            ask(Collectives::Weft, &native),
            Err(Fault::Usage(_))
        ));
    }
}
