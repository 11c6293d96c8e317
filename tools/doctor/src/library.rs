// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The provider's shared library: that it is there, exports what libfabric asks for and no more,
//! finds its libraries, and is taken up.
//!
//! Called by `lib.rs` and `info.rs`. It is not loaded into this process: its file is read, and
//! where `fi_info` is installed that is asked, as an MPI's libfabric would load it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weft_launch::fault::Fault;
use weft_launch::loader::Loader;
use weft_launch::{elf, program, provider};

use crate::check::{Check, Status, shell_word};

/// The one symbol that libfabric looks up in a provider.
const ENTRY: &str = "fi_prov_ini";
/// The one that libweft-mpi.so looks up in it (crates/provider/src/idle_hook.rs).
const FOR_COLLECTIVES: &str = "weft_also_when_idle";
const FOUND: &str = "provider";
const SYMBOLS: &str = "provider's symbols";
const LIBRARIES: &str = "provider's libraries";
const TAKEN_UP: &str = "provider in libfabric";
const BUILD: &str = "build it again with `make build`";

/// All checks of this file. Those after the first are left out when there is no library.
#[must_use]
pub fn checks() -> Vec<Check> {
    checks_of(provider::find_for_this_process())
}

fn checks_of(found: Result<PathBuf, Fault>) -> Vec<Check> {
    let why =
        "libfabric loads this file when FI_PROVIDER_PATH names its folder; weft run sets that";
    match found {
        Err(fault) => vec![Check::ok(FOUND, "not found", why).but(Status::Fail, fault.to_string())],
        Ok(folder) => {
            let file = folder.join(provider::FILE_NAME);
            let found = Check::ok(FOUND, file.display().to_string(), why);
            vec![found, symbols(&file), libraries(&file), taken_up(&folder)]
        }
    }
}

fn symbols(file: &Path) -> Check {
    let why = "other exported names clash with those of libfabric or of other providers, and \
               missing fi_ functions keep it from loading under some MPIs";
    match (elf::exported_symbols(file), elf::missing_symbols(file)) {
        (Ok(exported), Ok(missing)) => judge_symbols(&exported, &missing, why),
        (Err(error), _) | (_, Err(error)) => {
            Check::ok(SYMBOLS, error.to_string(), why).but(Status::Fail, BUILD)
        }
    }
}

fn judge_symbols(exported: &[String], missing: &[String], why: &str) -> Check {
    let stray: Vec<&str> = exported
        .iter()
        .map(String::as_str)
        .filter(|name| ![ENTRY, FOR_COLLECTIVES].contains(name))
        .collect();
    let wanted: Vec<&str> = missing
        .iter()
        .map(String::as_str)
        .filter(|name| name.starts_with("fi_"))
        .collect();
    if !exported.iter().any(|name| name == ENTRY) {
        return Check::ok(SYMBOLS, format!("{ENTRY} is not exported"), why)
            .but(Status::Fail, BUILD);
    }
    if !wanted.is_empty() {
        return Check::ok(
            SYMBOLS,
            format!("expects {} from elsewhere", wanted.join(", ")),
            why,
        )
        .but(Status::Fail, BUILD);
    }
    if !stray.is_empty() {
        return Check::ok(
            SYMBOLS,
            format!(
                "exports {} names beside {ENTRY}: {}",
                stray.len(),
                first_few(&stray)
            ),
            why,
        )
        .but(Status::Warn, BUILD);
    }
    Check::ok(SYMBOLS, format!("exports {ENTRY}, and no stray names"), why)
}

fn first_few(names: &[&str]) -> String {
    let shown = names.iter().take(3).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 3 {
        format!("{shown}, ...")
    } else {
        shown
    }
}

fn libraries(file: &Path) -> Check {
    let why = "a library that is missing keeps the provider from loading, and libfabric says so \
               only at its debug level";
    let facts = match elf::dynamic(file) {
        Ok(facts) => facts,
        Err(error) => return Check::ok(LIBRARIES, error.to_string(), why).but(Status::Fail, BUILD),
    };
    let loader = Loader::of_this_machine(std::env::var_os("LD_LIBRARY_PATH").as_deref());
    judge_libraries(&facts.needed, why, |name| {
        loader.resolve(name, file, &facts, &[]).is_some()
    })
}

fn judge_libraries(needed: &[OsString], why: &str, is_found: impl Fn(&OsStr) -> bool) -> Check {
    let shown = |name: &OsString| name.to_string_lossy().into_owned();
    let lost = needed.iter().filter(|name| !is_found(name));
    let lost: Vec<String> = lost.map(shown).collect();
    if lost.is_empty() {
        let all: Vec<String> = needed.iter().map(shown).collect();
        return Check::ok(LIBRARIES, all.join(", "), why);
    }
    Check::ok(LIBRARIES, format!("not found: {}", lost.join(", ")), why).but(
        Status::Fail,
        "build it on this machine, or on one with as old a C library",
    )
}

/// Asks the system's libfabric, if `fi_info` is here, for what it sees of the provider.
fn taken_up(folder: &Path) -> Check {
    let tool = program::locate(OsStr::new("fi_info"), std::env::var_os("PATH").as_deref()).ok();
    ask(tool.as_deref(), folder)
}

fn ask(tool: Option<&Path>, folder: &Path) -> Check {
    let why = "the last word is libfabric's: it refuses a provider that is too old, filtered out \
               or that does not load";
    let Some(tool) = tool else {
        return Check::ok(TAKEN_UP, "fi_info is not installed", why)
            .not_tried("apt install libfabric-bin; each MPI below loads its own libfabric");
    };
    let output = Command::new(tool)
        .args(["-p", "weft"])
        .env("FI_PROVIDER_PATH", folder)
        .env_remove("FI_PROVIDER")
        .stdin(Stdio::null())
        .output();
    let fix = format!(
        "see libfabric's reason: FI_LOG_LEVEL=debug FI_PROVIDER_PATH={} fi_info -p weft",
        shell_word(folder)
    );
    let shown = tool.display();
    match output {
        Ok(output)
            if output.status.success()
                && String::from_utf8_lossy(&output.stdout).contains("provider: weft") =>
        {
            Check::ok(TAKEN_UP, format!("{shown} lists it"), why)
        }
        Ok(output) => {
            let talk = String::from_utf8_lossy(&output.stderr).into_owned();
            let talk = talk.lines().last().unwrap_or_default();
            let value = format!("{shown} does not list it ({}) {talk}", output.status);
            Check::ok(TAKEN_UP, value.trim_end(), why).but(Status::Fail, fix)
        }
        Err(error) => Check::ok(TAKEN_UP, format!("{shown} cannot be started: {error}"), why)
            .not_tried("see why; each MPI below loads its own libfabric"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn only_the_entry_may_be_exported_and_no_libfabric_function_expected() {
        let judge = |exported: &[&str], missing: &[&str]| {
            judge_symbols(&names(exported), &names(missing), "why")
        };
        assert_eq!(judge(&["fi_prov_ini"], &["memcpy"]).status, Status::Ok);
        let whole = judge(&["fi_prov_ini", "weft_also_when_idle"], &[]);
        assert_eq!(whole.status, Status::Ok, "{whole:?}");
        judge(&["other"], &[]).assert_wrong(Status::Fail, "make build");
        let wanted = judge(&["fi_prov_ini"], &["fi_dupinfo", "memcpy"]);
        assert_eq!(wanted.value, "expects fi_dupinfo from elsewhere");
        wanted.assert_wrong(Status::Fail, "make build");
        let stray = judge(&["fi_prov_ini", "a", "b", "c", "d"], &[]);
        assert_eq!(
            stray.value,
            "exports 4 names beside fi_prov_ini: a, b, c, ..."
        );
        stray.assert_wrong(Status::Warn, "make build");
    }

    #[test]
    fn libfabric_is_asked_where_it_can_be_and_else_not_tried() {
        let folder = Path::new("/f");
        assert_eq!(ask(None, folder).status, Status::NotTried);
        let gone = ask(Some(Path::new("/no/such/fi_info")), folder);
        assert_eq!(gone.status, Status::NotTried, "{gone:?}");
        // One that lists nothing.
        let silent = ask(Some(Path::new("/bin/true")), folder);
        silent.assert_wrong(
            Status::Fail,
            "FI_LOG_LEVEL=debug FI_PROVIDER_PATH=/f fi_info",
        );
    }

    #[test]
    fn a_file_that_is_no_library_fails_both_checks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("libweft-fi.so");
        std::fs::write(&file, "text").unwrap();
        for check in [symbols(&file), libraries(&file)] {
            check.assert_wrong(Status::Fail, "make build");
        }
    }

    #[test]
    fn a_provider_that_is_not_found_fails_with_where_it_is_looked_for() {
        let found = checks_of(Err(Fault::Limit("no file in /l; set WEFT_X".to_owned())));
        let [check] = &found[..] else {
            panic!("without the file there is nothing else to look at: {found:?}");
        };
        check.assert_wrong(Status::Fail, "no file in /l; set WEFT_X");
        assert_eq!((&*check.name, &*check.value), ("provider", "not found"));
    }

    #[test]
    fn libraries_that_the_loader_does_not_find_are_named() {
        let needed = ["libc.so.6", "libold.so.1", "libgone.so"].map(OsString::from);
        let judge = |here: &[&str]| {
            judge_libraries(&needed, "why", |name| here.iter().any(|one| *one == name))
        };
        let all = judge(&["libc.so.6", "libold.so.1", "libgone.so"]);
        assert_eq!(all.status, Status::Ok);
        let some = judge(&["libc.so.6"]);
        some.assert_wrong(Status::Fail, "build it on this machine");
        assert_eq!(some.value, "not found: libold.so.1, libgone.so");
    }
}
