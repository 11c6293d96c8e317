// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A job of `weft run` as `compare` and `app` see it: waits for its end within a time limit, and
//! reads its exit status.
//!
//! Called by `compare/run.rs` and `app/job.rs`, which differ in where the job's output goes.

use crate::error::Error;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How often to look whether it has ended (chosen: small beside the shortest run).
const POLL: Duration = Duration::from_millis(10);

/// Waits for its end; ends it when it takes longer than `limit`.
///
/// # Errors
/// That it took too long, or why it cannot be waited for.
pub fn wait(child: &mut Child, limit: Duration) -> Result<ExitStatus, Error> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if start.elapsed() < limit => std::thread::sleep(POLL),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Error::TooLong(limit));
            }
            Err(error) => return Err(Error::Wait(error)),
        }
    }
}

/// Why a job failed, by the exit codes of `weft run`.
#[must_use]
pub fn why(status: ExitStatus) -> String {
    match status.code() {
        Some(3) => "the job worked, but its messages did not go through Weft".to_owned(),
        Some(124) => "it took longer than --timeout allows".to_owned(),
        _ => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn job_that_takes_too_long_is_ended() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let reason = wait(&mut child, Duration::from_millis(50)).expect_err("ended");
        assert_eq!(reason.to_string(), "it did not end within 0 s");
        assert!(child.try_wait().expect("waited for").is_some());
    }

    #[test]
    fn launcher_s_exit_codes_are_put_into_words() {
        let status = |code: u8| {
            let mut child = Command::new("sh")
                .args(["-c", &format!("exit {code}")])
                .spawn()
                .expect("sh");
            wait(&mut child, Duration::from_secs(30)).expect("status")
        };
        assert!(why(status(3)).contains("did not go through Weft"));
        assert!(why(status(124)).contains("--timeout"));
        assert_eq!(why(status(7)), "exit status: 7");
    }
}
