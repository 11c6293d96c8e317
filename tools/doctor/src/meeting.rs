// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two processes that meet as ranks do: one listens on an abstract socket, hands its region over by
//! descriptor (SCM_RIGHTS), reads what the other writes into it, and notices the other's end.
//!
//! Called by `lib.rs`. The other process is `weft doctor --visit NAME`. Uses the functions that the
//! shared-memory route uses (docs/shm-layout.md). Source: unix(7), pid_namespaces(7).

use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use weft_launch::number_text::size;
use weft_os::local_socket::{Connection, Listener};
use weft_os::process_id::ProcessId;
use weft_os::{limits, process, region_file, sleep};
use weft_ring::layout::REGION_BYTES;
use weft_ring::{AttachError, Identity, PipeReader, PipeWriter, Region};

use crate::attempt;
use crate::check::{Check, Status};

const CONTACT: &str = "local contact";
const MEMORY: &str = "shared memory";
const END: &str = "end of a rank";

/// How long either side waits for the other. Chosen: guards against hanging on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at what comes without a descriptor to wait for.
const PAUSE: Duration = Duration::from_millis(1);

/// The checks of this file; `executable` is the `weft` that is started as the visitor.
#[must_use]
pub fn checks(executable: Option<&Path>) -> Vec<Check> {
    let Some(executable) = executable else {
        let alone = [contact(Ok(())), memory(Ok(())), end(Ok(true))];
        let alone = alone.map(|check| attempt::alone(&check.name, &check.why));
        return alone.to_vec();
    };
    let start = |name: &str| {
        Command::new(executable)
            .args(["doctor", "--visit", name])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    };
    checks_with(start).to_vec()
}

/// The same with another visitor, who is told the name of the socket.
fn checks_with(start: impl FnOnce(&str) -> io::Result<Child>) -> [Check; 3] {
    match Visitor::invite(start) {
        Err(why) => [
            contact(Err(why)),
            untried(memory(Ok(()))),
            untried(end(Ok(true))),
        ],
        Ok(mut visitor) => {
            let shared = visitor.share();
            let ended = visitor.see_off();
            [contact(Ok(())), memory(shared), end(ended)]
        }
    }
}

/// Not tried, for the want of a visitor.
fn untried(check: Check) -> Check {
    Check::ok(
        &check.name,
        "no other process made contact, so it could not be tried",
        &check.why,
    )
    .not_tried(format!("repair `{CONTACT}` first"))
}

fn contact(tried: io::Result<()>) -> Check {
    let why = "a rank makes first contact with another through an abstract unix socket named \
               after its address, and learns from the kernel whose process that is";
    match tried {
        Ok(()) => Check::ok(
            CONTACT,
            "another process connected to an abstract unix socket; the kernel named it",
            why,
        ),
        Err(error) => Check::ok(CONTACT, error.to_string(), why).but(
            Status::Fail,
            "allow unix sockets in the container's seccomp or AppArmor profile; all ranks of a \
             host must share one network namespace",
        ),
    }
}

fn memory(tried: io::Result<()>) -> Check {
    let why = "every message inside a host goes through a region of memory that its receiver \
               hands to the sender";
    match tried {
        Ok(()) => Check::ok(
            MEMORY,
            format!(
                "a region of {}, handed over, mapped and written by another process",
                size(REGION_BYTES as u64)
            ),
            why,
        ),
        Err(error) => Check::ok(MEMORY, error.to_string(), why)
            .but(
                Status::Fail,
                "raise the limit that the message names; in a container allow memfd_create and \
                 sendmsg with descriptors",
            )
            .limited_by(format!(
                "a region takes {} of addresses{}",
                size(REGION_BYTES as u64),
                limits::in_words()
            )),
    }
}

/// `Ok(false)` where this process does not know its own namespace.
fn end(tried: io::Result<bool>) -> Check {
    let why = "operations with a rank that was killed must end in an error, and what it held \
               must be given back";
    match tried {
        Ok(true) => Check::ok(END, "the end of another process was noticed", why),
        Ok(false) => Check::ok(
            END,
            "/proc is missing or another namespace's; the end of a rank is seen by its sockets \
             alone",
            why,
        )
        .not_tried("mount the proc of this process namespace on /proc"),
        Err(error) => Check::ok(END, error.to_string(), why).but(
            Status::Warn,
            "let processes of one user see each other: no hidepid on /proc, one process \
             namespace for all ranks of a host",
        ),
    }
}

/// A process that came.
struct Visitor {
    child: Child,
    connection: Option<Connection>,
    /// The name by which it found us, which it writes into our region.
    name: String,
}

impl Visitor {
    fn invite(start: impl FnOnce(&str) -> io::Result<Child>) -> io::Result<Self> {
        let name = format!(
            "weft-doctor-{}-{:016x}",
            std::process::id(),
            process::random_u64()?
        );
        let listener = Listener::bind(&name).map_err(at("an abstract unix socket"))?;
        let child = start(&name).map_err(at("starting another process"))?;
        let mut visitor = Self {
            child,
            connection: None,
            name,
        };
        let begin = Instant::now();
        let connection = loop {
            sleep::wait_readable(listener.as_fd().as_raw_fd(), 20);
            if let Some(connection) = listener.accept() {
                break connection;
            }
            visitor.must_live(begin)?;
        };
        let who = connection.credentials().map_err(at("SO_PEERCRED"))?;
        if (who.pid, who.uid) != (visitor.child.id(), process::own_uid()) {
            return Err(io::Error::other(format!(
                "process {} of user {} came, as the kernel says, and not process {} of user {}",
                who.pid,
                who.uid,
                visitor.child.id(),
                process::own_uid()
            )));
        }
        visitor.connection = Some(connection);
        Ok(visitor)
    }

    /// Hands a region over and waits for what is written into it.
    fn share(&mut self) -> io::Result<()> {
        let file = region()?;
        let nobody = Identity {
            address: ([127, 0, 0, 1], 0).into(),
            incarnation: 0,
            process: ProcessId::default(),
        };
        let region = Region::create(file.as_fd(), &nobody, (0, 0)).map_err(|error| {
            io::Error::other(format!(
                "a region of {} cannot be mapped: {}",
                size(REGION_BYTES as u64),
                in_words(error)
            ))
        })?;
        let lost = || io::Error::other("the region has no place for messages");
        let mut reader = PipeReader::attach(region.mapping(), 0).ok_or_else(lost)?;
        let connection = self.connection.as_ref().ok_or_else(lost)?;
        let handed = connection.send_file(file.as_fd());
        handed.map_err(at("handing a descriptor over (SCM_RIGHTS)"))?;
        let begin = Instant::now();
        loop {
            let mut said = None;
            let read = reader.read(|chunk| said = Some(chunk.to_vec()));
            read.map_err(|_| io::Error::other("what was written is no message"))?;
            match said {
                Some(said) if said == self.name.as_bytes() => return Ok(()),
                Some(_) => return Err(io::Error::other("other bytes came than were written")),
                None => self.must_live(begin)?,
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Has it go, and waits until that can be seen; false where that cannot be tried.
    fn see_off(mut self) -> io::Result<bool> {
        let own = ProcessId::own();
        let Some(its) = ProcessId::of(self.child.id(), &own) else {
            return Ok(false);
        };
        // It waits for this.
        drop(self.connection.take());
        let begin = Instant::now();
        while !its.has_ended(&own) {
            if begin.elapsed() > PATIENCE {
                return Err(io::Error::other(
                    "the end of another process is not noticed",
                ));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(true)
    }

    /// An error where it is gone or too late.
    fn must_live(&mut self, since: Instant) -> io::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            let mut said = String::new();
            if let Some(errors) = &mut self.child.stderr {
                errors.read_to_string(&mut said)?;
            }
            let said = said.trim();
            return Err(io::Error::other(if said.is_empty() {
                format!("the other process ended without a message ({status})")
            } else {
                format!("the other process: {said}")
            }));
        }
        if since.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(io::Error::other(format!(
                "the other process did not answer in {seconds} s"
            )));
        }
        Ok(())
    }
}

impl Drop for Visitor {
    /// It goes by itself when the connection closes; one that does not is ended.
    fn drop(&mut self) {
        drop(self.connection.take());
        let begin = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) {
            if begin.elapsed() > PATIENCE {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// A file for a region, made as an endpoint makes it.
fn region() -> io::Result<OwnedFd> {
    let length = REGION_BYTES as u64;
    region_file::create_memfd("weft-doctor", length).or_else(|refused| {
        let folder = std::env::var_os("FI_WEFT_REGION_DIR").unwrap_or_else(|| "/dev/shm".into());
        region_file::create_in(Path::new(&folder), length)
            .map_err(|_| io::Error::new(refused.kind(), format!("an anonymous file: {refused}")))
    })
}

fn at(what: &str) -> impl Fn(io::Error) -> io::Error + '_ {
    move |error| io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// The other side: comes to the socket of this name, maps the region that it is given, writes the
/// name into it and stays until the connection closes.
///
/// # Errors
/// What could not be done.
pub fn visit(name: &str) -> io::Result<()> {
    let connection = Connection::open(name).map_err(at("connecting"))?;
    let begin = Instant::now();
    let file = loop {
        match connection.receive_file() {
            Ok(Some(file)) => break file,
            Ok(None) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Ok(None) => return Err(io::Error::other("no descriptor came")),
            // This side was all that there was to try.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(at("taking a descriptor")(error)),
        }
    };
    let region = Region::attach(file.as_fd()).map_err(|error| {
        io::Error::other(format!("a region cannot be mapped: {}", in_words(error)))
    })?;
    let said = name.as_bytes();
    let mut writer = PipeWriter::attach(region.mapping(), 0, 0)
        .ok_or_else(|| io::Error::other("the region has no place for messages"))?;
    let written = writer.write(|chunk| {
        let (mut part, _) = chunk.split_at(said.len());
        part.copy_from_slice(said);
        said.len()
    });
    if !written {
        return Err(io::Error::other("the region is full"));
    }
    while matches!(connection.receive_file(), Ok(None)) && begin.elapsed() < 2 * PATIENCE {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Why a region is of no use, as the user reads it.
fn in_words(error: AttachError) -> String {
    match error {
        AttachError::NotMapped(errno) => io::Error::from_raw_os_error(errno).to_string(),
        AttachError::NotARegion => "it is not a region".to_owned(),
        AttachError::OtherLayout { version } => format!("it has layout {version}"),
        AttachError::Closed => "its owner has closed it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A visitor who does this instead.
    fn instead(line: &str) -> [Check; 3] {
        checks_with(|_| {
            Command::new("sh")
                .args(["-c", line])
                .stdin(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
        })
    }

    #[test]
    fn without_a_visitor_contact_fails_and_the_rest_is_not_tried() {
        for (line, words) in [
            ("exit 3", "without a message"),
            ("echo not here >&2; exit 1", "the other process: not here"),
        ] {
            let [contact, memory, end] = instead(line);
            contact.assert_wrong(Status::Fail, "network namespace");
            assert!(contact.value.contains(words), "{contact:?}");
            for untried in [memory, end] {
                assert_eq!(untried.status, Status::NotTried);
                assert!(untried.how.contains(CONTACT), "{untried:?}");
            }
        }
    }

    #[test]
    fn without_an_executable_nothing_is_tried() {
        let found = checks(None);
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|check| check.status == Status::NotTried));
    }

    #[test]
    fn who_cannot_be_started_is_a_failure() {
        let [contact, ..] = checks_with(|_| Err(io::Error::other("no more processes")));
        assert_eq!(contact.status, Status::Fail);
        assert!(contact.value.contains("no more processes"));
    }

    #[test]
    fn a_region_reaches_a_visitor_who_writes_into_it() {
        let name = format!("weft-doctor-test-{}", std::process::id());
        let listener = Listener::bind(&name).unwrap();
        let visitor = std::thread::spawn({
            let name = name.clone();
            move || visit(&name)
        });
        let deadline = Instant::now() + PATIENCE;
        let connection = loop {
            if let Some(connection) = listener.accept() {
                break connection;
            }
            assert!(Instant::now() < deadline, "nobody came");
            std::thread::sleep(PAUSE);
        };
        // Somebody who lives as long as the test, since the visitor is a thread.
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let mut host = Visitor {
            child,
            connection: Some(connection),
            name,
        };
        host.share().unwrap();
        host.child.kill().unwrap();
        drop(host);
        visitor.join().unwrap().unwrap();
    }

    #[test]
    fn each_result_has_its_state() {
        let refused = || io::Error::other("a region of 2.1 GiB cannot be mapped");
        assert_eq!(memory(Ok(())).status, Status::Ok);
        let check = memory(Err(refused()));
        check.assert_wrong(Status::Fail, "allow memfd_create and sendmsg");
        assert!(check.limit.contains("a region takes 2."), "{check:?}");
        assert_eq!(end(Ok(true)).status, Status::Ok);
        assert_eq!(end(Ok(false)).status, Status::NotTried);
        end(Err(refused())).assert_wrong(Status::Warn, "no hidepid on /proc");
        assert_eq!(contact(Ok(())).status, Status::Ok);
    }
}
