// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The options that say how ranks are set up, whoever starts them: those of `weft run`, of
//! `weft exec` and of `weft env`.
//!
//! Part of `arguments.rs`, `exec.rs` and `env.rs`; read by what makes the ranks' environment.

use std::str::FromStr;

use crate::mpi_choice::MpiChoice;

/// How ranks are set up.
#[derive(Debug, Clone, clap::Args)]
pub struct RankArguments {
    /// Which MPI: auto, openmpi, mpich, intel, debian-openmpi, debian-mpich, or the path of an
    /// mpiexec
    #[arg(long, value_name = "MPI", default_value = "auto")]
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
    /// Set only what makes the MPI use the transport, as you would with mpirun: no shared heap, no
    /// other sched_yield, no collectives of Weft, no rules for collectives
    #[arg(long, conflicts_with_all = ["heap", "yielding", "collectives"])]
    pub plain: bool,
    /// Set a variable for the ranks, also one that Weft would set
    #[arg(long = "env", value_name = "K=V")]
    pub variables: Vec<Variable>,
}

impl RankArguments {
    /// Whether one of the variables of the user, or of this process, has such a name.
    pub(crate) fn says(&self, is_it: impl Fn(&str) -> bool) -> bool {
        let given = self.variables.iter().any(|variable| is_it(&variable.name));
        given || std::env::vars_os().any(|(name, _)| is_it(&name.to_string_lossy()))
    }
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
            plain: false,
            variables: Vec::new(),
        }
    }
}

/// Whether buffers that are sent become memory that receivers map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Heap {
    /// Buffers that it sends again and again; none in programs with an allocator of their own, and
    /// none that would lose large pages.
    Auto,
    /// None.
    Private,
    /// Every buffer, when it is first sent.
    Shared,
}

/// What sched_yield(2) does in a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Yield {
    /// Over Weft `pause` for MPICH and Intel MPI where no host has more ranks than cores, else
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
    /// Weft over Weft, where the program takes its library; else the MPI.
    Auto,
    /// Weft, as far as docs/collectives.md says; an error where the program cannot take its
    /// library.
    Weft,
    /// The MPI.
    Mpi,
}

/// One `K=V` of `--env`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The name: not empty, no `=`.
    pub name: String,
    /// The value, possibly empty.
    pub value: String,
}

impl FromStr for Variable {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok(Self {
                name: name.to_owned(),
                value: value.to_owned(),
            }),
            _ => Err(format!("`{text}` is not of the form NAME=VALUE")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_needs_a_name() {
        assert_eq!(
            "A=b=c".parse::<Variable>().unwrap(),
            Variable {
                name: "A".into(),
                value: "b=c".into()
            }
        );
        assert!("=x".parse::<Variable>().is_err());
        assert!("x".parse::<Variable>().is_err());
    }
}
