// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a soak may find, in the words of its report.
//!
//! Made by the checker and by the workers; counted and printed by the report.

use serde::{Deserialize, Serialize};

/// What kind of fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A message was sent and never came.
    Lost,
    /// A message came twice, or an operation ended twice or was carried out twice.
    Doubled,
    /// A receive took a later message than the one that was its due.
    Misordered,
    /// Other bytes, another length, tag, source or data, or a message that nobody sent.
    Wrong,
    /// Something did not end.
    Hung,
    /// An operation ended with an error although nobody died, or a process ended by itself.
    Failed,
}

impl Kind {
    /// All, in the order of the report.
    pub const ALL: [Self; 6] = [
        Self::Lost,
        Self::Doubled,
        Self::Misordered,
        Self::Wrong,
        Self::Hung,
        Self::Failed,
    ];

    /// Its word in the report.
    pub fn word(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Doubled => "doubled",
            Self::Misordered => "misordered",
            Self::Wrong => "wrong",
            Self::Hung => "hung",
            Self::Failed => "failed",
        }
    }
}

/// One fault that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What kind.
    pub kind: Kind,
    /// A sentence that names the message or the process.
    pub text: String,
}

impl Finding {
    /// A finding of a kind.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
        }
    }
}
