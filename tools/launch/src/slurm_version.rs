// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which Slurm is old: its version as its commands say it, and the oldest that Weft knows.
//!
//! Called by `weft submit`, before a job is queued, and by `weft doctor`.

use std::fmt;

/// A version of Slurm: year and month of its release, as `22.05`. Source: Slurm's release notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlurmVersion {
    year: u32,
    month: u32,
}

/// The oldest version that Weft's tests ran with; older ones lack options that are used.
pub const OLDEST: SlurmVersion = SlurmVersion { year: 22, month: 5 };

impl SlurmVersion {
    /// Reads what `sbatch --version` and `srun --version` write: `slurm-wlm 22.05.8`, `slurm
    /// 25.11.0-0rc1`. `None` where it is something else.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut parts = text.split_whitespace().last()?.split('.');
        Some(Self {
            year: parts.next()?.parse().ok()?,
            month: parts.next()?.parse().ok()?,
        })
    }

    /// Whether it is older than what Weft knows.
    #[must_use]
    pub fn is_too_old(self) -> bool {
        self < OLDEST
    }
}

impl fmt::Display for SlurmVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{:02}", self.year, self.month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared() {
        let read = |text: &str| SlurmVersion::read(text).map(|version| version.to_string());
        assert_eq!(read("slurm-wlm 22.05.8\n").as_deref(), Some("22.05"));
        assert_eq!(read("slurm 25.11.0-0rc1").as_deref(), Some("25.11"));
        assert_eq!(read("sbatch"), None);
        for (text, is_too_old) in [
            ("slurm 17.11.13-2", true),
            ("slurm 21.08.8", true),
            ("slurm-wlm 22.05.0", false),
            ("slurm 26.05.0", false),
        ] {
            let version = SlurmVersion::read(text).unwrap();
            assert_eq!(version.is_too_old(), is_too_old, "{text}");
        }
    }
}
