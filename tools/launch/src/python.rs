// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a Python interpreter comes to an MPI: through mpi4py, which is either linked to one libmpi
//! or loads one while it runs.
//!
//! Called by `program.rs`. Source: mpi4py 4's `_mpiabi.py`: its wheel holds one extension per ABI
//! (`MPI.mpich.*.so`, `MPI.openmpi.*.so`) and loads MPI4PY_LIBMPI or the libmpi in
//! `sys.prefix/lib`; a distribution's package holds one `MPI.*.so` that is linked to its MPI.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::binding::Binding;
use crate::linkage;
use crate::loader::Loader;

/// Whether the file is called like a Python interpreter: python, python3, python3.11, pypy3.
#[must_use]
pub fn is_interpreter(file: &Path) -> bool {
    let name = file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    ["python", "pypy"].iter().any(|stem| {
        name.strip_prefix(stem)
            .is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
    })
}

/// Prints the prefix and the folder of mpi4py (an empty line if there is none), without importing
/// it.
/// Names of files are bytes, which Python keeps as surrogates and writes back as they were.
const QUESTION: &str = "import os, sys, importlib.util as u; s = u.find_spec('mpi4py'); \
                        say = lambda text: sys.stdout.buffer.write(os.fsencode(text) + b'\\n'); \
                        say(sys.prefix); say(list(s.submodule_search_locations)[0] if s else '')";

/// Asks the interpreter for its mpi4py, and mpi4py's files for their MPI.
#[must_use]
pub fn binding(interpreter: &Path) -> Binding {
    let answer = Command::new(interpreter)
        .args(["-c", QUESTION])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = match answer {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => {
            return Binding::None(format!(
                "{} failed when asked for mpi4py ({})",
                interpreter.display(),
                output.status
            ));
        }
        Err(error) => {
            return Binding::None(format!(
                "{} cannot be started ({error})",
                interpreter.display()
            ));
        }
    };
    let mut lines = text.split(|&byte| byte == b'\n').map(OsStr::from_bytes);
    let (prefix, package) = (
        lines.next().unwrap_or_default(),
        lines.next().unwrap_or_default(),
    );
    if package.is_empty() {
        return Binding::None(format!(
            "the Python {} has no mpi4py",
            interpreter.display()
        ));
    }
    from_package(Path::new(package), Path::new(prefix))
}

fn from_package(package: &Path, prefix: &Path) -> Binding {
    let extensions = extensions(package);
    let linked: Vec<&PathBuf> = extensions
        .iter()
        .filter(|file| !has_abi_in_name(file))
        .collect();
    let loader = Loader::of_this_machine(std::env::var_os("LD_LIBRARY_PATH").as_deref());
    if let [only] = linked.as_slice()
        && let Ok(Some(need)) = linkage::find_mpi(only, &loader)
    {
        return Binding::Linked(need);
    }
    Binding::Python {
        prefix: prefix.to_owned(),
    }
}

fn extensions(package: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(package) else {
        return Vec::new();
    };
    let is_extension = |name: &str| name.starts_with("MPI.") && name.ends_with(".so");
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_extension))
        .map(|entry| entry.path())
        .collect()
}

fn has_abi_in_name(file: &Path) -> bool {
    let name = file
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or("");
    ["MPI.mpich.", "MPI.openmpi.", "MPI.mpiabi.", "MPI.impi."]
        .iter()
        .any(|stem| name.starts_with(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_are_known_by_name() {
        for yes in ["/usr/bin/python", "/v/bin/python3", "python3.11", "pypy3"] {
            assert!(is_interpreter(Path::new(yes)), "{yes}");
        }
        for no in ["/usr/bin/python3-config", "pythonic", "perl", ""] {
            assert!(!is_interpreter(Path::new(no)), "{no}");
        }
    }

    #[test]
    fn a_wheel_with_one_extension_per_abi_binds_at_run_time() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "MPI.mpich.cpython-311.so",
            "MPI.openmpi.cpython-311.so",
            "MPI.pyi",
            "other.so",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(extensions(folder.path()).len(), 2);
        let binding = from_package(folder.path(), Path::new("/venv"));
        assert_eq!(
            binding,
            Binding::Python {
                prefix: "/venv".into()
            }
        );
    }

    #[test]
    fn a_package_linked_to_one_mpi_is_bound_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            assert!(
                Command::new("cc")
                    .current_dir(folder.path())
                    .args(arguments)
                    .status()
                    .unwrap()
                    .success()
            );
        };
        std::fs::write(folder.path().join("mpi.c"), "int MPI_Init(void){return 0;}").unwrap();
        std::fs::write(
            folder.path().join("ext.c"),
            "int MPI_Init(void); int f(void){return MPI_Init();}",
        )
        .unwrap();
        run(&[
            "-shared",
            "-fPIC",
            "mpi.c",
            "-o",
            "libmpi.so.40",
            "-Wl,-soname,libmpi.so.40",
        ]);
        run(&[
            "-shared",
            "-fPIC",
            "ext.c",
            "-o",
            "MPI.cpython-311.so",
            "libmpi.so.40",
            "-Wl,-rpath,$ORIGIN",
        ]);
        let Binding::Linked(need) = from_package(folder.path(), Path::new("/usr")) else {
            panic!("not linked")
        };
        assert_eq!(need.soname, "libmpi.so.40");
    }
}
