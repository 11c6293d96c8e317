// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A mounted bucket as one word, as `--mount` takes it: `s3://bucket/prefix:/folder`. A `:ro` at
//! the end makes it read-only; with `:shared-writes` several hosts may write one file at once.
//!
//! Read by `weft run`, `weft exec` and `weft submit`; `sbatch` writes it. The rules for the
//! bucket's name and the folder are those of job files (`check.rs`).

use std::fmt;
use std::str::FromStr;

use crate::check;
use crate::fault::Fault;
use crate::job::Mount;
use crate::node::shortened;

/// Behind a mount that refuses writing.
const READ_ONLY: &str = ":ro";
/// Behind a mount whose files several hosts may write at once.
const SHARED_WRITES: &str = ":shared-writes";

impl FromStr for Mount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut rest, mut read_only, mut shared_writes) = (text, false, false);
        loop {
            if let Some(less) = rest.strip_suffix(READ_ONLY) {
                (rest, read_only) = (less, true);
            } else if let Some(less) = rest.strip_suffix(SHARED_WRITES) {
                (rest, shared_writes) = (less, true);
            } else {
                break;
            }
        }
        // A prefix may hold `:/`; a folder seldom does.
        let Some((source, target)) = rest.rsplit_once(":/").filter(|(left, _)| *left != "s3")
        else {
            return Err(format!(
                "`{}` names no folder; write s3://BUCKET/PREFIX:/FOLDER, with :ro after it to \
                 refuse writing, or :shared-writes to let several hosts write one file at once",
                shortened(text)
            ));
        };
        let mount = Self {
            source: source.to_owned(),
            target: format!("/{target}"),
            read_only,
            shared_writes,
        };
        let checked = check_all(std::slice::from_ref(&mount));
        checked.map_err(|fault| fault.text().to_owned())?;
        Ok(mount)
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.source, self.target)?;
        let ends = [
            (self.read_only, READ_ONLY),
            (self.shared_writes, SHARED_WRITES),
        ];
        for (_, end) in ends.iter().filter(|(is_set, _)| *is_set) {
            f.write_str(end)?;
        }
        Ok(())
    }
}

/// Looks at each, and whether two want the same folder.
///
/// # Errors
/// The first that cannot be, with what to write.
pub fn check_all(mounts: &[Mount]) -> Result<(), Fault> {
    check::mounts(mounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_one_word_and_read_back() {
        for (text, source, target, ends) in [
            ("s3://data:/data", "s3://data", "/data", [false, false]),
            (
                "s3://data/a:/b:/mnt/x:ro",
                "s3://data/a:/b",
                "/mnt/x",
                [true, false],
            ),
            ("s3://data/p/:/m", "s3://data/p/", "/m", [false, false]),
            (
                "s3://data:/m:shared-writes",
                "s3://data",
                "/m",
                [false, true],
            ),
        ] {
            let mount: Mount = text.parse().unwrap();
            assert_eq!((&*mount.source, &*mount.target), (source, target));
            assert_eq!([mount.read_only, mount.shared_writes], ends);
            assert_eq!(mount.to_string(), text);
        }
    }

    #[test]
    fn what_is_no_mount_is_refused_with_what_to_write() {
        for (text, said) in [
            ("s3://data", "names no folder"),
            ("s3://data:data", "names no folder"),
            ("data:/mnt", "is no bucket"),
            ("s3://DATA:/mnt", "is no bucket"),
            ("s3://data:/mnt/../etc", "absolute path"),
            ("s3://data:/", "absolute path"),
            ("s3://data:/m:ro:shared-writes", "nobody writes"),
            ("s3://data:/m:shared-writes:ro", "nobody writes"),
            ("s3://data:shared-writes", "names no folder"),
            ("s3://data", ":shared-writes to let several hosts"),
        ] {
            let refusal = text.parse::<Mount>().unwrap_err();
            assert!(refusal.contains(said), "{text}: {refusal}");
        }
        let twice = ["s3://one:/m", "s3://two:/m/"].map(|text| text.parse().unwrap());
        assert!(
            check_all(&twice)
                .unwrap_err()
                .text()
                .contains("two buckets")
        );
    }
}
