// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the rest needs to know of a program, and where programs are looked for.
//!
//! Called by app and rounds; implemented by hpcc, lammps, gromacs and openfoam.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use weft_statistics::interval::Better;

/// How large the input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Seconds a run.
    Quick,
    /// Long enough to judge by.
    Usual,
}

/// A figure that a program reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What it is, as `PTRANS`.
    pub name: &'static str,
    /// Its unit, as `GB/s`.
    pub unit: &'static str,
    /// Whether more or less is good.
    pub better: Better,
    /// The figure.
    pub value: f64,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Its figures, in the same order in every run.
    pub figures: Vec<Measured>,
    /// Lines that must be the same whatever carries the messages.
    pub result: Vec<String>,
}

/// A program.
// structure: allow trait-methods because each is a fact of one program, and most are a line
pub trait Program: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;
    /// Which of a program's cases it is; empty where there is one.
    fn case(&self) -> &'static str {
        ""
    }
    /// Its name in text.
    fn title(&self) -> &'static str;
    /// Files that must be found in PATH, each with Debian's package that brings it.
    fn files(&self) -> &'static [(&'static str, &'static str)];
    /// The input in a few words.
    fn input(&self, size: Size) -> String;
    /// Writes the input into `folder`. Errors: a sentence.
    fn prepare(&self, folder: &Path, size: Size) -> Result<(), String>;
    /// The program and its arguments, to run in a copy of the folder. May finish an input that depends on the ranks there.
    fn command(&self, folder: &Path, ranks: u16, size: Size) -> Result<Vec<String>, String>;
    /// Reads what a run left in its folder. Errors: what is missing, or a check of the program's own that failed.
    fn read(&self, folder: &Path) -> Result<Outcome, String>;
    /// What the result is called.
    fn result_name(&self) -> &'static str;
}

static PROGRAMS: [&dyn Program; 6] = [
    &super::hpcc::Hpcc,
    &super::lammps::Lammps,
    &super::gromacs::Gromacs,
    &super::openfoam::cavity::Cavity,
    &super::openfoam::examples::PitzDaily,
    &super::openfoam::examples::MotorBike,
];

/// All names.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = PROGRAMS.iter().map(|program| program.name()).collect();
    names.dedup();
    names
}

/// The program of a name out of [`names`], and of a case where it has several; the first of them otherwise.
pub fn named(name: &str, case: Option<&str>) -> &'static dyn Program {
    let fits = |program: &&&dyn Program| {
        program.name() == name && case.is_none_or(|case| program.case() == case)
    };
    *PROGRAMS.iter().find(fits).unwrap_or(&PROGRAMS[0])
}

/// Files that are not in the folders of `path`, each with its package.
pub fn missing(program: &dyn Program, path: &OsStr) -> Vec<(&'static str, &'static str)> {
    let here = |file: &str| std::env::split_paths(path).any(|folder| folder.join(file).is_file());
    let files = program.files().iter();
    files.filter(|(file, _)| !here(file)).copied().collect()
}

/// What is missing and how to install it.
pub fn explained(program: &dyn Program, missing: &[(&str, &str)]) -> String {
    let files: Vec<&str> = missing.iter().map(|(file, _)| *file).collect();
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    format!(
        "{} is not installed: {} is not in PATH. On Debian and Ubuntu: apt install {}",
        program.title(),
        files.join(", "),
        packages.join(" ")
    )
}

/// Runs a program that prepares or reads something, to its end.
///
/// # Errors
/// The last lines it said when it failed.
pub fn helper(folder: &Path, words: &[&str], typed: Option<&Path>) -> Result<(), String> {
    let stdin = match typed {
        Some(path) => std::fs::File::open(path)
            .map_err(|error| format!("{}: {error}", path.display()))?
            .into(),
        None => Stdio::null(),
    };
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(folder)
        .stdin(stdin)
        .output()
        .map_err(|error| format!("cannot start {}: {error}", words[0]))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = said.trim().lines().rev().take(12).collect();
    let last: Vec<&str> = lines.into_iter().rev().collect();
    Err(format!(
        "{}: {}; it said: {}",
        words.join(" "),
        output.status,
        last.join(" / ")
    ))
}

/// Writes a file.
///
/// # Errors
/// The path and the system's reason.
pub fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Reads a file that a run should have left.
///
/// # Errors
/// The path and the system's reason.
pub fn left(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path)
        .map_err(|error| format!("the run left no {}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Copies a folder with all that is in it.
///
/// # Errors
/// The path and the system's reason.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let complain = |error: std::io::Error| format!("cannot copy to {}: {error}", to.display());
    std::fs::create_dir_all(to).map_err(complain)?;
    for entry in std::fs::read_dir(from).map_err(complain)? {
        let entry = entry.map_err(complain)?;
        let target = to.join(entry.file_name());
        if entry.file_type().map_err(complain)?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target).map_err(complain)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_is_explained_with_its_package() {
        let empty = tempfile::tempdir().expect("folder");
        for program in PROGRAMS {
            let lost = missing(program, empty.path().as_os_str());
            assert_eq!(lost.len(), program.files().len());
            let text = explained(program, &lost);
            assert!(
                text.contains(program.files()[0].0) && text.contains("apt install"),
                "{text}"
            );
        }
    }

    #[test]
    fn program_in_a_later_folder_of_path_is_found() {
        let (first, second) = (
            tempfile::tempdir().expect("folder"),
            tempfile::tempdir().expect("folder"),
        );
        std::fs::write(second.path().join("hpcc"), "").expect("file");
        let path = std::env::join_paths([first.path(), second.path()]).expect("path");
        assert!(missing(named("hpcc", None), &path).is_empty());
    }

    #[test]
    fn case_chooses_among_those_of_a_program() {
        assert_eq!(named("openfoam", None).case(), "cavity");
        assert_eq!(named("openfoam", Some("motorbike")).case(), "motorbike");
        assert_eq!(names(), ["hpcc", "lammps", "gromacs", "openfoam"]);
    }

    #[test]
    fn helper_that_fails_is_quoted() {
        let here = Path::new("/");
        let reason = helper(here, &["sh", "-c", "echo broken >&2; exit 4"], None).unwrap_err();
        assert!(
            reason.contains("broken") && reason.contains('4'),
            "{reason}"
        );
    }
}
