// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The buckets that jobs have mounted, as their ranks see them (`--mount`).
//!
//! Called by `watch.rs`. Source: proc(5), `mountinfo`: a rank's own mounts, which this process has
//! not. `weft-mount` names its mounts `weft:BUCKET/PREFIX`.

use std::collections::BTreeMap;

use super::mount_row::MountRow;
use super::rates::EndpointRow;

/// What the source of a mount of `weft-mount` begins with.
const SOURCE: &str = "weft:";

/// Those of the processes that have endpoints.
#[must_use]
pub fn of(endpoints: &[EndpointRow]) -> Vec<MountRow> {
    let mut seen: BTreeMap<MountRow, u32> = BTreeMap::new();
    let mut processes: Vec<_> = endpoints
        .iter()
        .map(|row| (row.pid, &row.place.job))
        .collect();
    processes.sort_unstable();
    processes.dedup();
    for (pid, job) in processes {
        // One that has ended, or belongs to another namespace, has none.
        let table = weft_os::proc_text::read(format!("/proc/{pid}/mountinfo")).unwrap_or_default();
        for row in table
            .lines()
            .filter_map(|line| row_of(line, job.as_deref()))
        {
            *seen.entry(row).or_default() += 1;
        }
    }
    let counted = seen
        .into_iter()
        .map(|(row, processes)| MountRow { processes, ..row });
    counted.collect()
}

fn row_of(line: &str, job: Option<&str>) -> Option<MountRow> {
    let (place, origin) = line.split_once(" - ")?;
    let source = origin.split(' ').nth(1)?.strip_prefix(SOURCE)?;
    let mut fields = place.split(' ').skip(4);
    let (folder, options) = (fields.next()?, fields.next()?);
    Some(MountRow {
        job: job.map(str::to_owned),
        source: format!("s3://{}", shown(source)),
        folder: shown(folder),
        read_only: options.split(',').any(|option| option == "ro"),
        processes: 0,
    })
}

/// Names of folders are the user's; what is no letter does not reach the terminal. The kernel
/// writes blanks as `\040`.
fn shown(name: &str) -> String {
    let name = name.replace("\\040", " ");
    name.chars().filter(|letter| !letter.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_of_buckets_are_found_and_others_are_not() {
        let line = "65 43 0:39 / /mnt/my\\040data ro,nosuid - fuse weft:data/p/ ro,user_id=0";
        let row = row_of(line, Some("77")).unwrap();
        assert_eq!(
            (&*row.source, &*row.folder),
            ("s3://data/p/", "/mnt/my data")
        );
        assert!(row.read_only && row.job.as_deref() == Some("77"));
        for other in [
            "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue",
            "65 43 0:39 / /mnt rw - fuse sshfs rw",
            "",
        ] {
            assert_eq!(row_of(other, None), None, "{other}");
        }
    }
}
