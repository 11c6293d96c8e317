// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options of sbatch among those of `weft submit`: they go into the script unchanged.
//!
//! Called by `submit.rs` with the words that clap does not know. Source: sbatch(1) of Slurm 22.05
//! to 25.11.

use std::ffi::OsString;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::arguments::SubmitArguments;

/// Options that take a value, with their short form if they have one.
const WITH_VALUE: [(&str, &str); 57] = [
    ("account", "A"),
    ("acctg-freq", ""),
    ("batch", ""),
    ("bb", ""),
    ("bbf", ""),
    ("begin", "b"),
    ("cluster-constraint", ""),
    ("comment", ""),
    ("constraint", "C"),
    ("container", ""),
    ("core-spec", "S"),
    ("cores-per-socket", ""),
    ("cpu-freq", ""),
    ("cpus-per-gpu", ""),
    ("cpus-per-task", "c"),
    ("deadline", ""),
    ("delay-boot", ""),
    ("distribution", "m"),
    ("error", "e"),
    ("exclude", "x"),
    ("extra-node-info", "B"),
    ("gpu-bind", ""),
    ("gpu-freq", ""),
    ("gpus", "G"),
    ("gpus-per-node", ""),
    ("gpus-per-socket", ""),
    ("gpus-per-task", ""),
    ("gres", ""),
    ("gres-flags", ""),
    ("hint", ""),
    ("input", "i"),
    ("licenses", "L"),
    ("mail-type", ""),
    ("mail-user", ""),
    ("mcs-label", ""),
    ("mem", ""),
    ("mem-bind", ""),
    ("mem-per-cpu", ""),
    ("mem-per-gpu", ""),
    ("mincpus", ""),
    ("network", ""),
    ("nodelist", "w"),
    ("ntasks-per-core", ""),
    ("ntasks-per-gpu", ""),
    ("ntasks-per-socket", ""),
    ("open-mode", ""),
    ("prefer", ""),
    ("priority", ""),
    ("qos", "q"),
    ("reservation", ""),
    ("signal", ""),
    ("sockets-per-node", ""),
    ("switches", ""),
    ("threads-per-core", ""),
    ("tmp", ""),
    ("tres-per-task", ""),
    ("wckey", ""),
];

/// Options without a value, or with one behind `=` alone.
const WITHOUT: [(&str, &str); 14] = [
    ("contiguous", ""),
    ("exclusive", ""),
    ("export", ""),
    ("get-user-env", ""),
    ("hold", "H"),
    ("nice", ""),
    ("no-kill", "k"),
    ("no-requeue", ""),
    ("overcommit", "O"),
    ("oversubscribe", "s"),
    ("propagate", ""),
    ("reboot", ""),
    ("requeue", ""),
    ("use-min-nodes", ""),
];

/// Options that contradict what `weft submit` does, and what to write instead.
const REFUSED: [(&str, &str); 6] = [
    (
        "clusters",
        "log in to that cluster, or set SLURM_CLUSTERS in a script of your own",
    ),
    (
        "parsable",
        "leave it out: the number alone goes to standard output",
    ),
    ("test-only", "--dry-run"),
    ("wrap", "the program behind --"),
    ("export-file", "--env NAME=VALUE"),
    ("thread-spec", "--sbatch=--thread-spec=N"),
];

/// The command line with options of sbatch taken out and put behind `--sbatch`.
///
/// # Errors
/// What clap says of the first word that nobody knows, or the help that was asked for.
pub fn parse(mut words: Vec<OsString>) -> Result<SubmitArguments, clap::Error> {
    let mut passed = Vec::new();
    loop {
        let error = match crate::read::<SubmitArguments>(&words) {
            Ok(mut arguments) => {
                // Before those of --sbatch, which are the more explicit.
                arguments.sbatch.splice(0..0, passed);
                return Ok(arguments);
            }
            Err(error) => error,
        };
        let Some(word) = unknown(&error) else {
            return Err(error);
        };
        match take(&mut words, &word) {
            Taken::Option(option) => passed.push(option),
            Taken::Not(why) => {
                let text = format!("{word}: {why}\n");
                return Err(clap::Error::raw(ErrorKind::InvalidValue, text)
                    .with_cmd(&SubmitArguments::command()));
            }
            Taken::Unknown => return Err(explained(error, &word)),
        }
    }
}

/// The word that clap does not know.
fn unknown(error: &clap::Error) -> Option<String> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => Some(word.clone()),
        _ => None,
    }
}

/// What came of a word that clap does not know.
enum Taken {
    /// The option of sbatch with its value.
    Option(String),
    /// It is one of sbatch, with this wrong in its value.
    Not(String),
    /// No word is it, or sbatch has none of this name.
    Unknown,
}

/// Takes the option with its value out of the words, if sbatch knows it.
fn take(words: &mut Vec<OsString>, unknown: &str) -> Taken {
    let bare = unknown.split('=').next().unwrap_or(unknown);
    let is_it = |word: &OsString| {
        let word = word.to_string_lossy();
        let long = bare.starts_with("--") && word.split('=').next() == Some(bare);
        long || (!bare.starts_with("--") && word.starts_with(bare))
    };
    let before_program = words.iter().position(|word| word == "--");
    let options = &words[..before_program.unwrap_or(words.len())];
    let Some(at) = options.iter().position(is_it) else {
        return Taken::Unknown;
    };
    let name = bare.trim_start_matches('-');
    let find = |list: &[(&'static str, &str)]| {
        let mut found = list.iter();
        let is_long = bare.starts_with("--");
        found
            .find(|(long, short)| {
                if is_long {
                    *long == name
                } else {
                    *short == name
                }
            })
            .map(|one| one.0)
    };
    let (with_value, without) = (find(&WITH_VALUE), find(&WITHOUT));
    let Some(long) = with_value.or(without) else {
        return Taken::Unknown;
    };
    let no_text = |word: &OsString| {
        Taken::Not(format!(
            "{word:?} is not UTF-8, as a batch script must be; write another value"
        ))
    };
    let Some(word) = words[at].to_str().map(str::to_owned) else {
        return no_text(&words[at]);
    };
    words.remove(at);
    if with_value.is_none() {
        let value = word.split_once('=').map(|(_, value)| format!("={value}"));
        return Taken::Option(format!("--{long}{}", value.unwrap_or_default()));
    }
    let value = match word.split_once('=') {
        Some((_, value)) if bare.starts_with("--") => value.into(),
        _ if word.len() > bare.len() => word[bare.len()..].into(),
        _ if at < words.len() => words.remove(at),
        _ => return Taken::Not("its value is missing".to_owned()),
    };
    match value.to_str() {
        Some(value) => Taken::Option(format!("--{long}={value}")),
        None => no_text(&value),
    }
}

/// Clap's error with what to write instead of an option that is sbatch's, or near to one.
fn explained(error: clap::Error, word: &str) -> clap::Error {
    let name = word
        .trim_start_matches('-')
        .split('=')
        .next()
        .unwrap_or_default()
        .to_owned();
    let mut all = WITH_VALUE.iter().chain(&WITHOUT);
    if !name.is_empty() && all.any(|(long, short)| [*long, *short].contains(&name.as_str())) {
        // Behind another letter: clap says which.
        return error;
    }
    let text = match REFUSED.iter().find(|(long, _)| *long == name) {
        Some((_, instead)) => format!("weft submit does not take {word}; write: {instead}"),
        None => {
            let all = WITH_VALUE.iter().chain(&WITHOUT).map(|one| one.0);
            let near = all
                .map(|long| (strsim::damerau_levenshtein(long, &name), long))
                .min();
            match near.filter(|&(distance, _)| distance <= 2 && distance < to_ours(&error, &name)) {
                Some((_, long)) => format!("there is no option {word}; sbatch has --{long}"),
                None => return error,
            }
        }
    };
    clap::Error::raw(ErrorKind::UnknownArgument, text + "\n").with_cmd(&SubmitArguments::command())
}

/// How far the word is from the name of ours that clap finds near.
fn to_ours(error: &clap::Error, name: &str) -> usize {
    match error.get(ContextKind::SuggestedArg) {
        Some(ContextValue::String(near)) => {
            strsim::damerau_levenshtein(near.trim_start_matches('-'), name)
        }
        _ => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    fn parsed(words: &[&str]) -> Result<SubmitArguments, clap::Error> {
        parse(words.iter().map(OsString::from).collect())
    }

    #[test]
    fn options_of_sbatch_go_through_in_every_spelling() {
        let words = [
            "-n",
            "4",
            "--account=physics",
            "--mem",
            "4G",
            "-c2",
            "-C",
            "gpu",
            "--hold",
            "--exclusive=user",
            "--sbatch=--new=1",
            "--",
            "./code",
            "--mem",
            "1",
        ];
        let arguments = parsed(&words).unwrap();
        assert_eq!(
            arguments.sbatch,
            [
                "--account=physics",
                "--mem=4G",
                "--cpus-per-task=2",
                "--constraint=gpu",
                "--hold",
                "--exclusive=user",
                "--new=1",
            ]
        );
        assert_eq!(arguments.program, ["./code", "--mem", "1"]);
        assert_eq!(arguments.ranks, Some(4));
    }

    #[test]
    fn a_value_that_is_missing_or_no_text_is_what_is_refused() {
        for (line, said) in [
            (
                &b"--account=caf\xe9"[..],
                r#"--account: "--account=caf\xE9" is not UTF-8"#,
            ),
            (b"-A \xe9", r#"-A: "\xE9" is not UTF-8"#),
            (b"--hold=\xe9", r#"--hold: "--hold=\xE9" is not UTF-8"#),
            (b"--account", "--account: its value is missing"),
            (b"-WH -- x", "unexpected argument '-H'"),
            (b"-WH -- x -Hy", "unexpected argument '-H'"),
            (b"--name \xe9 -- x\xe9", r#"not UTF-8: "\xE9". Only"#),
        ] {
            let words = line.split(|&byte| byte == b' ');
            let words = words.map(|word| OsStr::from_bytes(word).to_owned());
            let text = parse(words.collect()).unwrap_err().to_string();
            assert!(text.contains(said), "{text}");
        }
    }

    #[test]
    fn what_nobody_knows_is_refused_with_the_nearest_name_or_the_way() {
        for (words, said) in [
            (["--nonsense", "--", "a"], "--nonsense"),
            (["--acount=x", "--", "a"], "sbatch has --account"),
            (["--nodez=2", "--", "a"], "--nodes"),
            (["--wrap=x", "--", "a"], "the program behind --"),
            (["-n", "0", "a"], "0"),
            (["-N", "70000", "a"], "65536"),
            (["--transport", "tcp", "a"], "native"),
        ] {
            let text = parsed(&words).unwrap_err().to_string();
            assert!(text.contains(said), "{text}");
        }
    }
}
