// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What other launchers call their options, and what each means here: a table, and the reading of
//! the values that need it.
//!
//! Called by `spelling.rs`. Sources: mpirun(1) of Open MPI 4.1 and prterun(1) of 5, `mpiexec -help`
//! of Hydra, Intel MPI's Developer Reference.

use crate::fault::Fault;

/// What an option of another launcher is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// This option of ours, with the same value.
    Value(&'static str),
    /// This option of ours, without a value.
    Flag(&'static str),
    /// What weft run does without being told.
    Done,
    /// A variable: `NAME`, from the environment, or `NAME=VALUE`.
    Variable,
    /// Several names with commas between.
    Variables,
    /// A variable in two words.
    Pair,
    /// A parameter of Open MPI in two words.
    Parameter,
    /// How ranks are mapped; the value decides.
    Map,
    /// What ranks are bound to; the value decides.
    Bind,
    /// How output is shown; the value decides.
    Output,
    /// Nothing: the user reads this instead.
    Answer(&'static str),
}

const PLACES: &str =
    "weft run fills one host after another; name the ranks of each with --hosts a:2,b:2 or --ppn N";
const BINDINGS: &str =
    "weft run binds each rank to a core or none: --bind core, --bind none, or --bind auto";
const VERSIONS: &str = "`weft --version` says Weft's, `weft info` those of the MPIs";
const DAEMONS: &str =
    "set it for Open MPI's daemons by a variable PRTE_MCA_NAME=VALUE before weft run";
const EMPTY: &str = "weft run hands its environment on; write `-- env -i NAME=VALUE PROGRAM` to \
    start with an empty one";
const MORE_RANKS: &str = "--bind core refuses more ranks than cores";
const SHOWN: &str =
    "`weft run --dry-run` prints the launcher's whole command, and --json FILE writes what was run";
const INPUT: &str =
    "standard input goes to rank 0, as each MPI does by default; let the other ranks read files";

/// Names without their dashes, and what they mean.
const TABLE: [(&[&str], Meaning); 25] = [
    (&["c"], Meaning::Value("-n")),
    (&["N", "npernode", "perhost"], Meaning::Value("--ppn")),
    (&["H", "host"], Meaning::Value("--hosts")),
    (
        &["machinefile", "f", "default-hostfile"],
        Meaning::Value("--hostfile"),
    ),
    (
        &["launcher-exec", "bootstrap", "bootstrap-exec"],
        Meaning::Value("--launcher"),
    ),
    (&["wd", "workdir"], Meaning::Value("--wdir")),
    (
        &["l", "prepend-rank", "tag-output"],
        Meaning::Flag("--label"),
    ),
    (&["q"], Meaning::Flag("--quiet")),
    (
        &["genvall", "envall", "allow-run-as-root", "report-bindings"],
        Meaning::Done,
    ),
    (&["x"], Meaning::Variable),
    (&["genvlist", "envlist"], Meaning::Variables),
    (&["genv", "env"], Meaning::Pair),
    (&["mca", "gmca", "omca"], Meaning::Parameter),
    (&["map-by"], Meaning::Map),
    (&["bind-to"], Meaning::Bind),
    (&["output"], Meaning::Output),
    (
        &["rank-by", "ranking", "rr", "bynode", "byslot", "pernode"],
        Meaning::Answer(PLACES),
    ),
    (
        &["bind-to-core", "bind-to-socket", "cpus-per-proc"],
        Meaning::Answer(BINDINGS),
    ),
    (
        &["cpus-per-rank", "cpu-list", "cpu-set", "rankfile"],
        Meaning::Answer(BINDINGS),
    ),
    (&["V", "version"], Meaning::Answer(VERSIONS)),
    (&["prtemca", "pmixmca"], Meaning::Answer(DAEMONS)),
    (&["genvnone", "envnone"], Meaning::Answer(EMPTY)),
    (&["nooversubscribe"], Meaning::Answer(MORE_RANKS)),
    (
        &["display", "display-map", "display-allocation", "v"],
        Meaning::Answer(SHOWN),
    ),
    (&["stdin"], Meaning::Answer(INPUT)),
];

/// What a name means, without its dashes.
pub(crate) fn meaning(name: &str) -> Option<Meaning> {
    TABLE
        .iter()
        .find(|(names, _)| names.contains(&name))
        .map(|&(_, meaning)| meaning)
}

/// All names of the table, for suggestions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|(names, _)| names.iter().copied())
}

/// Our words for `--map-by VALUE`.
///
/// # Errors
/// `Fault::Usage` for what weft run cannot do.
pub(crate) fn map(value: &str) -> Result<Vec<String>, Fault> {
    let refusal = || Err(Fault::Usage(format!("--map-by {value}: {PLACES}")));
    let lower = value.to_ascii_lowercase();
    let mut parts = lower.split(':');
    let mut found = Vec::new();
    match parts.next().unwrap_or_default() {
        "" | "slot" | "core" => {}
        "ppr" => match (parts.next(), parts.next()) {
            (Some(count), Some("node" | "host" | "machine")) => {
                found.extend(["--ppn".to_owned(), count.to_owned()]);
            }
            _ => return refusal(),
        },
        _ => return refusal(),
    }
    for modifier in parts {
        match modifier {
            "oversubscribe" => found.push("--oversubscribe".to_owned()),
            _ => return refusal(),
        }
    }
    Ok(found)
}

/// Our words for `--bind-to VALUE`.
///
/// # Errors
/// `Fault::Usage` for what weft run cannot do.
pub(crate) fn bind(value: &str) -> Result<Vec<String>, Fault> {
    let how = value.to_ascii_lowercase();
    if how == "core" || how == "none" {
        return Ok(vec!["--bind".to_owned(), how]);
    }
    Err(Fault::Usage(format!("--bind-to {value}: {BINDINGS}")))
}

/// Our words for `--output VALUE`.
///
/// # Errors
/// `Fault::Usage` for what weft run cannot do.
pub(crate) fn output(value: &str) -> Result<Vec<String>, Fault> {
    if value == "tag" {
        return Ok(vec!["--label".to_owned()]);
    }
    Err(Fault::Usage(format!(
        "--output {value}: weft run knows --label, the rank before each line; for files let the \
         program write them, or redirect"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_stands_in_the_table_once() {
        let mut all: Vec<_> = names().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }

    #[test]
    fn mappings_that_weft_run_has_are_read_and_others_answered() {
        assert_eq!(map("core").unwrap(), [""; 0]);
        assert_eq!(map("ppr:4:node").unwrap(), ["--ppn", "4"]);
        assert_eq!(map(":OVERSUBSCRIBE").unwrap(), ["--oversubscribe"]);
        let both = map("ppr:2:node:oversubscribe").unwrap();
        assert_eq!(both, ["--ppn", "2", "--oversubscribe"]);
        for value in ["node", "socket", "ppr:1:socket", "core:PE=2", "ppr"] {
            let text = map(value).unwrap_err().to_string();
            assert!(text.contains(value) && text.contains("--hosts"), "{text}");
        }
        assert_eq!(bind("Core").unwrap(), ["--bind", "core"]);
        assert!(
            bind("socket")
                .unwrap_err()
                .to_string()
                .contains("--bind auto")
        );
        assert_eq!(output("tag").unwrap(), ["--label"]);
        assert!(output("dir=x").is_err());
    }
}
