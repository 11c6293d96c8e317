// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects of a store as files and folders, without a kernel: calls come in, and calls of
//! `mount/store` go out. `mount/daemon` connects it to FUSE; tests run it over a store in memory.
//!
//! Calls:
//! - [`bucket_files`]: the calls on names and attributes, and what is open.
//! - [`folders`]: the calls on open folders; [`open_files`]: those on open files; [`mode`]: how a
//!   file is opened; [`writing_now`]: writes that wait for nothing; [`copying`]: copies between
//!   open files.
//! - [`changes`]: the calls that change names; [`renames`]: renames of folders; [`object_copies`]:
//!   objects that the store copies.
//! - [`attribute_calls`]: the calls on modes, owners, times, extended attributes and links.
//! - [`core`]: the state that they all share.
//!
//! Names:
//! - [`search`]: finds a name in the store, with as few requests as possible.
//! - [`nodes`]: inodes. [`facts`]: what is known of each folder's names, and since when.
//! - [`listing`]: a listing in order; [`tiling`]: which of its pages to ask for at once; [`guess`]:
//!   where pages may end; [`tree_walks`]: one listing of a whole tree instead of one for each
//!   folder; [`entered_ahead`]: nodes of names that are asked for next.
//! - [`known_attributes`]: the known attributes in a folder; [`attribute_merge`]: what two mounts
//!   changed at once; [`attribute_sync`]: reads and writes the folder's
//!   [`attribute_object`], by [`attribute_requests`]. [`turns`]: a lock for each folder.
//! - [`names`]: which keys are names. [`version`]: one content of a key. [`handles`]: what is open,
//!   by number.
//!
//! Bytes:
//! - [`drafts`]: the files that are being written; [`draft`]: one of them; [`draft_node`]: what
//!   programs see of it; [`draft_reads`]: reads of it; [`staging`]: its bytes on this host's disk,
//!   until they are published.
//! - [`open_names`]: open files whose names change; [`hidden`]: open files whose names were
//!   removed.
//! - [`reader`]: an open file that is read, in order or at random, and how far to fetch ahead.
//! - [`pieces`]: the cache of fetched bytes, and the fetches in flight; all who wait share one
//!   fetch.
//! - [`sources`]: where a fetch gets its bytes: from the disk, the job or the store.
//!
//! Other mounts of a job:
//! - [`job`]: bytes from the other nodes; [`job_store`]: names and listings from them; [`owners`]:
//!   which node fetches what; [`job_messages`]: the messages between them; [`new_names`]: when
//!   names were made.
//! - [`locks`]: locks of files that hold across the job; [`lock_calls`]: the calls on them.
//! - [`shared`]: files that several nodes write at once.
//!
//! Errors:
//! - [`fault`]: why a call fails.
#![forbid(unsafe_code)]

mod attribute_calls;
mod attribute_merge;
pub mod attribute_object;
mod attribute_requests;
mod attribute_sync;
pub mod attributes;
pub mod bucket_files;
pub mod changes;
mod copying;
mod core;
mod draft;
mod draft_node;
mod draft_reads;
mod draft_state;
mod drafts;
mod entered_ahead;
mod facts;
pub mod fault;
pub mod folders;
mod guess;
mod handles;
mod hidden;
pub mod job;
mod job_messages;
pub mod job_store;
mod known_attributes;
mod listing;
mod lock_calls;
pub mod locks;
mod mode;
mod moving_folders;
mod names;
mod new_names;
mod node_names;
mod nodes;
mod object_copies;
pub mod open_files;
mod open_names;
mod owners;
mod pieces;
mod reader;
pub mod renames;
mod search;
pub mod shared;
mod sources;
pub mod staging;
mod tiling;
mod tree_walks;
mod turns;
mod version;
mod writing_now;

pub use crate::core::{Publish, Settings, Writes};
pub use attribute_calls::Presence;
pub use attribute_object::{Special, TARGET_BYTES};
pub use attributes::{Attributes, Change, Entry, Given, Kind, Maker, Making};
pub use bucket_files::BucketFiles;
pub use changes::Name;
pub use copying::copy_range;
pub use draft::Written;
pub use fault::{Fault, Reason};
pub use folders::FolderEntry;
pub use job::{Job, Neighbours, Unreached};
pub use job_store::JobStore;
pub use lock_calls::{LockCall, LockCalls, Locked};
pub use mode::Mode;
pub use names::HIDDEN;
pub use open_files::{Opened, Place, close_broken, resize_open};
pub use renames::hold::Times;
pub use shared::shared_files::{SharedFiles, SharedOpened};
pub use sources::Disk;
pub use writing_now::{send_ready, write_now};
