// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Limits that a control group sets: memory and processor time, in version 1 and version 2.
//!
//! Called by `memory.rs` and `processor.rs`. Source: Linux Documentation/admin-guide/cgroup-v2.rst
//! and cgroup-v1/memory.rst. A limit of any group above counts too, so the smallest on the way to
//! the root is taken.

use std::path::{Path, PathBuf};

use crate::tree::Tree;

/// The least memory limit in bytes on the way to the root; `None` where there is none.
#[must_use]
pub fn memory_limit_bytes(tree: &Tree) -> Option<u64> {
    let second = ancestors(tree, "cgroup2", None)
        .iter()
        .filter_map(|folder| tree.number(folder.join("memory.max")))
        .min();
    let first = ancestors(tree, "cgroup", Some("memory"));
    let first = first
        .iter()
        .filter_map(|folder| tree.number(folder.join("memory.limit_in_bytes")))
        .min();
    // Version 1 writes "no limit" as the largest multiple of a page, near 2^63.
    let first = first.filter(|&bytes| bytes < 1 << 62);
    second.into_iter().chain(first).min()
}

/// The least processor quota on the way to the root, in processors (2.5 means two and a half);
/// `None` where there is none.
#[must_use]
pub fn processor_quota(tree: &Tree) -> Option<f64> {
    let second = ancestors(tree, "cgroup2", None);
    let second = second.iter().filter_map(|folder| {
        let text = tree.text(folder.join("cpu.max"))?;
        let (quota, period) = text.split_once(' ')?;
        Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
    });
    let first = ancestors(tree, "cgroup", Some("cpu"));
    let first = first.iter().filter_map(|folder| {
        let quota: f64 = tree.text(folder.join("cpu.cfs_quota_us"))?.parse().ok()?;
        let period: f64 = tree.text(folder.join("cpu.cfs_period_us"))?.parse().ok()?;
        (quota > 0.0).then_some(quota / period)
    });
    second
        .chain(first)
        .filter(|quota| quota.is_finite() && *quota > 0.0)
        .reduce(f64::min)
}

/// The folders of this process's group and of those above it, in the mounted hierarchy of that kind
/// and controller.
fn ancestors(tree: &Tree, kind: &str, controller: Option<&str>) -> Vec<PathBuf> {
    let (Some(mount), Some(group)) = (mount_point(tree, kind, controller), group(tree, controller))
    else {
        return Vec::new();
    };
    let inside = group.strip_prefix("/").unwrap_or(&group).to_owned();
    // In a container the group's path may count from outside; then only the mount point itself is
    // there, and it is the group.
    inside.ancestors().map(|path| mount.join(path)).collect()
}

fn mount_point(tree: &Tree, kind: &str, controller: Option<&str>) -> Option<PathBuf> {
    let mounts = tree.text("/proc/self/mounts")?;
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (path, found, options) = (fields.next()?, fields.next()?, fields.next()?);
        let fits = controller.is_none_or(|name| options.split(',').any(|option| option == name));
        (found == kind && fits).then(|| PathBuf::from(path))
    })
}

fn group(tree: &Tree, controller: Option<&str>) -> Option<PathBuf> {
    let groups = tree.text("/proc/self/cgroup")?;
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let fits = match controller {
            None => controllers.is_empty(),
            Some(name) => controllers.split(',').any(|one| one == name),
        };
        fits.then(|| Path::new(path).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let tree = Tree::below(folder.path());
        (folder, tree)
    }

    #[test]
    fn the_least_limit_on_the_way_to_the_root_counts() {
        let (_folder, tree) = tree(&[
            (
                "proc/self/mounts",
                "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n",
            ),
            ("proc/self/cgroup", "0::/job/step\n"),
            ("sys/fs/cgroup/job/memory.max", "1000\n"),
            ("sys/fs/cgroup/job/step/memory.max", "max\n"),
            ("sys/fs/cgroup/job/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/job/step/cpu.max", "250000 100000\n"),
        ]);
        assert_eq!(memory_limit_bytes(&tree), Some(1000));
        assert_eq!(processor_quota(&tree), Some(2.5));
    }

    #[test]
    fn version_one_and_its_no_limit_are_understood() {
        let (_folder, tree) = tree(&[
            (
                "proc/self/mounts",
                "cgroup /cg/memory cgroup rw,memory 0 0\ncgroup /cg/cpu cgroup rw,cpu 0 0\n",
            ),
            ("proc/self/cgroup", "4:memory:/a\n1:cpu,cpuacct:/\n"),
            ("cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cg/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cg/cpu/cpu.cfs_quota_us", "-1\n"),
            ("cg/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(memory_limit_bytes(&tree), None);
        assert_eq!(processor_quota(&tree), None);
    }

    #[test]
    fn without_groups_there_is_no_limit() {
        let (_folder, tree) = tree(&[("proc/self/mounts", "proc /proc proc rw 0 0\n")]);
        assert_eq!(
            (memory_limit_bytes(&tree), processor_quota(&tree)),
            (None, None)
        );
    }
}
