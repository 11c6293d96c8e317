// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts in network namespaces of this machine, for the time of a comparison.
//!
//! Called by compare for `--testbed` and by figures. It contains the scripts of tests/testbed,
//! which need root; [`network`] describes the network between the hosts. A keeper process removes
//! the testbed when it is dropped, and also when this process is killed.

pub mod network;

use crate::error::Error;
use network::Network;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The scripts that make hosts, with the names by which they find each other.
const SCRIPTS: [(&str, &str); 2] = [
    (
        "testbed.sh",
        include_str!("../../../tests/testbed/testbed.sh"),
    ),
    ("host.py", include_str!("../../../tests/testbed/host.py")),
];
/// Checks whether a testbed can be made. If there are words, makes one with them, prints its name,
/// waits for the end of its input, and removes the testbed. Then removes the folder of the scripts.
///
/// It runs in a process group of its own, so that Ctrl-C does not reach it, and its input ends
/// however this process does. Then nobody reads what it writes any more, of which SIGPIPE tells:
/// that must not end it.
const KEEP: &str = r#"trap '' PIPE
name= ended=0
if ! reason=$("$0" check); then
    echo "$reason" >&2
    ended=3
elif [ $# -gt 0 ]; then
    name=$("$0" up "$@") || ended=$?
fi
if [ -n "$name" ]; then
    echo "$name"
    cat >/dev/null
    "$0" "$name" down
fi
rm -rf -- "${0%/*}"
exit $ended"#;
/// With this code the keeper ends where something is missing.
const MISSING: i32 = 3;

/// Why no testbed can be made here, and what to do; `None` when it can.
pub fn missing() -> Option<Error> {
    let check = || -> Result<Output, Error> {
        let scripts = Scripts::new()?;
        let keeper = scripts.keeper().spawn().map_err(Error::start("sh"))?;
        keeper.wait_with_output().map_err(Error::Wait)
    };
    match check() {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(complaint(&output)),
        Err(error) => Some(error),
    }
}

/// Why the keeper ended.
fn complaint(output: &Output) -> Error {
    if output.status.code() != Some(MISSING) {
        return Error::failed(output.status, &output.stderr);
    }
    let reason = String::from_utf8_lossy(&output.stderr);
    Error::Missing(reason.trim().to_owned())
}

/// The scripts in a folder of their own, which ends with them.
struct Scripts(tempfile::TempDir);

impl Scripts {
    fn new() -> Result<Self, Error> {
        let folder = tempfile::Builder::new()
            .prefix("weft-testbed-")
            .tempdir()
            .map_err(Error::file("make a folder in", &std::env::temp_dir()))?;
        for (name, text) in SCRIPTS {
            let path = folder.path().join(name);
            fs::write(&path, text)
                .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
                .map_err(Error::file("write", &path))?;
        }
        Ok(Self(folder))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join(SCRIPTS[0].0)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.path());
        command.args(words).stdin(Stdio::null());
        command
    }

    /// The process that checks, makes and removes; takes options of the script's `up`.
    fn keeper(&self) -> Command {
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEP]).arg(self.path()).process_group(0);
        let piped = Stdio::piped;
        keeper.stdin(piped()).stdout(piped()).stderr(piped());
        keeper
    }
}

/// Hosts and what joins them, removed when dropped.
pub struct Testbed {
    scripts: Scripts,
    name: String,
    agent: PathBuf,
    keeper: Child,
}

impl Testbed {
    /// Makes it, which takes a second or two.
    ///
    /// # Errors
    /// What is missing here, or what the script complained of.
    pub fn up(network: &Network) -> Result<Self, Error> {
        let scripts = Scripts::new()?;
        let owner = std::process::id().to_string();
        let mut keeper = scripts.keeper();
        keeper.args(["--owner", &owner]).args(network.options());
        let mut keeper = keeper.spawn().map_err(Error::start("sh"))?;
        let mut name = String::new();
        if let Some(stdout) = keeper.stdout.take() {
            let read = BufReader::new(stdout).read_line(&mut name);
            read.map_err(Error::Wait)?;
        }
        if name.trim().is_empty() {
            let output = keeper.wait_with_output().map_err(Error::Wait)?;
            return Err(complaint(&output));
        }
        let mut testbed = Self {
            scripts,
            name: name.trim().to_owned(),
            agent: PathBuf::new(),
            keeper,
        };
        testbed.agent = testbed.tell(&["agent"])?.into();
        for words in network.faults() {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            testbed.tell(&words)?;
        }
        Ok(testbed)
    }

    /// What stands before a command that is to run on its first host.
    pub fn enter(&self) -> Vec<OsString> {
        let name = OsString::from(&self.name);
        vec![self.scripts.path().into(), name, "host".into(), "0".into()]
    }

    /// The program that does what ssh does, from host to host.
    pub fn agent(&self) -> &Path {
        &self.agent
    }

    /// What the script answers to some words about this testbed.
    ///
    /// # Errors
    /// What the script complained of.
    pub fn tell(&self, words: &[&str]) -> Result<String, Error> {
        let mut all = vec![self.name.as_str()];
        all.extend(words);
        let output = self.scripts.command(&all).output();
        let output = output.map_err(Error::start("the testbed"))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
        }
        Err(Error::failed(output.status, &output.stderr).about("the testbed"))
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In place of the script: makes a testbed once its input has ended, and keeps beside the
    /// folder what it is told of it.
    const STAND_IN: &str = r#"#!/bin/sh
case $1 in
check) ;;
up) cat >/dev/null; echo wt-made ;;
*) echo "$*" >"${0%/*}.told" ;;
esac
"#;

    #[test]
    fn testbed_that_is_made_after_this_process_has_ended_is_removed() {
        let scripts = Scripts::new().expect("a folder");
        let folder = scripts.0.path().to_owned();
        fs::write(scripts.path(), STAND_IN).expect("a script");
        let mut keeper = scripts.keeper().arg("--direct").spawn().expect("sh");
        // As when this process ends: nobody listens, and then the input ends.
        drop((keeper.stdout.take(), keeper.stderr.take()));
        drop(keeper.stdin.take());
        keeper.wait().expect("it ends");
        assert!(!folder.exists(), "the folder of the scripts is still there");
        let told = folder.with_extension("told");
        let text = fs::read_to_string(&told);
        assert_eq!(text.expect("the script was told"), "wt-made down\n");
        fs::remove_file(told).expect("it is removed");
    }
}
