// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How a program opens a file. [`crate::open_files`] opens it.

/// How a file is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    /// O_WRONLY or O_RDWR.
    pub writes: bool,
    /// O_APPEND.
    pub appends: bool,
    /// O_TRUNC.
    pub truncates: bool,
    /// O_EXCL, of a file that is made.
    pub is_new: bool,
    /// What is read is the content at the moment of opening, whoever writes the file here.
    pub is_pinned: bool,
    /// The process that opens it; 0 where that is not known.
    pub process: u32,
}

impl Mode {
    /// O_RDWR and no other flag, by an unknown process.
    pub const WRITES: Self = Self {
        writes: true,
        appends: false,
        truncates: false,
        is_new: false,
        is_pinned: false,
        process: 0,
    };
}
