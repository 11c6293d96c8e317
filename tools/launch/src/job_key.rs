// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The key that the job's processes know each other by between hosts: a fresh one for each job,
//! unless the user has given one.
//!
//! Called by `lib.rs` before the launcher starts. The key goes into the environment, never on a
//! command line, where `ps` would show it; it is in no record, no dry run and no message. What it
//! does: docs/srd-protocol.md, clause 14.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Command;

use weft_facts::parameter::{ENCRYPT, JOB_KEY, JOB_KEY_FILE, ROUTE, TRUST_NETWORK};
use weft_os::limits;
use weft_seal::JobKey;

use crate::fault::Fault;
use crate::rank_arguments::Variable;

/// The variable that carries the key; each MPI's launcher passes it on to the ranks.
pub const VARIABLE: &str = JOB_KEY.variable;

/// With one of these the user has decided: a key of his own, in a file, or none.
const DECIDED: [&str; 3] = [VARIABLE, JOB_KEY_FILE.variable, TRUST_NETWORK.variable];

/// Variables of batch systems that say that a job's ranks may be on several hosts. Specified by
/// Slurm, PBS and LSF.
const SPREAD: [&str; 3] = ["SLURM_JOB_NODELIST", "PBS_NODEFILE", "LSB_MCPU_HOSTS"];

/// Whether ranks may have to talk over a network: then they get a key. So they do on one machine
/// where addresses are limited (`ulimit -v`), and shared memory may not be had for all. Another job
/// of one machine needs none, and without one its endpoints hold no network sockets to look after.
#[must_use]
pub fn is_needed(on_several_hosts: bool, given: &[Variable]) -> bool {
    let is_limited = limits::addresses_bytes().is_some();
    may_use_network(on_several_hosts || is_limited, given)
}

fn may_use_network(is_likely: bool, given: &[Variable]) -> bool {
    let by_srd = given
        .iter()
        .any(|variable| variable.name == ROUTE.variable && variable.value == "srd")
        || std::env::var(ROUTE.variable).is_ok_and(|route| route == "srd");
    let spread = SPREAD.iter().any(|name| std::env::var_os(name).is_some());
    (is_likely || by_srd || spread) && is_wanted(given)
}

/// Whether the job is to get a key of its own; `given` is what `--env` sets.
#[must_use]
pub fn is_wanted(given: &[Variable]) -> bool {
    let given: Vec<&str> = given
        .iter()
        .map(|variable| variable.name.as_str())
        .collect();
    !DECIDED
        .iter()
        .any(|name| given.contains(name) || std::env::var_os(name).is_some())
}

/// Whether ranks that somebody else started on several hosts may talk to each other.
///
/// # Errors
/// `Fault::NoKey` where nothing says whom they trust: the first message between hosts would fail.
pub fn check(given: &[Variable]) -> Result<(), Fault> {
    if !is_wanted(given) {
        return Ok(());
    }
    Err(Fault::NoKey(format!(
        "this job has ranks on several hosts and no key, so they would not accept each other's \
         messages. In the shell or batch script that starts it, before mpirun or srun, write: \
         eval \"$(weft env --key)\"; with Open MPI's mpirun add -x {VARIABLE}. On a network \
         where you trust everybody, set {}=1 for all ranks instead (docs/trust.md)",
        TRUST_NETWORK.variable
    )))
}

/// A fresh key as text, for whoever hands it to a job.
///
/// # Errors
/// When the system has no random bytes.
pub fn fresh() -> Result<impl std::ops::Deref<Target = String>, Fault> {
    let key = JobKey::generate().map_err(|error| Fault::System {
        what: "making the job's key".into(),
        source: std::io::Error::other(error),
    })?;
    Ok(key.to_text())
}

/// Whether this process has a key, or is told where it lies.
#[must_use]
pub fn is_here() -> bool {
    [VARIABLE, JOB_KEY_FILE.variable]
        .iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// What the mounts of a job on several hosts are given: a fresh key of their own, and whether to
/// encrypt what they say, as for the ranks. `given` is what `--env` sets.
///
/// # Errors
/// When the system has no random bytes.
pub fn of_mounts(given: &[Variable]) -> Result<BTreeMap<String, OsString>, Fault> {
    let encrypt = given.iter().rfind(|one| one.name == ENCRYPT.variable);
    let encrypt = encrypt.map(|one| one.value.clone());
    let encrypt = encrypt.or_else(|| std::env::var_os(ENCRYPT.variable));
    Ok(BTreeMap::from([
        (VARIABLE.to_owned(), fresh()?.as_str().into()),
        // Not what a host has set for its own.
        (JOB_KEY_FILE.variable.to_owned(), OsString::new()),
        (ENCRYPT.variable.to_owned(), encrypt.unwrap_or_default()),
    ]))
}

/// Gives the job a key of its own.
///
/// # Errors
/// When the system has no random bytes.
pub fn give(command: &mut Command) -> Result<(), Fault> {
    command.env(VARIABLE, &*fresh()?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(command: &Command) -> Option<String> {
        let mut set = command.get_envs();
        let (_, value) = set.find(|(name, _)| *name == VARIABLE)?;
        Some(value?.to_str().unwrap().to_owned())
    }

    #[test]
    fn each_job_gets_a_key_of_its_own_and_no_command_line_has_it() {
        let mut commands = [Command::new("true"), Command::new("true")];
        for command in &mut commands {
            give(command).unwrap();
            assert_eq!(command.get_args().count(), 0);
            assert!(JobKey::parse(&key_of(command).unwrap()).is_ok());
        }
        assert_ne!(key_of(&commands[0]), key_of(&commands[1]));
    }

    #[test]
    fn a_job_of_one_machine_gets_a_key_only_if_it_asks_for_the_network() {
        let route = |value: &str| Variable {
            name: "FI_WEFT_ROUTE".to_owned(),
            value: value.into(),
        };
        assert!(may_use_network(true, &[]));
        assert!(may_use_network(false, &[route("srd")]));
        assert!(!may_use_network(false, &[route("auto")]));
    }

    #[test]
    fn what_the_user_has_decided_stands() {
        for name in DECIDED {
            let given = Variable {
                name: name.to_owned(),
                value: "x".into(),
            };
            assert!(!is_wanted(&[given]), "{name} by --env");
        }
    }
}
