// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line. Options have the names of Mountpoint for Amazon S3 where they mean the same.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use weft_cache::{DiskCache, Limit};
use weft_files::Disk;

use crate::mount_error::MountError;
use crate::{log, mount_point};

/// Shows a bucket of S3 as a folder
#[derive(Debug, Clone, Parser)]
#[command(name = "weft-mount", version, after_help = EXAMPLES)]
pub struct Options {
    /// The bucket: NAME, or s3://NAME/PREFIX
    pub bucket: String,
    /// An empty folder
    pub directory: PathBuf,
    /// Show only keys that begin with PREFIX; if it does not end in /, a / is added
    #[arg(long)]
    pub prefix: Option<String>,
    #[command(flatten)]
    pub reach: ReachOptions,
    #[command(flatten)]
    pub access: AccessOptions,
    #[command(flatten)]
    pub writes: WriteOptions,
    /// How long names and attributes stay valid, in seconds; or `indefinite`, or `minimal` (ask the
    /// store each time)
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = time_to_live)]
    pub metadata_ttl: Duration,
    /// How much memory file contents may take, for example 512m or 2g
    #[arg(long, value_name = "SIZE", default_value = "512m", value_parser = size)]
    pub memory_target: u64,
    #[command(flatten)]
    pub cache: CacheOptions,
    #[command(flatten)]
    pub job: JobOptions,
    /// Threads that serve the kernel's calls
    #[arg(long, value_name = "COUNT", default_value = "2",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    pub max_threads: u16,
    /// Stay in the foreground; messages go to standard error
    #[arg(long, short)]
    pub foreground: bool,
    /// For weft run --mount: says `ready` on standard output, and unmounts when standard input
    /// ends; no signal ends it
    #[arg(long, hide = true, conflicts_with = "foreground")]
    pub held: bool,
    /// Write the log into this folder, instead of the system's log
    #[arg(long, short, value_name = "FOLDER")]
    pub log_directory: Option<PathBuf>,
}

/// Where the bucket is, and who asks.
#[derive(Debug, Clone, clap::Args)]
pub struct ReachOptions {
    /// The bucket's region
    #[arg(long)]
    pub region: Option<String>,
    /// The address of a store other than AWS, for example http://127.0.0.1:9000
    #[arg(long, value_name = "URL")]
    pub endpoint_url: Option<String>,
    /// Ask for ADDRESS/BUCKET instead of BUCKET.ADDRESS; the default for addresses that are not
    /// AWS's
    #[arg(long)]
    pub force_path_style: bool,
    /// A profile of ~/.aws
    #[arg(long)]
    pub profile: Option<String>,
    /// Send requests without credentials, for public buckets
    #[arg(long)]
    pub no_sign_request: bool,
    /// The checksum that goes with written data: crc64nvme, or off for stores that do not know it
    #[arg(long, value_name = "WHICH", default_value = "crc64nvme",
          value_parser = ["crc64nvme", "off"])]
    pub upload_checksums: String,
    /// When to sign every byte of written data: always, or auto: only if the connection to the
    /// store is neither TLS nor inside this host
    #[arg(long, value_name = "WHEN", default_value = "auto", value_parser = ["auto", "always"])]
    pub sign_bodies: String,
}

/// What is kept on a disk.
#[derive(Debug, Clone, clap::Args)]
pub struct CacheOptions {
    /// A folder on a disk that keeps the file contents that were read, also for later mounts
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
    /// How large that folder may become, in MiB [default: all but a twentieth of its file system]
    #[arg(long, value_name = "MIB", requires = "cache",
          value_parser = clap::value_parser!(u64).range(64..=1 << 40))]
    pub max_cache_size: Option<u64>,
}

/// The other mounts of a job, which fetch each byte once together.
#[derive(Debug, Clone, clap::Args)]
pub struct JobOptions {
    /// The UDP addresses of all mounts of the job, one for each node; the same list on each node
    #[arg(
        long,
        value_name = "HOST:PORT,...",
        value_delimiter = ',',
        requires = "job_node"
    )]
    pub job_nodes: Option<Vec<String>>,
    /// The place of this mount in that list, counted from 0
    #[arg(long, value_name = "NUMBER", requires = "job_nodes")]
    pub job_node: Option<usize>,
    /// Let programs on several nodes write one file at once: each file that is open for writing has
    /// one node of the job, and all reads and writes of it go there
    #[arg(long, requires = "job_nodes")]
    pub shared_writes: bool,
}

/// How files are written.
#[derive(Debug, Clone, clap::Args)]
pub struct WriteOptions {
    /// When a written file is in the store: `close`: when close(2) or fsync(2) returns; `fsync`:
    /// when fsync(2) returns, and soon after close(2); `async`: soon after close(2)
    #[arg(long, value_name = "WHEN", default_value = "close",
          value_parser = ["close", "fsync", "async"])]
    pub publish: String,
    /// A folder on this host for written data that are not yet in the store
    /// [default: /var/tmp/weft-mount-UID]
    #[arg(long, value_name = "FOLDER")]
    pub stage: Option<PathBuf>,
    /// How many bytes that folder may hold, for example 8g
    #[arg(long, value_name = "SIZE", default_value = "8g", value_parser = size)]
    pub stage_limit: u64,
}

impl WriteOptions {
    /// When files are published.
    pub fn publish(&self) -> weft_files::Publish {
        match self.publish.as_str() {
            "fsync" => weft_files::Publish::Fsync,
            "async" => weft_files::Publish::Async,
            _ => weft_files::Publish::Close,
        }
    }

    /// Where files are staged.
    pub fn stage_folder(&self) -> PathBuf {
        let default = || format!("/var/tmp/weft-mount-{}", nix::unistd::geteuid());
        self.stage.clone().unwrap_or_else(|| default().into())
    }
}

/// Who may do what.
#[derive(Debug, Clone, clap::Args)]
pub struct AccessOptions {
    /// Refuse all writes
    #[arg(long)]
    pub read_only: bool,
    /// Let other users in
    #[arg(long, conflicts_with = "allow_root")]
    pub allow_other: bool,
    /// Let root in, besides the user who mounts
    #[arg(long)]
    pub allow_root: bool,
    /// Owner of files, as a number [default: the user who mounts]
    #[arg(long)]
    pub uid: Option<u32>,
    /// Group of files, as a number [default: the group of the user who mounts]
    #[arg(long)]
    pub gid: Option<u32>,
    /// Mode of folders, octal
    #[arg(long, value_name = "MODE", default_value = "0755", value_parser = octal)]
    pub dir_mode: u16,
    /// Mode of files, octal
    #[arg(long, value_name = "MODE", default_value = "0644", value_parser = octal)]
    pub file_mode: u16,
}

const EXAMPLES: &str = "\
Examples:
  weft-mount my-bucket /mnt/data
  weft-mount s3://my-bucket/run7/ /mnt/data --read-only --metadata-ttl indefinite
  weft-mount data /mnt/data --endpoint-url http://127.0.0.1:9000
  umount /mnt/data
  s3://my-bucket/run7 /mnt/data weft _netdev,nofail,allow-other 0 0      # a line of /etc/fstab

Options may also stand behind -o, without their dashes and with commas between them. For /etc/fstab,
link this program to /sbin/mount.weft.

Exit codes: 0 mounted (with --foreground: unmounted), 1 failed, 2 wrong usage.";

/// Chosen: longer than any mount lives.
const INDEFINITE: Duration = Duration::from_secs(10 * 365 * 86_400);
/// Chosen: a cache below this holds less than the pieces of one reader.
const SMALLEST_TARGET_BYTES: u64 = 64 << 20;

impl Options {
    /// The bucket's name, and what the mount's keys begin with.
    ///
    /// # Errors
    /// Names that no bucket can have; two prefixes; prefixes with an empty part.
    pub fn bucket_and_prefix(&self) -> Result<(String, String), MountError> {
        let address = self.bucket.strip_prefix("s3://").unwrap_or(&self.bucket);
        let (name, path) = address.split_once('/').unwrap_or((address, ""));
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        if name.len() < 3 || name.len() > 63 || !name.chars().all(fits) {
            return Err(MountError::Usage(format!(
                "`{name}` is not the name of a bucket: a name has 3 to 63 letters, digits, `-`, \
                 `.` and `_`. Give NAME or s3://NAME/PREFIX"
            )));
        }
        let mut prefix = path.to_owned();
        if let Some(more) = &self.prefix {
            if !path.is_empty() {
                return Err(MountError::Usage(format!(
                    "two prefixes, `{path}` and `{more}`; give one of them"
                )));
            }
            more.clone_into(&mut prefix);
        }
        if !prefix.is_empty() && !prefix.ends_with('/') {
            prefix.push('/');
        }
        if prefix.starts_with('/') || prefix.contains("//") {
            return Err(MountError::Usage(format!(
                "the prefix `{prefix}` has an empty part; give it as `a/b/`"
            )));
        }
        Ok((name.to_owned(), prefix))
    }

    /// Refuses folders of options that lie where the bucket is mounted: the mount would hide them
    /// from others, and wait for itself when it writes there. Also the other way around where the
    /// mount reads all that is in its folder.
    ///
    /// # Errors
    /// Which option, and its folder.
    pub fn check_own_folders(&self) -> Result<(), MountError> {
        let stage = self.writes.stage_folder();
        let folders = [
            ("--log-directory", self.log_directory.as_deref(), false),
            ("--cache", self.cache.cache.as_deref(), true),
            ("--stage", Some(stage.as_path()), true),
        ];
        let over = self.directory.display();
        for (option, folder, is_read) in folders {
            let Some(folder) = folder else { continue };
            let own = folder.display();
            let cause = if mount_point::is_in(folder, &self.directory) {
                format!(
                    "the folder of {option}, {own}, is in the folder to mount on, {over}, where \
                     the mount would hide it"
                )
            } else if is_read && mount_point::is_in(&self.directory, folder) {
                format!(
                    "the folder to mount on, {over}, is in the folder of {option}, {own}, where \
                     the mount would read itself"
                )
            } else {
                continue;
            };
            let remedy = format!("Give {option} another folder");
            return Err(MountError::Usage(format!("{cause}. {remedy}")));
        }
        Ok(())
    }

    /// The cache on a disk, if one is wanted.
    ///
    /// # Errors
    /// A folder that cannot be used.
    pub fn disk(&self, bucket: &str) -> Result<Option<Disk>, MountError> {
        let Some(folder) = &self.cache.cache else {
            return Ok(None);
        };
        let limit = match self.cache.max_cache_size {
            Some(mebibytes) => Limit::Bytes(mebibytes << 20),
            None => Limit::OfDisk,
        };
        let cache =
            DiskCache::open(folder, limit, log::tell).map_err(|error| MountError::Cache {
                folder: folder.clone(),
                error,
            })?;
        let address = self.reach.endpoint_url.as_deref().unwrap_or("AWS");
        Ok(Some(Disk {
            cache: Arc::new(cache),
            source: format!("{address} {bucket}"),
        }))
    }

    /// What the client is made of.
    pub fn store(&self, bucket: String) -> weft_s3::Options {
        let elsewhere = |url: String| !url.contains("amazonaws.com");
        weft_s3::Options {
            bucket,
            region: self.reach.region.clone(),
            endpoint_url: self.reach.endpoint_url.clone(),
            path_style: self.reach.force_path_style || self.reach.address().is_some_and(elsewhere),
            profile: self.reach.profile.clone(),
            unsigned: self.reach.no_sign_request,
            upload_checksums: self.reach.upload_checksums != "off",
            sign_bodies: self.reach.sign_bodies == "always",
            unused_bytes: self.memory_target / 8,
            clock: weft_s3::Clock::default(),
        }
    }
}

impl ReachOptions {
    /// The address of the store: that of the option, else of the variables that every SDK of AWS
    /// reads (`AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL`).
    pub fn address(&self) -> Option<String> {
        let variable = |name| {
            std::env::var(name)
                .ok()
                .filter(|url: &String| !url.is_empty())
        };
        let given = self.endpoint_url.clone();
        given
            .or_else(|| variable("AWS_ENDPOINT_URL_S3"))
            .or_else(|| variable("AWS_ENDPOINT_URL"))
    }
}

fn octal(text: &str) -> Result<u16, String> {
    let mode = u16::from_str_radix(text, 8).ok();
    let mode = mode.filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| "a mode is octal, 0 to 0777".to_owned())
}

fn time_to_live(text: &str) -> Result<Duration, String> {
    match text {
        "indefinite" => Ok(INDEFINITE),
        "minimal" => Ok(Duration::ZERO),
        _ => {
            let seconds = text.parse::<f64>().ok();
            let seconds = seconds.filter(|s| (0.0..=INDEFINITE.as_secs_f64()).contains(s));
            seconds
                .map(Duration::from_secs_f64)
                .ok_or_else(|| "give seconds, `indefinite`, or `minimal`".to_owned())
        }
    }
}

fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => Some(1),
        "k" => Some(1 << 10),
        "m" => Some(1 << 20),
        "g" => Some(1u64 << 30),
        _ => None,
    };
    let number = digits.parse::<u64>().ok();
    let bytes = number
        .zip(unit)
        .and_then(|(number, unit)| number.checked_mul(unit));
    let bytes = bytes.ok_or_else(|| "give a size as 512m or 2g".to_owned())?;
    if bytes < SMALLEST_TARGET_BYTES {
        return Err("the least is 64m".to_owned());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &[&str]) -> Options {
        Options::parse_from([&["weft-mount"], words].concat())
    }

    #[test]
    fn bucket_is_a_name_or_an_address_with_a_prefix() {
        let parse = |words: &[&str]| options(words).bucket_and_prefix();
        let both = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(parse(&["data", "/m"]).unwrap(), both("data", ""));
        assert_eq!(
            parse(&["s3://data/a/b", "/m"]).unwrap(),
            both("data", "a/b/")
        );
        let words = ["data", "/m", "--prefix", "a/"];
        assert_eq!(parse(&words).unwrap(), both("data", "a/"));
        for wrong in ["x", "a b c", "s3://data//a", "s3:///data"] {
            let error = parse(&[wrong, "/m"]).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{wrong}: {error}");
        }
        assert!(parse(&["s3://data/a", "/m", "--prefix", "b/"]).is_err());
    }

    #[test]
    fn sizes_and_times_are_read_and_nonsense_is_refused() {
        assert_eq!(size("512m"), Ok(512 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        for wrong in ["", "m", "1t", "12", "-1m", "99999999999999999999g"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(time_to_live("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(time_to_live("minimal"), Ok(Duration::ZERO));
        for wrong in ["-1", "soon", "inf", "nan"] {
            assert!(time_to_live(wrong).is_err(), "{wrong}");
        }
        assert_eq!(octal("0640"), Ok(0o640));
        assert!(octal("1777").is_err() && octal("rw").is_err());
    }
}
