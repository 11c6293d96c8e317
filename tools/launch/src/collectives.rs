// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--collectives`: libweft-mpi.so, which serves the MPI's collectives inside a host.
//!
//! Called by `preloads.rs`, whose callers hand what comes out to `preload.rs`; `job.rs` and
//! `ranks.rs` ask what the user is to be told.
//! docs/collectives.md says what is served.

use std::path::Path;

use crate::fault::Fault;
use crate::preload::{self, Library, Preloading};
use crate::rank_arguments::{Collectives, RankArguments};
use crate::transport::Transport;

/// The file name of the library; it lies beside the provider.
pub const FILE_NAME: &str = "libweft-mpi.so";

/// Tells the library who is to serve, and how many ranks have it: all of the job's, since it waits
/// for an answer of each (crates/intercept).
const ASKED: &str = "WEFT_COLLECTIVES";

/// The library that `--collectives` asks for, if it asks for one.
///
/// # Errors
/// With `--collectives weft`: `Fault::Usage` where nobody knows how many ranks there are, and as
/// [`Preloading::find_over_weft`]. With `auto` such a job keeps the MPI's own.
pub fn library(rank: &RankArguments, job: &Preloading<'_>) -> Result<Option<Library>, Fault> {
    let found = match rank.collectives {
        Collectives::Mpi => return Ok(None),
        Collectives::Auto if rank.plain => return Ok(None),
        Collectives::Auto => find(job, "auto"),
        Collectives::Weft => find(job, "weft"),
    };
    match found {
        Err(_) if rank.collectives == Collectives::Auto => Ok(None),
        found => found.map(Some),
    }
}

/// What to tell the user where `auto` leaves the collectives of this program to the MPI because it
/// takes no preloaded library. `ranks` of the job, if they are known.
pub fn note(
    rank: &RankArguments,
    transport: &Transport,
    program: &Path,
    ranks: Option<u32>,
) -> Option<String> {
    let is_asked = rank.collectives == Collectives::Auto && !rank.plain;
    let is_served = is_asked && *transport == Transport::Weft && ranks.is_some_and(|all| all > 1);
    let why = preload::takes_none(program).filter(|_| is_served)?;
    Some(format!("{why}; Weft carries out none of its collectives"))
}

fn find(job: &Preloading<'_>, who: &str) -> Result<Library, Fault> {
    let Some(ranks) = job.ranks else {
        return Err(Fault::Usage(
            "--collectives weft needs to know how many ranks the job has, and this is not \
             known here; start the ranks with weft run, or with weft exec under mpirun, mpiexec or \
             srun, or leave --collectives weft out"
                .to_owned(),
        ));
    };
    Ok(Library {
        path: job.find_over_weft("--collectives weft", FILE_NAME)?,
        variable: Some((ASKED, format!("{who}:{ranks}"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiled::cc;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn collectives_that_cannot_be_served_are_an_error_only_where_that_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let ask = |collectives, transport: &Transport| {
            let rank = RankArguments {
                collectives,
                ..RankArguments::without_preloads()
            };
            let program = Path::new("/no/program");
            library(&rank, &Preloading::trial(transport, folder.path(), program))
        };
        let (native, weft) = (Transport::Native, Transport::Weft);
        assert_eq!(ask(Collectives::Mpi, &weft).unwrap(), None);
        assert_eq!(ask(Collectives::Auto, &weft).unwrap(), None, "not there");
        let missing = ask(Collectives::Weft, &weft).unwrap_err();
        assert!(missing.to_string().contains(FILE_NAME), "{missing}");
        let path = folder.path().join(FILE_NAME);
        std::fs::write(&path, "").unwrap();
        for (collectives, told) in [(Collectives::Auto, "auto:4"), (Collectives::Weft, "weft:4")] {
            let found = ask(collectives, &weft).unwrap().unwrap();
            assert_eq!(
                (found.path, found.variable),
                (path.clone(), Some((ASKED, told.into())))
            );
        }
        assert_eq!(ask(Collectives::Auto, &native).unwrap(), None);
        let plain = RankArguments {
            collectives: Collectives::Auto,
            plain: true,
            ..RankArguments::without_preloads()
        };
        let job = Preloading::trial(&weft, folder.path(), Path::new("/no/program"));
        assert_eq!(library(&plain, &job).unwrap(), None, "plain");
        assert!(matches!(
            ask(Collectives::Weft, &native),
            Err(Fault::Usage(_))
        ));
    }

    #[test]
    fn why_a_program_keeps_the_collectives_of_its_mpi_is_told_where_weft_would_have_served_them() {
        const MAIN: &str = "int main(void) { return 0; }\n";
        let folder = tempfile::tempdir().unwrap();
        let fixed = cc(folder.path(), "static", MAIN, &["-static"]);
        let alone = cc(folder.path(), "static-pie", MAIN, &["-static-pie"]);
        let setuid = cc(folder.path(), "setuid", MAIN, &[]);
        let usual = cc(folder.path(), "usual", MAIN, &[]);
        let soname = ["-shared", "-fPIC", "-Wl,-soname,libasan.so.8"];
        let sanitizer = cc(folder.path(), "libasan.so.8", "", &soname);
        let needed = ["-Wl,--no-as-needed", sanitizer.to_str().unwrap()];
        let sanitized = cc(folder.path(), "sanitized", MAIN, &needed);
        let mode = std::fs::Permissions::from_mode(0o4755);
        std::fs::set_permissions(&setuid, mode).unwrap();
        let with = |collectives, plain| RankArguments {
            collectives,
            plain,
            ..RankArguments::without_preloads()
        };
        let auto = with(Collectives::Auto, false);
        let told = |program: &Path| note(&auto, &Transport::Weft, program, Some(2));
        for (program, why) in [
            (&fixed, "is a static program"),
            (&alone, "is a static program"),
            (&setuid, "is setuid or setgid"),
            (
                &sanitized,
                "the address sanitizer, which must be loaded before",
            ),
        ] {
            let note = told(program).unwrap();
            assert!(
                note.contains(why) && note.contains("; Weft carries out none"),
                "{note}"
            );
        }
        for program in [&usual, Path::new("/no/program")] {
            assert_eq!(told(program), None);
        }
        assert_eq!(note(&auto, &Transport::Native, &fixed, Some(2)), None);
        for ranks in [None, Some(1)] {
            assert_eq!(note(&auto, &Transport::Weft, &fixed, ranks), None);
        }
        for rank in [with(Collectives::Mpi, false), with(Collectives::Auto, true)] {
            assert_eq!(note(&rank, &Transport::Weft, &fixed, Some(2)), None);
        }
    }
}
