// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects of a store as files and folders, without a kernel: calls in, calls of `mount/store` out.
//! `mount/daemon` puts it behind FUSE; tests run it over a store in memory.
//!
//! A call goes through these modules:
//! - [`bucket_files`]: the calls on names and attributes, and what is open.
//! - [`folders`]: the calls on open folders; [`open_files`]: those on open files;
//!   [`copying`]: from one to another.
//! - [`changes`]: the calls that change names; [`renames`]: folders that get other names;
//!   [`object_copies`]: objects that the store copies.
//! - [`drafts`]: the files that are being written; [`draft`]: one of them; [`staging`]: its bytes
//!   on this host's disk, until they are published.
//! - [`open_names`]: what becomes of open files when names change; [`hidden`]: those whose names
//!   are gone.
//! - [`search`]: finds a name in the store, with as few requests as that takes.
//! - [`core`]: what they all share.
//! - [`nodes`]: inodes. [`facts`]: what is known of each folder's names, and since when.
//! - [`listing`]: a listing in order, and an open folder's; [`tiling`]: which of its pages to ask
//!   for at once; [`guess`]: where pages may end; [`walks`]: a whole tree's in place of each
//!   folder's.
//! - [`attribute_calls`]: the calls on modes, owners, times, extended attributes and links;
//!   [`known_attributes`]: what is known of those in a folder; [`attribute_sync`]: reads and writes
//!   the folder's [`attribute_object`]. [`turns`]: one at a time.
//! - [`reader`]: an open file: in order or here and there, and how far to fetch ahead.
//! - [`pieces`]: the cache of what was fetched, and what is under way; one fetch for all who wait.
//! - [`sources`]: where a fetch's bytes come from: the disk, else the store.
//! - [`job`]: bytes from the other nodes of a job; [`job_store`]: names and listings from them;
//!   [`owners`]: which node fetches what; [`words`]: what they say to each other.
//! - [`names`]: which keys are names. [`version`]: which content of a key. [`handles`]: what is
//!   open, by number.
//! - [`fault`]: what a call fails with.
#![forbid(unsafe_code)]

mod attribute_calls;
pub mod attribute_object;
mod attribute_sync;
pub mod attributes;
pub mod bucket_files;
pub mod changes;
mod copying;
mod core;
mod draft;
mod drafts;
mod facts;
pub mod fault;
pub mod folders;
mod guess;
mod handles;
mod hidden;
pub mod job;
pub mod job_store;
mod known_attributes;
mod listing;
mod moving_folders;
mod names;
mod nodes;
mod object_copies;
pub mod open_files;
mod open_names;
mod owners;
mod pieces;
mod reader;
pub mod renames;
mod search;
mod sources;
pub mod staging;
mod tiling;
mod turns;
mod version;
mod walks;
mod words;

pub use crate::core::{Publish, Settings, Writes};
pub use attribute_calls::Presence;
pub use attribute_object::{Special, TARGET_BYTES};
pub use attributes::{Attributes, Change, Entry, Given, Kind, Making};
pub use bucket_files::BucketFiles;
pub use changes::Name;
pub use copying::copy_range;
pub use fault::{Fault, Reason};
pub use folders::FolderEntry;
pub use job::{Job, Neighbours, Unreached};
pub use job_store::JobStore;
pub use names::HIDDEN;
pub use open_files::{Mode, Opened, Place, resize_open};
pub use renames::hold::Times;
pub use sources::Disk;
