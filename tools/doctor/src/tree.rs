// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Short files of the system, below a root that tests may replace: /proc, /sys and cgroup values.
//!
//! Used by every check that reads a file. Source: proc(5), sysfs(5), cgroups(7).

use std::path::{Path, PathBuf};

/// The root below which paths are looked up.
#[derive(Debug, Clone)]
pub struct Tree {
    root: PathBuf,
}

impl Tree {
    /// The machine's own files.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self {
            root: PathBuf::from("/"),
        }
    }

    /// Files below another folder.
    #[must_use]
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The trimmed content of the file at an absolute path; `None` if it cannot be read.
    #[must_use]
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let path = path.as_ref();
        let inside = path.strip_prefix("/").unwrap_or(path);
        weft_os::proc_text::read(self.root.join(inside))
            .ok()
            .map(|text| text.trim().to_owned())
    }

    /// What is in the folder at an absolute path, in order; nothing if it cannot be read.
    #[must_use]
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let path = path.as_ref();
        let inside = path.strip_prefix("/").unwrap_or(path);
        let entries = std::fs::read_dir(self.root.join(inside));
        let names = entries.into_iter().flatten().flatten();
        let mut names: Vec<String> = names
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// The number in a file that holds nothing else.
    #[must_use]
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// The value behind `key` in a file of lines `key: value` or `key value`.
    #[must_use]
    pub fn field(&self, path: impl AsRef<Path>, key: &str) -> Option<String> {
        let text = self.text(path)?;
        let value = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(value.trim_start_matches(':').trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_below_the_root_and_trimmed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("proc")).unwrap();
        std::fs::write(folder.path().join("proc/number"), "42\n").unwrap();
        std::fs::write(folder.path().join("proc/status"), "Name:\tx\nSeccomp:\t2\n").unwrap();
        let tree = Tree::below(folder.path());
        assert_eq!(tree.number("/proc/number"), Some(42));
        assert_eq!(tree.field("/proc/status", "Seccomp").as_deref(), Some("2"));
        assert_eq!(tree.field("/proc/status", "Absent"), None);
        assert_eq!(tree.text("/proc/absent"), None);
    }
}
