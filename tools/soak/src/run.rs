// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The whole run: job after job until the time is over, or until something is found.
//!
//! Called by the crate's entry; calls job and report.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid};

use crate::fault::Fault;
use crate::job::{self, Setting};
use crate::network::Host;
use crate::options::Options;
use crate::report::Report;
use crate::schedule::Job;

/// Faults that need hosts of their own.
const OF_THE_NETWORK: [Fault; 7] = [
    Fault::Loss,
    Fault::Duplication,
    Fault::Reordering,
    Fault::Corruption,
    Fault::Replay,
    Fault::Paths,
    Fault::Firewall,
];

/// Runs a soak; returns the exit code.
///
/// # Errors
/// It cannot run here: no provider, no processes, no files.
pub fn run(options: &Options) -> io::Result<u8> {
    let provider_dir = provider_dir(options)?;
    // Before there are threads: a user namespace is had by a process with one thread only.
    let divided = divide();
    let is_divided = divided.is_ok();
    let mut faults = options.faults.clone();
    if let Err(why) = &divided {
        if OF_THE_NETWORK.iter().any(|fault| faults.has(*fault)) {
            eprintln!("weft soak: no faults of the network: {why}");
        }
        faults = faults.without(&OF_THE_NETWORK);
    }
    let seed = options
        .seed
        .unwrap_or_else(|| fastrand::u64(..1_000_000_000));
    let folder = tempfile::tempdir()?;
    let setting = Setting {
        provider_dir,
        libfabric: options.libfabric.clone(),
        ranks: options.ranks,
        faults,
        folder: folder.path().to_owned(),
        is_divided,
    };
    let mut report = Report::new(options, seed, &setting.faults);
    let bar = bar(options);
    report.head(options, &bar);
    let begin = Instant::now();
    let first = options.job.unwrap_or(0);
    for number in first.. {
        let one = Job::draw(seed, number, options.route, is_divided);
        let outcome = job::run(&setting, &one)?;
        report.add(&one, &outcome);
        report.line(&one, &outcome, &setting.faults, &bar);
        bar.set_position(begin.elapsed().as_secs());
        let is_over = begin.elapsed() >= options.length() || options.job.is_some();
        if is_over || (report.has_findings() && !options.keep_going) {
            break;
        }
    }
    bar.finish_and_clear();
    report.end(options, begin.elapsed())
}

fn bar(options: &Options) -> ProgressBar {
    if options.json || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(options.length().as_secs());
    let style = "{bar:30} {elapsed_precise} of {len} s  {msg}";
    bar.set_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    );
    bar
}

/// The folder of the provider that is soaked.
fn provider_dir(options: &Options) -> io::Result<PathBuf> {
    let beside = std::env::current_exe()?;
    let beside = beside
        .parent()
        .unwrap_or(Path::new("/"))
        .join("../lib/weft");
    let from_environment = std::env::var_os("WEFT_PROVIDER_DIR").map(PathBuf::from);
    let folder = options
        .provider_dir
        .clone()
        .or(from_environment)
        .unwrap_or(beside);
    if folder.join("libweft-fi.so").exists() {
        return folder.canonicalize();
    }
    let text = format!(
        "there is no libweft-fi.so in {}; name its folder with --provider-dir, or run `make build`",
        folder.display()
    );
    Err(io::Error::other(text))
}

/// Finds out whether hosts can be made here; as a user without privileges, in a user namespace of
/// our own.
fn divide() -> Result<(), String> {
    if !Uid::effective().is_root() {
        let (user, group) = (Uid::effective(), Gid::effective());
        unshare(CloneFlags::CLONE_NEWUSER)
            .map_err(|error| format!("this user may make no namespaces ({error})"))?;
        let write = |name: &str, text: String| {
            std::fs::write(format!("/proc/self/{name}"), text)
                .map_err(|error| format!("/proc/self/{name} cannot be written: {error}"))
        };
        write("setgroups", "deny".to_owned())?;
        write("uid_map", format!("0 {user} 1"))?;
        write("gid_map", format!("0 {group} 1"))?;
    }
    Host::start(0, 1500)
        .map(drop)
        .map_err(|error| error.to_string())
}
