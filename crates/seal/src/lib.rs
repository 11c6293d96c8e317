// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who may take part in a job's network traffic: keyed tags, encryption, and the job's key
//! (srd-protocol 14).
//!
//! - *Purpose*: a process accepts only datagrams that were made with the job's key.
//! - *Used by*: udp for every datagram; `weft run`, which makes keys; `weft doctor`, which checks
//!   one.
//! - *Start at*: [`protection`], then [`job_key`].
//!
//! Every process of a job holds the same 256-bit [`JobKey`]. An endpoint makes one
//! [`PacketProtection`] from it, which draws the endpoint's incarnation (the machine of weft-srd
//! must be made with it) and passes every datagram, in and out:
//! - *open*: the network is trusted, there is no key. Nothing is computed; datagrams with a tag are
//!   dropped.
//! - *tagged*: the header contains a 64-bit keyed tag over the whole datagram. The payload is read
//!   in place.
//! - *sealed*: everything after the first 32 bytes is encrypted, and 16 bytes follow (AES-256-GCM).
//!
//! On the way out the driver calls [`PacketProtection::tag_apart`] on a head with its payload
//! beside it, or, when [`PacketProtection::encrypts`], [`PacketProtection::seal`] on a whole
//! datagram. On the way in it calls [`PacketProtection::open`] on every datagram before anything
//! else looks at it. Datagrams that do not pass are counted and dropped. There is no error and no
//! answer, so the sender learns nothing.
//!
//! The protection cannot know whether a datagram with a valid tag is replayed. The machine of
//! weft-srd checks that (srd-protocol 14.6), by sequences and by incarnations that both sides have
//! named.
//!
//! This crate erases its keys when it drops them; the expanded keys inside the ciphers are not
//! erased. A key never appears in `Debug`, in errors or in logs; only [`JobKey::to_text`] gives it
//! out.
//!
//! No thread, no clock. The random source is the system's (getrandom). Modules in the order of use:
//! - [`job_key`]: making, reading and writing the key; the keys derived from it
//! - [`key_file`]: a key from a file that nobody else may read
//! - [`trust`]: which protection the user's settings ask for, and the error when there is none
//! - [`protection`]: the three modes; [`tagging`] and [`sealing`]: what two of them compute
#![forbid(unsafe_code)]

pub mod job_key;
pub mod key_file;
pub mod protection;
mod sealing;
mod tagging;
pub mod trust;

pub use job_key::{BadKey, JobKey, NoRandom};
pub use protection::{PacketProtection, Rejected, Rejections, SEAL_BYTES};
pub use trust::{Choice, NoTrust, Trust};
