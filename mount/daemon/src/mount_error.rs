// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a mount cannot be made. Each error says the cause, the value and the remedy, and has its
//! exit code.

use std::path::PathBuf;

use thiserror::Error;
use weft_store::{Failure, StoreError};

/// Why there is no mount.
#[derive(Debug, Error)]
pub enum MountError {
    /// The words of the command are wrong.
    #[error("{0}")]
    Usage(String),
    /// The folder cannot be mounted on.
    #[error("cannot mount on {}: {cause}", folder.display())]
    Place {
        /// As it was given.
        folder: PathBuf,
        /// With the remedy.
        cause: String,
    },
    /// The kernel's side is missing.
    #[error("{0}")]
    Fuse(String),
    /// The bucket cannot be used.
    #[error("{0}")]
    Bucket(String),
    /// The folder of the cache cannot be used.
    #[error("cannot keep a cache in {}: {error}. Give another folder by --cache", folder.display())]
    Cache {
        /// As it was given.
        folder: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The log cannot be written.
    #[error(
        "cannot write {}: {error}. Make its folder, or name another one with --log-directory",
        file.display()
    )]
    Log {
        /// The log.
        file: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// There is no place for what is written.
    #[error(
        "cannot stage writes in {}: {error}. Name another folder with --stage", folder.display()
    )]
    Stage {
        /// As it was given.
        folder: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
    /// The system refused something else.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: std::io::Error,
    },
    /// Files that were written are not in the bucket.
    #[error("not published: {0}")]
    Lost(String),
    /// The process behind the shell said why, on standard error.
    #[error("the mount was not made")]
    Child(u8),
}

impl MountError {
    /// 2 for wrong words, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Child(code) => *code,
            _ => 1,
        }
    }

    /// What the first request of a mount met.
    pub fn of_bucket(bucket: &str, endpoint: Option<&str>, error: &StoreError) -> Self {
        let place = endpoint.unwrap_or("AWS");
        let remedy = match error.failure {
            Failure::NoBucket | Failure::Missing => {
                "Give the name of a bucket that is there, and the --region or --endpoint-url that \
                 it is in."
            }
            // It says what to do.
            Failure::Skewed => "",
            Failure::Denied => {
                "Give credentials that may list the bucket: AWS_ACCESS_KEY_ID and \
                 AWS_SECRET_ACCESS_KEY, --profile, or an instance's role. For a public bucket: \
                 --no-sign-request."
            }
            Failure::Unreachable => {
                "Look whether the address answers (--endpoint-url, --region), and whether a proxy \
                 or a firewall is in between."
            }
            Failure::Busy => "The store answers, and cannot serve now. Try again later.",
            _ => "Look at --region, --endpoint-url and --force-path-style.",
        };
        let text = format!("cannot use bucket `{bucket}` at {place}: {error}. {remedy}");
        Self::Bucket(text.trim_end().to_owned())
    }
}
