// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft bench figures`: effects that others published, measured again on this machine, on one
//! page.
//!
//! Called by lib. Each figure names its source and the published result. Where a figure cannot be
//! made on this machine, the page says why in its place. docs/figures.md describes it for users.
//!
//! In the order of a run:
//! - [`list`]: which figures there are, each by its [`definition`]
//! - [`measured`]: figures from benchmarks, the variants in turn
//! - [`whole_program`]: figures from whole programs; [`kernel`]: from two kernels
//! - [`files`]: IOR by processes
//! - [`hosts`]: figures from two hosts in network namespaces
//! - [`simulated`]: figures from `weft sim`
//! - [`claim`]: the published numbers beside those from here

pub mod claim;
pub mod definition;
pub mod files;
pub mod hosts;
pub mod kernel;
pub mod list;
pub mod measured;
pub mod printed;
pub mod settings;
pub mod simulated;
pub mod whole_program;

use crate::compare::measure::Interrupt;
use crate::error::Error;
use crate::exit::refuse;
use clap::Parser;
use definition::{Definition, Subject};
use list::DEFINITIONS;
use settings::Settings;
use std::ffi::OsString;
use std::path::Path;
use weft_chart::draw;
use weft_chart::figure::Figure;
use weft_chart::page::{Block, Page, Section};
use weft_ranks::{EXIT_FAILED, EXIT_OK};

/// Makes the figures with the arguments after `figures`; returns the exit code: 1 when a figure
/// could not be made.
pub fn run(arguments: Vec<OsString>) -> u8 {
    let name = std::iter::once(OsString::from("weft bench figures"));
    let settings = match Settings::try_parse_from(name.chain(arguments)) {
        Ok(settings) => settings,
        Err(error) => return refuse(&error),
    };
    match make(&settings) {
        Ok(0) => EXIT_OK,
        Ok(_) => EXIT_FAILED,
        Err(reason) => {
            eprintln!("weft bench figures: {reason}");
            EXIT_FAILED
        }
    }
}

/// Makes and writes all; how many could not be made.
fn make(settings: &Settings) -> Result<usize, Error> {
    let weft = std::env::current_exe().map_err(Error::start("weft"))?;
    // A folder that cannot be written should be known before measuring.
    std::fs::create_dir_all(&settings.out).map_err(Error::file("make", &settings.out))?;
    let interrupt = Interrupt::catch();
    let wanted = |definition: &&Definition| {
        settings.names.is_empty() || settings.names.iter().any(|name| name == definition.id)
    };
    let mut sections = Vec::new();
    let mut lost = 0;
    for definition in DEFINITIONS.iter().filter(wanted) {
        eprintln!("weft bench figures: {}", definition.id);
        let figure = if interrupt.came() {
            Err(Error::Missing("the run was interrupted".to_owned()))
        } else {
            one(settings, definition, &weft)
        };
        match &figure {
            Ok(figure) => write(
                &settings.out.join(format!("{}.svg", definition.id)),
                &draw::alone(figure),
            )?,
            Err(reason) => {
                lost += 1;
                eprintln!("weft bench figures: {}: {reason}", definition.id);
            }
        }
        sections.push(section(definition, figure));
    }
    let path = settings.out.join("index.html");
    write(&path, &page(sections).html())?;
    println!("{}", path.display());
    Ok(lost)
}

fn one(settings: &Settings, definition: &Definition, weft: &Path) -> Result<Figure, Error> {
    match &definition.subject {
        Subject::Measured(measured) => measured::figure(settings, definition, measured, weft),
        Subject::Whole(whole) => whole_program::figure(settings, definition, whole, weft),
        Subject::Kernel(kernel) => kernel::figure(settings, definition, kernel, weft),
        Subject::Files => files::figure(settings, definition, weft),
        Subject::Hosts(fault, instead) => match crate::testbed::missing() {
            None => hosts::figure(settings, definition, *fault, weft),
            Some(reason) => {
                let mut figure = simulated::figure(definition, instead, settings.quick, weft)?;
                figure.note = format!("No hosts can be made here: {reason}. {}", figure.note);
                Ok(figure)
            }
        },
        Subject::Simulated(simulated) => {
            simulated::figure(definition, simulated, settings.quick, weft)
        }
    }
}

fn section(definition: &Definition, figure: Result<Figure, Error>) -> Section {
    let mut blocks = vec![Block::Paragraph(format!(
        "Source: {}. {}",
        definition.source, definition.shown
    ))];
    match figure {
        Ok(figure) => {
            let beside = claim::table(definition.title, definition.claims, &figure);
            blocks.push(Block::Figures(vec![figure]));
            blocks.extend(beside.map(Block::Table));
        }
        Err(reason) => {
            blocks.push(Block::Paragraph(format!(
                "Could not be made here: {reason}"
            )));
            let beside = claim::table(definition.title, definition.claims, &Figure::default());
            blocks.extend(beside.map(Block::Table));
        }
    }
    Section {
        id: format!("about-{}", definition.id),
        title: definition.title.to_owned(),
        blocks,
    }
}

fn page(sections: Vec<Section>) -> Page {
    let here = crate::compare::environment::of_this_machine();
    Page {
        title: "Published effects on this machine".into(),
        lead: format!(
            "{}, {} usable cores, Linux {}, weft {} {}; load {} before",
            here.machine.processor,
            here.limits.usable_cores,
            here.machine.kernel,
            here.weft,
            here.commit,
            here.machine.load
        ),
        sections,
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figure_that_cannot_be_made_says_why_in_its_place() {
        let sections = DEFINITIONS
            .iter()
            .map(|definition| section(definition, Err(Error::Missing("no MPI is here".into()))))
            .collect();
        let html = page(sections).html();
        assert_eq!(
            html.matches("Could not be made here: no MPI is here")
                .count(),
            DEFINITIONS.len()
        );
        for definition in &DEFINITIONS {
            assert!(html.contains(definition.title), "{}", definition.id);
        }
    }

    #[test]
    fn unknown_figure_is_bad_usage() {
        let words = ["x", "--out", "/tmp", "nonsense"];
        let error = Settings::try_parse_from(words).expect_err("unknown");
        assert!(error.to_string().contains("shared-memory"), "{error}");
    }
}
