// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The rules about how this repository is built, checked by a test instead of by memory.
//!
//! `cargo test -p weft-structure` reads the whole tree, applies each rule and prints every finding
//! with its place and what to do about it. A rule is a function from what was read to a list of
//! [`Finding`]s; it has no other effect, so each has unit tests on small made-up sources that show
//! it fires and stays silent.
//!
//! Some rules can be set aside where there is a reason. The reason is a comment in the code itself,
//! so that whoever reads the long function also reads why it is long:
//!
//! ```text
//! // structure: allow function-length because the table reads best in one piece
//! ```
//!
//! For a file it stands in the first 40 lines, for an item in the comment directly above it. The
//! rules that can be set aside are `file-length`, `function-length`, `arguments`, `struct-fields`,
//! `trait-methods`, and in tools `atomics`. Nothing sets aside the rooms of `unsafe` and libc or
//! the import edges: those are tables in this crate, changed by review.
//!
//! Modules, in the order a run goes through them:
//! - [`tree`]: finds the files and parses the Rust ones.
//! - [`edge`]: whether crates import only what [`edges`] lets them, and that each outside crate
//!   has its reason.
//! - [`head`]: how a file opens, what it may be called, which words may not stand in it.
//! - [`size`]: lengths and counts.
//! - [`room`]: where `unsafe`, atomics and libc may live, and that each `unsafe` says why it is
//!   sound.
//! - [`circle`]: files of a crate that import each other in a circle.
//! - [`shape`]: what the limits on size can be met around: tuples, types in many files, text as
//!   errors.
//! - [`ratchet`]: recorded numbers that may only fall: of `unsafe`, of circles and of shapes.
//! - [`width`]: how long lines of documents and of code may be.
//! - [`word`]: words that were given up do not come back.
//! - [`link`]: links and paths in the Markdown documents, and documents that other files name.
//! - [`index`]: lists of documents are whole.
//! - [`rust_version`]: documents name the Rust that the Cargo.toml files ask for.

#![forbid(unsafe_code)]

pub mod circle;
pub mod edge;
pub mod edges;
pub mod head;
pub mod index;
pub mod link;
pub mod ratchet;
pub mod room;
pub mod rust_version;
pub mod shape;
pub mod size;
pub mod tree;
pub mod width;
pub mod word;

use std::fmt;

/// One broken rule at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// A path relative to the repository root, with `:line` where a line is known.
    pub place: String,
    /// What was found, the limit, and how to get rid of the finding; whole sentences.
    pub text: String,
}

impl Finding {
    /// A finding about a whole file, crate or document.
    pub fn new(place: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            text: text.into(),
        }
    }

    /// A finding at one line (counted from 1) of the file at `path`.
    pub fn at(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self::new(format!("{path}:{line}"), text)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}
