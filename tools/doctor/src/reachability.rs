// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether datagrams come from one host to another and back, over as many flows as an endpoint has
//! paths: a firewall that drops UDP is the most common reason why a job hears nothing.
//!
//! Called by `lib.rs` for `weft doctor --hosts`, from the first host to each other one. There this
//! program sends back what comes (`--echo-datagrams`), here it counts what came back
//! (`--count-datagrams ADDRESS:PORT`). Source: docs/srd-protocol.md, clauses 16 and 17.

use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_launch::remote_shell::RemoteShell;
use weft_os::interface;

use crate::remote::{Remote, RemoteFault, until_let_go};

/// Ports on each side; each pair of them is a flow. Specified by srd-protocol 17.
const PORTS: usize = 8;
/// The least that every network carries. Specified by srd-protocol 16.
const BYTES: usize = 1200;
/// What has not come back by then is lost. Chosen.
const PATIENCE: Duration = Duration::from_secs(1);
/// Each is sent so often, since a network may lose one. Chosen.
const TRIES: usize = 3;

/// What came back of datagrams from one host to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reachability {
    /// Who sent.
    pub from: String,
    /// Who sent back.
    pub to: String,
    /// Flows, each a pair of ports.
    pub flows: usize,
    /// Of these came back.
    pub came: usize,
    /// Why it could not be tried; empty where it was.
    pub failure: String,
}

impl Reachability {
    /// 0 where all came back, 1 where some did, or nothing was tried, 2 where none did.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self.came {
            _ if !self.failure.is_empty() => 1,
            0 => 2,
            came => u8::from(came < self.flows),
        }
    }

    /// A line for people.
    #[must_use]
    pub fn text(&self) -> String {
        let Self {
            from,
            to,
            flows,
            came,
            failure,
        } = self;
        if !failure.is_empty() {
            return format!("{from} to {to}: datagrams were not tried: {failure}\n");
        }
        let verdict = match self.exit_code() {
            0 => "",
            1 => "; a firewall or a path drops some, and Weft goes around it",
            _ => {
                "; Weft cannot talk between them: let UDP pass on all ports above 1023 (the \
                 security group, nft list ruleset)"
            }
        };
        format!("{from} to {to}: datagrams came back over {came} of {flows} flows{verdict}\n")
    }
}

/// From the first host to each other one, all at once.
#[must_use]
pub fn measure(
    shell: &RemoteShell,
    program: &Path,
    hosts: &[String],
    patience: Duration,
) -> Vec<Reachability> {
    let Some((from, others)) = hosts.split_first() else {
        return Vec::new();
    };
    let one = |to: &String| {
        let (shell, program) = (shell.clone(), program.to_owned());
        let (from, to) = (from.clone(), to.clone());
        thread::spawn(move || {
            let way = Way {
                from: &from,
                to: &to,
            };
            let tried = between(&shell, &program, way, patience);
            let failure = tried.as_ref().err().map(ToString::to_string);
            Reachability {
                from,
                to,
                flows: PORTS * PORTS,
                came: tried.unwrap_or(0),
                failure: failure.unwrap_or_default(),
            }
        })
    };
    let threads: Vec<_> = others.iter().map(one).collect();
    let joined = threads.into_iter().filter_map(|thread| thread.join().ok());
    joined.collect()
}

/// From one host to another.
#[derive(Debug, Clone, Copy)]
struct Way<'a> {
    from: &'a str,
    to: &'a str,
}

fn between(
    shell: &RemoteShell,
    program: &Path,
    Way { from, to }: Way<'_>,
    patience: Duration,
) -> Result<usize, RemoteFault> {
    let echo = shell.command(to, program, &["doctor", "--echo-datagrams"]);
    let mut echo = Remote::start(echo, to)?;
    let ports = echo.line(patience)?;
    let words = ["doctor", "--count-datagrams", &ports];
    let mut counter = Remote::start(shell.command(from, program, &words), from)?;
    let line = counter.line(patience)?;
    let host = from.to_owned();
    line.parse().map_err(|_| RemoteFault::Answer { host, line })
}

/// Sends back what comes to some ports, until standard input ends: says their addresses first.
///
/// # Errors
/// That no socket can be opened.
pub fn echo() -> io::Result<()> {
    let sockets = (0..PORTS).map(|_| UdpSocket::bind((interface::default_address(), 0)));
    let sockets = sockets.collect::<io::Result<Vec<_>>>()?;
    let addresses = sockets.iter().map(UdpSocket::local_addr);
    let addresses = addresses.collect::<io::Result<Vec<_>>>()?;
    let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    println!("{}", list.join(","));
    io::stdout().flush()?;
    for socket in sockets {
        thread::spawn(move || send_back(&socket));
    }
    until_let_go();
    Ok(())
}

/// Never more than came, so nobody can have it flood another.
fn send_back(socket: &UdpSocket) {
    let mut bytes = [0; BYTES];
    loop {
        // An error is that of an earlier datagram, or lasts a moment.
        if let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&bytes[..length], from);
        }
    }
}

/// Sends to each of these addresses, as in `10.0.0.7:4711,10.0.0.7:4712`, from as many ports, and
/// says over how many pairs something came back.
///
/// # Errors
/// That the words are wrong, or no socket can be opened.
pub fn count(words: &str) -> io::Result<()> {
    let wrong = || io::Error::other(format!("'{words}' is no list of ADDRESS:PORT"));
    let addresses: Vec<SocketAddr> = words
        .split(',')
        .map(|word| word.parse().map_err(|_| wrong()))
        .collect::<io::Result<_>>()?;
    if addresses.len() > PORTS {
        return Err(wrong());
    }
    println!("{}", came_back(&addresses)?);
    Ok(())
}

fn came_back(addresses: &[SocketAddr]) -> io::Result<usize> {
    let threads: Vec<_> = (0..PORTS)
        .map(|_| {
            let addresses = addresses.to_vec();
            thread::spawn(move || from_one_port(&addresses))
        })
        .collect();
    let mut count = 0;
    for thread in threads {
        let failed = |_| io::Error::other("a thread ended");
        count += thread.join().map_err(failed)??;
    }
    Ok(count)
}

/// To how many of the addresses there is a way and one back.
fn from_one_port(addresses: &[SocketAddr]) -> io::Result<usize> {
    let Some(first) = addresses.first() else {
        return Ok(0);
    };
    let any: SocketAddr = match first {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any)?;
    let mut waited: Vec<SocketAddr> = addresses.to_vec();
    let mut bytes = [0; BYTES];
    for _ in 0..TRIES {
        for address in &waited {
            // What a firewall here refuses is lost, too.
            let _ = socket.send_to(&bytes, address);
        }
        let deadline = Instant::now() + PATIENCE / TRIES as u32;
        while !waited.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            socket.set_read_timeout(Some(left))?;
            if let Ok((BYTES, from)) = socket.recv_from(&mut bytes) {
                waited.retain(|address| *address != from);
            }
        }
    }
    Ok(addresses.len() - waited.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(came: usize, failure: &str) -> Reachability {
        Reachability {
            from: "a".to_owned(),
            to: "b".to_owned(),
            flows: 64,
            came,
            failure: failure.to_owned(),
        }
    }

    #[test]
    fn lost_flows_are_a_warning_and_none_at_all_is_a_failure() {
        let all = reach(64, "");
        assert_eq!(
            all.text(),
            "a to b: datagrams came back over 64 of 64 flows\n"
        );
        assert_eq!(all.exit_code(), 0);
        assert_eq!(reach(62, "").exit_code(), 1);
        let none = reach(0, "");
        assert!(none.exit_code() == 2 && none.text().contains("let UDP pass"));
        let untried = reach(0, "b: no answer within 5 s");
        assert!(untried.exit_code() == 1 && untried.text().contains("were not tried: b: no"));
    }

    #[test]
    fn what_nobody_sends_back_is_not_counted() {
        let there = UdpSocket::bind("127.0.0.1:0").unwrap();
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let both = [there.local_addr().unwrap(), silent.local_addr().unwrap()];
        thread::spawn(move || send_back(&there));
        assert_eq!(came_back(&both).unwrap(), PORTS);
        assert!(count("10.0.0.7").is_err() && count("").is_err());
    }
}
