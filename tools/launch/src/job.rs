// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Everything that is decided before the job starts: ranks and hosts, the program, its MPI, the
//! launcher's whole command.
//!
//! Called by `lib.rs` first, and calls nearly every other module, in the order in which that file
//! lists them. With `--dry-run` no other host is spoken to.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::agent_protocol::{self, Begin};
use crate::arguments::{Arguments, CoreBinding};
use crate::calls::Calls;
use crate::choose::{self, Chosen};
use crate::command::{Launch, Request};
use crate::dev_shm::plan::Plan;
use crate::discover::{self, Candidate, Installation, Surroundings};
use crate::fault::Fault;
use crate::inject_size;
use crate::launcher_library::LauncherLibrary;
use crate::machines::{self, Place, Room};
use crate::mounts;
use crate::mounts::holder::Holder;
use crate::node_agents::NodeAgents;
use crate::placement::Share;
use crate::preload::{self, Library, Preloading};
use crate::program::{self, Program};
use crate::rank_environment::RankProgram;
use crate::remote_shell::RemoteShell;
use crate::several_hosts::{self, Spread};
use crate::stderr::say;
use crate::transport::{self, Settings, Shape, Transport, openmpi_rules};
use crate::{
    collectives, cores, job_key, known_problems, leftovers, limits, preloads, provider, report,
    sched_yield,
};

/// What a program of ours has to say against its arguments before it is started.
pub type Check = fn(&[OsString]) -> Option<String>;

/// A job that is ready to start.
pub(crate) struct Job {
    /// The MPI that runs it.
    pub chosen: Chosen,
    /// The launcher's command.
    pub launch: Launch,
    /// What the MPI was told of the job.
    pub shape: Shape,
    /// Ranks in all.
    pub ranks: u32,
    /// What the launcher preloads.
    pub launcher_library: Option<LauncherLibrary>,
    /// The named hosts that are one machine, if there are such.
    pub one_machine: Vec<String>,
    /// The socket for reports, the same name on each host.
    pub report_name: String,
    /// What the user must know of this program under this MPI.
    pub caution: Option<String>,
    /// What else to tell at the start: which `--shm-size` to ask for, where `/dev/shm` may be too
    /// small; and why nothing can be preloaded.
    pub notes: Vec<String>,
    /// The mark of its processes.
    pub mark: String,
    /// Where hosts were named: the ranks of each.
    spread: Option<Spread>,
    /// The node agents on them; `None` on this machine alone, and in a dry run.
    pub agents: Option<NodeAgents>,
    /// What is mounted for it on this machine, where all ranks run here.
    pub holder: Option<Holder>,
}

impl Job {
    /// The named hosts with their ranks.
    pub(crate) fn hosts(&self) -> Vec<(String, u32)> {
        let shares = self.spread.iter().flat_map(|spread| &spread.shares);
        shares
            .map(|share| (share.host.clone(), share.ranks))
            .collect()
    }
}

/// Decides, and starts the node agents on other hosts.
///
/// # Errors
/// Whatever keeps the job from starting.
// structure: allow function-length because it is the list of all decisions, in their order
pub(crate) fn prepare(arguments: &Arguments, check: Check) -> Result<Job, Fault> {
    let own_cores = cores::allowed().usable_count;
    let shares = checked(arguments, own_cores)?;
    let (name, rest) = program::split(&arguments.program)?;
    let program = inspected(name, rest, check)?;
    let chosen = chosen_mpi(arguments, &program)?;
    let mpi = &chosen.installation;
    let over_weft = arguments.transport == Transport::Weft;
    let provider_folder = over_weft
        .then(provider::find_for_this_process)
        .transpose()?;
    let (rank, folder) = (&arguments.rank, provider_folder.as_deref());
    let ranks = all_ranks(shares.as_deref(), arguments, own_cores)?;
    let mut libraries = preloaded(arguments, folder, &program.path, mpi, ranks)?;
    let no_random = "taking random bytes";
    let mark = report::random_hex().map_err(Fault::system(no_random))?;
    let report_name = report::random_name().map_err(Fault::system(no_random))?;
    let spread = spread_over(shares, arguments, mpi)?;
    let shm = Plan::of(arguments, spread.is_some())?;
    let hosts = spread.as_ref().map(|spread| spread.hosts());
    let mounts = mounts::plan::Plan::of(arguments, shm.size(), &mark, hosts)?;
    let variables = mounts
        .as_ref()
        .map(|mounts| mounts.variables_elsewhere(&arguments.rank.variables))
        .transpose()?;
    let begin = || Begin {
        weft: env!("CARGO_PKG_VERSION").to_owned(),
        job: mark.clone(),
        report: over_weft.then(|| report_name.clone()),
        files: needed_files(&program, mpi, folder, &libraries),
        leftovers: leftovers::prefixes(mpi.family),
        patience_seconds: arguments.hosts.host_timeout,
        shm_size: shm.size_elsewhere(),
        mounts: mounts.as_ref().and_then(mounts::plan::Plan::elsewhere),
        variables: variables.clone().unwrap_or_default(),
    };
    let spoken_to = spread.as_ref().filter(|_| !arguments.dry_run);
    let start = |spread: &Spread| {
        let (here, others) = spread
            .hosts()
            .into_iter()
            .partition(|host| is_this_machine(host));
        NodeAgents::start(&spread.shell, others, here, &begin())
    };
    let agents = spoken_to.map(start).transpose()?;
    let (shape, one_machine) = shape_of(arguments, spread.as_ref(), agents.as_ref(), own_cores)?;
    let shape = Shape {
        provider_folder,
        calls: Calls::of(&program),
        ..shape
    };
    let mut settings = settings(mpi, arguments, &shape, spread.as_ref())?;
    match &mounts {
        Some(mounts) => mounts.before_ranks(&mut settings),
        None => shm.before_ranks(&mut settings),
    }
    let ranks = spread.as_ref().map_or(shape.ranks, Spread::ranks);
    let library_path = std::env::var_os("LD_LIBRARY_PATH");
    let request = Request {
        rank: RankProgram {
            program: &program,
            variables: &rank.variables,
            library_path: library_path.as_deref(),
        },
        arguments: rest,
        ranks,
        elsewhere: (spread.is_some()).then(|| set_later(agents.is_some(), arguments)),
    };
    let mut launch = Launch::compose(mpi, settings, &request)?;
    sched_yield::leave_out(&mut libraries, rank, &shape);
    let of_launcher = || {
        let several_hosts = spread.is_some();
        LauncherLibrary::of(
            &program.path,
            mpi.family,
            &arguments.transport,
            several_hosts,
        )
    };
    let launcher_library = (!arguments.dry_run).then(of_launcher).flatten();
    let only_launchers = launcher_library.as_ref().map(LauncherLibrary::variables);
    let inherited = preload::inherited();
    preload::into_command(
        &mut launch,
        &libraries,
        rest.len(),
        inherited,
        &only_launchers.unwrap_or_default(),
    );
    let holder = match &mounts {
        Some(mounts) => mounts.begin(&mut launch, arguments.dry_run)?,
        None => {
            shm.before_launcher(&mut launch);
            None
        }
    };
    Ok(Job {
        caution: known_problems::of(mpi, &arguments.transport, &shape),
        notes: [
            shm.advice(mpi, &arguments.transport, ranks),
            collectives::note(rank, &arguments.transport, &program.path, Some(ranks)),
        ]
        .into_iter()
        .flatten()
        .collect(),
        chosen,
        launch,
        shape,
        ranks,
        launcher_library,
        one_machine,
        report_name,
        mark,
        spread,
        agents,
        holder,
    })
}

/// What the ranks preload, as far as the options, the program and the MPI say.
fn preloaded(
    arguments: &Arguments,
    provider_folder: Option<&Path>,
    program: &Path,
    mpi: &Installation,
    ranks: u32,
) -> Result<Vec<Library>, Fault> {
    let job = Preloading {
        transport: &arguments.transport,
        provider_folder,
        program,
        family: mpi.family,
        libmpi: mpi.libmpi.as_deref(),
        ranks: Some(ranks),
    };
    preloads::libraries(&arguments.rank, &job)
}

/// Ranks on all hosts.
fn all_ranks(
    shares: Option<&[Share]>,
    arguments: &Arguments,
    own_cores: u32,
) -> Result<u32, Fault> {
    match shares {
        Some(shares) => Ok(shares.iter().map(|share| share.ranks).sum()),
        None => arguments.rank_count(own_cores),
    }
}

/// What the MPI and its launcher are told.
fn settings(
    mpi: &Installation,
    arguments: &Arguments,
    shape: &Shape,
    spread: Option<&Spread>,
) -> Result<Settings, Fault> {
    let (transport, rank) = (&arguments.transport, &arguments.rank);
    let mut settings = transport::settings(mpi, transport, shape)?;
    limits::spare_files(&mut settings, mpi);
    if let Some(spread) = spread {
        several_hosts::add(&mut settings, mpi, spread);
        let most = spread.most();
        inject_size::add(&mut settings.ranks, mpi.family, transport, most, rank);
    }
    Ok(settings)
}

/// The MPI that runs the program.
fn chosen_mpi(arguments: &Arguments, program: &Program) -> Result<Chosen, Fault> {
    let surroundings = Surroundings::of_this_process();
    if !arguments.quiet {
        for prefix in surroundings.empty_prefixes() {
            say!(
                "weft: note: WEFT_MPI_PATH names {}, which has no bin/mpiexec",
                prefix.display()
            );
        }
    }
    let all = candidates(arguments, program, &surroundings);
    let wants_libfabric = arguments.transport.provider().is_some();
    let among = |candidates: &[Candidate]| {
        let here = discover::installations(candidates);
        choose::choose(&arguments.rank.mpi, program, &here, wants_libfabric)
    };
    match among(&choose::around_library(program, &all)) {
        Ok(chosen) if choose::is_owner(&chosen, program) => Ok(chosen),
        _ => among(&all),
    }
}

/// Looks at the program; one of ours is asked whether it can do with its arguments.
fn inspected(name: &OsStr, arguments: &[OsString], check: Check) -> Result<Program, Fault> {
    let program = program::inspect_here(name)?;
    match check(arguments).filter(|_| is_this_program(&program.path)) {
        Some(text) => Err(Fault::Words(text)),
        None => Ok(program),
    }
}

fn is_this_program(path: &Path) -> bool {
    let own = std::env::current_exe().and_then(std::fs::canonicalize);
    matches!((path.canonicalize(), own), (Ok(path), Ok(own)) if path == own)
}

/// What can be refused before anything is looked at; returns the ranks of each host where hosts
/// were named.
fn checked(arguments: &Arguments, own_cores: u32) -> Result<Option<Vec<Share>>, Fault> {
    arguments.time_limit()?;
    arguments.host_patience()?;
    let shares = arguments.shares()?;
    if shares.is_none() {
        let ranks = arguments.rank_count(own_cores)?;
        arguments.check_ranks_per_core(ranks, own_cores)?;
        limits::check_processes(ranks)?;
        arguments.bound(ranks, own_cores)?;
    }
    Ok(shares)
}

/// Variables that `lib.rs` sets when the job starts.
fn set_later(has_agents: bool, arguments: &Arguments) -> &'static [&'static str] {
    match (has_agents, &arguments.transport) {
        (false, _) => &[],
        (true, Transport::Weft) if job_key::is_needed(true, &arguments.rank.variables) => {
            &[agent_protocol::MARK, report::VARIABLE, job_key::VARIABLE]
        }
        (true, Transport::Weft) => &[agent_protocol::MARK, report::VARIABLE],
        (true, _) => &[agent_protocol::MARK],
    }
}

fn spread_over(
    shares: Option<Vec<Share>>,
    arguments: &Arguments,
    mpi: &Installation,
) -> Result<Option<Spread>, Fault> {
    let Some(shares) = shares else {
        if let Some(launcher) = &arguments.hosts.launcher {
            return Err(Fault::Usage(format!(
                "--launcher {} is for other hosts; name them with --hosts or --hostfile",
                launcher.to_string_lossy()
            )));
        }
        if let Some(interface) = &arguments.hosts.iface {
            return Err(Fault::Usage(format!(
                "--iface {interface} is for traffic between hosts; name them with --hosts or \
                 --hostfile"
            )));
        }
        return Ok(None);
    };
    let shell = RemoteShell::choose(
        arguments.hosts.launcher.as_deref(),
        mpi.family,
        |name| std::env::var_os(name),
        std::env::var_os("PATH").as_deref(),
    )?;
    Ok(Some(Spread {
        shares,
        shell,
        interface: arguments.hosts.iface.clone(),
    }))
}

/// What the MPI must know of the job, but for the provider and the program, and the hosts that
/// are one machine. In a dry run the other hosts are taken to have as many cores as this machine.
fn shape_of(
    arguments: &Arguments,
    spread: Option<&Spread>,
    agents: Option<&NodeAgents>,
    own_cores: u32,
) -> Result<(Shape, Vec<String>), Fault> {
    let room = match spread {
        None => Room {
            ranks: arguments.rank_count(own_cores)?,
            cores: own_cores,
            one_machine: Vec::new(),
        },
        Some(spread) => machines::room(&places(spread, agents, own_cores)),
    };
    arguments.check_ranks_per_core(room.ranks, room.cores)?;
    let shape = Shape {
        ranks: room.ranks,
        cores: room.cores,
        spread: spread.is_some(),
        bound: room.one_machine.is_empty() && arguments.bound(room.ranks, room.cores)?,
        label: arguments.label,
        root: nix::unistd::geteuid().is_root(),
        shared_core_rules: openmpi_rules::wanted(&arguments.rank, &arguments.transport),
        provider_folder: None,
        calls: Calls::default(),
        own_command: std::env::current_exe().ok(),
    };
    if arguments.bind == CoreBinding::Core && !shape.bound {
        return Err(Fault::Usage(format!(
            "--bind core: the hosts {} are one machine, and each MPI would bind the first rank of \
             every host to the same core; use --bind auto or none",
            room.one_machine.join(" and ")
        )));
    }
    Ok((shape, room.one_machine))
}

/// The hosts as their node agents found them; this machine, and every host in a dry run, as this
/// process finds itself.
fn places(spread: &Spread, agents: Option<&NodeAgents>, own_cores: u32) -> Vec<Place> {
    let place = |share: &Share| {
        let found = agents.and_then(|agents| agents.found_on(&share.host));
        let is_own = is_this_machine(&share.host);
        let (usable, cores, boot) = match found {
            Some(ready) => (ready.cores, ready.core_names.clone(), ready.boot.clone()),
            None if is_own => (own_cores, cores::names(), cores::boot_id()),
            None => (own_cores, BTreeSet::new(), None),
        };
        Place {
            host: share.host.clone(),
            ranks: share.ranks,
            boot,
            usable,
            cores,
        }
    };
    spread.shares.iter().map(place).collect()
}

fn is_this_machine(name: &str) -> bool {
    let own = nix::unistd::gethostname().unwrap_or_default();
    let own = own.to_string_lossy();
    let first = |text: &str| text.split('.').next().unwrap_or_default().to_owned();
    let address = name.parse::<std::net::IpAddr>();
    match address {
        Ok(address) => address.is_loopback(),
        Err(_) => {
            name == "localhost"
                || name == own
                || (first(name) == first(&own) && !(name.contains('.') && own.contains('.')))
        }
    }
}

/// What every host must have, by absolute paths.
fn needed_files(
    program: &Program,
    mpi: &Installation,
    provider_folder: Option<&Path>,
    libraries: &[Library],
) -> Vec<PathBuf> {
    let daemons = mpi.mpiexec.parent().map(|folder| match mpi.family {
        crate::family::Family::OpenMpi if mpi.version.major >= 5 => folder.join("prted"),
        crate::family::Family::OpenMpi => folder.join("orted"),
        _ => folder.join("hydra_pmi_proxy"),
    });
    // A launcher that was found through a link may have its daemons elsewhere; it knows where, and
    // so nothing is asked for.
    let daemons = daemons.filter(|path| path.exists());
    let provider = provider_folder.map(|folder| folder.join(provider::FILE_NAME));
    [
        Some(program.path.clone()),
        mpi.libmpi.clone(),
        daemons,
        provider,
    ]
    .into_iter()
    .flatten()
    .chain(libraries.iter().map(|library| library.path.clone()))
    .filter_map(|path| std::path::absolute(path).ok())
    .collect()
}

/// The places to look in: the launcher that was named, the usual ones, and the one beside the
/// program's own libmpi.
fn candidates(
    arguments: &Arguments,
    program: &Program,
    surroundings: &Surroundings,
) -> Vec<Candidate> {
    let mut list: Vec<Candidate> = choose::named(&arguments.rank.mpi).into_iter().collect();
    list.extend(surroundings.candidates());
    list.extend(choose::natural(program));
    list
}
