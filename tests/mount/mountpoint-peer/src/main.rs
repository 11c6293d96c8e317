// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mountpoint for Amazon S3 as a peer of weft-mount: its library with the settings of its command
//! (`mount-s3 --allow-delete --allow-overwrite`, for writing), on an endpoint of our choice. Runs
//! in the foreground until it is unmounted. Called by `measure.py`.
//!
//! Usage: mountpoint-peer ENDPOINT BUCKET FOLDER [GIGABITS [METADATA-SECONDS]]

#![forbid(unsafe_code)]

use std::time::Duration;

use anyhow::{Context, Result};
use mountpoint_s3_client::config::{AddressingStyle, S3ClientAuthConfig};
use mountpoint_s3_client::user_agent::UserAgent;
use mountpoint_s3_fs::data_cache::DataCacheConfig;
use mountpoint_s3_fs::fs::{CacheConfig, TimeToLive};
use mountpoint_s3_fs::fuse::config::{FuseOptions, FuseSessionConfig, MountPoint};
use mountpoint_s3_fs::memory::{CandidateSize, PagedPool};
use mountpoint_s3_fs::s3::config::{
    ClientConfig, MemoryLimitSetting, PartConfig, Region, TargetThroughputSetting,
};
use mountpoint_s3_fs::s3::{Bucket, Prefix, S3Path};
use mountpoint_s3_fs::{
    MountpointConfig, Runtime, S3FilesystemConfig, Superblock, SuperblockConfig,
};

/// The part size of `mount-s3`.
const PART_BYTES: usize = 8 << 20;
/// Chosen: far above what the measurements need.
const MEMORY_BYTES: usize = 2 << 30;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, bucket, folder, rest @ ..] = &arguments[..] else {
        anyhow::bail!(
            "usage: mountpoint-peer ENDPOINT BUCKET FOLDER [GIGABITS [METADATA-SECONDS]]"
        );
    };
    let gigabits = rest.first().map_or(Ok(10.0), |text| text.parse())?;
    let cache_config = match rest.get(1) {
        Some(seconds) => CacheConfig::new(TimeToLive::Duration(Duration::from_secs(
            seconds.parse()?,
        ))),
        None => CacheConfig::new(TimeToLive::Minimal),
    };
    let client_config = ClientConfig {
        region: Region::new_user_specified("us-east-1".to_owned()),
        endpoint_url: Some(endpoint.clone()),
        addressing_style: AddressingStyle::Path,
        dual_stack: false,
        transfer_acceleration: false,
        auth_config: S3ClientAuthConfig::Default,
        requester_pays: false,
        expected_bucket_owner: None,
        throughput_target: TargetThroughputSetting::User { gbps: gigabits },
        bind: None,
        part_config: PartConfig::with_part_size(PART_BYTES)
            .validate(MemoryLimitSetting::Default(MEMORY_BYTES))?,
        user_agent: UserAgent::new(None),
        tls_config: None,
    };
    let path = S3Path::new(Bucket::new(bucket.clone())?, Prefix::empty());
    let pool = PagedPool::config()
        .with_candidate_sizes([CandidateSize::new(PART_BYTES)])
        .with_memory_limit(MEMORY_BYTES)
        .build();
    let client = client_config
        .create_client(pool.clone(), Some(&path))
        .context("the client")?;
    let runtime = Runtime::new(client.event_loop_group());
    let superblock = SuperblockConfig {
        cache_config: cache_config.clone(),
        s3_personality: Default::default(),
    };
    let metablock = Superblock::new(client.clone(), path, superblock);
    let files = S3FilesystemConfig {
        cache_config,
        allow_delete: true,
        allow_overwrite: true,
        ..Default::default()
    };
    let options = FuseOptions {
        read_only: false,
        allow_other: false,
        allow_root: false,
        auto_unmount: false,
        clone_fd: false,
    };
    let session = FuseSessionConfig::new(MountPoint::new(folder)?, options, 16)?;
    let cache = DataCacheConfig {
        disk_cache_config: None,
        express_cache_config: None,
    };
    MountpointConfig::new(session, files, cache)?
        .create_fuse_session(metablock, client, runtime, pool)
        .context("the mount")?
        .join()
}
