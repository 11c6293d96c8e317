// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Benchmarks from the command line to the exit code.
//!
//! Called by `weft bench`; calls options, weft-mpi, the benchmark for each size through pace, and
//! format. Every rank runs the same steps; rank 0 prints.

use crate::benchmark::Benchmark;
use crate::description::{Description, Family, Helpers, Ranks};
use crate::format::{self, Job};
use crate::options::{self, Settings};
use crate::pace::Pace;
use crate::timing::Repetitions;
use crate::{collective, one_sided, pt2pt, startup};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use weft_mpi::{Communicator, Result, Session, ThreadLevel};
use weft_ranks::refusal::refuse;
use weft_ranks::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, say};

/// Runs benchmarks one after the other in this job, with the same arguments; returns the exit code,
/// the worst of them.
pub fn run(descriptions: &[&'static Description], arguments: Vec<OsString>) -> u8 {
    let mut checked = Vec::new();
    for description in descriptions {
        match options::parse(description, arguments.clone()) {
            Ok(settings) => checked.push((*description, settings)),
            Err(refusal) => return refuse(refusal),
        }
    }
    let name = descriptions.first().map_or("", |first| first.name);
    let session = match initialise(descriptions) {
        Ok(session) => session,
        Err(error) => {
            say!("weft bench {name}: {error}");
            return EXIT_FAILED;
        }
    };
    let mut code = EXIT_OK;
    for (description, settings) in &checked {
        match measure_all(&session, description, settings) {
            Ok(own) => code = code.max(own),
            Err(error) => give_up(&session, description, &error),
        }
    }
    match session.finalize() {
        Ok(()) => code,
        Err(error) => {
            say!("weft bench {name}: {error}");
            EXIT_FAILED
        }
    }
}

fn initialise(descriptions: &[&'static Description]) -> Result<Session> {
    let threads = Some(Helpers::Threads);
    if descriptions.iter().any(|one| one.helpers() == threads) {
        return Session::init_thread(ThreadLevel::Multiple).map(|(session, _)| session);
    }
    Session::init()
}

/// Ends the job. Called before any memory that MPI knows is given back, because giving back can
/// wait for other ranks.
fn give_up(session: &Session, description: &Description, reason: &dyn Display) -> ! {
    say!("weft bench {}: {reason}", description.name);
    session.abort(EXIT_FAILED.into())
}

fn measure_all(session: &Session, description: &Description, settings: &Settings) -> Result<u8> {
    let world = Communicator::world(session)?;
    if let Some(reason) = misfit(description, settings, world.size()) {
        refuse_ranks(session, description, &world, &reason);
        return Ok(EXIT_USAGE);
    }
    let run = Run {
        session,
        description,
        first: world.rank() == 0,
    };
    if let Family::Startup(which) = description.family {
        let text = startup::text(which, settings, &world, session.init_duration())?;
        run.print(&text);
        return Ok(EXIT_OK);
    }
    for warning in settings.warnings.iter().filter(|_| run.first) {
        say!("weft bench {}: {warning}", description.name);
    }
    let world = if description.is_between_neighbours() {
        let grid = settings.special.neighbours;
        let neighbours = grid.of(world.rank(), world.size());
        weft_mpi::graph(&world, &neighbours, &neighbours)?
    } else {
        world
    };
    run.print(&format::title(
        description,
        settings,
        &run.job(&world, settings),
    ));
    let mut all_passed = true;
    for kind in &settings.kinds {
        all_passed &= run.measure_kind(&world, &settings.with(*kind))?;
    }
    Ok(if all_passed { EXIT_OK } else { EXIT_FAILED })
}

fn refuse_ranks(
    session: &Session,
    description: &Description,
    world: &Communicator<'_>,
    reason: &str,
) {
    if world.rank() == 0 {
        say!("weft bench {}: {reason}", description.name);
    }
    if world.size() == 1 {
        let library = session.library().path().display();
        say!(
            "The MPI is {library}. If the launcher belongs to another one, name that one's with \
             WEFT_MPI_LIBRARY."
        );
    }
}

/// Makes the benchmark with all the memory it needs.
fn make<'a>(
    description: &Description,
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    match description.family {
        Family::PointToPoint(which) => pt2pt::make(world, settings, which),
        Family::Collective(which, form) => collective::make(world, settings, which, form),
        Family::OneSided(which) => Ok(one_sided::make(world, settings, which)),
        Family::Startup(_) => unreachable!("measure_all has ended with it"),
    }
}

/// A benchmark that runs on this rank.
struct Run<'a> {
    session: &'a Session,
    description: &'a Description,
    /// Whether this is rank 0, which prints.
    first: bool,
}

impl Run<'_> {
    /// Measures every size with one type of elements; whether every check passed.
    fn measure_kind(&self, world: &Communicator<'_>, settings: &Settings) -> Result<bool> {
        let description = self.description;
        let sizes = sizes_within_memory(description, settings, world)?;
        let mut benchmark = make(description, world, settings)?;
        let job = self.job(world, settings);
        self.print(&format::columns(description, settings, &job));
        let mut all_passed = true;
        let messages = description.messages(settings.window, job.pairs);
        let mut pace = Pace::new(settings.repeats.longest_seconds, messages);
        for size_bytes in sizes {
            let (iterations, warmup) = settings.repeats(description, size_bytes);
            let repetitions = Repetitions {
                iterations,
                warmup,
                validation_warmup: settings.repeats.validation_warmup,
                validate: settings.shown.validate,
                single: settings.shown.full || !settings.shown.tails.is_empty(),
            };
            let row = match pace.measure(world, benchmark.as_mut(), size_bytes, repetitions) {
                Ok(row) => row,
                Err(error) => give_up(self.session, description, &error),
            };
            all_passed &= row.passed != Some(false);
            self.print(&format::row(description, &settings.shown, &row));
        }
        Ok(all_passed)
    }

    fn job(&self, world: &Communicator<'_>, settings: &Settings) -> Job {
        Job {
            ranks: world.size(),
            pairs: settings.special.pairs.unwrap_or(world.size() / 2),
            mpi: self.session.library_version(),
            library: self.session.library().path().display().to_string(),
            node: self.session.processor_name(),
        }
    }

    /// On rank 0, prints and flushes: a reader at the other end of a pipe sees each row when it is
    /// measured. Output that cannot be written ends the job; a reader that went away has what it
    /// wanted and is no reason to break the run off.
    fn print(&self, text: &str) {
        if !self.first {
            return;
        }
        match write_out(&mut std::io::stdout().lock(), text) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                let reason =
                    format!("stdout cannot be written: {error}. Rows printed before are complete");
                give_up(self.session, self.description, &reason)
            }
            _ => {}
        }
    }
}

fn write_out(stdout: &mut impl Write, text: &str) -> std::io::Result<()> {
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Why this number of ranks cannot run the benchmark.
fn misfit(description: &Description, settings: &Settings, ranks: usize) -> Option<String> {
    if description.ranks == Ranks::Two && ranks != 2 {
        return Some(format!(
            "needs exactly 2 ranks, the job has {ranks}; start it with -n 2"
        ));
    }
    if ranks < 2 && description.ranks != Ranks::Any {
        return Some(format!(
            "needs at least 2 ranks, the job has {ranks}; start it with -n 2 or more"
        ));
    }
    if let Some(pairs) = settings.special.pairs.filter(|pairs| pairs * 2 > ranks) {
        return Some(format!(
            "-p {pairs}: needs {} ranks, the job has {ranks}",
            pairs * 2
        ));
    }
    match settings.root {
        options::Root::Fixed(root) if root >= ranks => Some(format!(
            "-k {root}: must be below the number of ranks, {ranks}"
        )),
        _ => None,
    }
}

/// The sizes, without those for which a collective would exceed -M.
fn sizes_within_memory(
    description: &Description,
    settings: &Settings,
    world: &Communicator<'_>,
) -> Result<Vec<usize>> {
    let mut sizes = settings.sizes(description);
    let Some((which, _)) = description.collective() else {
        return Ok(sizes);
    };
    let limit = collective::exchange::limit_bytes(world, settings, which)?;
    let wanted = sizes.len();
    sizes.retain(|size| *size <= limit);
    if sizes.len() < wanted && world.rank() == 0 {
        say!(
            "weft bench {}: -M {} allows messages of at most {limit} bytes with {} ranks; larger \
             sizes are left out",
            description.name,
            settings.memory_limit_bytes,
            world.size()
        );
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_is_an_error_and_not_silence() {
        let mut full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("Linux has it");
        let error = write_out(&mut full, "1 0.25\n").expect_err("no room");
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }
}
