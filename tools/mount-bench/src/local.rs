// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A folder of the local disk as a peer. It shows how fast a load is where no program stands
//! between the kernel and the files.

use std::fs::{self, File};
use std::path::Path;

use crate::fault::Fault;
use crate::loads::{FILE_BYTES, KEYS, Load, TREE_FILES, TREE_FOLDERS};

/// The loads that a local disk runs. Others measure a network, and a local disk has none.
const LOADS: [&str; 4] = ["list", "list-again", "find", "page-cache"];

/// Whether there is such a figure of a load.
pub fn has(load: &Load) -> bool {
    LOADS.contains(&load.name)
}

/// Makes the files that a load reads, as the bucket has them.
///
/// # Errors
/// There are none of this load, or the system refuses.
pub fn make(load: &Load, folder: &Path) -> Result<(), Fault> {
    let failed = Fault::system(format!("make files in {}", folder.display()));
    let made = match load.name {
        "list" | "list-again" => files(&folder.join("many"), "k", KEYS, 4096),
        "find" => (0..TREE_FOLDERS).try_for_each(|number| {
            let path = folder.join(format!("tree/{number:02}"));
            files(&path, "f", TREE_FILES, 10)
        }),
        "page-cache" => fs::write(folder.join("files0000000"), vec![7; FILE_BYTES as usize]),
        _ => Err(std::io::ErrorKind::Unsupported.into()),
    };
    made.map_err(failed)
}

/// Sparse: no load reads them.
fn files(folder: &Path, prefix: &str, count: u64, bytes: u64) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    (0..count).try_for_each(|number| {
        let file = File::create(folder.join(format!("{prefix}{number:07}")))?;
        file.set_len(bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loads;

    #[test]
    fn every_load_of_a_local_disk_finds_its_files_there_and_no_other_begins() {
        let folder = tempfile::TempDir::new().unwrap();
        let find = loads::named("find").unwrap();
        make(find, folder.path()).unwrap();
        let outcome = (find.work)(folder.path(), std::time::Duration::from_secs(60)).unwrap();
        assert!(outcome.figure > 0.0 && !outcome.is_cut);
        let unpack = loads::named("unpack").unwrap();
        assert!(!has(unpack) && make(unpack, folder.path()).is_err());
    }
}
