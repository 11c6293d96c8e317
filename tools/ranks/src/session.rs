// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A program of ranks from its arguments to its exit code: MPI's begin, the program, MPI's end.
//!
//! Called by ior, mdtest and npb; calls weft-mpi. An error of one rank ends the whole job.

use std::ffi::OsString;
use std::fmt::Display;

use weft_mpi::Session;

use crate::refusal::{Refusal, refuse};
use crate::{EXIT_FAILED, say};

/// What a command with options of its own kind does from its arguments to the exit code: `parse`
/// reads the words, `run_all` runs what they ask for. Each rank says its own errors; what is wrong
/// with the words the first one says for all.
pub fn run_words<T, E: Display>(
    name: &str,
    arguments: &[OsString],
    parse: impl FnOnce(&[String]) -> Result<T, Refusal>,
    run_all: impl FnOnce(&Session, &T, &[String]) -> Result<u8, E>,
) -> u8 {
    let words: Vec<String> = arguments
        .iter()
        .map(|one| one.to_string_lossy().into_owned())
        .collect();
    match parse(&words) {
        Ok(parsed) => run_in_session(name, |session| run_all(session, &parsed, &words)),
        Err(Refusal::BadUsage(text)) => {
            refuse(Refusal::BadUsage(format!("weft bench {name}: {text}\n")))
        }
        Err(answer) => refuse(answer),
    }
}

/// Runs `run_all` between MPI's begin and its end; an error of it ends the whole job.
pub fn run_in_session<E: Display>(
    name: &str,
    run_all: impl FnOnce(&Session) -> Result<u8, E>,
) -> u8 {
    let failed = |error: &dyn Display| {
        say!("weft bench {name}: {error}");
        EXIT_FAILED
    };
    let session = match Session::init() {
        Ok(session) => session,
        Err(error) => return failed(&error),
    };
    match run_all(&session) {
        Ok(code) => match session.finalize() {
            Ok(()) => code,
            Err(error) => failed(&error),
        },
        Err(error) => session.abort(failed(&error).into()),
    }
}
