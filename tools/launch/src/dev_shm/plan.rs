// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a job of `weft run` does about `/dev/shm`: decided before it starts.
//!
//! Called by `job.rs`.

use std::path::PathBuf;

use weft_job::size::ShmSize;

use super::{probe, refused, room, subcommand, warn};
use crate::arguments::Arguments;
use crate::command::Launch;
use crate::discover::Installation;
use crate::fault::Fault;
use crate::transport::{Settings, Transport};

/// How the ranks come to their `/dev/shm`.
#[derive(Debug)]
pub(crate) enum Plan {
    /// They take the one that there is here.
    Present,
    /// They take those that there are on their hosts.
    PresentElsewhere,
    /// The launcher is started inside of one of this size.
    Around(ShmSize, PathBuf),
    /// On other hosts, too: each rank enters the one of its host.
    InRanks(ShmSize, PathBuf),
}

impl Plan {
    /// What was asked for, if this host allows it; other hosts are asked by their node agents, and
    /// nobody in a dry run.
    ///
    /// # Errors
    /// `Fault::Limit`: why this host does not, unless less will do.
    pub(crate) fn of(arguments: &Arguments, is_elsewhere: bool) -> Result<Self, Fault> {
        let Some(size) = arguments.shm_size else {
            return Ok(if is_elsewhere {
                Self::PresentElsewhere
            } else {
                Self::Present
            });
        };
        let weft = std::env::current_exe().map_err(Fault::system("finding the path of weft"))?;
        if is_elsewhere {
            return Ok(Self::InRanks(size, weft));
        }
        let allowed = if arguments.dry_run {
            Ok(())
        } else {
            probe(size)
        };
        match allowed {
            Ok(()) => Ok(Self::Around(size, weft)),
            Err(why) if size.is_best_effort => {
                warn(size, &why);
                Ok(Self::Present)
            }
            Err(why) => Err(refused(size, &why)),
        }
    }

    /// The size that node agents are to try.
    pub(crate) fn size_elsewhere(&self) -> Option<ShmSize> {
        match self {
            Self::InRanks(size, _) => Some(*size),
            Self::Present | Self::PresentElsewhere | Self::Around(..) => None,
        }
    }

    /// What this host has allowed, where a size was asked for.
    pub(crate) fn size(&self) -> Option<ShmSize> {
        match self {
            Self::Around(size, _) | Self::InRanks(size, _) => Some(*size),
            Self::Present | Self::PresentElsewhere => None,
        }
    }

    /// Has the ranks enter, before anything else that starts them.
    pub(crate) fn before_ranks(&self, settings: &mut Settings) {
        if let Self::InRanks(size, weft) = self {
            let words = subcommand::before(weft, subcommand::JOIN, *size);
            settings.before_program.splice(..0, words);
        }
    }

    /// Has the launcher start inside.
    pub(crate) fn before_launcher(&self, launch: &mut Launch) {
        if let Self::Around(size, weft) = self {
            launch.start_by(subcommand::before(weft, subcommand::OWN, *size));
        }
    }

    /// Which size to ask for, where the one that there is here may be too small.
    pub(crate) fn advice(
        &self,
        mpi: &Installation,
        transport: &Transport,
        ranks: u32,
    ) -> Option<String> {
        match self {
            Self::Present => room::advice(mpi, transport, ranks),
            Self::PresentElsewhere | Self::Around(..) | Self::InRanks(..) => None,
        }
    }
}
