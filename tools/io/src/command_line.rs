// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command lines of IOR and mdtest: clap reads them by a table of each one's options.
//!
//! Called by the options of both. Both programs spell options as getopt does: letters that combine
//! (`-Cge`), values in the forms `-b 1m`, `-b1m` and `-b=1m`.

use std::ops::RangeInclusive;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};
use weft_ranks::refusal::Refusal;

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing, or `=0` and `=1`.
    Flag,
    /// A value.
    Value,
    /// A number that follows without a blank, or nothing.
    Joined,
    /// It is known, and not offered; why.
    Refused(&'static str),
}

/// One option: its name without dashes, which is a letter for a short one; what it takes, what it
/// does. Without a meaning it is not in the help.
pub type Entry = (&'static str, Takes, &'static str);

/// The options that were written, by name with their value, in their order; flags have the value 1
/// unless they say 0.
///
/// # Errors
/// What is wrong with the words.
pub(crate) fn read(
    table: &[Entry],
    words: &[String],
) -> Result<Vec<(&'static str, String)>, Refusal> {
    let command = Command::new("weft bench").no_binary_name(true);
    let command = command
        .disable_help_flag(true)
        .args(table.iter().map(argument));
    let words = words.iter().map(|word| with_joined(table, word));
    let matches = command.try_get_matches_from(words).map_err(explained)?;
    let mut given = Vec::new();
    for (name, takes, _) in table {
        let indices = matches.indices_of(name).into_iter().flatten();
        let values = matches.get_many::<String>(name).into_iter().flatten();
        let before = given.len();
        given.extend(
            indices
                .zip(values)
                .map(|(at, value)| (at, *name, value.clone())),
        );
        if let (true, Takes::Refused(why)) = (given.len() > before, takes) {
            return Err(bad(format!("{} is not offered: {why}", spelled(name))));
        }
    }
    given.sort();
    Ok(given
        .into_iter()
        .map(|(_, name, value)| (name, value))
        .collect())
}

fn argument(entry: &Entry) -> Arg {
    let (name, takes, _) = entry;
    let argument = Arg::new(*name).action(ArgAction::Append);
    let mut letters = name.chars();
    let argument = match (letters.next(), letters.next()) {
        (Some(letter), None) => argument.short(letter),
        _ => argument.long(*name),
    };
    match takes {
        Takes::Value => argument.num_args(1).allow_hyphen_values(true),
        Takes::Refused(_) => argument.num_args(0..=1).default_missing_value(""),
        Takes::Flag | Takes::Joined => argument
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value(if *takes == Takes::Flag { "1" } else { "" }),
    }
}

/// clap knows no number that may follow a letter or not: `-uR7` becomes `-uR=7`.
fn with_joined(table: &[Entry], word: &str) -> String {
    let takes = |letter: char| {
        let mut found = table.iter().filter(|(name, ..)| name.starts_with(letter));
        found
            .find(|(name, ..)| name.len() == letter.len_utf8())
            .map(|entry| entry.1)
    };
    let letters = word.strip_prefix('-').unwrap_or_default();
    let last = letters
        .char_indices()
        .find(|(_, letter)| takes(*letter) != Some(Takes::Flag));
    match last {
        Some((at, letter)) if takes(letter) == Some(Takes::Joined) => {
            let (before, after) = word.split_at(at + 1 + letter.len_utf8());
            match after.starts_with(|first: char| first.is_ascii_digit()) {
                true => format!("{before}={after}"),
                false => word.to_owned(),
            }
        }
        _ => word.to_owned(),
    }
}

fn explained(error: clap::Error) -> Refusal {
    let word = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) => text.split([' ', '=', '[']).next().unwrap_or_default(),
        _ => "",
    };
    bad(match error.kind() {
        ErrorKind::UnknownArgument if word.starts_with('-') => {
            format!("there is no option {word}; see -h for all")
        }
        ErrorKind::UnknownArgument => {
            format!("'{word}' is no option; options begin with -, see -h")
        }
        _ => format!("{word} needs a value; see -h"),
    })
}

/// An option with its dashes.
pub(crate) fn spelled(name: &str) -> String {
    let dashes = if name.chars().count() == 1 { "-" } else { "--" };
    format!("{dashes}{name}")
}

/// The line of the help for an option; none for one without a meaning.
pub(crate) fn help(name: &str, takes: Takes, meaning: &str) -> String {
    let value = match takes {
        Takes::Value => " V",
        Takes::Joined => "[V]",
        Takes::Flag | Takes::Refused(_) => "",
    };
    match meaning {
        "" => String::new(),
        _ => format!("  {:<22} {meaning}\n", spelled(name) + value),
    }
}

/// A refusal that says what is wrong, and how to put it right.
pub(crate) fn bad(text: String) -> Refusal {
    Refusal::BadUsage(text)
}

/// A whole number that the option takes.
///
/// # Errors
/// With the option, the value and what is allowed.
pub(crate) fn whole(text: &str, option: &str, range: RangeInclusive<u64>) -> Result<u64, Refusal> {
    let value = text.trim().parse().ok();
    value.filter(|value| range.contains(value)).ok_or_else(|| {
        let most = if *range.end() == u64::MAX {
            "or more".to_owned()
        } else {
            format!("to {}", range.end())
        };
        bad(format!(
            "{option} is '{text}'; it must be a whole number, {} {most}",
            range.start()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Entry] = &[
        ("b", Takes::Value, "bytes"),
        ("C", Takes::Flag, "create"),
        ("R", Takes::Joined, "at random"),
        ("dryRun", Takes::Flag, "show"),
        ("seed", Takes::Value, "seed"),
        ("g", Takes::Refused("no stripes"), ""),
    ];

    fn given(line: &str) -> Result<String, Refusal> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let given = read(TABLE, &words)?;
        let shown = given.iter().map(|(name, value)| format!("{name}:{value}"));
        Ok(shown.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn options_are_given_in_the_order_in_which_they_are_written() {
        for (line, expected) in [
            ("-CR7 -b 1m -C=0", "C:1 R:7 b:1m C:0"),
            ("-b1m -RC -b=-2", "b:1m R: C:1 b:-2"),
            ("-R=9 -bR7 --dryRun --seed 3", "R:9 b:R7 dryRun:1 seed:3"),
            ("--seed=4 -b -C", "seed:4 b:-C"),
        ] {
            assert_eq!(given(line), Ok(expected.to_owned()), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_word_is_said_with_the_word() {
        for (line, expected) in [
            ("-C%", "there is no option -%; see -h for all"),
            ("--dry", "there is no option --dry; see -h for all"),
            (
                "-C file",
                "'file' is no option; options begin with -, see -h",
            ),
            ("-Cb", "-b needs a value; see -h"),
            ("--seed", "--seed needs a value; see -h"),
            ("-g 4 -C", "-g is not offered: no stripes"),
        ] {
            assert_eq!(given(line), Err(bad(expected.to_owned())), "{line}");
        }
    }
}
