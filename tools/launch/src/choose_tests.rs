// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of `choose.rs`, with MPIs that are only empty files.

use std::path::{Path, PathBuf};

use super::*;
use crate::family::Version;

struct Machine {
    folder: tempfile::TempDir,
    here: Vec<Installation>,
}

impl Machine {
    /// A machine with Open MPI in `a`, MPICH in `b`, Intel MPI in `c`, and Debian-like MPICH
    /// without ofi in `d`.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, family: Family, library: &str, netmods: &[&str]| {
            let prefix = folder.path().join(name);
            std::fs::create_dir_all(prefix.join("bin")).unwrap();
            std::fs::create_dir_all(prefix.join("lib")).unwrap();
            std::fs::write(prefix.join("bin/mpiexec"), "").unwrap();
            std::fs::write(prefix.join("lib").join(library), "").unwrap();
            Installation {
                family,
                version: Version {
                    major: 5,
                    minor: 0,
                    patch: 0,
                },
                mpiexec: prefix.join("bin/mpiexec"),
                libmpi: Some(prefix.join("lib").join(library)),
                netmods: netmods.iter().map(|&name| name.to_owned()).collect(),
                origin: "test".into(),
            }
        };
        let here = vec![
            make("d", Family::Mpich, "libmpich.so.12", &["ucx"]),
            make("a", Family::OpenMpi, "libmpi.so.40", &[]),
            make("b", Family::Mpich, "libmpi.so.12", &["ucx", "ofi"]),
            make("c", Family::Intel, "libmpi.so.12", &[]),
        ];
        Self { folder, here }
    }

    fn linked(&self, soname: &str, path: Option<&str>) -> Program {
        let path = path.map(|text| self.folder.path().join(text));
        Program {
            path: "/p".into(),
            binding: Binding::Linked(MpiNeed {
                soname: soname.into(),
                path,
                asked_by: "/p".into(),
            }),
        }
    }

    fn choose(
        &self,
        asked: MpiChoice,
        program: &Program,
    ) -> Result<(String, Option<String>), Fault> {
        let chosen = choose(&asked, program, &self.here, true)?;
        let prefix = chosen
            .installation
            .mpiexec
            .parent()
            .and_then(Path::parent)
            .unwrap()
            .to_owned();
        Ok((
            prefix.file_name().unwrap().to_str().unwrap().to_owned(),
            chosen.note,
        ))
    }
}

#[test]
fn a_linked_program_runs_with_the_owner_of_its_library() {
    let machine = Machine::new();
    assert_eq!(
        machine
            .choose(
                MpiChoice::Auto,
                &machine.linked("libmpi.so.12", Some("c/lib/libmpi.so.12"))
            )
            .unwrap(),
        ("c".into(), None)
    );
    assert_eq!(
        machine
            .choose(
                MpiChoice::Auto,
                &machine.linked("libmpi.so.12", Some("b/lib/libmpi.so.12"))
            )
            .unwrap(),
        ("b".into(), None)
    );
    assert_eq!(
        machine
            .choose(
                MpiChoice::Auto,
                &machine.linked("libmpi.so.40", Some("a/lib/libmpi.so.40"))
            )
            .unwrap(),
        ("a".into(), None)
    );
}

#[test]
fn a_library_that_the_loader_misses_is_taken_from_the_first_that_has_it_and_said() {
    let machine = Machine::new();
    let (name, note) = machine
        .choose(MpiChoice::Auto, &machine.linked("libmpi.so.12", None))
        .unwrap();
    assert_eq!(name, "b");
    assert!(note.unwrap().contains("would not be found"));
}

#[test]
fn mpich_programs_run_with_intel_when_asked() {
    let machine = Machine::new();
    let program = machine.linked("libmpi.so.12", Some("b/lib/libmpi.so.12"));
    assert_eq!(
        machine.choose(MpiChoice::Intel, &program).unwrap(),
        ("c".into(), None)
    );
}

#[test]
fn an_open_mpi_program_under_mpich_is_refused_with_both_names() {
    let machine = Machine::new();
    let program = machine.linked("libmpi.so.40", Some("a/lib/libmpi.so.40"));
    for asked in [MpiChoice::Mpich, MpiChoice::Intel] {
        let fault = machine.choose(asked, &program).unwrap_err();
        assert!(matches!(fault, Fault::Mismatch(_)));
        assert!(fault.to_string().contains("libmpi.so.40"), "{fault}");
    }
    let fault = machine
        .choose(MpiChoice::OpenMpi, &machine.linked("libmpi.so.12", None))
        .unwrap_err();
    assert!(matches!(fault, Fault::Mismatch(_)));
}

#[test]
fn debian_mpich_programs_do_not_run_with_a_libmpi_of_another_name() {
    let machine = Machine::new();
    let program = machine.linked("libmpich.so.12", Some("d/lib/libmpich.so.12"));
    assert_eq!(machine.choose(MpiChoice::Auto, &program).unwrap().0, "d");
    assert!(matches!(
        machine.choose(MpiChoice::Intel, &program),
        Err(Fault::Mismatch(_))
    ));
}

#[test]
fn where_any_mpi_will_do_the_first_that_can_use_libfabric_is_taken() {
    let machine = Machine::new();
    let program = Program {
        path: "/weft".into(),
        binding: Binding::AtRunTime,
    };
    assert_eq!(machine.choose(MpiChoice::Auto, &program).unwrap().0, "a");
    assert_eq!(machine.choose(MpiChoice::Mpich, &program).unwrap().0, "b");
    let native = choose(&MpiChoice::Auto, &program, &machine.here, false).unwrap();
    assert_eq!(native.installation.mpiexec, machine.here[0].mpiexec);
}

#[test]
fn python_prefers_the_mpi_of_its_environment() {
    let machine = Machine::new();
    let python = |prefix: PathBuf| Program {
        path: "/python".into(),
        binding: Binding::Python { prefix },
    };
    assert_eq!(
        machine
            .choose(MpiChoice::Auto, &python(machine.folder.path().join("c")))
            .unwrap(),
        ("c".into(), None)
    );
    let (name, note) = machine
        .choose(MpiChoice::Auto, &python("/usr".into()))
        .unwrap();
    assert_eq!(name, "a");
    assert!(note.unwrap().contains("no MPI of its own"));
    assert_eq!(
        machine
            .choose(MpiChoice::Mpich, &python(machine.folder.path().join("c")))
            .unwrap(),
        ("b".into(), None)
    );
}

#[test]
fn a_program_without_mpi_needs_to_be_told_which() {
    let machine = Machine::new();
    let program = Program {
        path: "/sh".into(),
        binding: Binding::None("it is a script".into()),
    };
    let fault = machine.choose(MpiChoice::Auto, &program).unwrap_err();
    assert!(fault.to_string().contains("--mpi"), "{fault}");
    assert_eq!(machine.choose(MpiChoice::OpenMpi, &program).unwrap().0, "a");
}

#[test]
fn a_launcher_named_by_its_path_is_taken_and_a_missing_one_refused() {
    let machine = Machine::new();
    let program = Program {
        path: "/weft".into(),
        binding: Binding::AtRunTime,
    };
    let path = machine.folder.path().join("c/bin/mpiexec");
    assert_eq!(
        machine.choose(MpiChoice::Path(path), &program).unwrap().0,
        "c"
    );
    assert!(matches!(
        machine.choose(MpiChoice::Path("/no/mpiexec".into()), &program),
        Err(Fault::MpiMissing(_))
    ));
    assert!(matches!(
        choose(&MpiChoice::Auto, &program, &[], true),
        Err(Fault::MpiMissing(_))
    ));
}

#[test]
fn launchers_in_whose_prefix_the_library_lies_are_asked_first_in_their_order() {
    let machine = Machine::new();
    let all: Vec<Candidate> = (machine.here.iter())
        .map(|one| Candidate {
            mpiexec: one.mpiexec.clone(),
            origin: one.origin.clone(),
        })
        .collect();
    let around = |program: &Program| -> Vec<PathBuf> {
        let near = around_library(program, &all);
        near.into_iter().map(|one| one.mpiexec).collect()
    };
    let program = machine.linked("libmpi.so.12", Some("b/lib/libmpi.so.12"));
    assert_eq!(around(&program), [all[2].mpiexec.clone()]);
    for (at, is_its) in [(2, true), (3, false)] {
        let chosen = plain(&machine.here[at]);
        assert_eq!(is_owner(&chosen, &program), is_its);
    }
    let missed = machine.linked("libmpi.so.12", None);
    assert!(around(&missed).is_empty());
    assert!(!is_owner(&plain(&machine.here[2]), &missed));
}
