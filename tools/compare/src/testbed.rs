// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Hosts in network namespaces of this machine, for the time of a comparison.
//!
//! Called by compare for `--testbed` and by figures. Brings the scripts of tests/testbed along,
//! which need root; [`network`] says what joins the hosts. A keeper process removes the testbed
//! when it is dropped, and also when this process ends without a word.

pub mod network;

use crate::error::Error;
use network::Network;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The scripts that make hosts, with the names by which they find each other.
const SCRIPTS: [(&str, &str); 2] = [
    (
        "testbed.sh",
        include_str!("../../../tests/testbed/testbed.sh"),
    ),
    ("host.py", include_str!("../../../tests/testbed/host.py")),
];
/// Makes a testbed, prints its name, waits for the end of its input, removes the testbed and the
/// folder of the scripts. It runs in a process group of its own, so that Ctrl-C does not reach it,
/// and its input ends however this process does.
const KEEP: &str = r#"name=$("$0" up "$@") || exit
echo "$name"
cat >/dev/null
"$0" "$name" down
rm -rf -- "${0%/*}""#;

/// Why no testbed can be made here, and what to do; `None` when it can.
pub fn missing() -> Option<Error> {
    match Scripts::new() {
        Ok(scripts) => scripts.missing(),
        Err(error) => Some(error),
    }
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

    fn missing(&self) -> Option<Error> {
        match self.command(&["check"]).output() {
            Ok(output) if output.status.success() => None,
            Ok(output) => {
                let reason = String::from_utf8_lossy(&output.stdout).trim().to_owned();
                Some(Error::Missing(reason))
            }
            Err(error) => Some(Error::start("bash")(error)),
        }
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
        if let Some(missing) = scripts.missing() {
            return Err(missing);
        }
        let owner = std::process::id().to_string();
        let mut keeper = Command::new("sh")
            .args(["-c", KEEP])
            .arg(scripts.path())
            .args(["--owner", &owner])
            .args(network.options())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(Error::start("sh"))?;
        let mut name = String::new();
        if let Some(stdout) = keeper.stdout.take() {
            let read = BufReader::new(stdout).read_line(&mut name);
            read.map_err(Error::Wait)?;
        }
        if name.trim().is_empty() {
            let output = keeper.wait_with_output().map_err(Error::Wait)?;
            return Err(Error::failed(output.status, &output.stderr));
        }
        let mut testbed = Self {
            scripts,
            name: name.trim().to_owned(),
            agent: PathBuf::new(),
            keeper,
        };
        testbed.agent = testbed.tell(&["agent"])?.into();
        for [name, paths, value] in network.faults() {
            testbed.tell(&[&name, &paths, &value])?;
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
