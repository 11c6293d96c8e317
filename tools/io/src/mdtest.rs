// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench mdtest`: creates, stats, reads and removes many files and directories, with mdtest's
//! options and output.
//!
//! Called by lib. One run of a test:
//! - [`options`] (with [`table`]): the command line, checked, as a [`test::Test`]
//! - [`tree`]: the tree of folders, the items in it, and which task works on which
//! - [`phase`]: one iteration on all tasks, timed; [`items`]: one task's work
//! - [`figures`]: rates, and their spread over the iterations
//! - [`report`] with [`text`] and [`json`]: the output
//!
//! Written from mdtest's manual and from its published output; docs/mdtest.md lists what is offered
//! and what differs.

pub mod figures;
pub mod finished;
pub mod items;
pub mod json;
pub mod options;
pub mod phase;
pub mod report;
pub mod table;
pub mod test;
pub mod text;
pub mod tree;

use std::ffi::OsString;

use weft_mpi::{Communicator, Session};

use crate::ior::phase::find_place;
use phase::{Ended, Phase};
use report::Report;
use test::Test;
use weft_ranks::refusal::Failed;
use weft_ranks::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, say, session};

/// Runs `weft bench mdtest` with the arguments after `mdtest`; returns the exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    session::run_words("mdtest", &arguments, options::parse, run_all)
}

/// The test with each number of tasks that -f, -l and -s ask for.
fn run_all(session: &Session, test: &Test, words: &[String]) -> Result<u8, Failed> {
    let world = Communicator::world(session)?;
    let (first, last, step) = match test.run.tasks {
        (_, 0, _) => (world.size(), world.size(), 1),
        given => given,
    };
    if last > world.size() {
        if world.rank() == 0 {
            say!(
                "weft bench mdtest: -l is {last}, but the job has {} ranks; start it with as many, \
                 or make -l smaller",
                world.size()
            );
        }
        return Ok(EXIT_USAGE);
    }
    let nodes = find_place(&world)?.nodes;
    let mut report = Report::begin(&world, test, words, nodes)?;
    let mut code = EXIT_OK;
    for tasks in (first..=last).step_by(step) {
        let takes_part = world.rank() < tasks;
        let group = world.split(i32::from(takes_part), world.rank() as i32)?;
        if takes_part {
            code = code.max(repeat(&group, test, &mut report)?);
        }
        world.barrier()?;
        // Rank 0 takes part in all; what it found decides whether the others go on.
        let mut agreed = [code];
        world.bcast(&mut agreed, weft_mpi::Datatype::Byte, 0)?;
        code = agreed[0];
        if code != EXIT_OK {
            break;
        }
    }
    report.end(code != EXIT_OK)?;
    Ok(code)
}

/// All iterations with one number of tasks; answers the exit code, on which these tasks agree.
fn repeat(group: &Communicator<'_>, test: &Test, report: &mut Report) -> Result<u8, Failed> {
    let phase = Phase::prepare(group, test)?;
    report.begin_test(test, phase.place(), phase.items())?;
    let (mut wrong_files, mut code) = (0, EXIT_OK);
    for iteration in 0..test.run.iterations {
        match phase.iteration(iteration, &mut |row| report.row(iteration, row)) {
            Ok(wrong) => wrong_files += wrong,
            Err(Ended::Agreed) => {
                code = EXIT_FAILED;
                if group.rank() == 0 {
                    say!(
                        "weft bench mdtest: stopped in iteration {iteration}; the figures are \
                         those of the phases before, and what was made is still below {}",
                        test.roots.join(" and ")
                    );
                }
                break;
            }
            Err(Ended::Broken(failed)) => return Err(failed),
        }
    }
    if code == EXIT_OK {
        phase.keep_limits()?;
    }
    if wrong_files > 0 {
        code = EXIT_FAILED;
        if group.rank() == 0 {
            say!("weft bench mdtest: WARNING: {wrong_files} files did not hold what was written");
        }
    }
    report.end_test(wrong_files)?;
    Ok(code)
}
