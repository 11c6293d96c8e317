// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A job's buckets in containers: `weft run --mount` mounts them there. This needs a privileged
//! container, so the export says so.
//!
//! Called by `batch.rs` and `pods.rs`. Sources: fuse(4); capabilities(7), CAP_SYS_ADMIN for
//! mount(2); the API references of AWS Batch, ContainerProperties, and of Kubernetes,
//! SecurityContext. Neither system has a right to mount that is less than `privileged`.

use clap::Args;

use super::exported::Notes;
use crate::fault::Fault;
use crate::file::JobFile;

/// The words of `weft export` about the job's buckets.
#[derive(Debug, Clone, Args)]
pub struct Mounting {
    /// Let the containers mount the job's buckets; then they run privileged
    #[arg(long, conflicts_with = "no_mounts")]
    pub privileged: bool,
    /// Leave the job's buckets out
    #[arg(long)]
    pub no_mounts: bool,
}

impl Mounting {
    /// Whether the containers mount the job's buckets.
    ///
    /// # Errors
    /// Buckets of which neither word says what to do, and `--privileged` without buckets.
    pub(super) fn is_wanted(&self, file: &JobFile, notes: &mut Notes<'_>) -> Result<bool, Fault> {
        let has_mounts = !file.job.mounts.is_empty();
        if self.privileged && !has_mounts {
            return Err(Fault::new(
                "--privileged is for jobs that mount buckets, and this one mounts none",
            ));
        }
        if !has_mounts {
            return Ok(false);
        }
        if self.no_mounts {
            notes.add("mounts", "left out, as --no-mounts says");
            return Ok(false);
        }
        if !self.privileged {
            let text = "only a privileged container may mount a bucket: --privileged makes it \
                        so, --no-mounts leaves the buckets out";
            return Err(file.fault("mounts", text));
        }
        let text = "the containers run privileged; the image needs weft-mount beside weft, and \
                    each target as an empty folder";
        notes.add("mounts", text);
        Ok(true)
    }
}
