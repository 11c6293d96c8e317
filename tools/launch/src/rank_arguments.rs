// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The options that say how ranks are set up, whoever starts them: those of `weft run`, of
//! `weft exec` and of `weft env`.
//!
//! Part of `arguments.rs`, `exec.rs` and `env.rs`; read by what makes the ranks' environment.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::mpi_choice::MpiChoice;

/// How ranks are set up.
#[derive(Debug, Clone, clap::Args)]
pub struct RankArguments {
    /// Which MPI: auto, openmpi, mpich, intel, debian-openmpi, debian-mpich, or the path of an
    /// mpiexec
    #[arg(long, value_name = "MPI", default_value = "auto", value_parser = MpiChoice::parser())]
    pub mpi: MpiChoice,
    /// Which buffers a rank shares, so that receivers on its host copy straight out of them
    #[arg(long, value_enum, default_value_t = Heap::Auto, value_name = "KIND")]
    pub heap: Heap,
    /// What sched_yield does in a rank that waits for messages
    #[arg(long = "yield", value_enum, default_value_t = Yield::Auto, value_name = "KIND")]
    pub yielding: Yield,
    /// Who carries out collectives among ranks of one host
    #[arg(long, value_enum, default_value_t = Collectives::Auto, value_name = "WHO")]
    pub collectives: Collectives,
    /// The libfabric.so.1 that the ranks load in place of the one that their MPI was linked to;
    /// default: $WEFT_LIBFABRIC, if that is set
    #[arg(long, value_name = "FILE")]
    pub libfabric: Option<PathBuf>,
    /// Set only what makes the MPI use the transport, as you would with mpirun: no shared heap, no
    /// other sched_yield, no collectives of Weft, no other libfabric, no rules for collectives
    #[arg(long, conflicts_with_all = ["heap", "yielding", "collectives", "libfabric"])]
    pub plain: bool,
    /// Set a variable of the ranks; this wins over a value that Weft would set
    #[arg(long = "env", value_name = "K=V", value_parser = Variable::parser())]
    pub variables: Vec<Variable>,
}

impl RankArguments {
    /// All but `--mpi` and `--env` as words, for another command of Weft, perhaps in another
    /// folder.
    #[must_use]
    pub fn words(&self) -> Vec<OsString> {
        let Self {
            mpi: _,
            heap,
            yielding,
            collectives,
            libfabric,
            plain,
            variables: _,
        } = self;
        let heap = match heap {
            Heap::Auto => None,
            Heap::Private => Some("--heap=private"),
            Heap::Shared => Some("--heap=shared"),
        };
        let yielding = match yielding {
            Yield::Auto => None,
            Yield::System => Some("--yield=system"),
            Yield::Pause => Some("--yield=pause"),
        };
        let collectives = match collectives {
            Collectives::Auto => None,
            Collectives::Mpi => Some("--collectives=mpi"),
            Collectives::Weft => Some("--collectives=weft"),
        };
        let plain = plain.then_some("--plain");
        let words = [heap, yielding, collectives, plain];
        let words = words.into_iter().flatten().map(OsString::from);
        let libfabric = libfabric.as_ref().map(|path| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            joined("--libfabric=", path.as_os_str())
        });
        words.chain(libfabric).collect()
    }

    /// Whether one of the variables of the user, or of this process, has such a name.
    pub(crate) fn says(&self, is_it: impl Fn(&str) -> bool) -> bool {
        let given = self.variables.iter().any(|variable| is_it(&variable.name));
        given || std::env::vars_os().any(|(name, _)| is_it(&name.to_string_lossy()))
    }
}

/// An option with its value, which may be any bytes.
pub(crate) fn joined(option: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(option);
    word.push(value);
    word
}

#[cfg(test)]
impl RankArguments {
    /// As without any option, but with nothing to preload.
    pub(crate) fn without_preloads() -> Self {
        Self {
            mpi: MpiChoice::Auto,
            heap: Heap::Private,
            yielding: Yield::System,
            collectives: Collectives::Mpi,
            libfabric: None,
            plain: false,
            variables: Vec::new(),
        }
    }
}

/// Whether buffers that are sent become memory that receivers map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Heap {
    /// Buffers that the rank sends again and again. No buffers in programs with an allocator of
    /// their own, and none that would lose large pages.
    Auto,
    /// No buffers.
    Private,
    /// Every buffer, when it is first sent.
    Shared,
}

/// What sched_yield(2) does in a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Yield {
    /// `pause` over Weft with MPICH and Intel MPI, if no host has more ranks than cores; else
    /// `system`.
    Auto,
    /// The system call, each time.
    System,
    /// A pause of the processor; the system call every 20 us, and each time while another thread
    /// wants the core.
    Pause,
}

/// Who carries out collectives among ranks of one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Collectives {
    /// Weft, if Weft also carries the messages and its library can be preloaded into the program;
    /// else the MPI.
    Auto,
    /// Weft, for the calls that docs/collectives.md lists; an error if its library cannot be
    /// preloaded into the program.
    Weft,
    /// The MPI.
    Mpi,
}

/// One `K=V` of `--env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name: not empty, no `=`.
    pub name: String,
    /// The value: any bytes, possibly none.
    pub value: OsString,
}

impl Variable {
    /// The one that a word on the command line stands for.
    fn of(word: &OsStr) -> Result<Self, String> {
        let bytes = word.as_bytes();
        let end = memchr::memchr(b'=', bytes).filter(|&end| end > 0);
        let Some(end) = end else {
            let shown = match word.to_str() {
                Some(text) => format!("`{text}`"),
                None => format!("{word:?}"),
            };
            return Err(format!("{shown} is not of the form NAME=VALUE"));
        };
        let name = OsStr::from_bytes(&bytes[..end]);
        let Some(text) = name.to_str() else {
            return Err(format!(
                "the name {name:?} is not UTF-8; only the value may be any bytes"
            ));
        };
        Ok(Self {
            name: text.to_owned(),
            value: OsStr::from_bytes(&bytes[end + 1..]).to_owned(),
        })
    }

    /// As a parser of clap.
    fn parser() -> impl TypedValueParser<Value = Self> {
        OsStringValueParser::new().try_map(|word| Self::of(&word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_needs_a_name() {
        let of = |bytes: &[u8]| Variable::of(OsStr::from_bytes(bytes));
        for value in [&b"b=c"[..], b"", b"caf\xe9"] {
            let variable = Variable {
                name: "A".into(),
                value: OsStr::from_bytes(value).to_owned(),
            };
            assert_eq!(of(&[b"A=", value].concat()), Ok(variable));
        }
        assert!(of(b"=x").is_err() && of(b"x").is_err());
        let refusal = of(b"caf\xe9=x").unwrap_err();
        assert!(
            refusal.contains(r#"name "caf\xE9" is not UTF-8"#),
            "{refusal}"
        );
    }
}
