// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the program is: found on PATH, executable or not, and by which way it comes to an MPI.
//!
//! Called by `lib.rs` before an MPI is chosen; uses `linkage.rs` for ELF programs and `python.rs`
//! for Python.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub use crate::binding::Binding;
use crate::elf;
use crate::fault::Fault;
use crate::linkage;
use crate::loader::Loader;
use crate::python;

/// A program that can be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The file that is executed.
    pub path: PathBuf,
    /// How it comes to its MPI.
    pub binding: Binding,
}

/// The constant that a program contains when it binds to the MPI that `weft run` names.
pub const BINDS_BY: &str = "WEFT_MPI_LIBRARY";

/// Longest chain of scripts that name scripts as their interpreter; the kernel's own limit is about
/// as small. Chosen.
const DEEPEST_SCRIPT: u32 = 4;

/// Finds the file that `name` stands for: as it is if it contains a slash, else on `path`.
///
/// # Errors
/// `Fault::ProgramMissing` and `Fault::ProgramNotExecutable`; `Fault::Usage` for an empty name, as
/// an unset variable of a script gives.
pub fn locate(name: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, Fault> {
    if name.is_empty() {
        let text = "the program's name is empty; name a file, or a program on PATH";
        return Err(Fault::Usage(text.to_owned()));
    }
    if name.as_bytes().contains(&b'/') {
        return check_executable(PathBuf::from(name));
    }
    let mut refused = None;
    for folder in path
        .map(|list| std::env::split_paths(list).collect::<Vec<_>>())
        .unwrap_or_default()
    {
        let file = folder.join(name);
        if !file.exists() {
            continue;
        }
        match check_executable(file) {
            Ok(found) => return Ok(found),
            Err(fault) => refused = refused.or(Some(fault)),
        }
    }
    // `weft run -- weft bench ...` means this very program, also where it is not on PATH.
    match (refused, std::env::current_exe()) {
        (Some(fault), _) => Err(fault),
        (None, Ok(own)) if own.file_name() == Some(name) => Ok(own),
        (None, _) => Err(Fault::ProgramMissing(PathBuf::from(name))),
    }
}

fn check_executable(path: PathBuf) -> Result<PathBuf, Fault> {
    let refuse = |path: PathBuf, reason: &str| {
        Err(Fault::ProgramNotExecutable {
            path,
            reason: reason.to_owned(),
        })
    };
    match std::fs::metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(Fault::ProgramMissing(path))
        }
        Err(error) => refuse(path, &error.to_string()),
        Ok(facts) if facts.is_dir() => refuse(path, "it is a folder"),
        Ok(facts) if facts.permissions().mode() & 0o111 == 0 => {
            refuse(path, "no execute permission; chmod +x it")
        }
        Ok(_) => Ok(path),
    }
}

/// Splits the words of a command line into the program and its arguments.
///
/// # Errors
/// `Fault::Usage` where there are none.
pub fn split(words: &[OsString]) -> Result<(&OsString, &[OsString]), Fault> {
    let split = words.split_first();
    split.ok_or_else(|| Fault::Usage("no program was named".into()))
}

/// Finds out what the program `name` is where it inherits PATH and LD_LIBRARY_PATH from here.
///
/// # Errors
/// As `inspect`.
pub fn inspect_here(name: &OsStr) -> Result<Program, Fault> {
    let library_path = std::env::var_os("LD_LIBRARY_PATH");
    let loader = Loader::of_this_machine(library_path.as_deref());
    inspect(name, std::env::var_os("PATH").as_deref(), &loader)
}

/// Finds out what the program `name` is.
///
/// # Errors
/// As `locate`, and `Fault::ProgramNotExecutable` for an ELF file of another kind than this
/// machine's.
pub fn inspect(name: &OsStr, path: Option<&OsStr>, loader: &Loader) -> Result<Program, Fault> {
    let file = locate(name, path)?;
    let binding = binding_of(&file, path, loader, 0)?;
    Ok(Program {
        path: file,
        binding,
    })
}

fn binding_of(
    file: &Path,
    path: Option<&OsStr>,
    loader: &Loader,
    depth: u32,
) -> Result<Binding, Fault> {
    if python::is_interpreter(file) {
        return Ok(python::binding(file));
    }
    if elf::is_elf(file) {
        return elf_binding(file, loader);
    }
    let Some(words) = shebang(file) else {
        return Ok(Binding::None(format!(
            "{} is neither an ELF file nor a script with a #! line",
            file.display()
        )));
    };
    let interpreter = interpreter_of(&words);
    let found = interpreter.and_then(|word| locate(word, path).ok());
    match found {
        Some(interpreter) if depth < DEEPEST_SCRIPT => {
            match binding_of(&interpreter, path, loader, depth + 1)? {
                Binding::None(_) => Ok(Binding::None(format!(
                    "{} is a script for {}, and which MPI the programs in it use cannot be seen \
                     from outside",
                    file.display(),
                    interpreter.display()
                ))),
                other => Ok(other),
            }
        }
        _ => Ok(Binding::None(format!(
            "the interpreter that {} names (#!{}) was not found",
            file.display(),
            Path::new(&words.join(OsStr::new(" "))).display()
        ))),
    }
}

fn elf_binding(file: &Path, loader: &Loader) -> Result<Binding, Fault> {
    let need = linkage::find_mpi(file, loader).map_err(|error| Fault::ProgramNotExecutable {
        path: file.to_owned(),
        reason: format!("not a 64-bit ELF program ({error})"),
    })?;
    if let Some(need) = need {
        return Ok(Binding::Linked(need));
    }
    if elf::constants_contain(file, BINDS_BY).unwrap_or(false) {
        return Ok(Binding::AtRunTime);
    }
    Ok(Binding::None(format!(
        "{} is not linked to any libmpi, neither directly nor through its libraries",
        file.display()
    )))
}

/// The words of the first line of a script, without `#!`.
fn shebang(file: &Path) -> Option<Vec<OsString>> {
    use std::io::Read;
    let mut start = [0_u8; 256];
    let length = std::fs::File::open(file)
        .and_then(|mut open| open.read(&mut start))
        .ok()?;
    let text = start[..length].strip_prefix(b"#!")?;
    let line = text.split(|&byte| byte == b'\n').next()?;
    let words = line.split(u8::is_ascii_whitespace);
    let words = words.filter(|word| !word.is_empty());
    Some(
        words
            .map(|word| OsStr::from_bytes(word).to_owned())
            .collect(),
    )
}

/// The program that runs the script: the first word, or the one that `env` is to find.
fn interpreter_of(words: &[OsString]) -> Option<&OsStr> {
    let first = words.first()?;
    if Path::new(first).file_name() != Some(OsStr::new("env")) {
        return Some(first);
    }
    let others = words[1..].iter().map(OsString::as_os_str);
    let is_program =
        |word: &&OsStr| !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'=');
    others.into_iter().find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn an_empty_name_is_no_folder_of_path() {
        let fault = locate(OsStr::new(""), Some(OsStr::new("/usr/bin:/bin"))).unwrap_err();
        assert_eq!(fault.exit_code(), 2, "{fault}");
        assert!(fault.to_string().contains("name is empty"), "{fault}");
    }

    #[test]
    fn missing_and_not_executable_programs_give_the_codes_of_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let plain = file(folder.path(), "plain", "text", 0o644);
        let missing = locate(folder.path().join("none").as_os_str(), None).unwrap_err();
        assert_eq!(missing.exit_code(), 127);
        assert_eq!(
            locate(plain.as_os_str(), None).unwrap_err().exit_code(),
            126
        );
        assert_eq!(
            locate(folder.path().as_os_str(), None)
                .unwrap_err()
                .exit_code(),
            126
        );
        assert_eq!(
            locate(OsStr::new("plain"), Some(folder.path().as_os_str()))
                .unwrap_err()
                .exit_code(),
            126
        );
        assert_eq!(
            locate(OsStr::new("none"), Some(folder.path().as_os_str()))
                .unwrap_err()
                .exit_code(),
            127
        );
    }

    #[test]
    fn a_later_folder_of_path_with_an_executable_wins_over_an_earlier_without() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&two).unwrap();
        file(&one, "code", "", 0o644);
        let right = file(&two, "code", "", 0o755);
        let path = std::env::join_paths([&one, &two]).unwrap();
        assert_eq!(locate(OsStr::new("code"), Some(&path)).unwrap(), right);
    }

    #[test]
    fn a_script_is_judged_by_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = file(folder.path(), "job.sh", "#!/bin/sh\nexec true\n", 0o755);
        let program = inspect(script.as_os_str(), None, &Loader::default()).unwrap();
        assert!(
            matches!(&program.binding, Binding::None(why) if why.contains("script for /bin/sh")),
            "{program:?}"
        );
        let text = file(folder.path(), "text", "hello", 0o755);
        let odd = inspect(text.as_os_str(), None, &Loader::default()).unwrap();
        assert!(matches!(&odd.binding, Binding::None(why) if why.contains("neither an ELF")));
        let lost = file(folder.path(), "lost", "#!/no/such/interpreter\n", 0o755);
        let lost = inspect(lost.as_os_str(), None, &Loader::default()).unwrap();
        assert!(matches!(&lost.binding, Binding::None(why) if why.contains("was not found")));
    }

    #[test]
    fn a_script_that_names_itself_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("loop");
        let script = file(
            folder.path(),
            "loop",
            &format!("#!{}\n", path.display()),
            0o755,
        );
        assert!(matches!(
            inspect(script.as_os_str(), None, &Loader::default())
                .unwrap()
                .binding,
            Binding::None(_)
        ));
    }

    #[test]
    fn env_in_the_first_line_is_looked_through() {
        let words = |line: &str| {
            line.split_whitespace()
                .map(OsString::from)
                .collect::<Vec<_>>()
        };
        for (line, interpreter) in [
            ("/usr/bin/env python3", Some("python3")),
            ("/usr/bin/env -S A=b python3 -u", Some("python3")),
            ("/bin/bash -e", Some("/bin/bash")),
            ("/usr/bin/env", None),
        ] {
            assert_eq!(interpreter_of(&words(line)), interpreter.map(OsStr::new));
        }
    }

    #[test]
    fn an_interpreter_whose_name_is_no_text_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join(OsStr::from_bytes(b"python\xe9"));
        std::os::unix::fs::symlink("/bin/sh", &name).unwrap();
        let text = [b"#!", name.as_os_str().as_bytes(), b" -e\n"].concat();
        let script = folder.path().join("script");
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = inspect(script.as_os_str(), None, &Loader::default()).unwrap();
        assert!(
            matches!(&program.binding, Binding::None(why) if why.contains("is a script for")),
            "{program:?}"
        );
    }

    #[test]
    fn this_test_binary_contains_the_mark_of_run_time_binding() {
        let own = std::env::current_exe().unwrap();
        assert_eq!(
            inspect(own.as_os_str(), None, &Loader::of_this_machine(None))
                .unwrap()
                .binding,
            Binding::AtRunTime
        );
    }
}
