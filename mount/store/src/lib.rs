// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the bucket mount needs from an object store, in its own types: no SDK is named here.
//!
//! - [`store`]: the traits [`Objects`] and [`Uploads`], which together are a [`Store`].
//! - [`object`]: entity tags, what is known of an object, pages of listings, conditions.
//! - [`error`]: errors of a store, and what its caller may do about them.
//! - [`probe`]: which conditions a store keeps; [`careful`]: replacements for those that it does
//!   not.
//! - [`buffers`]: memory of contents, used again.
//! - [`memory`]: a store in memory that counts requests and fails on demand, for tests.
//!
//! `mount/s3` implements the traits over HTTP, `mount/files` calls them.
#![forbid(unsafe_code)]

pub mod buffers;
pub mod careful;
pub mod error;
pub mod memory;
pub mod object;
pub mod probe;
pub mod store;

pub use buffers::Buffers;
pub use careful::Careful;
pub use error::{Failure, StoreError};
pub use object::{Condition, ETag, ListRequest, Metadata, ObjectInfo, Page, Range};
pub use probe::Ability;
pub use store::{Objects, Part, Store, Upload, Uploads};
