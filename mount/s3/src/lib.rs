// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bucket of S3, or of a store that speaks S3's protocol, over AWS's SDK.
//!
//! - [`mod@connect`]: options, credentials and region; makes the client.
//! - [`bucket`]: the traits of `mount/store` over the client.
//! - [`body`]: bytes of an answer, counted.
//! - [`buffers`]: memory of answers, used again.
//! - [`encoding`]: keys in addresses and in listings.
//! - [`signing`]: what a signature covers of what is written.
//! - [`refusal`]: errors of the SDK as a [`weft_store::StoreError`].
//!
//! `mount/daemon` alone calls this crate, and only its types pass through; what the SDK is called
//! stays here.
#![forbid(unsafe_code)]

mod body;
mod bucket;
mod buffers;
mod connect;
mod encoding;
mod refusal;
mod signing;
mod uploads;

pub use bucket::Bucket;
pub use connect::{Options, connect};
