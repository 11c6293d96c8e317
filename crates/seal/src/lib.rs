// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who may take part in a job's network traffic: keyed tags, encryption, and the job's key
//! (srd-protocol 14).
//!
//! - *Purpose*: a process hears only datagrams that were made with the job's key.
//! - *Used by*: udp for every datagram; `weft run`, which makes keys; `weft doctor`, which checks
//!   one.
//! - *Start at*: [`protection`], then [`job_key`].
//!
//! Every process of a job holds the same 256-bit [`JobKey`]. An endpoint makes one
//! [`PacketProtection`] from it, which draws the endpoint's incarnation (the machine of weft-srd
//! must be made with it) and passes every datagram, in and out:
//!
//! - *open*: the network is trusted, there is no key. Nothing is computed; datagrams that were
//!   tagged are turned away.
//! - *tagged*: a 64-bit keyed tag over the whole datagram lies in the header. The payload is read
//!   where it is.
//! - *sealed*: everything after the first 32 bytes is encrypted, and 16 bytes follow (AES-256-GCM).
//!
//! On the way out the driver calls [`PacketProtection::tag_apart`] on a head with its payload
//! beside it, or, when [`PacketProtection::encrypts`], [`PacketProtection::seal`] on a whole
//! datagram. On the way in it calls [`PacketProtection::open`] on every datagram before anything
//! else looks at it. What does not pass is counted and dropped; no error, no answer: whoever sent
//! it learns nothing.
//!
//! What the protection cannot know is whether a rightly tagged datagram is being played back. That
//! is the machine's part (srd-protocol 14.6): sequences, and incarnations that both sides have
//! named.
//!
//! Keys are erased when dropped as far as this crate holds them; the ciphers' own expanded keys are
//! not. A key never appears in `Debug`, in errors or in logs; [`JobKey::to_text`] is the only way
//! out.
//!
//! No thread, no clock. The random source is the system's (getrandom). Modules in the order of use:
//! - [`job_key`]: making, reading and writing the key; the keys derived from it
//! - [`key_file`]: a key from a file that nobody else may read
//! - [`trust`]: which protection the user's settings ask for, and the words when there is none
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
