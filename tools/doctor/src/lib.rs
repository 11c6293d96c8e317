// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft doctor` finds what is wrong on this host and says how to fix it. `weft info` prints what
//! is here. `weft top` shows the counters of running jobs.
//!
//! An MPI that cannot use Weft often uses something else and does not say so: in a container where
//! single copy is refused, with a /dev/shm of 64 MiB, where the MPI was built without libfabric, or
//! where an old job left a variable. So the doctor does not only read versions. It does what Weft
//! will do: it makes the files, opens the sockets, lets another process read its memory, and starts
//! a job with each MPI. For each check it gives the result, why it matters and what to do. It says
//! what it did not try. It changes nothing. docs/doctor.md lists all checks.
//!
//! - Frame: `arguments` are the options. `check` is one result, `examination` all of them with the
//!   exit code, `text` prints them.
//! - Provider and MPIs: `library` checks the provider's file. `launcher` starts a job with each MPI
//!   that `weft run` would find.
//! - Two processes: `single_copy`, `direct`, `meeting` and `heap` check what two ranks do with each
//!   other. `attempt` starts `weft` as the other process for the first two.
//! - Network: `contact` checks addresses, `network` datagrams.
//! - Host: `memory`, `processor`, `shared_memory` (/dev/shm), `kernel`, `efa` and `slurm`. `tree`
//!   and `cgroup` read the files of the system.
//! - Buckets: `bucket` checks what a mount needs; `bucket_trial` and `store` try the one that
//!   `--bucket` names.
//! - Several hosts: `hosts` runs the doctor on each host and compares their `facts`. `remote`
//!   starts `weft` on another host. `reach` sends datagrams there and back, `flows` measures
//!   several connections at once.
//! - Environment: `variables` finds those that keep an MPI from using Weft, `parameters` checks
//!   FI_WEFT_*.
//! - `info` prints everything without a verdict, with `running`, the choices of running endpoints,
//!   and `measure`, the time of each copy method. `top` reads what endpoints publish.
//!
//! The code that tries something is separate from the code that judges the result. So tests can
//! check verdicts about machines that are not at hand.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod attempt;
pub mod bucket;
pub mod bucket_trial;
pub mod cgroup;
pub mod check;
pub mod contact;
pub mod direct;
pub mod efa;
pub mod examination;
pub mod facts;
pub mod flows;
pub mod heap;
pub mod hosts;
pub mod info;
pub mod kernel;
pub mod launcher;
pub mod libfabric;
pub mod library;
pub mod measure;
pub mod meeting;
pub mod memory;
pub mod network;
pub mod parameters;
pub mod processor;
pub mod reachability;
pub mod remote;
pub mod running;
pub mod shared_memory;
pub mod single_copy;
pub mod slurm;
pub mod store;
pub mod text;
pub mod top;
pub mod tree;
pub mod variables;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Parser;
use serde::{Deserialize, Serialize};
use weft_job::answer::answer;
use weft_launch::family::Family;
use weft_launch::fault::Fault;
use weft_launch::remote_shell::RemoteShell;

use arguments::{DoctorArguments, InfoArguments, OtherSide};
use attempt::FetchError;
use check::Check;
use examination::Examination;
use launcher::Trial;
use text::Look;
use tree::Tree;

/// Runs `weft doctor` with the words that follow it and returns the exit code: 0 nothing wrong,
/// 1 warnings, 2 failures or wrong usage.
///
/// Starts processes (each MPI's launcher and jobs of it, itself) and opens this process to readers
/// of the same user.
#[must_use]
pub fn doctor(arguments: Vec<OsString>) -> u8 {
    let arguments = match DoctorArguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return answer("weft doctor", &error),
    };
    if let Some(done) = other_side(&arguments) {
        return match done {
            Ok(()) => 0,
            Err(why) => {
                eprintln!("{why}");
                1
            }
        };
    }
    match on_hosts(&arguments) {
        Ok(None) => {}
        Ok(Some(code)) => return code,
        Err(fault) => {
            eprintln!("weft doctor: {fault}");
            return 2;
        }
    }
    let executable = std::env::current_exe().ok();
    let mut checks = all_checks(executable.as_deref(), arguments.quick);
    if let Some(bucket) = &arguments.bucket {
        let variable = |name: &str| std::env::var(name).ok();
        checks.extend(bucket_trial::checks(
            bucket,
            variable,
            executable.as_deref(),
        ));
    }
    let found = Examination::of(checks);
    let output = if arguments.json {
        let facts = facts::of_here(&Tree::of_this_machine(), &launcher::installations());
        json(&hosts::Answer::now(&found, facts))
    } else {
        text::examination(&found, Look::of_stdout(arguments.explain))
    };
    print("weft doctor", &output, found.exit_code)
}

/// The doctor on the hosts that were named, if any; answers the exit code.
fn on_hosts(arguments: &DoctorArguments) -> Result<Option<u8>, Fault> {
    let list = match (&arguments.hosts, &arguments.hostfile) {
        (Some(list), _) => weft_launch::hosts::from_list(list)?,
        (_, Some(path)) => weft_launch::hosts::from_file(path)?,
        _ if arguments.flows => {
            let text = "--flows measures between two hosts; name them: --hosts a,b";
            return Err(Fault::Usage(text.to_owned()));
        }
        _ => return Ok(None),
    };
    let names: Vec<String> = list.into_iter().map(|host| host.name).collect();
    // Each family has variables of its own for this; those of Open MPI stand for all.
    let shell = RemoteShell::choose(
        arguments.launcher.as_deref(),
        Family::OpenMpi,
        |name| std::env::var_os(name),
        std::env::var_os("PATH").as_deref(),
    )?;
    let program = std::env::current_exe().map_err(|source| Fault::System {
        what: "finding the path of weft".to_owned(),
        source,
    })?;
    let question = question(arguments);
    let patience = Duration::from_secs(arguments.host_timeout.into());
    let mut found = hosts::examine(&shell, &program, &names, &question, patience);
    found.add_reach(reachability::measure(
        &shell,
        &program,
        &found.reached(),
        patience,
    ));
    if arguments.flows {
        found.add_flows(flows::measure(&shell, &program, &names, patience));
    }
    let output = if arguments.json {
        json(&found)
    } else {
        found.text()
    };
    Ok(Some(print("weft doctor", &output, found.exit_code)))
}

/// What each host is asked: a bucket takes the variables for stores along.
fn question(arguments: &DoctorArguments) -> hosts::Question {
    let mut words = vec!["doctor".to_owned(), "--json".to_owned()];
    if arguments.quick {
        words.push("--quick".to_owned());
    }
    let mut input = String::new();
    if let Some(bucket) = &arguments.bucket {
        words.extend([
            "--take-variables".to_owned(),
            "--bucket".to_owned(),
            bucket.clone(),
        ]);
        input = json(&Given(weft_launch::mounts::variables()));
    }
    hosts::Question { words, input }
}

/// Variables for stores, as another host is given them.
#[derive(Serialize, Deserialize)]
struct Given(#[serde(with = "weft_launch::exact_bytes::variables")] BTreeMap<String, OsString>);

/// Becomes this program again, with the variables for stores that its input holds.
fn with_variables(arguments: &DoctorArguments) -> io::Error {
    let read = || {
        let Given(given) = serde_json::from_reader(io::stdin())?;
        let mut again = Command::new(std::env::current_exe()?);
        again.args(["doctor", "--json"]);
        if arguments.quick {
            again.arg("--quick");
        }
        if let Some(bucket) = &arguments.bucket {
            again.args(["--bucket", bucket]);
        }
        let for_stores = |name: &str| weft_launch::mounts::is_for_stores(name.as_ref());
        again.envs(given.into_iter().filter(|(name, _)| for_stores(name)));
        Ok(again)
    };
    match read() {
        Ok(mut again) => again.stdin(Stdio::null()).exec(),
        Err(error) => error,
    }
}

/// Where this is the other process of a check: what came of its part.
fn other_side(arguments: &DoctorArguments) -> Option<Result<(), FetchError>> {
    let OtherSide {
        read_memory,
        map_memory,
        visit,
        give_flows,
        read_bucket,
        count_datagrams,
        take_variables,
        echo_datagrams,
        take_flows,
    } = &arguments.other_side;
    if let Some(folder) = read_bucket {
        return Some(bucket_trial::read(folder).map_err(FetchError::from));
    }
    if let Some(addresses) = count_datagrams {
        return Some(reachability::count(addresses).map_err(FetchError::from));
    }
    if *echo_datagrams {
        return Some(reachability::echo().map_err(FetchError::from));
    }
    if *take_variables {
        return Some(Err(FetchError::from(with_variables(arguments))));
    }
    match (read_memory, map_memory, visit, give_flows) {
        (Some(target), ..) => Some(single_copy::read_memory(target)),
        (_, Some(target), ..) => Some(direct::map_memory(target)),
        (_, _, Some(name), _) => Some(meeting::visit(name).map_err(FetchError::from)),
        (.., Some(words)) => Some(flows::give(words).map_err(FetchError::from)),
        _ if *take_flows => Some(flows::take().map_err(FetchError::from)),
        _ => None,
    }
}

/// Runs `weft info` with the words that follow it and returns the exit code.
#[must_use]
pub fn info(arguments: Vec<OsString>) -> u8 {
    let arguments = match InfoArguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return answer("weft info", &error),
    };
    let executable = std::env::current_exe().ok();
    let info = info::Info::gather(
        &Tree::of_this_machine(),
        executable.as_deref(),
        &environment(),
    );
    let output = if arguments.json {
        json(&info)
    } else {
        info.text(Look::of_stdout(false))
    };
    print("weft info", &output, 0)
}

fn all_checks(executable: Option<&Path>, quick: bool) -> Vec<Check> {
    let tree = Tree::of_this_machine();
    let environment = environment();
    let trial = match executable {
        Some(executable) if !quick => Trial::Job(executable),
        Some(_) => Trial::Not("--quick starts no jobs", "weft doctor without --quick"),
        None => Trial::Not("this executable cannot be found", "mount /proc"),
    };
    let mut checks = library::checks();
    checks.push(libfabric::check());
    let mpis = launcher::installations();
    checks.extend(launcher::checks(&mpis, trial));
    checks.push(slurm::check(&mpis));
    checks.extend(meeting::checks(executable));
    checks.push(single_copy::check(&tree, executable));
    checks.push(direct::check(executable));
    checks.push(heap::check());
    checks.push(contact::check());
    checks.extend(network::checks(&tree));
    checks.extend(memory::checks(&tree));
    checks.extend(shared_memory::checks(&mpis));
    checks.extend(kernel::checks(&tree));
    checks.extend(processor::checks(&tree));
    checks.extend(bucket::checks(&tree));
    checks.push(efa::check(&tree));
    checks.extend(variables::checks(&environment));
    checks.extend(parameters::checks(
        &environment,
        &parameters::known_interfaces(),
    ));
    checks
}

/// The environment: names and values of any bytes.
fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

fn json(value: &impl Serialize) -> String {
    // Errors come of failing writers, of maps with keys that are no strings, and of paths that are
    // not UTF-8. There are none: whoever holds a path writes it as text.
    serde_json::to_string_pretty(value).map_or_else(
        |error| format!("{{\"error\":\"{error}\"}}\n"),
        |text| text + "\n",
    )
}

/// A reader that has gone, such as `head`, ends this process by SIGPIPE, as `main.rs` arranges.
fn print(tool: &str, text: &str, code: u8) -> u8 {
    let Err(error) = std::io::stdout().write_all(text.as_bytes()) else {
        return code;
    };
    // Stderr may be what takes nothing, too; the verdict stays.
    let _: io::Result<()> = writeln!(
        io::stderr(),
        "{tool}: writing to standard output: {error}; make room where it goes"
    );
    code.max(1)
}
