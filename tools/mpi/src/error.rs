// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Errors between this program and an MPI library. An error is one pointer wide, so that results
//! stay in a register.
//!
//! Called by every module of this crate; calls nothing.

use std::fmt;

/// Result of every fallible call of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error; the details are behind one pointer because the fast path returns `Result<(), Error>`
/// for each message.
pub struct Error(Box<Problem>);

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// No candidate could be opened. `tried` has one line per candidate with the loader's reason.
    #[error(
        "no MPI library could be opened.\nTried:\n{tried}Name one with \
         WEFT_MPI_LIBRARY=/path/to/libmpi.so, or start the program with the MPI's own mpiexec (or \
         `weft run`)"
    )]
    NoLibrary {
        /// One line per candidate: path, why it was a candidate, why it failed.
        tried: String,
    },
    /// The library was opened and is not an MPI this crate can talk to.
    #[error(
        "{path} cannot be used: {reason}. Name another library with \
         WEFT_MPI_LIBRARY=/path/to/libmpi.so"
    )]
    Unusable {
        /// The library as it was opened.
        path: String,
        /// Why it cannot be used.
        reason: String,
    },
    /// An MPI function returned an error code.
    #[error("{function} failed with code {code}: {text}")]
    Call {
        /// The MPI function.
        function: &'static str,
        /// The code it returned.
        code: i32,
        /// The library's own text for the code.
        text: String,
    },
    /// An argument was refused before MPI saw it.
    #[error("{what}: got {got}, {limit}")]
    Argument {
        /// Which argument of which call.
        what: &'static str,
        /// The value.
        got: String,
        /// What is allowed.
        limit: String,
    },
    /// A second session in one process.
    #[error("MPI was already initialised in this process; an MPI library allows that once")]
    AlreadyInitialised,
}

impl Error {
    /// The details.
    pub fn problem(&self) -> &Problem {
        &self.0
    }

    /// A refusal by a program that uses this crate: what, which value, what is allowed.
    #[cold]
    pub fn refused(what: &'static str, got: impl fmt::Display, limit: impl fmt::Display) -> Self {
        Self::argument(what, got, limit)
    }

    #[cold]
    pub(crate) fn argument(
        what: &'static str,
        got: impl fmt::Display,
        limit: impl fmt::Display,
    ) -> Self {
        Problem::Argument {
            what,
            got: got.to_string(),
            limit: limit.to_string(),
        }
        .into()
    }
}

impl From<Problem> for Error {
    #[cold]
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_of_a_call_is_one_pointer_wide() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn missing_library_says_how_to_name_one() {
        let error = Error::from(Problem::NoLibrary {
            tried: "  libmpi.so.40: not found\n".into(),
        });
        let text = error.to_string();
        assert!(text.contains("libmpi.so.40: not found"), "{text}");
        assert!(text.contains("WEFT_MPI_LIBRARY="), "{text}");
    }
}
