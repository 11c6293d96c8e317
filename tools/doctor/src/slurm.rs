// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which Slurm is here, and how ranks of each MPI start under it.
//!
//! Called by `lib.rs`. Source: srun(1), `--version` and `--mpi=list`; docs/slurm.md.

use std::io;
use std::process::{Command, Stdio};

use weft_job::sbatch::Start;
use weft_launch::discover::Installation;
use weft_launch::slurm_start;
use weft_launch::slurm_version::{OLDEST, SlurmVersion};

use crate::check::{Check, Status};

const NAME: &str = "Slurm";
const WHY: &str = "srun gives each rank its place in the job by a PMI that the program's MPI must \
                   speak; with another one every rank is a job of its own";

/// The check.
#[must_use]
pub fn check(mpis: &[Installation]) -> Check {
    judge(version(), slurm_start::offered, mpis)
}

fn version() -> io::Result<String> {
    let mut srun = Command::new("srun");
    let output = srun.arg("--version").stdin(Stdio::null()).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn judge(
    version: io::Result<String>,
    offered: impl FnOnce() -> io::Result<Vec<String>>,
    mpis: &[Installation],
) -> Check {
    let version = match version {
        Ok(version) => version,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Check::ok(NAME, "srun is not on the PATH", WHY)
                .not_tried("weft doctor on a node of the cluster, if this is to be one");
        }
        Err(error) => {
            return Check::ok(NAME, format!("srun cannot be started: {error}"), WHY)
                .but(Status::Warn, "repair the srun that is first on the PATH");
        }
    };
    let offered = offered().unwrap_or_default();
    let list = match offered.as_slice() {
        [] => "no PMI".to_owned(),
        list => list.join(", "),
    };
    let ways: Vec<String> = mpis
        .iter()
        .map(|mpi| format!("{} {} {}", mpi.family, mpi.version, way(mpi, &offered)))
        .collect();
    let value = format!("{version} offers {list}; {}", ways.join(", "));
    let value = value.trim_end_matches("; ");
    if SlurmVersion::read(&version).is_some_and(SlurmVersion::is_too_old) {
        let fix = "weft submit refuses it; write a batch script of your own with srun weft exec \
                   (docs/exec.md)";
        return Check::ok(NAME, value, WHY)
            .but(Status::Warn, fix)
            .limited_by(format!("{OLDEST} or newer"));
    }
    Check::ok(NAME, value, WHY).but_if(
        offered.is_empty(),
        Status::Warn,
        "install Slurm's plugins for PMIx and PMI 2 (mpi_pmix.so, mpi_pmi2.so); until then weft \
         submit starts ranks by the MPI's own launcher",
    )
}

/// How ranks of this MPI start.
fn way(mpi: &Installation, offered: &[String]) -> String {
    match slurm_start::choose(mpi, offered, None) {
        Ok(Start::Srun { pmi }) => format!("by {pmi}"),
        Ok(_) => "by its own launcher".to_owned(),
        Err(fault) => fault.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> io::Result<String> {
        Ok(text.to_owned())
    }

    #[test]
    fn a_slurm_that_offers_no_pmi_is_a_warning_and_no_slurm_is_not_tried() {
        let gone = Err(io::Error::from(io::ErrorKind::NotFound));
        let none = || Ok(Vec::new());
        assert_eq!(judge(gone, none, &[]).status, Status::NotTried);
        let broken = Err(io::Error::from(io::ErrorKind::PermissionDenied));
        judge(broken, none, &[]).assert_wrong(Status::Warn, "first on the PATH");
        let check = judge(said("slurm 22.05.8"), none, &[]);
        check.assert_wrong(Status::Warn, "mpi_pmix.so, mpi_pmi2.so");
        assert_eq!(check.value, "slurm 22.05.8 offers no PMI");
        let offered = || Ok(vec!["pmix".to_owned(), "pmi2".to_owned()]);
        let check = judge(said("slurm 22.05.8"), offered, &[]);
        assert_eq!(check.value, "slurm 22.05.8 offers pmix, pmi2");
        assert_eq!(check.status, Status::Ok);
        let check = judge(said("slurm 20.11.9"), offered, &[]);
        check.assert_wrong(Status::Warn, "srun weft exec");
        assert!(check.limit.contains("22.05"), "{check:?}");
    }
}
