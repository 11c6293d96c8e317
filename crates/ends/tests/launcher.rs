// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The library in a launcher that is only a shell: what is told of ranks and their ends.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Where cargo has put the library: beside this test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let library = test.with_file_name("libweft_ends.so");
    assert!(library.is_file(), "{} is missing", library.display());
    library
}

fn hear(name: &str) -> UnixDatagram {
    let address = SocketAddr::from_abstract_name(name).expect("a name");
    UnixDatagram::bind_addr(&address).expect("a socket of that name")
}

fn launcher(name: &str, script: &str) -> Child {
    Command::new("sh")
        .args(["-c", script])
        .env("LD_PRELOAD", library())
        .env("WEFT_RANK_ENDS", format!("{name}:secret"))
        .env_remove("OMPI_COMM_WORLD_RANK")
        .env_remove("PMI_RANK")
        .env_remove("PMIX_RANK")
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell")
}

/// The next word: its name, process and value.
fn word(socket: &UnixDatagram) -> (String, u32, i32) {
    let mut bytes = [0; 128];
    let length = socket.recv(&mut bytes).expect("a word");
    let text = std::str::from_utf8(&bytes[..length]).expect("text");
    let words: Vec<&str> = text.split(' ').collect();
    assert_eq!((words[0], words.len()), ("secret", 4), "{text}");
    let number = |text: &str| text.parse().expect("a number");
    (
        words[1].to_owned(),
        words[2].parse().expect("a process"),
        number(words[3]),
    )
}

/// The next word, which tells of the rank of this number: its process.
fn process_of_rank(socket: &UnixDatagram, number: i32) -> u32 {
    let (name, process, rank) = word(socket);
    assert_eq!((name.as_str(), rank), ("rank", number));
    process
}

#[test]
fn ranks_and_their_ends_are_told_and_the_rank_has_no_library() {
    let name = format!("weft-test-ends-{}", std::process::id());
    let socket = hear(&name);
    let mut shell = launcher(
        &name,
        "OMPI_COMM_WORLD_RANK=3 /usr/bin/env -u LD_PRELOAD sh -c 'sh -c true; exit 7'; :",
    );
    let process = process_of_rank(&socket, 3);
    // Nothing of what the rank itself waits for comes in between.
    assert_eq!(word(&socket), ("ended".to_owned(), process, 7 << 8));
    assert!(shell.wait().expect("ended").success());
}

#[test]
fn a_signal_is_told_before_it_ends_a_rank() {
    let name = format!("weft-test-sent-{}", std::process::id());
    let socket = hear(&name);
    let mut shell = launcher(
        &name,
        "PMI_RANK=1 /usr/bin/env -u LD_PRELOAD sleep 1000 & read go; kill -KILL $!; wait; :",
    );
    let process = process_of_rank(&socket, 1);
    shell
        .stdin
        .take()
        .expect("a pipe")
        .write_all(b"go\n")
        .expect("written");
    assert_eq!(word(&socket), ("sent".to_owned(), process, 9));
    assert_eq!(word(&socket), ("ended".to_owned(), process, 9));
    assert!(shell.wait().expect("ended").success());
}

/// As of MPI_Comm_spawn, whose ranks no env(1) precedes.
#[test]
fn what_a_rank_with_the_library_starts_is_no_rank() {
    let name = format!("weft-test-spawned-{}", std::process::id());
    let socket = hear(&name);
    let mut shell = launcher(&name, "PMI_RANK=2 sh -c 'sh -c \"exit 3\"; exit 7'; :");
    let process = process_of_rank(&socket, 2);
    assert_eq!(word(&socket), ("ended".to_owned(), process, 7 << 8));
    assert!(shell.wait().expect("ended").success());
}

#[test]
fn a_launcher_whose_words_nobody_reads_is_held_up_once() {
    let name = format!("weft-test-full-{}", std::process::id());
    let socket = hear(&name);
    let filler = UnixDatagram::unbound().expect("a socket");
    filler.set_nonblocking(true).expect("set");
    let address = socket.local_addr().expect("its name");
    while filler.send_to_addr(b"x", &address).is_ok() {}
    // Two words of each child, a second each, would be more than twice as long.
    let script = "i=0; while [ $i -lt 100 ]; do (exit 3) & kill -USR1 $!; wait $!; \
                  i=$((i + 1)); done";
    let mut shell = launcher(&name, &format!("timeout 90 sh -c '{script}'"));
    assert_eq!(shell.wait().expect("ended").code(), Some(0));
}

#[test]
fn a_launcher_to_which_nobody_listens_does_its_work() {
    let mut shell = launcher("weft-test-nobody", "PMI_RANK=0 sh -c 'exit 5'; exit $?");
    assert_eq!(shell.wait().expect("ended").code(), Some(5));
}

/// This test is its own launcher: the same program, which knows by a variable that it is one.
#[test]
fn a_launcher_outlives_a_closed_connection_where_it_is_asked_for() {
    const IS_LAUNCHER: &str = "WEFT_TEST_IS_LAUNCHER";
    if std::env::var_os(IS_LAUNCHER).is_some() {
        // SAFETY: no other thread of this process depends on what the signal does.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let (ours, theirs) = UnixStream::pair().expect("two ends");
        let mut ours = File::from(OwnedFd::from(ours));
        ours.write_all(b"while it is open").expect("written");
        drop(theirs);
        let error = ours.write(b"x").expect_err("closed");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let (reader, mut pipe) = std::io::pipe().expect("a pipe");
        // SAFETY: the address of this thread's errno is always valid.
        unsafe { *libc::__errno_location() = libc::EINTR };
        pipe.write_all(b"no socket").expect("written");
        assert_eq!(
            std::io::Error::last_os_error().kind(),
            ErrorKind::Interrupted
        );
        drop(reader);
        return;
    }
    let ended = |variables: &[&str]| {
        let this = std::env::current_exe().expect("this test");
        Command::new(this)
            .args([
                "--exact",
                "a_launcher_outlives_a_closed_connection_where_it_is_asked_for",
            ])
            .env(IS_LAUNCHER, "1")
            .env("LD_PRELOAD", library())
            .env_remove("OMPI_COMM_WORLD_RANK")
            .env_remove("PMI_RANK")
            .env_remove("PMIX_RANK")
            .envs(variables.iter().map(|name| (name, "1")))
            .status()
            .expect("started")
    };
    let asked = "WEFT_LAUNCHER_WITHOUT_SIGPIPE";
    assert!(ended(&[asked]).success());
    assert_eq!(ended(&[]).signal(), Some(libc::SIGPIPE));
    // As a rank of MPI_Comm_spawn.
    assert_eq!(ended(&[asked, "PMI_RANK"]).signal(), Some(libc::SIGPIPE));
}
