// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of one benchmark: OSU's options as the user wrote them, checked, and completed
//! with the benchmark's defaults.
//!
//! Called by runner through [`parse`]; all other modules read the result, [`Settings`]. Source: the
//! option tables of OSU 7.5. --osu-format and --json are our own options.

use crate::description::{Description, LARGE_MESSAGE_BYTES, Measure};
use clap::{CommandFactory, Parser};
pub use command_line::Buffers;
use command_line::{Arguments, Output};
pub use percent::Percent;
pub use special::{HelperCounts, Special};
use std::ffi::OsString;
use weft_mpi::Datatype;
use weft_ranks::refusal::{BadOption, Refusal};

mod command_line;
mod percent;
mod special;

#[cfg(test)]
mod tests;

/// Percentiles of a bare -z.
const DEFAULT_TAILS: &str = "50,90,99";
/// Percentiles at most, as in OSU.
const TAIL_LIMIT: usize = 5;

/// The options as clap knows them, for the manual page.
#[must_use]
pub fn command_line() -> clap::Command {
    Arguments::command()
}

/// Who is the root of a rooted collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Root {
    /// Always this rank.
    Fixed(usize),
    /// Each rank in turn.
    Rotate,
}

/// How rows are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Column Validation.
    pub validate: bool,
    /// Columns of -f.
    pub full: bool,
    /// Percentiles of -z.
    pub tails: Vec<Percent>,
    /// Column Messages/s.
    pub rate: bool,
    /// The form of the lines.
    pub style: Style,
}

/// The form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As OSU 5.6 prints them.
    Osu5,
    /// As OSU 7.5 prints them.
    Osu7,
    /// One JSON object a line.
    Json,
}

/// How often a measurement is repeated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeats {
    /// -i, for all sizes.
    pub iterations: Option<usize>,
    /// -x, for all sizes.
    pub warmup: Option<usize>,
    /// Factor on the default iterations, above 0; the warm-up stays, for it makes the connections.
    pub scale: f64,
    /// --size-time: what a size may take, in seconds above 0; [`crate::pace`] shortens it.
    pub longest_seconds: Option<f64>,
    /// -u.
    pub validation_warmup: usize,
}

/// A checked command line.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Smallest message in bytes.
    pub min_bytes: usize,
    /// Largest message in bytes.
    pub max_bytes: usize,
    /// How often everything is repeated.
    pub repeats: Repeats,
    /// -W.
    pub window: usize,
    /// -b.
    pub buffers: Buffers,
    /// The type in use.
    pub kind: Datatype,
    /// -T: all types to measure, one after the other.
    pub kinds: Vec<Datatype>,
    /// -M.
    pub memory_limit_bytes: usize,
    /// -k.
    pub root: Root,
    /// The columns.
    pub shown: Shown,
    /// Options that only some benchmarks have.
    pub special: Special,
    /// What the user should know before the run.
    pub warnings: Vec<String>,
}

/// Parses the arguments after the benchmark's name.
///
/// # Errors
/// [`Refusal::Answer`] for -h and -v; [`Refusal::BadUsage`] with the option, its value and what is
/// allowed.
pub fn parse(description: &Description, arguments: Vec<OsString>) -> Result<Settings, Refusal> {
    let spelled = std::iter::once(format!("weft bench {}", description.name).into())
        .chain(with_bare_tails(arguments));
    let arguments =
        Arguments::try_parse_from(spelled).map_err(|error| match error.use_stderr() {
            true => Refusal::BadUsage(error.to_string()),
            false => Refusal::Answer(error.to_string()),
        })?;
    if arguments.version {
        let version = env!("CARGO_PKG_VERSION");
        return Err(Refusal::Answer(format!(
            "weft bench {version}, as # {} v7.5\n",
            description.headline()
        )));
    }
    check(description, arguments)
        .map_err(|reason| Refusal::BadUsage(format!("weft bench {}: {reason}\n", description.name)))
}

/// OSU's -z takes its value attached or not at all, which clap's optional values do not (they would
/// eat `D D`).
fn with_bare_tails(arguments: Vec<OsString>) -> impl Iterator<Item = OsString> {
    arguments
        .into_iter()
        .map(|argument| match argument.to_str() {
            Some("-z") => format!("-z{DEFAULT_TAILS}").into(),
            Some("--tail-lat") => format!("--tail-lat={DEFAULT_TAILS}").into(),
            _ => argument,
        })
}

fn check(description: &Description, arguments: Arguments) -> Result<Settings, BadOption> {
    let Arguments {
        messages,
        repeats,
        output,
        ..
    } = &arguments;
    if let Some(refusal) = arguments.absent.refusal() {
        return Err(refusal);
    }
    let kinds = kinds_of(description, messages.kinds.as_deref())?;
    let widest = *kinds
        .iter()
        .max_by_key(|kind| kind.size_bytes())
        .expect("at least one");
    let (min_bytes, max_bytes) =
        sizes_of(description, messages.sizes.as_deref(), widest, output.style)?;
    if arguments.accelerator != "host" && arguments.accelerator != "none" {
        return Err(BadOption::with_value(
            "-d",
            &arguments.accelerator,
            "accelerators are not supported, only host memory is known; leave -d out",
        ));
    }
    if output.full && description.measure != Measure::Latency {
        return Err(BadOption::new(
            "-f",
            "a bandwidth has no least and greatest latency; use -z for its spread",
        ));
    }
    for (option, value) in [
        ("-i", repeats.iterations),
        ("-W", Some(messages.window)),
        ("-p", messages.pairs),
    ] {
        if value == Some(0) {
            return Err(BadOption::with_value(option, 0, "must be at least 1"));
        }
    }
    Ok(Settings {
        min_bytes,
        max_bytes,
        repeats: repeats_of(repeats)?,
        window: messages.window,
        buffers: messages.buffers,
        kind: kinds[0],
        kinds,
        memory_limit_bytes: messages.memory_limit_bytes,
        root: root_of(&messages.root)?,
        shown: shown_of(output)?,
        special: special::check(description, &arguments.special, messages.pairs)?,
        warnings: warnings_of(&arguments),
    })
}

/// Whether --repeat-scale and --size-time are within their ranges; also for comparisons, which hand
/// them on.
///
/// # Errors
/// Which one is not, and its range.
pub fn check_repeats(scale: f64, longest_seconds: Option<f64>) -> Result<(), BadOption> {
    if !(scale > 0.0 && scale <= 1000.0) {
        return Err(BadOption::with_value(
            "--repeat-scale",
            scale,
            "must be above 0 and at most 1000",
        ));
    }
    match longest_seconds {
        Some(seconds) if !(seconds > 0.0 && seconds <= 3600.0) => Err(BadOption::with_value(
            "--size-time",
            seconds,
            "must be above 0 and at most 3600 seconds",
        )),
        _ => Ok(()),
    }
}

fn repeats_of(written: &command_line::Repeats) -> Result<Repeats, BadOption> {
    check_repeats(written.scale, written.longest_seconds)?;
    Ok(Repeats {
        iterations: written.iterations,
        warmup: written.warmup,
        scale: written.scale,
        longest_seconds: written.longest_seconds,
        validation_warmup: written.validation_warmup,
    })
}

fn warnings_of(arguments: &Arguments) -> Vec<String> {
    if arguments.memory.iter().all(|side| side == "H") {
        return Vec::new();
    }
    vec![format!(
        "buffers '{}' were asked for; all buffers are in host memory",
        arguments.memory.join(" ")
    )]
}

fn shown_of(output: &Output) -> Result<Shown, BadOption> {
    let style = match (output.json, output.style) {
        (true, _) => Style::Json,
        (false, 5) => Style::Osu5,
        (false, _) => Style::Osu7,
    };
    let tails = output.tails.as_deref().map_or(Ok(Vec::new()), tails_of)?;
    Ok(Shown {
        validate: output.validate,
        full: output.full,
        tails,
        rate: output.rate == 1,
        style,
    })
}

fn tails_of(text: &str) -> Result<Vec<Percent>, BadOption> {
    let bad = || {
        let allowed = format!(
            "must be up to {TAIL_LIMIT} percentiles between 1 and 100 with at most three decimals, \
             such as 50,90,99.9"
        );
        BadOption::with_value("-z", text, allowed)
    };
    let numbers = text.split(',').map(str::parse);
    let mut tails = numbers
        .collect::<Result<Vec<Percent>, ()>>()
        .map_err(|()| bad())?;
    tails.sort_unstable();
    tails.dedup();
    if tails.len() > TAIL_LIMIT {
        Err(bad())
    } else {
        Ok(tails)
    }
}

fn kinds_of(description: &Description, text: Option<&str>) -> Result<Vec<Datatype>, BadOption> {
    let Some(text) = text else {
        return Ok(vec![description.default_kind()]);
    };
    if text.eq_ignore_ascii_case("all") {
        let offered = |kind: &Datatype| kind_of(description, kind.name()).is_ok();
        return Ok(Datatype::ALL.into_iter().filter(offered).collect());
    }
    text.split(',')
        .map(|name| kind_of(description, name))
        .collect()
}

fn kind_of(description: &Description, text: &str) -> Result<Datatype, BadOption> {
    let bad = |reason: &str| Err(BadOption::with_value("-T", text, reason));
    let known = Datatype::ALL
        .into_iter()
        .find(|kind| kind.name().eq_ignore_ascii_case(text) && *kind != Datatype::Byte);
    let Some(kind) = known else {
        return bad(
            "must be mpi_char, mpi_int, mpi_float, mpi_double, mpi_long, some of them with commas, \
             or all",
        );
    };
    if description.computes() && kind == Datatype::Char {
        return bad("MPI adds no characters up; use mpi_int, mpi_float, mpi_double or mpi_long");
    }
    let swaps = description.name == "cas_latency";
    if swaps && [Datatype::Float, Datatype::Double].contains(&kind) {
        return bad("MPI compares and swaps whole numbers only; use mpi_int or mpi_long");
    }
    Ok(kind)
}

fn root_of(text: &str) -> Result<Root, BadOption> {
    if text == "rotate" {
        return Ok(Root::Rotate);
    }
    let rank = text.strip_prefix("fixed:").unwrap_or(text);
    rank.parse()
        .map(Root::Fixed)
        .map_err(|_| BadOption::with_value("-k", text, "must be a rank, fixed:RANK or rotate"))
}

/// The smallest and the largest message in bytes. `style` is OSU's version whose form is printed:
/// version 5 starts a latency at 0 bytes.
fn sizes_of(
    description: &Description,
    text: Option<&str>,
    kind: Datatype,
    style: u8,
) -> Result<(usize, usize), BadOption> {
    let element_bytes = kind.size_bytes();
    let starts_at_zero =
        style == 5 && description.measure == Measure::Latency && description.is_point_to_point();
    let default_min = if starts_at_zero { 0 } else { element_bytes };
    let Some(text) = text else {
        return Ok((default_min, description.max_bytes));
    };
    let bad = |reason: String| BadOption::with_value("-m", text, reason);
    let number = |word: &str| {
        let reason = || format!("'{word}' is not a number of bytes; write MAX, MIN: or MIN:MAX");
        word.parse::<usize>().map_err(|_| bad(reason()))
    };
    let (min, max) = match text.split_once(':') {
        None => (default_min, number(text)?),
        Some((min, "")) => (number(min)?, description.max_bytes),
        Some(("", max)) => (default_min, number(max)?),
        Some((min, max)) => (number(min)?, number(max)?),
    };
    let min = if min == 0 { 0 } else { min.max(element_bytes) };
    if min > max {
        return Err(bad(format!(
            "the smallest size, {min}, is above the largest, {max}"
        )));
    }
    if min % element_bytes != 0 {
        let name = kind.name();
        return Err(bad(format!(
            "{min} bytes are no whole number of {name} ({element_bytes} bytes)"
        )));
    }
    Ok((min, max))
}

impl Settings {
    /// The message sizes: the smallest, then doubled up to the largest; once, with 0, when the
    /// benchmark has none.
    pub fn sizes(&self, description: &Description) -> Vec<usize> {
        if !description.sized {
            return vec![0];
        }
        if description.is_single() {
            return vec![self.kind.size_bytes()];
        }
        let next = |size: &usize| {
            if *size == 0 {
                Some(self.kind.size_bytes())
            } else {
                size.checked_mul(2)
            }
        };
        std::iter::successors(Some(self.min_bytes), next)
            .take_while(|size| *size <= self.max_bytes)
            .collect()
    }

    /// The same for one of the types of -T.
    pub fn with(&self, kind: Datatype) -> Self {
        Self {
            kind,
            ..self.clone()
        }
    }

    /// Iterations and warm-up for a size.
    pub fn repeats(&self, description: &Description, size_bytes: usize) -> (usize, usize) {
        let large = size_bytes > LARGE_MESSAGE_BYTES;
        let default = if large {
            description.loops.large
        } else {
            description.loops.small
        };
        let scaled = |count: usize| ((count as f64 * self.repeats.scale).round() as usize).max(1);
        (
            self.repeats.iterations.unwrap_or(scaled(default.0)),
            self.repeats.warmup.unwrap_or(default.1),
        )
    }
}
