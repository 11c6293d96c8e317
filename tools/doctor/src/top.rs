// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft top`: what the jobs of this user on this machine carry at present, by endpoint and by
//! remote.
//!
//! Called by `lib.rs`. `top/place.rs` finds a process's rank and job, `top/watch.rs` finds the
//! endpoints and reads what they publish, `top/network.rs` what their network routes do,
//! `top/collectives.rs` which collectives went which way, `top/mounts.rs` which buckets their jobs
//! have, `top/rates.rs` turns two readings into rates, `top/screen.rs` writes them as text,
//! `top/prometheus.rs` for Prometheus, `top/terminal.rs` owns the terminal meanwhile. Nothing here
//! takes part in a job: it reads files.

pub mod collectives;
pub mod mount_row;
pub mod mounts;
pub mod network;
pub mod place;
pub mod prometheus;
pub mod rates;
pub mod reading;
pub mod screen;
pub mod terminal;
pub mod traffic;
pub mod watch;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use clap::Parser;
use weft_job::answer::answer;

use rates::{Order, Report};
use screen::{Room, View};
use terminal::{Key, Terminal};
use watch::Watch;

/// The words of `weft top`.
#[derive(Debug, Parser)]
#[command(
    name = "weft top",
    no_binary_name = true,
    disable_version_flag = true,
    about = "Show what the jobs of this user on this machine carry at present, by endpoint and by \
        remote",
    after_help = "Keys: q quits, s sorts by the next column, p pauses.\n\n\
                  The process that receives messages counts them. So the row of a remote shows \
                  both directions only if both processes run here.\n\
                  Without a terminal on standard output it prints once, as with --once."
)]
pub struct TopArguments {
    /// Seconds between readings
    #[arg(long, default_value = "1", value_parser = seconds, value_name = "SECONDS")]
    #[arg(allow_hyphen_values = true)]
    pub interval: Duration,
    /// Read twice, an interval apart, print, and end
    #[arg(long)]
    pub once: bool,
    /// JSON instead of text: a line for each interval, or with --once one object
    #[arg(long)]
    pub json: bool,
    /// Prometheus's text format, once: for a textfile collector
    #[arg(long, conflicts_with = "json")]
    pub prometheus: bool,
    /// What the endpoints are sorted by
    #[arg(long, value_enum, default_value_t = Order::Messages)]
    pub sort: Order,
}

/// A time between a hundredth of a second and an hour.
fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("it must be a number of seconds from 0.01 to 3600".to_owned()),
    }
}

/// Runs `weft top` with the words that follow it and returns the exit code: 0, or 1 when the
/// endpoints cannot be looked for.
#[must_use]
pub fn run(arguments: Vec<OsString>) -> u8 {
    let arguments = match TopArguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => return answer("weft top", &error),
    };
    let on_screen = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    let outcome = if arguments.prometheus {
        prometheus()
    } else if arguments.once || (!arguments.json && !on_screen) {
        once(&arguments)
    } else if arguments.json {
        lines(&arguments)
    } else {
        on_terminal(&arguments)
    };
    match outcome {
        Ok(()) => 0,
        // The reader has seen enough (head, less).
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            eprintln!("weft top: {error}");
            1
        }
    }
}

/// One reading: there are no rates in it.
fn prometheus() -> std::io::Result<()> {
    let report = Watch::default().read()?.sorted(Order::Pid);
    std::io::stdout().write_all(prometheus::text(&report).as_bytes())
}

fn once(arguments: &TopArguments) -> std::io::Result<()> {
    let mut watch = Watch::default();
    watch.read()?;
    std::thread::sleep(arguments.interval);
    let report = watch.read()?.sorted(arguments.sort);
    let text = if arguments.json {
        crate::json(&report)
    } else {
        View::plain(arguments.sort).text(&report, Room::ENDLESS)
    };
    std::io::stdout().write_all(text.as_bytes())
}

fn lines(arguments: &TopArguments) -> std::io::Result<()> {
    let mut watch = Watch::default();
    watch.read()?;
    loop {
        std::thread::sleep(arguments.interval);
        let report = watch.read()?.sorted(arguments.sort);
        let line = serde_json::to_string(&report).map_err(std::io::Error::other)?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()?;
    }
}

fn on_terminal(arguments: &TopArguments) -> std::io::Result<()> {
    let mut watch = Watch::default();
    watch.read()?;
    let mut terminal = Terminal::open()?;
    let mut view = View::new(arguments.sort, crate::text::colour_wanted());
    let mut report = Report::default();
    loop {
        terminal.show(&view.text(&report, terminal::room()))?;
        let next = Instant::now() + arguments.interval;
        match terminal.wait_key(next)? {
            Some(Key::Quit) => return Ok(()),
            Some(Key::Sort) => view.order = view.order.next(),
            Some(Key::Pause) => view.paused = !view.paused,
            Some(Key::Other) => continue,
            None if view.paused => continue,
            None => report = watch.read()?,
        }
        report = report.sorted(view.order);
    }
}
