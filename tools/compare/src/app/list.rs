// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs by name, and where they are looked for.
//!
//! Called by app and its arguments; lists hpcc, lammps, gromacs, openfoam and npb.

use super::program::Program;
use std::ffi::OsStr;

static PROGRAMS: [&dyn Program; 9] = [
    &super::hpcc::Hpcc,
    &super::lammps::MELT,
    &super::lammps::WATER,
    &super::gromacs::Gromacs,
    &super::openfoam::cavity::Cavity,
    &super::openfoam::examples::PitzDaily,
    &super::openfoam::examples::MotorBike,
    &super::npb::FT,
    &super::npb::IS,
];

/// All names.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = PROGRAMS.iter().map(|program| program.name()).collect();
    names.dedup();
    names
}

/// The cases of a program; none where it has only one.
pub fn cases(name: &str) -> Vec<&'static str> {
    let own = PROGRAMS.iter().filter(|program| program.name() == name);
    own.map(|program| program.case())
        .filter(|case| !case.is_empty())
        .collect()
}

/// The program of a name out of [`names`], and of a case where it has several; the first of them
/// otherwise.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_program_is_explained_with_its_package() {
        let empty = tempfile::tempdir().expect("folder");
        for program in PROGRAMS {
            let lost = missing(program, empty.path().as_os_str());
            assert_eq!(lost.len(), program.files().len());
            if lost.is_empty() {
                continue;
            }
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
        assert_eq!(named("lammps", None).case(), "melt");
        assert_eq!(cases("lammps"), ["melt", "water"]);
        assert!(cases("hpcc").is_empty());
        assert_eq!(
            names(),
            ["hpcc", "lammps", "gromacs", "openfoam", "ft", "is"]
        );
    }
}
