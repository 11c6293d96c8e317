// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes the client: credentials, region, endpoint, attempts and time limits. `mount/daemon` calls
//! it once.

use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_s3::Client;
use aws_sdk_s3::config::IdentityCache;
use aws_sdk_s3::config::retry::{RetryPartition, TokenBucket};
use aws_smithy_http_client::{Builder, tls};
use weft_store::Buffers;

use crate::bucket::Bucket;
use crate::clock::Clock;
use crate::credentials::Renewed;
use crate::signing::UnsignedBodies;

/// Chosen: a store that takes longer to take a connection is not there.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Chosen: between two pieces of an answer; S3 answers in tenths of a second.
const READ_LIMIT: Duration = Duration::from_secs(30);
/// Chosen: the first, and four more with growing pauses: some seconds of a store's trouble.
const ATTEMPTS: u32 = 5;

/// Which bucket, where, and who asks.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The bucket's name.
    pub bucket: String,
    /// As `us-east-1`; else from the environment or the profile.
    pub region: Option<String>,
    /// The address of the store; AWS's of the region where there is none.
    pub endpoint_url: Option<String>,
    /// `ENDPOINT/BUCKET/KEY` in place of `BUCKET.ENDPOINT/KEY`.
    pub path_style: bool,
    /// Of the files in `~/.aws`.
    pub profile: Option<String>,
    /// Ask without credentials.
    pub unsigned: bool,
    /// Send CRC64NVME of what is written; some stores do not know it.
    pub upload_checksums: bool,
    /// Sign each byte of what is written, also where its checksum is enough.
    pub sign_bodies: bool,
    /// Memory of answers that is kept to be used again, at most.
    pub unused_bytes: u64,
    /// By which pauses between looks for credentials are measured.
    pub clock: Clock,
}

/// Makes the client; the first request finds out whether it is right.
pub async fn connect(options: &Options) -> Bucket {
    let http = Builder::new()
        .tls_provider(tls::Provider::Rustls(
            tls::rustls_provider::CryptoMode::Ring,
        ))
        .build_https();
    let limits = TimeoutConfig::builder()
        .connect_timeout(CONNECT_LIMIT)
        .read_timeout(READ_LIMIT)
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http.clone())
        .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS))
        .timeout_config(limits);
    if let Some(region) = &options.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(endpoint) = &options.endpoint_url {
        loader = loader.endpoint_url(endpoint);
    }
    if let Some(profile) = &options.profile {
        loader = loader.profile_name(profile);
    }
    if options.unsigned {
        loader = loader.no_credentials();
    }
    let shared = loader.load().await;
    // The SDK's own quota leaves all but the first hundred of the requests that are refused at once
    // without a second attempt: programs would see errors that pass.
    let retries = RetryPartition::custom("mount").token_bucket(TokenBucket::unlimited());
    let mut config = aws_sdk_s3::config::Builder::from(&shared)
        .force_path_style(options.path_style)
        .retry_partition(retries.build());
    // AWS names the bucket's region in its refusal; other stores do not ask.
    let region = shared.region().cloned();
    let region = region.unwrap_or_else(|| Region::new("us-east-1"));
    config = config.region(region.clone());
    if !options.unsigned {
        // They are kept until they end, or the store says so.
        let credentials =
            Renewed::new(http, region, options.profile.clone(), options.clock.clone());
        config = config
            .credentials_provider(credentials.clone())
            .identity_cache(IdentityCache::no_cache())
            .interceptor(credentials.signed_with())
            .retry_classifier(credentials);
    }
    if !options.upload_checksums {
        config = config.request_checksum_calculation(
            aws_sdk_s3::config::RequestChecksumCalculation::WhenRequired,
        );
    }
    if !options.sign_bodies {
        config = config.interceptor(UnsignedBodies);
    }
    let client = Client::from_conf(config.build());
    let buffers = Buffers::within(options.unused_bytes);
    Bucket::new(client, &options.bucket, options.upload_checksums, buffers)
}
