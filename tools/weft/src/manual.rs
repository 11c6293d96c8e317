// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft manual`: the manual pages, one for `weft` and one for each tool, made from the definitions
//! that parse the command line. Called by `packaging/dist.sh`; uses `command_line.rs` and
//! `help_text.rs`.
//!
//! clap_mangen writes names, options and defaults. The text behind the options (`after_help`) is
//! laid out for a terminal; here it becomes sections as in man-pages(7).

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};

use crate::command_line::whole;
use crate::help_text::{self, Part, Row};

/// Writes all pages into `folder`; answers the exit code.
pub(crate) fn write(folder: &Path, command: &Command) -> u8 {
    let mut whole = whole(command).disable_help_subcommand(true);
    whole.build();
    match write_pages(&whole, folder) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!(
                "weft manual: cannot write into {}: {error}",
                folder.display()
            );
            1
        }
    }
}

/// The page of `command`, then those of its tools. Benchmarks have no words of their own, and share
/// the page of `weft bench`.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    let name = page_name(command);
    fs::write(folder.join(format!("{name}.1")), page(command)?)?;
    let has_words = |tool: &&Command| tool.get_about().is_some();
    command
        .get_subcommands()
        .filter(has_words)
        .try_for_each(|tool| write_pages(tool, folder))
}

fn page_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let parts = command.get_after_help().map(ToString::to_string);
    let parts = help_text::parts(&parts.unwrap_or_default());
    let form = command.clone().render_usage().to_string();
    let form = form.trim_start_matches("Usage: ").to_owned();
    let shown = command
        .clone()
        .override_usage(usage(&parts).unwrap_or(form));
    let man = Man::new(shown);
    let mut text = title(page_name(command)).into_bytes();
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    match command.get_name() {
        "bench" => Man::new(weft_bench::benchmark_options()).render_options_section(&mut text)?,
        _ => man.render_options_section(&mut text)?,
    }
    text.write_all(sections(command, &parts).to_roff().as_bytes())?;
    Ok(text)
}

/// The line that begins a page. clap_mangen's has no room for a missing date, and a date would tell
/// of the day of the build.
fn title(name: &str) -> String {
    let name = name.to_uppercase();
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH {name} 1 \"\" \"Weft {version}\" \"Weft\"\n")
}

/// What the text says under `Usage:`, without comments.
fn usage(parts: &[Part]) -> Option<String> {
    let rows = parts.iter().find_map(|part| match part {
        Part::Table { heading, rows } if heading == "Usage" => Some(rows),
        _ => None,
    })?;
    let forms: Vec<&str> = rows.iter().map(|row| row.left.as_str()).collect();
    Some(forms.join("\n"))
}

/// The sections behind the options.
fn sections(command: &Command, parts: &[Part]) -> Roff {
    let mut roff = Roff::new();
    let tools: Vec<&Command> = command
        .get_subcommands()
        .filter(|tool| tool.get_about().is_some())
        .collect();
    if !tools.is_empty() {
        roff.control("SH", ["COMMANDS"]);
    }
    for tool in tools {
        roff.control("TP", []);
        roff.text([bold(page_name(tool)), roman("(1)")]);
        let about = tool.get_about().map(ToString::to_string);
        roff.text([roman(about.unwrap_or_default())]);
    }
    let mut in_notes = false;
    for part in parts {
        match part {
            Part::Table { heading, .. } if heading == "Usage" => {}
            Part::Table { heading, rows } => {
                in_notes = false;
                roff.control("SH", [section_of(heading).as_str()]);
                for (index, row) in rows.iter().enumerate() {
                    add_row(&mut roff, row, index == 0);
                }
            }
            Part::Prose(text) => {
                if !in_notes {
                    roff.control("SH", ["NOTES"]);
                } else {
                    roff.control("PP", []);
                }
                in_notes = true;
                roff.text([roman(text.as_str())]);
            }
        }
    }
    see_also(&mut roff, command);
    roff
}

/// The name of a section by the heading that `--help` has for it; man-pages(7) has names for some.
fn section_of(heading: &str) -> String {
    if heading.starts_with("Exit codes") {
        return "EXIT STATUS".to_owned();
    }
    heading.to_uppercase()
}

fn add_row(roff: &mut Roff, row: &Row, is_first: bool) {
    if row.right.is_empty() {
        if !is_first {
            roff.control("PP", []);
        }
        roff.text([bold(row.left.as_str())]);
    } else {
        roff.control("TP", []);
        roff.text([bold(row.left.as_str())]);
        roff.text([roman(row.right.as_str())]);
    }
}

fn see_also(roff: &mut Roff, command: &Command) {
    roff.control("SH", ["SEE ALSO"]);
    if command.get_name() == "weft" {
        roff.text([
            roman("The documents of Weft, which "),
            bold("make install"),
            roman(" puts into "),
            italic("share/doc/weft"),
        ]);
    } else {
        roff.text([bold("weft"), roman("(1)")]);
    }
}
