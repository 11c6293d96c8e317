// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft run` when a rank fails: whose exit code counts, and what becomes of a launcher that does
//! not end. The launcher is a shell script; what libweft-ends.so would tell of it is told here
//! (crates/ends/tests/launcher.rs tests the library).

use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::process::{Child, Command, Output};

use crate::fake::{Fake, wait_for};

/// A job whose launcher tells where to talk to, and then does this.
struct Job {
    fake: Fake,
    child: Child,
}

impl Job {
    fn start(script: &str) -> Self {
        let fake = Fake::new();
        fake.add_provider();
        // The loader says that it is none, and goes on.
        std::fs::write(fake.path("libweft-ends.so"), "").unwrap();
        let said = fake.path("said");
        let launcher = format!(
            "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'mpiexec (Open MPI) 5.0.11'; exit; \
             fi\ncd '{}'\necho \"$WEFT_RANK_ENDS\" >said.new\n{script}\n",
            fake.path("")
        );
        fake.executable("bin/mpiexec", &launcher);
        let child = fake.start(&["-n", "2", "--timeout", "60"], "exit 0");
        wait_for(&said);
        Self { fake, child }
    }

    fn tell(&self, words: &[&str]) {
        let said = std::fs::read_to_string(self.fake.path("said")).unwrap();
        let (name, secret) = said.trim().split_once(':').unwrap();
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let socket = UnixDatagram::unbound().unwrap();
        for word in words {
            let text = format!("{secret} {word}");
            socket.send_to_addr(text.as_bytes(), &address).unwrap();
        }
    }

    /// Lets the launcher go on.
    fn go(&self) {
        std::fs::write(self.fake.path("go"), "").unwrap();
    }

    fn end(self) -> (Option<i32>, String) {
        let Output { status, stderr, .. } = self.child.wait_with_output().unwrap();
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    }
}

const WAIT: &str = "mv said.new said; until [ -e go ]; do sleep 0.01; done";
/// Process numbers that no process has.
const RANKS: [&str; 2] = ["rank 4194300 0", "rank 4194301 1"];
const FAILS: &str = "ended 4194301 1792";

#[test]
fn exit_code_is_that_of_the_rank_that_failed_first() {
    let job = Job::start(&format!("{WAIT}; exit 255"));
    let others = ["sent 4194300 15", "ended 4194300 15"];
    job.tell(&[RANKS[0], RANKS[1], FAILS, others[0], others[1]]);
    job.go();
    let (code, talk) = job.end();
    assert_eq!(code, Some(7), "{talk}");
    assert!(!talk.contains("the job was ended"), "{talk}");
}

#[test]
fn ranks_that_the_launcher_ended_leave_the_code_to_it() {
    let job = Job::start(&format!("{WAIT}; exit 5"));
    let killed = ["sent 4194300 9", "ended 4194300 9"];
    job.tell(&[RANKS[0], RANKS[1], killed[0], killed[1], "ended 4194301 0"]);
    job.go();
    let (code, talk) = job.end();
    assert_eq!(code, Some(5), "{talk}");
}

#[test]
fn a_launcher_that_killed_its_ranks_and_does_not_end_is_ended() {
    let job = Job::start("mv said.new said; exec sleep 1000");
    job.tell(&[RANKS[0], RANKS[1], FAILS, "sent 4194300 9"]);
    let (code, talk) = job.end();
    let words = "the job was ended: rank 1 ended with exit code 7, and 5 s later";
    assert!(code == Some(7) && talk.contains(words), "{code:?} {talk}");
}

/// env(1) would take it for a variable.
#[test]
fn a_program_whose_name_has_an_equals_sign_is_run() {
    let fake = Fake::new();
    std::fs::write(fake.path("libweft-ends.so"), "").unwrap();
    fake.add_provider();
    fake.executable("a=b", "#!/bin/sh\nexit 6\n");
    let (mpiexec, program) = (fake.path("bin/mpiexec"), fake.path("a=b"));
    let native = ["--mpi", &mpiexec, "--transport", "native", "-n", "1", "--"];
    let ended = fake.weft(&[&native[..], &[&program]].concat());
    assert_eq!(ended.status.code(), Some(6), "{ended:?}");
}

/// As Hydra's do while a rank that has ended is missing in MPI_Init.
#[test]
fn ranks_that_wait_for_a_rank_that_failed_are_ended() {
    let job = Job::start("mv said.new said; exec sleep 1000");
    let (_launcher, theirs) = UnixStream::pair().unwrap();
    let mut waits = Command::new("cat");
    waits.env("PMI_FD", "0").stdin(OwnedFd::from(theirs));
    let mut waits = waits.spawn().unwrap();
    job.tell(&[&format!("rank {} 0", waits.id()), RANKS[1], FAILS]);
    let (code, talk) = job.end();
    // It has been killed, or not, if the case fails.
    let _ = waits.kill();
    let _ = waits.wait();
    assert!(
        code == Some(7) && talk.contains("rank 1 ended with exit code 7"),
        "{code:?} {talk}"
    );
}
