// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Slurm's own methods to give each job a /dev/shm of a chosen size: files for the administrator.
//!
//! Called by `export.rs`. Sources: namespace.yaml(5) of Slurm 26.05; job_container.conf(5) of
//! 24.11; src/plugins/job_container/tmpfs of 22.05 to 25.05, which mounts /dev/shm without a size
//! after InitScript has ended.

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::exported::{Exported, Notes};
use super::source::Source;
use crate::fault::Fault;
use crate::file::JobFile;

/// The words of `weft export slurm-shm`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    #[command(flatten)]
    pub(super) source: Source,
    /// Slurm's version, or the newest of these that is not newer
    #[arg(long, value_name = "VERSION")]
    pub slurm: Release,
    /// A folder of each node's own in which Slurm keeps jobs' folders
    #[arg(long, value_name = "DIR", default_value = "/var/spool/slurm/job")]
    pub base: String,
    /// Print the script that job_container.conf names, for /etc/slurm/weft-shm.sh
    #[arg(long)]
    pub script: bool,
}

/// From which version on Slurm has each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Release {
    /// namespace.yaml with dir_confs
    #[value(name = "26.05")]
    DirConfs,
    /// job_container.conf with CloneNSScript
    #[value(name = "24.11")]
    CloneScript,
    /// job_container.conf with InitScript
    #[value(name = "22.05")]
    InitScript,
}

/// The file.
///
/// # Errors
/// A job without `shm_size`; a base folder that cannot stand in the file.
pub(super) fn export(file: &JobFile, options: &Options) -> Result<Exported, Fault> {
    let Some(size) = file.job.shm_size else {
        let text = "shm_size is missing, and with it the size that /dev/shm is to have";
        return Err(Fault::new(text).in_file(file.name()));
    };
    let base = options.base.as_str();
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "/._-%".contains(one);
    if !base.starts_with('/') || !base.chars().all(is_plain) {
        let shown = crate::node::shortened(base);
        let text = format!(
            "--base {shown} must be an absolute path of letters, digits, `.`, `_`, `-` and `%`"
        );
        return Err(Fault::new(text));
    }
    let mut notes = Notes::of(file);
    let text = "the file is the cluster's: each job has this size, and the rest of the job file \
                is not in it";
    notes.add("shm_size", text);
    let bytes = size.bytes();
    let (option, body) = match options.slurm {
        Release::DirConfs if options.script => {
            let text = "--script is for job_container.conf; namespace.yaml needs no script";
            return Err(Fault::new(text));
        }
        Release::DirConfs => return notes.with_yaml(vec![namespace(base, bytes)]),
        Release::CloneScript => ("CloneNSScript", CLONE),
        Release::InitScript => {
            notes.add("shm_size", BEFORE_24_11);
            ("InitScript", INIT)
        }
    };
    Ok(notes.with_text(if options.script {
        body.replace("SIZE", &bytes.to_string())
    } else {
        format!("AutoBasePath=true\nBasePath={base} {option}=/etc/slurm/weft-shm.sh\n")
    }))
}

fn namespace(base: &str, bytes: u64) -> Value {
    let options = format!("size={bytes},mode=1777");
    let shm = json!({ "path": "/dev/shm", "tmpfs": true, "options": options });
    json!({
        "defaults": {
            "auto_base_path": true,
            "base_path": base,
            "dir_confs": [{ "path": "/tmp" }, shm],
        },
    })
}

const BEFORE_24_11: &str = "InitScript runs before Slurm mounts /dev/shm, so it leaves a process \
    behind that sets the size a moment later; a job that begins at once may see the old size";

/// Slurm names the namespace in SLURM_NS.
const CLONE: &str = "\
#!/bin/sh
exec nsenter --mount=\"$SLURM_NS\" -- mount -o remount,size=SIZE /dev/shm
";

/// The file that names the namespace is in the folder above the job's own, and a mount of nsfs once
/// there is one. Slurm binds it before it mounts the job's own /dev/shm. Until that is done the
/// namespace has the node's, whose size is not the job's to set: so its device must be one that the
/// node has mounted nowhere.
const INIT: &str = "\
#!/bin/sh
namespace=$(dirname \"$SLURM_JOB_MOUNTPOINT_SRC\")/.ns
(
    for _ in $(seq 2000); do
        if device=$(nsenter --mount=\"$namespace\" -- mountpoint -d /dev/shm) &&
            ! grep -q \" $device \" /proc/self/mountinfo &&
            nsenter --mount=\"$namespace\" -- mount -o remount,size=SIZE /dev/shm; then
            exit
        fi
        sleep 0.01
    done
) </dev/null >/dev/null 2>&1 &
";
