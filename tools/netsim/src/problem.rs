// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Why a simulation gives no result. Made by scenario, report and plot; shown by lib.

use std::io;
use std::path::{Path, PathBuf};

/// Each with the value, and what helps.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There is no spine that could fail.
    #[error("{hosts} hosts hang on one leaf; a spine needs at least {least}")]
    OneLeaf {
        /// As asked for.
        hosts: usize,
        /// The fewest that need a spine.
        least: usize,
    },
    /// The file of --plot cannot be made or filled.
    #[error(
        "--plot {} cannot be written: {source}; name a file in a folder that exists",
        path.display()
    )]
    Plot {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The report is no JSON.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Problem {
    /// For `map_err` around what is done to the file of --plot.
    pub(crate) fn plot(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Plot { path, source }
    }
}
