// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the network between two hosts limits each flow, as some clouds do: one TCP flow and then
//! several at once, each for half a second, in turns (`weft doctor --hosts a,b --flows`).
//!
//! Called by `lib.rs`. On one host this program takes what comes (`--take-flows`), on the other it
//! gives (`--give-flows ADDRESS COUNT`); both are started through the remote shell. TCP is used
//! because it finds the rate by itself, so that nothing is flooded.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use weft_launch::remote_shell::RemoteShell;
use weft_os::interface;

use crate::remote::{Remote, RemoteFault, until_let_go};

/// Flows at once (chosen: the least that shows a limit of a fourth of the link, and little load).
const FLOWS: usize = 8;
/// Each count of flows takes so many turns (chosen: a median).
const TURNS: usize = 3;
/// A flow sends for so long (chosen: TCP has found its rate by then).
const SENDS: Duration = Duration::from_secs(1);
/// After this a flow that nobody takes is given up (chosen).
const PATIENCE: Duration = Duration::from_secs(10);
/// Several flows are more than one if they carry so many times as much (chosen: beyond what two
/// processors gain over one).
const MORE_TIMES: f64 = 1.6;
/// Bytes of one write.
const BLOCK_BYTES: usize = 64 << 10;

/// What was measured from one host to another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Flows {
    /// Who sent.
    pub from: String,
    /// Who took.
    pub to: String,
    /// Flows at once in the second figure.
    pub flows: usize,
    /// One flow, in MB/s: the median of the turns.
    pub one_mb_s: f64,
    /// All of them together, likewise.
    pub all_mb_s: f64,
}

impl Flows {
    /// A line for people.
    #[must_use]
    pub fn text(&self) -> String {
        let verdict = match self.all_mb_s >= MORE_TIMES * self.one_mb_s {
            true => {
                "the network limits each flow, or has several paths; Weft's 64 paths are as many \
                 flows, and other transports need several connections"
            }
            false => "one flow takes the whole bandwidth",
        };
        format!(
            "{} to {}: one flow {:.1} MB/s, {} flows {:.1} MB/s: {verdict}\n",
            self.from, self.to, self.one_mb_s, self.flows, self.all_mb_s
        )
    }
}

/// Measures from the first host to the second.
///
/// # Errors
/// Which host could not be started on, or did not answer.
pub fn measure(
    shell: &RemoteShell,
    program: &Path,
    hosts: &[String],
    patience: Duration,
) -> Result<Flows, RemoteFault> {
    let [from, to, ..] = hosts else {
        return Err(RemoteFault::OneHost);
    };
    let mut taker = Remote::start(shell.command(to, program, &["doctor", "--take-flows"]), to)?;
    let address = taker.line(patience)?;
    let mut turns = [Vec::new(), Vec::new()];
    for _ in 0..TURNS {
        for (rates, count) in turns.iter_mut().zip([1, FLOWS]) {
            let given = format!("{address},{count}");
            let words = ["doctor", "--give-flows", &given];
            let mut giver = Remote::start(shell.command(from, program, &words), from)?;
            let line = giver.line(patience)?;
            let host = from.clone();
            let rate = line.parse();
            rates.push(rate.map_err(|_| RemoteFault::Answer { host, line })?);
        }
    }
    let [one_mb_s, all_mb_s] = turns.map(median);
    Ok(Flows {
        from: from.clone(),
        to: to.clone(),
        flows: FLOWS,
        one_mb_s,
        all_mb_s,
    })
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(0.0)
}

/// Takes flows and throws away what comes, until standard input ends: says the address first.
///
/// # Errors
/// That no socket can be opened.
pub fn take() -> io::Result<()> {
    let address = interface::default_address();
    let listener = TcpListener::bind(SocketAddr::new(address, 0))?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    thread::spawn(move || {
        for flow in listener.incoming().flatten() {
            thread::spawn(move || drain(flow));
        }
    });
    until_let_go();
    Ok(())
}

/// To its end, which the other side hears of by ours.
fn drain(mut flow: TcpStream) {
    let _ = flow.set_read_timeout(Some(PATIENCE));
    let mut block = vec![0; BLOCK_BYTES];
    while matches!(flow.read(&mut block), Ok(count) if count > 0) {}
}

/// Gives `count` flows at once to an address, as in `10.0.0.7:4711,8`, and says their rate in MB/s.
///
/// # Errors
/// That the words are wrong, or the address cannot be reached.
pub fn give(words: &str) -> io::Result<()> {
    let (address, count) = parse(words)
        .ok_or_else(|| io::Error::other(format!("'{words}' is no ADDRESS:PORT,COUNT")))?;
    println!("{:.3}", rate(address, count)?);
    Ok(())
}

fn parse(words: &str) -> Option<(SocketAddr, usize)> {
    let (address, count) = words.rsplit_once(',')?;
    let count = count
        .parse()
        .ok()
        .filter(|count| (1..=64).contains(count))?;
    Some((address.parse().ok()?, count))
}

fn rate(address: SocketAddr, count: usize) -> io::Result<f64> {
    let flows = (0..count).map(|_| TcpStream::connect_timeout(&address, PATIENCE));
    let flows = flows.collect::<io::Result<Vec<_>>>()?;
    let begin = Instant::now();
    let threads: Vec<_> = flows
        .into_iter()
        .map(|flow| thread::spawn(move || pour(flow)))
        .collect();
    let mut bytes = 0;
    for thread in threads {
        bytes += thread
            .join()
            .map_err(|_| io::Error::other("a flow's thread ended"))??;
    }
    Ok(bytes as f64 / begin.elapsed().as_secs_f64() / 1e6)
}

/// Sends for a while, and waits until all of it was taken.
fn pour(mut flow: TcpStream) -> io::Result<u64> {
    flow.set_write_timeout(Some(PATIENCE))?;
    flow.set_read_timeout(Some(PATIENCE))?;
    let (block, begin, mut bytes) = (vec![0; BLOCK_BYTES], Instant::now(), 0);
    while begin.elapsed() < SENDS {
        bytes += flow.write(&block)? as u64;
    }
    flow.shutdown(Shutdown::Write)?;
    // The other side closes when it has read all.
    let _ = flow.read(&mut [0])?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flows(one_mb_s: f64, all_mb_s: f64) -> String {
        let measured = Flows {
            from: "a".to_owned(),
            to: "b".to_owned(),
            flows: 8,
            one_mb_s,
            all_mb_s,
        };
        measured.text()
    }

    #[test]
    fn several_flows_that_are_more_than_one_show_a_limit() {
        let text = flows(62.5, 240.0);
        assert!(
            text.starts_with("a to b: one flow 62.5 MB/s, 8 flows 240.0 MB/s: the network limits"),
            "{text}"
        );
        assert!(flows(1000.0, 1100.0).ends_with("one flow takes the whole bandwidth\n"));
    }

    #[test]
    fn what_is_given_is_taken_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one");
        thread::spawn(move || {
            for flow in listener.incoming().flatten() {
                thread::spawn(move || drain(flow));
            }
        });
        assert!(rate(address, 2).expect("it is taken") > 0.0);
    }

    #[test]
    fn words_that_name_no_flows_are_refused() {
        assert_eq!(
            parse("10.0.0.7:80,8"),
            Some(("10.0.0.7:80".parse().expect("an address"), 8))
        );
        for words in [
            "",
            "10.0.0.7,8",
            "10.0.0.7:80",
            "10.0.0.7:80,0",
            "10.0.0.7:80,65",
        ] {
            assert_eq!(parse(words), None, "{words}");
        }
        assert!(give("nothing").is_err());
    }

    #[test]
    fn one_host_is_not_enough() {
        let path = std::env::var_os("PATH");
        let shell = RemoteShell::choose(
            Some("true".as_ref()),
            weft_launch::family::Family::OpenMpi,
            |_| None,
            path.as_deref(),
        )
        .expect("true is there");
        let measured = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            measure(&shell, Path::new("weft"), &names, Duration::from_secs(5))
        };
        let told = |names: &[&str]| measured(names).unwrap_err().to_string();
        assert!(told(&["a"]).contains("two hosts"));
        assert_eq!(told(&["a", "b"]), "b: it said nothing");
    }
}
