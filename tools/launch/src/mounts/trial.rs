// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bucket that is mounted for a look, as a job's are, and read-only: on a folder of its own, seen
//! by what [`Trial::command`] starts.
//!
//! Called by `weft doctor --bucket`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use weft_job::job::Mount;
use weft_job::mount::check_all;
use weft_os::process;

use crate::fault::Fault;
use crate::mounts::holder::Holder;
use crate::mounts::keeper_request::KeeperRequest;
use crate::mounts::{ENTER, command, variables};

/// A mounted bucket; dropping it unmounts.
#[derive(Debug)]
pub struct Trial {
    // Before the folder, so that it is unmounted first.
    holder: Option<Holder>,
    folder: PathBuf,
}

impl Trial {
    /// Mounts `source`, as `s3://BUCKET/PREFIX`; waits for as long as the store takes.
    ///
    /// # Errors
    /// `Fault::Limit`: why it is not mounted, and what to do.
    pub fn start(source: &str) -> Result<Self, Fault> {
        let mark = process::random_u64().map_err(Fault::system("naming a folder"))?;
        let folder = std::env::temp_dir().join(format!("weft-doctor-{mark:016x}"));
        let mount = Mount {
            source: source.to_owned(),
            target: as_text(&folder)?.to_owned(),
            read_only: true,
            shared_writes: false,
        };
        check_all(std::slice::from_ref(&mount))
            .map_err(|why| Fault::Limit(why.text().to_owned()))?;
        std::fs::create_dir(&folder)
            .map_err(Fault::system(format!("making {}", folder.display())))?;
        let mut trial = Self {
            holder: None,
            folder,
        };
        let wants = KeeperRequest {
            name: KeeperRequest::name(&format!("{mark:016x}")),
            first: None,
            nodes: None,
            shm_size: None,
            mounts: vec![mount],
        };
        let holder = Holder::start(&wants, &variables());
        let holder = holder.map_err(|why| Fault::Limit(why.to_string()))?;
        trial.holder = Some(holder);
        Ok(trial)
    }

    /// Where the bucket is seen.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A command that sees it.
    ///
    /// # Errors
    /// When the path of this program cannot be found.
    pub fn command(&self, words: &[&OsStr]) -> io::Result<Command> {
        let pid = self.holder.as_ref().map_or(0, Holder::pid).to_string();
        let mut entered = command(&[ENTER, &pid])?;
        entered.args(words);
        Ok(entered)
    }
}

/// The folder as a target of a mount, which is text.
fn as_text(folder: &Path) -> Result<&str, Fault> {
    folder.to_str().ok_or_else(|| {
        Fault::Limit(format!(
            "the folder {folder:?} is not UTF-8, and no bucket is mounted there; set TMPDIR to \
             another folder"
        ))
    })
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            let _ = holder.finish();
        }
        let _ = std::fs::remove_dir(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_folder_that_is_no_text_is_refused_with_its_bytes_and_the_remedy() {
        assert_eq!(as_text(Path::new("/tmp/é")).unwrap(), "/tmp/é");
        let odd = Path::new(OsStr::from_bytes(b"/caf\xe9"));
        let text = as_text(odd).unwrap_err().to_string();
        assert!(
            text.contains(r#""/caf\xE9" is not UTF-8"#) && text.contains("TMPDIR"),
            "{text}"
        );
    }
}
