// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench ior`: parallel reading and writing of files, with IOR's options, semantics, formulas
//! and output.
//!
//! Called by lib. One run of a test:
//! - [`options`] (with [`table`], [`size`] and [`script`]): the command line, checked, as a
//!   [`test::Test`]
//! - [`division`]: which rank moves which bytes of which file, in which order
//! - [`phase`]: one write or read of everything, timed; [`content`]: the bytes that are written,
//!   and the check of what is read; [`mod@file`]: the file itself
//! - [`figures`]: makes a row and a summary from the times of all ranks
//! - [`report`] with [`text`], [`csv`] and [`json`]: the output
//!
//! Written from IOR's documentation and the description of its output; docs/ior.md lists what is
//! offered and what differs.

pub mod content;
pub mod csv;
pub mod division;
pub mod figures;
pub mod file;
pub mod finished;
pub mod json;
pub mod options;
pub mod phase;
pub mod report;
pub mod script;
mod settings;
pub mod size;
pub mod table;
pub mod test;
pub mod text;
mod when;

use std::ffi::OsString;
use std::time::Instant;

use weft_mpi::{Communicator, Datatype, Session};

use figures::{Access, Row};
use phase::Phase;
use report::Report;
use test::Test;
use weft_ranks::refusal::Failed;
use weft_ranks::{EXIT_FAILED, EXIT_OK, EXIT_USAGE, say, session};

/// Runs `weft bench ior` with the arguments after `ior`; returns the exit code.
pub fn run(arguments: Vec<OsString>) -> u8 {
    session::run_words(
        "ior",
        &arguments,
        options::parse,
        |session, tests, words| run_all(session, tests, words),
    )
}

/// All tests of the command line or of its script, one after the other.
fn run_all(session: &Session, tests: &[Test], command: &[String]) -> Result<u8, Failed> {
    let world = Communicator::world(session)?;
    let mut report = Report::begin(&world, tests, command)?;
    let mut wrong_words = 0;
    for (number, test) in tests.iter().enumerate() {
        if test.tasks > world.size() {
            if world.rank() == 0 {
                say!(
                    "weft bench ior: -N is {}, but the job has {} ranks; start it with as many, or \
                     take -N away",
                    test.tasks,
                    world.size()
                );
            }
            return Ok(EXIT_USAGE);
        }
        let tasks = if test.tasks == 0 {
            world.size()
        } else {
            test.tasks
        };
        let takes_part = world.rank() < tasks;
        let group = world.split(i32::from(takes_part), world.rank() as i32)?;
        if takes_part {
            wrong_words += repeat(&group, test, number, &mut report)?;
        }
        world.barrier()?;
    }
    report.end(&world)?;
    let mut total = wrong_words.to_ne_bytes();
    world.bcast(&mut total, Datatype::Byte, 0)?;
    Ok(if u64::from_ne_bytes(total) == 0 {
        EXIT_OK
    } else {
        EXIT_FAILED
    })
}

/// All repetitions of one test; answers how many words were wrong.
fn repeat(
    group: &Communicator<'_>,
    test: &Test,
    number: usize,
    report: &mut Report,
) -> Result<u64, Failed> {
    let phase = Phase::prepare(group, test)?;
    report.begin_test(test, number, phase.place(), &phase.example_path(0))?;
    let (start, mut wrong_words) = (Instant::now(), 0);
    for repetition in 0..test.run.repetitions {
        if repetition > 0 {
            phase.pause()?;
        }
        let wrong_here = one_repetition(&phase, repetition, report)?;
        wrong_words += wrong_here;
        let keeps = test.files.keep || test.files.keep_if_wrong && wrong_here > 0;
        if !keeps {
            let removal_s = phase.remove(repetition)?;
            report.removed(test, removal_s, repetition)?;
        }
        let minutes = start.elapsed().as_secs_f64() / 60.0;
        if phase.agree_max(minutes)? > test.run.limit_minutes && test.run.limit_minutes > 0.0 {
            break;
        }
    }
    report.end_test(test)?;
    Ok(wrong_words)
}

fn one_repetition(phase: &Phase<'_>, repetition: u32, report: &mut Report) -> Result<u64, Failed> {
    let test = phase.test();
    let mut wrong_words = 0;
    let mut show = |row: Row, access: Access, report: &mut Report| {
        wrong_words += row.wrong_words;
        report.row(test, access, row, repetition)
    };
    if test.does.write {
        report.commences(test, Access::Write)?;
        show(phase.write(repetition)?, Access::Write, report)?;
    }
    if test.does.check_write {
        report.commences(test, Access::WriteCheck)?;
        show(
            phase.read(repetition, Access::WriteCheck)?,
            Access::WriteCheck,
            report,
        )?;
    }
    if test.does.read || test.does.check_read {
        let access = if test.does.check_read {
            Access::ReadCheck
        } else {
            Access::Read
        };
        report.commences(test, access)?;
        // A read that verifies is a read to those who parse the rows.
        show(phase.read(repetition, access)?, Access::Read, report)?;
    }
    if wrong_words > 0 && phase.rank() == 0 {
        say!("weft bench ior: WARNING: {wrong_words} words of 8 bytes were not what was written");
    }
    Ok(wrong_words)
}
