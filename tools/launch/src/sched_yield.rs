// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `--yield`: whether the ranks preload libweft-yield.so, which replaces sched_yield(2).
//!
//! Called by `preloads.rs`, `job.rs` and `ranks.rs`. docs/yield.md says why.

use std::path::PathBuf;

use crate::family::Family;
use crate::fault::Fault;
use crate::heap;
use crate::preload::{self, Library, Preloading};
use crate::provider;
use crate::rank_arguments::{RankArguments, Yield};
use crate::transport::{Shape, Transport};

/// The file name of the library; it lies beside the provider.
pub const FILE_NAME: &str = "libweft-yield.so";

/// The library that `--yield` asks for, if it asks for one of this MPI over this transport. Whether
/// the ranks have cores of their own is known later: see [`leave_out`].
///
/// # Errors
/// With `--yield pause`: as `provider::find_for_this_process` and `preload::find`. With `auto` such
/// a job yields as ever.
pub fn library(rank: &RankArguments, job: &Preloading<'_>) -> Result<Option<Library>, Fault> {
    let path = match rank.yielding {
        Yield::System => None,
        Yield::Pause => Some(find(job)?),
        Yield::Auto if rank.plain || *job.transport != Transport::Weft => None,
        // Open MPI calls it only where it was told that ranks share cores.
        Yield::Auto if job.family == Family::OpenMpi || heap::has_allocator(job.program) => None,
        Yield::Auto => find(job).ok(),
    };
    Ok(path.map(|path| Library {
        path,
        variable: None,
    }))
}

/// It serves every transport, and so its folder need not be known yet.
fn find(job: &Preloading<'_>) -> Result<PathBuf, Fault> {
    let folder = match job.provider_folder {
        Some(folder) => folder.to_owned(),
        None => provider::find_for_this_process()?,
    };
    preload::find("--yield pause", FILE_NAME, &folder, job.program)
}

/// Takes the library out of the list where ranks share cores, unless the user says so.
pub fn leave_out(libraries: &mut Vec<Library>, rank: &RankArguments, shape: &Shape) {
    if rank.yielding != Yield::Pause && shape.ranks > shape.cores {
        libraries.retain(|library| !library.path.ends_with(FILE_NAME));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn asked(yielding: Yield, plain: bool) -> RankArguments {
        RankArguments {
            yielding,
            plain,
            ..RankArguments::without_preloads()
        }
    }

    fn shape(ranks: u32, cores: u32) -> Shape {
        Shape {
            cores,
            bound: false,
            ..Shape::on_two_cores(ranks)
        }
    }

    #[test]
    fn ranks_that_share_cores_yield_truly_unless_the_user_says_otherwise() {
        for (yielding, ranks, count) in [
            (Yield::Auto, 2, 1),
            (Yield::Auto, 3, 0),
            (Yield::Pause, 3, 1),
        ] {
            let mut libraries = vec![Library {
                path: Path::new("/w").join(FILE_NAME),
                variable: None,
            }];
            leave_out(&mut libraries, &asked(yielding, false), &shape(ranks, 2));
            assert_eq!(libraries.len(), count, "{yielding:?} {ranks}");
        }
    }

    #[test]
    fn nobody_gets_it_who_did_not_ask_and_has_no_use_for_it() {
        let nowhere = Path::new("/no/program");
        let is_none = |yielding, plain, transport: &Transport, family| {
            let job = Preloading {
                family,
                ..Preloading::trial(transport, nowhere, nowhere)
            };
            library(&asked(yielding, plain), &job).unwrap().is_none()
        };
        let (weft, native) = (Transport::Weft, Transport::Native);
        assert!(is_none(Yield::System, false, &weft, Family::Mpich));
        assert!(is_none(Yield::Auto, true, &weft, Family::Mpich));
        assert!(is_none(Yield::Auto, false, &native, Family::Mpich));
        assert!(is_none(Yield::Auto, false, &weft, Family::OpenMpi));
    }
}
