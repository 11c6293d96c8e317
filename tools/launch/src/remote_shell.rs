// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The remote shell: the program that runs a command on another host, ssh or what takes its place.
//!
//! Called by `lib.rs`. `several_hosts.rs` names it to the MPI's launcher, which starts its own
//! daemons through it; `node_agents.rs` starts the node agents through it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::family::Family;
use crate::fault::Fault;
use crate::program;
use crate::shell::quote;

/// What runs commands on other hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteShell {
    /// Its path. It is called as ssh is: options, a host, a command.
    pub path: PathBuf,
    /// Whether it is ssh itself, and so takes ssh's options.
    is_ssh: bool,
}

/// The variables by which each MPI lets its user name another one, in the order in which they
/// count.
fn variables(family: Family) -> &'static [&'static str] {
    match family {
        Family::OpenMpi => &[
            "PRTE_MCA_plm_ssh_agent",
            "OMPI_MCA_plm_ssh_agent",
            "OMPI_MCA_plm_rsh_agent",
        ],
        Family::Mpich => &["HYDRA_LAUNCHER_EXEC"],
        Family::Intel => &["I_MPI_HYDRA_BOOTSTRAP_EXEC"],
    }
}

impl RemoteShell {
    /// The one that `--launcher` names, else the MPI's own variable, else ssh.
    ///
    /// # Errors
    /// `Fault::Usage` when there is no such program, or when it comes with arguments, which not
    /// every MPI can pass on.
    pub fn choose(
        named: Option<&OsStr>,
        family: Family,
        variable: impl Fn(&str) -> Option<std::ffi::OsString>,
        path: Option<&OsStr>,
    ) -> Result<Self, Fault> {
        let from_variable = || {
            variables(family).iter().find_map(|&name| {
                variable(name)
                    .filter(|value| !value.is_empty())
                    .map(|value| (name.to_owned(), value))
            })
        };
        let (origin, word) = match named {
            Some(word) => ("--launcher".to_owned(), word.to_owned()),
            None => from_variable().unwrap_or(("--launcher".to_owned(), "ssh".into())),
        };
        let shown = word.to_string_lossy();
        if shown.contains(char::is_whitespace) {
            return Err(Fault::Usage(format!(
                "{origin} is `{shown}`; it must be one program without arguments. Options for ssh \
                 belong in ~/.ssh/config"
            )));
        }
        let found = program::locate(&word, path).map_err(|fault| {
            Fault::Usage(format!(
                "{origin}: {fault}; it is what starts processes on other hosts, and is called as \
                 ssh is: HOST COMMAND"
            ))
        })?;
        let found = std::path::absolute(&found).map_err(Fault::system(shown.into_owned()))?;
        let is_ssh = found.file_name() == Some(OsStr::new("ssh"));
        Ok(Self {
            path: found,
            is_ssh,
        })
    }

    /// A command that runs `program arguments` on `host`. Standard streams are for the caller to
    /// set.
    #[must_use]
    pub fn command(&self, host: &str, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        if self.is_ssh {
            // Nobody is there to type a password, as the MPI's launcher needs none either.
            command.args(["-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]);
        }
        // The other side's shell reads it, so it is quoted here.
        let mut line = std::ffi::OsString::from("exec ");
        line.push(quote(program.as_os_str()));
        for word in arguments {
            line.push(" ");
            line.push(quote(OsStr::new(word)));
        }
        command.arg(host).arg(line);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    fn choose(
        named: Option<&str>,
        family: Family,
        set: &[(&str, &str)],
    ) -> Result<RemoteShell, Fault> {
        let variable = |name: &str| {
            set.iter()
                .find(|(one, _)| *one == name)
                .map(|(_, value)| OsString::from(value))
        };
        RemoteShell::choose(
            named.map(OsStr::new),
            family,
            variable,
            Some(OsStr::new("/usr/bin:/bin")),
        )
    }

    #[test]
    fn the_option_wins_over_the_mpis_own_variable() {
        let set = [("HYDRA_LAUNCHER_EXEC", "/bin/true")];
        assert_eq!(
            choose(None, Family::Mpich, &set).unwrap().path,
            Path::new("/bin/true")
        );
        assert_eq!(
            choose(Some("/bin/sh"), Family::Mpich, &set).unwrap().path,
            Path::new("/bin/sh")
        );
        // Another family's variable says nothing.
        let intel = choose(Some("sh"), Family::Intel, &set).unwrap();
        assert_eq!(intel.path.file_name(), Some(OsStr::new("sh")));
    }

    #[test]
    fn a_missing_agent_and_one_with_arguments_are_refused() {
        let fault = choose(Some("/no/such/agent"), Family::OpenMpi, &[]).unwrap_err();
        assert!(
            matches!(&fault, Fault::Usage(text) if text.contains("/no/such/agent")),
            "{fault}"
        );
        let set = [("OMPI_MCA_plm_rsh_agent", "ssh -p 2222")];
        let fault = choose(None, Family::OpenMpi, &set).unwrap_err().to_string();
        assert!(
            fault.contains("OMPI_MCA_plm_rsh_agent") && fault.contains(".ssh/config"),
            "{fault}"
        );
    }

    #[test]
    fn the_command_reaches_the_other_shell_as_it_was() {
        let shell = RemoteShell {
            path: "/a/agent".into(),
            is_ssh: false,
        };
        let command = shell.command("b1", Path::new("/o p/weft"), &["node-agent"]);
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(words, ["b1", "exec '/o p/weft' node-agent"]);
    }
}
