// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a job ends that is asked to, with a grace period so long that no slow machine outlasts it:
//! an end before it is no work of the clock. `weft run` with its own grace period: tools/weft.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use weft_launch::family::Family;
use weft_launch::supervise::{self, Elsewhere, Ending, Limits, Reason};

const GRACE: Duration = Duration::from_secs(1000);
/// A job ends with all that its process started, and signals reach all jobs of a process.
static ONE: Mutex<()> = Mutex::new(());

fn run(script: &str, time: Option<Duration>) -> Ending {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    let limits = Limits { time, grace: GRACE };
    supervise::run(command, Family::Mpich, limits, Elsewhere::default(), None).unwrap()
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(500);
    while !path.exists() {
        assert!(Instant::now() < deadline, "{path:?} did not appear");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_second_ctrl_c_ends_the_job_without_its_grace_period() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    // The launcher hears the first one, and neither it nor its rank ends.
    let script = format!(
        "trap 'touch {}' INT; trap '' TERM; setsid sh -c 'trap \"\" INT TERM; touch {}; \
         while :; do sleep 600; done' & while :; do sleep 0.05; done",
        path("asked").display(),
        path("rank").display()
    );
    let (rank, asked) = (path("rank"), path("asked"));
    let ending = std::thread::scope(|scope| {
        scope.spawn(|| {
            let interrupt = || kill(Pid::this(), Signal::SIGINT).unwrap();
            wait_for(&rank);
            interrupt();
            wait_for(&asked);
            // Sooner it would be the first one, sent twice.
            std::thread::sleep(Duration::from_millis(300));
            interrupt();
        });
        run(&script, None)
    });
    assert_eq!(ending.reason, Some(Reason::Asked(Signal::SIGINT)));
    assert!(ending.forced && ending.signal == Some(9), "{ending:?}");
    assert!(ending.elapsed < GRACE, "{ending:?}");
}

#[test]
fn a_job_that_obeys_term_ends_without_its_grace_period() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let ending = run("exec sleep 100000", Some(Duration::from_millis(100)));
    assert_eq!(ending.reason, Some(Reason::Time));
    assert!(!ending.forced && ending.signal == Some(15), "{ending:?}");
    assert!(ending.elapsed < GRACE, "{ending:?}");
}
