// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `weft run` gives to its ranks, for ranks that another launcher starts: the same settings,
//! from the same place.
//!
//! Called by `exec.rs` and `env.rs`; takes from `transport.rs` the part that is for the ranks.

use nix::unistd::Pid;

use crate::calls::Calls;
use crate::choose::Chosen;
use crate::discover::Installation;
use crate::environment::Environment;
use crate::fault::Fault;
use crate::mpi_choice::MpiChoice;
use crate::preload::{self, Preloading};
use crate::program::Program;
use crate::rank_arguments::RankArguments;
use crate::rank_environment::RankProgram;
use crate::started::Started;
use crate::transport::{self, Shape, Transport, openmpi_rules};
use crate::{
    collectives, inject_size, known_problems, launcher_process, pmi, preloads, provider, rank_mpi,
    sched_yield,
};

/// Where a process is: in a job that a launcher has started, or in none.
#[derive(Debug)]
pub struct Place {
    /// The rank, as its launcher tells it.
    pub started: Option<Started>,
    /// The launcher's process on this host.
    launcher: Option<Pid>,
}

impl Place {
    /// Where this process is.
    ///
    /// # Errors
    /// `Fault::Usage` where a launcher's variable holds no number.
    pub fn of_this_process() -> Result<Self, Fault> {
        let started = Started::of_this_process()?;
        let launcher = started
            .as_ref()
            .map(|rank| launcher_process::launcher(rank.variable));
        Ok(Self { started, launcher })
    }

    /// The launcher's process on this host; `None` where there is no launcher.
    #[must_use]
    pub(crate) fn launcher(&self) -> Option<Pid> {
        self.launcher
    }

    /// The MPI of the program.
    ///
    /// # Errors
    /// As [`rank_mpi::of`], and `Fault::Mismatch` where that MPI does not understand the launcher.
    pub fn mpi(&self, asked: &MpiChoice, program: &Program) -> Result<Chosen, Fault> {
        let folder = self.launcher.and_then(launcher_process::folder_of);
        let starter = self.started.as_ref().map(|rank| rank.by);
        let chosen = rank_mpi::of(asked, program, starter, folder.as_deref())?;
        if let Some(started) = &self.started {
            pmi::check(&chosen.installation, started)?;
        }
        Ok(chosen)
    }

    /// How it stands among the ranks; alone on its host where no launcher says otherwise.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let started = self.started.as_ref();
        Standing {
            local_ranks: started.and_then(|rank| rank.local_size).unwrap_or(1),
            cores: self.launcher.map_or(1, launcher_process::cores_of),
            spread: started.is_some_and(Started::is_spread),
            ranks: started.and_then(|rank| rank.size),
        }
    }
}

/// How a rank stands among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Ranks on this host.
    pub local_ranks: u32,
    /// Cores of this host that they share.
    pub cores: u32,
    /// Whether there are ranks on other hosts.
    pub spread: bool,
    /// Ranks of the job, if its launcher says so.
    pub ranks: Option<u32>,
}

/// The environment of a rank.
#[derive(Debug)]
pub struct Ready {
    /// What is changed in it.
    pub environment: Environment,
    /// What the user must know of this program under this MPI.
    pub caution: Option<String>,
    /// Why nothing can be preloaded, where that would have been.
    pub note: Option<String>,
}

/// Puts it together.
///
/// # Errors
/// `Fault::ProviderMissing`, and as `transport::settings`, `preloads::libraries` and
/// [`RankProgram::complete`].
pub fn ready(
    rank: &RankArguments,
    program: &Program,
    mpi: &Installation,
    standing: Standing,
) -> Result<Ready, Fault> {
    let folder = provider::find_for_this_process()?;
    let weft = Transport::Weft;
    let preloading = Preloading {
        transport: &weft,
        provider_folder: Some(&folder),
        program: &program.path,
        family: mpi.family,
        libmpi: mpi.libmpi.as_deref(),
        ranks: standing.ranks,
    };
    let mut libraries = preloads::libraries(rank, &preloading)?;
    let shape = Shape {
        ranks: standing.local_ranks,
        cores: standing.cores,
        spread: standing.spread,
        // What follows is for the launcher, which has done its part.
        bound: false,
        label: false,
        root: false,
        own_command: None,
        provider_folder: Some(folder),
        shared_core_rules: openmpi_rules::wanted(rank, &weft),
        calls: Calls::of(program),
    };
    let mut environment = transport::settings(mpi, &weft, &shape)?.ranks;
    if standing.spread {
        inject_size::add(
            &mut environment,
            mpi.family,
            &weft,
            standing.local_ranks,
            rank,
        );
    }
    let library_path = std::env::var_os("LD_LIBRARY_PATH");
    let program = RankProgram {
        program,
        variables: &rank.variables,
        library_path: library_path.as_deref(),
    };
    program.complete(&mut environment, mpi)?;
    sched_yield::leave_out(&mut libraries, rank, &shape);
    preload::add(&mut environment, &libraries, preload::inherited());
    Ok(Ready {
        caution: known_problems::of(mpi, &weft, &shape),
        note: collectives::note(rank, &weft, &program.program.path, standing.ranks),
        environment,
    })
}
