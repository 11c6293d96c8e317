// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where libweft-fi.so is: the folder that libfabric is told to look in.
//!
//! Called by `lib.rs` for the transport weft, and by the doctor. libfabric loads every file of that
//! folder whose name ends in `fi.so`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::fault::Fault;

/// The file name under which the provider is installed; libfabric's convention is
/// `lib<name>-fi.so`.
pub const FILE_NAME: &str = "libweft-fi.so";

/// Finds the folder of the provider: `named` (WEFT_PROVIDER_DIR) if set, else `lib/weft` beside the
/// executable's `bin`.
///
/// # Errors
/// `Fault::ProviderMissing`, naming the places that were looked at.
pub fn find(named: Option<&OsStr>, executable_folder: Option<&Path>) -> Result<PathBuf, Fault> {
    let named = named.filter(|folder| !folder.is_empty());
    let place = match (named, executable_folder) {
        (Some(folder), _) => PathBuf::from(folder),
        (_, Some(bin)) => bin.parent().unwrap_or(bin).join("lib/weft"),
        // A guess would be a folder that anybody may have made.
        (_, None) => {
            let text = format!(
                "{FILE_NAME} lies beside weft, but /proc/self/exe does not say where weft is; \
                 mount /proc, or name the folder of {FILE_NAME} in WEFT_PROVIDER_DIR"
            );
            return Err(Fault::ProviderMissing(text));
        }
    };
    if place.join(FILE_NAME).is_file() {
        return std::path::absolute(&place).map_err(Fault::system(format!("{}", place.display())));
    }
    Err(Fault::ProviderMissing(format!(
        "{FILE_NAME} was not found in {}{}; build it with `make build`, or name its folder in \
         WEFT_PROVIDER_DIR; `weft run --transport native` does without",
        place.display(),
        if named.is_some() {
            " (WEFT_PROVIDER_DIR)"
        } else {
            ""
        }
    )))
}

/// As `find`, for this process.
///
/// # Errors
/// As `find`.
pub fn find_for_this_process() -> Result<PathBuf, Fault> {
    let executable = std::env::current_exe().and_then(std::fs::canonicalize).ok();
    find(
        std::env::var_os("WEFT_PROVIDER_DIR").as_deref(),
        executable.as_deref().and_then(Path::parent),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_folder_wins_and_must_hold_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("lib/weft");
        std::fs::create_dir_all(&beside).unwrap();
        std::fs::write(beside.join(FILE_NAME), "").unwrap();
        let bin = folder.path().join("bin");
        assert_eq!(find(None, Some(&bin)).unwrap(), beside);
        assert_eq!(find(Some(beside.as_os_str()), None).unwrap(), beside);
        let fault = find(Some(folder.path().as_os_str()), Some(&bin)).unwrap_err();
        assert!(fault.to_string().contains("WEFT_PROVIDER_DIR"), "{fault}");
        let fault = find(None, Some(Path::new("/nowhere/bin"))).unwrap_err();
        assert!(
            fault.to_string().contains("/nowhere/lib/weft")
                && fault.to_string().contains("make build"),
            "{fault}"
        );
        let empty = find(Some(OsStr::new("")), Some(Path::new("/nowhere/bin"))).unwrap_err();
        assert_eq!(empty.to_string(), fault.to_string());
        let fault = find(None, None).unwrap_err().to_string();
        assert!(fault.contains("mount /proc"), "{fault}");
    }
}
