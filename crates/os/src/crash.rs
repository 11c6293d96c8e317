// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Numbered steps of the protocols at which a test ends this process as SIGKILL would:
//! [`crate::crash_point!`].
//!
//! A crash point is nothing at all unless everything is built with `--cfg crash_points`, as
//! tests/crash/run.sh does in a folder of its own. Passed by ring and shm; read by
//! crates/shm/tests/crash. The steps are listed in docs/testing.md.

#[cfg(crash_points)]
use std::io::Write;
#[cfg(crash_points)]
use std::sync::{Mutex, OnceLock, PoisonError};

/// Names a step: its number, then what is done and what is not. Expands to nothing in every build
/// but that of the crash tests.
#[macro_export]
macro_rules! crash_point {
    ($number:literal, $what:literal) => {
        #[cfg(crash_points)]
        $crate::crash::pass($number);
    };
}

/// `NUMBER:PASSAGE`: the process ends when it passes the step for that time, counted from 1.
pub const STEP_VARIABLE: &str = "WEFT_CRASH_STEP";
/// A file to which the number of each step is appended each time it is passed.
pub const LOG_VARIABLE: &str = "WEFT_CRASH_LOG";

#[cfg(crash_points)]
struct Plan {
    step: Option<(u32, u32)>,
    log: Option<std::fs::File>,
}

#[cfg(crash_points)]
fn plan() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    PLAN.get_or_init(|| {
        let step = std::env::var(STEP_VARIABLE).ok().map(|text| {
            let (number, passage) = text.split_once(':').expect("NUMBER:PASSAGE");
            (
                number.parse().expect("a number"),
                passage.parse().expect("a number"),
            )
        });
        let log = std::env::var_os(LOG_VARIABLE)
            .map(|path| std::fs::File::create(path).expect("the log can be written"));
        Plan { step, log }
    })
}

/// Passes the step `number`: ends the process if that is planned.
///
/// # Panics
/// If the plan in the environment is malformed.
#[cfg(crash_points)]
pub fn pass(number: u32) {
    static PASSED: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    let plan = plan();
    if plan.step.is_none() && plan.log.is_none() {
        return;
    }
    let mut passed = PASSED.lock().unwrap_or_else(PoisonError::into_inner);
    passed.push(number);
    let times = passed.iter().filter(|&&other| other == number).count();
    if let Some(mut log) = plan.log.as_ref() {
        writeln!(log, "{number}").expect("the log can be written");
    }
    if plan.step == Some((number, times as u32)) {
        // SAFETY: raise takes plain numbers; the process ends here, without any destructor.
        unsafe { libc::raise(libc::SIGKILL) };
    }
}
