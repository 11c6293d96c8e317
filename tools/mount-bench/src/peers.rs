// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How each program is mounted and unmounted. [`crate::rounds`] makes a mount for each run.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::fault::Fault;
use crate::server::{BUCKET, Server};

/// Chosen: a program that has not mounted by then does not.
const MOUNT_LIMIT: Duration = Duration::from_secs(30);
/// Chosen: one that has not ended by then after its folder was unmounted is killed.
const END_LIMIT: Duration = Duration::from_secs(30);

/// A program that mounts buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// weft-mount.
    Weft,
    /// The same with `--publish async`: who closes a file does not wait for the store.
    WeftAsync,
    /// The same, which believes names for a minute.
    WeftTtl,
    /// tests/mount/mountpoint-peer with the settings of mount-s3.
    Mountpoint,
    /// The same, which believes names for a minute.
    MountpointTtl,
    /// rclone mount with its whole cache.
    Rclone,
    /// s3fs of Debian.
    S3fs,
    /// No program: a folder of the local disk with the same files.
    Local,
}

impl Kind {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Weft, "weft"),
        (Self::WeftAsync, "weft-async"),
        (Self::WeftTtl, "weft-ttl"),
        (Self::Mountpoint, "mountpoint"),
        (Self::MountpointTtl, "mountpoint-ttl"),
        (Self::Rclone, "rclone"),
        (Self::S3fs, "s3fs"),
        (Self::Local, "local"),
    ];

    /// As it is named in options and tables.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(kind, _)| *kind == self);
        found.map_or("", |(_, name)| name)
    }

    /// All names, for who gave another one.
    pub fn names() -> String {
        Self::ALL.map(|(_, name)| name).join(", ")
    }

    /// The kind of a name.
    pub fn named(name: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(_, known)| *known == name);
        found.map(|(kind, _)| *kind)
    }

    fn words(self, url: &str, folder: &str, cache: &str) -> Vec<String> {
        let text = match self {
            Self::Weft => format!("{BUCKET} {folder} --endpoint-url {url} --foreground"),
            Self::Local => String::new(),
            Self::WeftTtl => {
                format!("{BUCKET} {folder} --endpoint-url {url} --foreground --metadata-ttl 60")
            }
            Self::WeftAsync => format!(
                "{BUCKET} {folder} --endpoint-url {url} --foreground --publish async \
                 --stage {cache}/stage"
            ),
            Self::Mountpoint => format!("{url} {BUCKET} {folder}"),
            Self::MountpointTtl => format!("{url} {BUCKET} {folder} 10 60"),
            Self::S3fs => format!(
                "{BUCKET} {folder} -f -o url={url},use_path_request_style,enable_noobj_cache"
            ),
            Self::Rclone => format!(
                "mount :s3:{BUCKET} {folder} --s3-provider Other --s3-endpoint {url} --s3-env-auth \
                 --s3-force-path-style --vfs-cache-mode full --cache-dir {cache} \
                 --use-server-modtime --config /dev/null"
            ),
        };
        text.split_whitespace().map(str::to_owned).collect()
    }
}

/// One program that mounts buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Which one.
    pub kind: Kind,
    /// Its command.
    pub command: PathBuf,
}

/// A mount of one peer, until this is dropped.
pub struct Mount {
    /// None of the local disk.
    process: Option<Child>,
    folder: TempDir,
    _cache: Option<TempDir>,
}

impl Mount {
    /// A folder of the local disk, with the files that `make` makes there.
    ///
    /// # Errors
    /// Those of `make`; what the system refuses.
    pub fn of_local_disk(make: impl FnOnce(&Path) -> Result<(), Fault>) -> Result<Self, Fault> {
        let failed = Fault::system("make a folder".to_owned());
        let folder = TempDir::with_prefix("weft-bench-mount-").map_err(&failed)?;
        make(folder.path())?;
        Ok(Self {
            process: None,
            folder,
            _cache: None,
        })
    }

    /// Mounts, and waits until the folder can be used.
    ///
    /// # Errors
    /// What the program said.
    pub fn new(peer: &Peer, server: &Server) -> Result<Self, Fault> {
        let failed = Fault::system(format!("mount by {}", peer.command.display()));
        let folder = TempDir::with_prefix("weft-bench-mount-").map_err(&failed)?;
        let cache = TempDir::with_prefix("weft-bench-cache-").map_err(&failed)?;
        let log = cache.path().join("log");
        let output = File::create(&log).map_err(&failed)?;
        let path = |path: &Path| path.to_string_lossy().into_owned();
        let words = peer
            .kind
            .words(&server.url, &path(folder.path()), &path(cache.path()));
        let process = Command::new(&peer.command)
            .args(words)
            .envs([
                ("AWS_ACCESS_KEY_ID", "weft"),
                ("AWS_SECRET_ACCESS_KEY", "weft-secret"),
                ("AWSACCESSKEYID", "weft"),
                ("AWSSECRETACCESSKEY", "weft-secret"),
                ("AWS_REGION", "us-east-1"),
                ("AWS_EC2_METADATA_DISABLED", "true"),
            ])
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(&failed)?)
            .stderr(output)
            .spawn()
            .map_err(&failed)?;
        let mut mount = Self {
            process: Some(process),
            folder,
            _cache: Some(cache),
        };
        let until = Instant::now() + MOUNT_LIMIT;
        while !mount.is_mounted() {
            if !mount.is_running() || Instant::now() > until {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let peer = peer.kind.name();
                return Err(Fault::NotMounted { peer, said });
            }
            thread::sleep(Duration::from_millis(20));
        }
        // A moment for what programs do once the folder is there.
        thread::sleep(Duration::from_millis(200));
        Ok(mount)
    }

    /// Where the bucket is.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The most memory that the program had, in bytes, from proc(5).
    pub fn resident_bytes(&self) -> u64 {
        let id = self.process.as_ref().map(Child::id).unwrap_or_default();
        let status = fs::read_to_string(format!("/proc/{id}/status"));
        let status = status.unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        number.unwrap_or(0) * 1024
    }

    fn is_running(&mut self) -> bool {
        let process = self.process.as_mut();
        process.is_some_and(|process| matches!(process.try_wait(), Ok(None)))
    }

    fn is_mounted(&self) -> bool {
        let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev()).ok();
        let above = self.folder.path().parent().and_then(device);
        device(self.folder.path()).is_some_and(|own| Some(own) != above)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let until = Instant::now() + END_LIMIT;
        while self.is_mounted() {
            let mut unmount = Command::new("umount");
            if Instant::now() > until {
                unmount.arg("--lazy");
            }
            let _ = unmount
                .arg(self.folder.path())
                .stderr(Stdio::null())
                .status();
            thread::sleep(Duration::from_millis(20));
        }
        while self.is_running() {
            if let Some(process) = self.process.as_mut().filter(|_| Instant::now() > until) {
                let _ = process.kill();
                let _ = process.wait();
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
