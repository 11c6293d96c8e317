// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A launcher that is only a shell script. It says that it is Open MPI, and runs the program once,
//! with the launcher's options in the environment.

use std::ffi::OsStr;
use std::io::Write;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Collects the launcher's options up to the program, which is the first word with a slash.
const LAUNCHER: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo 'mpiexec (Open MPI) 5.0.11'; exit 0; fi
OPTIONS=
while :; do
  case "$1" in
    -n) RANKS=$2; shift 2 ;;
    */*) break ;;
    *) OPTIONS="$OPTIONS $1"; shift ;;
  esac
done
export OPTIONS RANKS
exec "$@"
"#;

/// A folder with the launcher in `bin`, in which tests may leave files.
pub struct Fake {
    folder: tempfile::TempDir,
}

impl Fake {
    pub fn new() -> Self {
        let fake = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(fake.path("bin")).unwrap();
        fake.executable("bin/mpiexec", LAUNCHER);
        fake
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Written by another process: a file that this one has open for writing cannot be executed,
    /// and while a test forks, its child holds every file that other tests have open.
    pub fn executable(&self, name: &str, text: &str) {
        let write = "cat > \"$0\" && chmod 755 \"$0\"";
        let mut shell = Command::new("sh")
            .args(["-c", write, &self.path(name)])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        shell
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        assert!(shell.wait().unwrap().success());
    }

    /// Makes `program` of a shell script.
    pub fn program(&self, script: &str) {
        self.executable("program", &format!("#!/bin/sh\n{script}\n"));
    }

    /// Puts a file in the place of the provider; the launcher does not load it.
    pub fn add_provider(&self) {
        std::fs::write(self.path("libweft-fi.so"), "").unwrap();
    }

    /// `weft run` with these words, not started yet.
    pub fn command(&self, words: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command
            .arg("run")
            .args(words)
            .env("WEFT_MPI_PATH", self.folder.path())
            .env("WEFT_PROVIDER_DIR", self.folder.path());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// `weft run` with these words alone.
    pub fn weft(&self, words: &[impl AsRef<OsStr>]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Starts a job whose program is this shell script, over the native transport unless the
    /// options name one.
    pub fn start(&self, options: &[&str], script: &str) -> Child {
        self.spawn(options, script, &[])
    }

    fn spawn(&self, options: &[&str], script: &str, arguments: &[&str]) -> Child {
        self.program(script);
        let (launcher, program) = (self.path("bin/mpiexec"), self.path("program"));
        let transport: &[&str] = if options.contains(&"--transport") {
            &[]
        } else {
            &["--transport", "native"]
        };
        let words = [
            &["--mpi", &launcher],
            transport,
            options,
            &["--", &program],
            arguments,
        ]
        .concat();
        self.command(&words).spawn().unwrap()
    }

    pub fn run(&self, options: &[&str], script: &str) -> Output {
        self.run_with_input(options, script, &[], "")
    }

    pub fn run_with_input(
        &self,
        options: &[&str],
        script: &str,
        arguments: &[&str],
        input: &str,
    ) -> Output {
        let mut child = self.spawn(options, script, arguments);
        // A program that does not read its input may be gone already.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }
}

/// Waits until a file is there.
pub fn wait_for(path: &str) {
    let deadline = Instant::now() + Duration::from_secs(100);
    while !Path::new(path).exists() {
        assert!(Instant::now() < deadline, "{path} did not appear");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends a signal by its name.
pub fn signal(pid: u32, name: &str) {
    let status = Command::new("sh")
        .args(["-c", &format!("kill -{name} {pid}")])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Sends what a rank's provider would send.
pub fn report(name: &str, text: &str) {
    let address = SocketAddr::from_abstract_name(name).unwrap();
    UnixStream::connect_addr(&address)
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
}
