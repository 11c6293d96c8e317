// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bucket of S3, or of a store that speaks S3's protocol, over AWS's SDK.
//!
//! - [`mod@connect`]: options, credentials and region; makes the client.
//! - [`clock`]: what time it is, for pauses between looks for credentials.
//! - [`credentials`]: finds credentials anew when they have ended.
//! - [`bucket`]: the traits of `mount/store` over the client.
//! - [`attempts`]: how often the SDK sent a request.
//! - [`body`]: bytes of an answer, counted.
//! - [`encoding`]: keys in addresses and in listings.
//! - [`list_answer`]: pages of a listing, read from its XML.
//! - [`signing`]: which of the written bytes a signature covers.
//! - [`signed_with`]: with which credentials a request was signed.
//! - [`refusal`]: errors of the SDK as a [`weft_store::StoreError`].
//!
//! Only `mount/daemon` calls this crate. It sees only types of this crate and of `mount/store`,
//! never those of the SDK.
#![forbid(unsafe_code)]

mod attempts;
mod body;
mod bucket;
mod clock;
mod connect;
mod credentials;
mod encoding;
mod list_answer;
mod refusal;
mod signed_with;
mod signing;
mod uploads;

pub use bucket::Bucket;
pub use clock::Clock;
pub use connect::{Options, connect};
