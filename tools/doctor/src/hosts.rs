// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft doctor --hosts`: the doctor on each host of a job, through the remote shell of `weft run`,
//! and what differs between the hosts.
//!
//! Called by `lib.rs`; uses the hosts and the remote shell of `weft-launch`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use weft_launch::remote_shell::RemoteShell;

use crate::check::Check;
use crate::examination::{Counts, Examination};
use crate::facts::Facts;
use crate::flows::Flows;
use crate::reachability::Reachability;
use crate::remote::RemoteFault;

/// What `weft doctor --json` of a host says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// The exit code of the doctor there.
    pub exit_code: u8,
    /// How many checks are of each state.
    pub counts: Counts,
    /// What must be alike.
    #[serde(default)]
    pub facts: Facts,
    /// Seconds since 1970 when it ended.
    #[serde(default)]
    pub time_s: f64,
    /// All checks.
    pub checks: Vec<Check>,
}

/// What `weft doctor --json` prints: the examination, and what a comparison of hosts needs.
#[derive(Debug, Serialize)]
pub struct Answer<'a> {
    #[serde(flatten)]
    found: &'a Examination,
    facts: Facts,
    time_s: f64,
}

impl<'a> Answer<'a> {
    /// With the time of now.
    #[must_use]
    pub fn now(found: &'a Examination, facts: Facts) -> Self {
        let time_s = now_s();
        Self {
            found,
            facts,
            time_s,
        }
    }
}

/// Seconds since 1970; 0 where the clock stands before.
fn now_s() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.as_secs_f64())
}

/// What is known of a host.
#[derive(Debug, Serialize)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Why there is no report; empty where there is one.
    pub unreachable: String,
    /// Its report.
    #[serde(flatten)]
    pub report: Option<Report>,
}

/// All hosts.
#[derive(Debug, Serialize)]
pub struct Hosts {
    /// As `weft doctor`: 2 where a host cannot be reached or a check fails, 1 for warnings and
    /// differences.
    pub exit_code: u8,
    /// Facts that are not alike: name, value, and the hosts with this value.
    pub differences: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Datagrams from the first host to each other one.
    pub reach: Vec<Reachability>,
    /// One flow and several between the first two hosts, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows: Option<Flows>,
    /// Why that could not be measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows_failure: Option<String>,
    /// Each host, in the order in which they were named.
    pub hosts: Vec<Host>,
}

/// How far clocks may be apart, in seconds. Chosen: a tenth of what signatures of S3 forgive
/// (15 minutes), and far more than NTP leaves.
const CLOCKS_S: f64 = 90.0;

/// What each host is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// The words of `weft`.
    pub words: Vec<String>,
    /// What it reads: nothing that may stand on a command line, as credentials.
    pub input: String,
}

/// Asks each host, all at once.
#[must_use]
pub fn examine(
    shell: &RemoteShell,
    program: &Path,
    names: &[String],
    question: &Question,
    patience: Duration,
) -> Hosts {
    let one = |name: &String| {
        let (shell, program, name) = (shell.clone(), program.to_owned(), name.clone());
        let question = question.clone();
        thread::spawn(move || {
            let answer = ask(&shell, &program, &name, &question, patience);
            let unreachable = answer.as_ref().err().cloned().unwrap_or_default();
            let report = answer.ok();
            Host {
                host: name,
                unreachable,
                report,
            }
        })
    };
    let threads: Vec<_> = names.iter().map(one).collect();
    let hosts = threads.into_iter().filter_map(|thread| thread.join().ok());
    judge(hosts.collect())
}

fn ask(
    shell: &RemoteShell,
    program: &Path,
    host: &str,
    question: &Question,
    patience: Duration,
) -> Result<Report, String> {
    let words: Vec<&str> = question.words.iter().map(String::as_str).collect();
    let mut command = shell.command(host, program, &words);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("the remote shell: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // It fits into the pipe; who does not read it says why by his end.
        let _ = stdin.write_all(question.input.as_bytes());
    }
    let output = child.stdout.take().map(gather);
    let complaints = child.stderr.take().map(gather);
    let code = wait(&mut child, patience);
    let read = |thread: Option<thread::JoinHandle<Vec<u8>>>| {
        let bytes = thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let Some(code) = code else {
        // Whoever else holds the pipes open is not waited for.
        return Err(format!("no answer within {} s", patience.as_secs()));
    };
    let (output, complaints) = (read(output), read(complaints));
    if let Ok(mut report) = serde_json::from_str::<Report>(&output) {
        report.time_s -= now_s();
        return Ok(report);
    }
    let last = complaints
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty());
    let said = last
        .map(|line| format!(": {}", line.trim()))
        .unwrap_or_default();
    Err(match code {
        126 | 127 => format!("no {} that can be run there{said}", program.display()),
        2 if said.is_empty() => "an older Weft is there".to_owned(),
        code => format!("the remote shell ended with {code}{said}"),
    })
}

fn gather(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before an error is still told.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// Its exit code; a process that outlives the patience is ended.
fn wait(child: &mut Child, patience: Duration) -> Option<i32> {
    let deadline = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.code().unwrap_or(-1)),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// What differs, and the exit code.
fn judge(hosts: Vec<Host>) -> Hosts {
    let mut differences = BTreeMap::new();
    let reports = || {
        let all = hosts.iter();
        all.filter_map(|host| Some((&host.host, host.report.as_ref()?)))
    };
    let names: BTreeSet<&String> = reports()
        .flat_map(|(_, report)| report.facts.keys())
        .collect();
    for name in names {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (host, report) in reports() {
            let value = report.facts.get(name).map_or("none", String::as_str);
            values
                .entry(value.to_owned())
                .or_default()
                .push(host.clone());
        }
        if values.len() > 1 {
            differences.insert(name.clone(), values);
        }
    }
    // Both are compared with the clock here, each when its own answer came.
    let far =
        reports().any(|(_, one)| reports().any(|(_, other)| one.time_s - other.time_s > CLOCKS_S));
    if far {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (host, report) in reports() {
            let value = format!("{:+.0} s from here", report.time_s);
            values.entry(value).or_default().push(host.clone());
        }
        differences.insert("clock".to_owned(), values);
    }
    let worst = reports().map(|(_, report)| report.exit_code).max();
    let is_missing = hosts.iter().any(|host| host.report.is_none());
    let exit_code = match worst.unwrap_or(2) {
        _ if is_missing => 2,
        code => code.max(u8::from(!differences.is_empty())),
    };
    Hosts {
        exit_code,
        differences,
        reach: Vec::new(),
        flows: None,
        flows_failure: None,
        hosts,
    }
}

impl Hosts {
    /// The hosts that answered.
    #[must_use]
    pub fn reached(&self) -> Vec<String> {
        let reached = self.hosts.iter().filter(|host| host.report.is_some());
        reached.map(|host| host.host.clone()).collect()
    }

    /// With the datagrams between them.
    pub fn add_reach(&mut self, reach: Vec<Reachability>) {
        let worst = reach.iter().map(Reachability::exit_code).max();
        self.exit_code = self.exit_code.max(worst.unwrap_or(0));
        self.reach = reach;
    }

    /// With what was measured between the first two of them. That it could not be is a warning.
    pub fn add_flows(&mut self, measured: Result<Flows, RemoteFault>) {
        match measured {
            Ok(flows) => self.flows = Some(flows),
            Err(why) => {
                self.flows_failure = Some(why.to_string());
                self.exit_code = self.exit_code.max(1);
            }
        }
    }

    /// For people: a line for each host, what is wrong there, and what differs.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for host in &self.hosts {
            let Some(report) = &host.report else {
                let _ = writeln!(text, "{}: not reached: {}", host.host, host.unreachable);
                continue;
            };
            let Counts {
                ok,
                not_tried,
                warn,
                fail,
            } = report.counts;
            let _ = writeln!(
                text,
                "{}: {ok} ok, {warn} could be better, {fail} failed, {not_tried} not tried",
                host.host
            );
            for check in report.checks.iter().filter(|check| check.is_wrong()) {
                let _ = writeln!(text, "    {}: {}; {}", check.name, check.value, check.fix);
            }
        }
        for (name, values) in &self.differences {
            let value = |(value, hosts): (&String, &Vec<String>)| {
                format!("{value} on {}", hosts.join(", "))
            };
            let values: Vec<String> = values.iter().map(value).collect();
            let _ = writeln!(text, "{name} differs: {}", values.join("; "));
        }
        if self.differences.is_empty() {
            text.push_str("the hosts that were reached are alike\n");
        }
        for reach in &self.reach {
            text.push_str(&reach.text());
        }
        if let Some(flows) = &self.flows {
            text.push_str(&flows.text());
        }
        if let Some(why) = &self.flows_failure {
            let _ = writeln!(text, "flows were not measured: {why}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, facts: &[(&str, &str)], time_s: f64, exit_code: u8) -> Host {
        let facts = facts
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        Host {
            host: name.to_owned(),
            unreachable: String::new(),
            report: Some(Report {
                exit_code,
                counts: Counts::default(),
                facts: facts.collect(),
                time_s,
                checks: Vec::new(),
            }),
        }
    }

    #[test]
    fn hosts_that_are_alike_have_no_differences() {
        let facts = [("MTU", "9000")];
        let found = judge(vec![host("a", &facts, 0.1, 0), host("b", &facts, -0.1, 0)]);
        assert!(found.differences.is_empty() && found.exit_code == 0);
        assert!(found.text().contains("are alike"));
    }

    #[test]
    fn what_differs_is_named_with_its_hosts_and_is_a_warning() {
        let (jumbo, plain) = ([("MTU", "9000"), ("x", "y")], [("MTU", "1500")]);
        let hosts = vec![
            host("a", &jumbo, 0.0, 0),
            host("b", &plain, 400.0, 0),
            host("c", &jumbo, 0.0, 0),
        ];
        let found = judge(hosts);
        assert_eq!(found.exit_code, 1);
        let text = found.text();
        for line in [
            "MTU differs: 1500 on b; 9000 on a, c",
            "x differs: none on b; y on a, c",
            "clock differs: +0 s from here on a, c; +400 s from here on b",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    #[test]
    fn flows_that_could_not_be_measured_are_a_warning() {
        let mut found = judge(vec![host("a", &[], 0.0, 0), host("b", &[], 0.0, 0)]);
        found.add_flows(Err(RemoteFault::Silent {
            host: "b".to_owned(),
            seconds: 1,
        }));
        assert_eq!(found.exit_code, 1);
        assert!(
            found
                .text()
                .contains("flows were not measured: b: no answer")
        );
    }

    #[test]
    fn a_host_that_is_not_reached_is_a_failure_with_its_reason() {
        let mut lost = host("b", &[], 0.0, 0);
        lost.report = None;
        lost.unreachable = "no answer within 1 s".to_owned();
        let found = judge(vec![host("a", &[], 0.0, 1), lost]);
        assert_eq!(found.exit_code, 2);
        assert!(
            found
                .text()
                .contains("b: not reached: no answer within 1 s")
        );
    }
}
