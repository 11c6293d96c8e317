// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IOR's command line. Flags combine (`-Cge`), values follow in any of the forms `-b 1m`, `-b1m` and `-b=1m`.
//!
//! Called by ior. What is not offered is refused with a sentence, never ignored.

use crate::ior::content::Kind;
use crate::ior::table::{TABLE, Takes};
use crate::ior::test::{Form, Sizes, Test};
use crate::ior::{script, size};
use crate::words::{bad, split_long, value_of, whole};
use weft_ranks::refusal::Refusal;

/// Reads the arguments after `ior`: one test, or those of a script.
///
/// # Errors
/// See [`Refusal`].
pub fn parse(arguments: &[String]) -> Result<Vec<Test>, Refusal> {
    let mut test = Test::default();
    let mut scripted = None;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if let Some(long) = word.strip_prefix("--") {
            apply_long(&mut test, long, &mut rest)?;
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            if let Some(path) = apply_letters(&mut test, letters, &mut rest)? {
                scripted = Some(path);
            }
        } else {
            return Err(bad(format!(
                "'{word}' is no option; options begin with -, see -h"
            )));
        }
    }
    let tests = match scripted {
        Some(path) => script::read(&path, &test)?,
        None => vec![test],
    };
    tests.into_iter().map(finish).collect()
}

/// One word of short options; answers the script of -f.
fn apply_letters<'a>(
    test: &mut Test,
    letters: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<Option<String>, Refusal> {
    for (place, letter) in letters.char_indices() {
        let Some((_, _, takes, _)) = TABLE.iter().find(|(known, ..)| *known == letter) else {
            return Err(bad(format!("there is no option -{letter}; see -h for all")));
        };
        match takes {
            Takes::Refused(why) => return Err(bad(format!("-{letter} is not offered: {why}"))),
            Takes::Flag => apply(test, letter, "1")?,
            Takes::Value => {
                let after = &letters[place + letter.len_utf8()..];
                let value = value_of(letter, after, rest)?;
                if letter == 'f' {
                    return Ok(Some(value));
                }
                apply(test, letter, &value)?;
                return Ok(None);
            }
        }
    }
    Ok(None)
}

fn apply_long<'a>(
    test: &mut Test,
    long: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Result<(), Refusal> {
    let (name, joined) = split_long(long);
    match name {
        "posix.odirect" => test.through.direct = true,
        "dryRun" => test.output.dry_run = true,
        "random-offset-seed" => {
            let value = joined.or_else(|| rest.next().cloned()).unwrap_or_default();
            test.order.offset_seed = whole(&value, "--random-offset-seed", 0..=u64::MAX)?;
        }
        "warningAsErrors" => {}
        "help" => apply(test, 'h', "1")?,
        "posix.rangelocks" => {
            return Err(bad(
                "--posix.rangelocks is not offered: no locks are taken".to_owned()
            ));
        }
        "randomPrefill" => {
            return Err(bad(
                "--randomPrefill is not offered: write the file first, and use -E -z".to_owned(),
            ));
        }
        other => return Err(bad(format!("there is no option --{other}; see -h for all"))),
    }
    Ok(())
}

fn bytes(text: &str, letter: char) -> Result<u64, Refusal> {
    size::parse(text).filter(|&bytes| bytes > 0).ok_or_else(|| {
        bad(format!(
            "-{letter} is '{text}'; it must be a size above 0, such as 8, 4k, 2m, 1g or 1t"
        ))
    })
}

/// Sets one option; flags have the value 1, or 0 in a script.
pub(super) fn apply(test: &mut Test, letter: char, value: &str) -> Result<(), Refusal> {
    let option = format!("-{letter}");
    let whole = |range| whole(value, &option, range);
    let on = value.trim() != "0";
    match letter {
        'b' => test.sizes.block_bytes = bytes(value, letter)?,
        't' => test.sizes.transfer_bytes = bytes(value, letter)?,
        's' => test.sizes.segments = whole(1..=u64::from(u32::MAX))?,
        'i' => test.run.repetitions = whole(1..=1_000_000)? as u32,
        'd' => test.run.delay_s = whole(0..=86_400)?,
        'D' => test.run.deadline_s = whole(0..=86_400 * 7)?,
        'j' => test.run.outlier_s = whole(0..=86_400)?,
        'T' => test.run.limit_minutes = whole(0..=1_000_000)? as f64,
        'g' => test.run.barriers = on,
        'N' => test.tasks = whole(0..=u64::from(u32::MAX))? as usize,
        'Q' => test.order.task_offset = whole(0..=u64::from(u32::MAX))?,
        'X' => test.order.random_seed = whole(0..=u64::MAX)?,
        'G' => test.signature = whole(0..=u64::from(u32::MAX))? as u32,
        'A' => test.output.reference = whole(0..=i64::MAX as u64)? as i64,
        'v' => test.output.verbose += u32::from(on),
        _ => return apply_rest(test, letter, value, on),
    }
    Ok(())
}

fn apply_rest(test: &mut Test, letter: char, value: &str, on: bool) -> Result<(), Refusal> {
    match letter {
        'w' => test.does.write = on,
        'W' => test.does.check_write = on,
        'r' => test.does.read = on,
        'R' => test.does.check_read = on,
        'C' => test.order.next_node = on,
        'Z' => test.order.random_task = on,
        'z' => test.order.random_offset = on,
        'F' => test.files.per_process = on,
        'm' => test.files.per_repetition = on,
        'u' => test.files.own_folder = on,
        'k' => test.files.keep = on,
        'K' => test.files.keep_if_wrong = on,
        'E' => test.files.existing = on,
        'e' => test.through.sync_at_end = on,
        'Y' => test.through.sync_each = on,
        'c' => test.through.collective = on,
        'x' | 'q' => {}
        'h' => return Err(Refusal::Answer(help())),
        'o' => {
            test.files.given = value.to_owned();
            test.files.names = value.split('@').map(str::to_owned).collect();
        }
        'a' if value.eq_ignore_ascii_case("posix") => {}
        'a' => return Err(bad(format!("-a is '{value}'; POSIX alone is offered"))),
        'l' => {
            test.content = Kind::named(value).ok_or_else(|| {
                bad(format!(
                    "-l is '{value}'; it must be offset, incompressible, timestamp or random"
                ))
            })?;
        }
        'O' => return apply_pair(test, value),
        other => return Err(bad(format!("-{other} cannot be used here"))),
    }
    test.does.given |= matches!(letter, 'w' | 'W' | 'r' | 'R');
    Ok(())
}

/// `-O key=value,key=value`.
fn apply_pair(test: &mut Test, text: &str) -> Result<(), Refusal> {
    for pair in text.split(',') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (key.to_ascii_lowercase().as_str(), value) {
            ("summaryfile", path) if !path.is_empty() => {
                test.output.summary_file = Some(path.to_owned())
            }
            ("summaryformat", form) => {
                test.output.form = match form.to_ascii_lowercase().as_str() {
                    "default" => Form::Text,
                    "json" => Form::Json,
                    "csv" => Form::Csv,
                    _ => {
                        return Err(bad(format!(
                            "summaryFormat is '{form}'; it must be default, JSON or CSV"
                        )));
                    }
                }
            }
            ("stonewallingwearout", flag) => test.run.wear_out = flag != "0",
            _ => {
                return Err(bad(format!(
                    "-O has '{pair}'; offered are summaryFile=FILE, summaryFormat=default|JSON|CSV and stoneWallingWearOut=0|1"
                )));
            }
        }
    }
    Ok(())
}

/// What holds only when all options are known.
fn finish(mut test: Test) -> Result<Test, Refusal> {
    if !test.does.given {
        test.does.write = true;
        test.does.read = true;
    }
    let Sizes {
        block_bytes,
        transfer_bytes,
        segments,
    } = test.sizes;
    if transfer_bytes > block_bytes || block_bytes % transfer_bytes != 0 {
        return Err(bad(format!(
            "-b is {block_bytes} and -t is {transfer_bytes} bytes; the block must be a multiple of the transfer"
        )));
    }
    if block_bytes
        .checked_mul(segments)
        .is_none_or(|total| total > i64::MAX as u64)
    {
        return Err(bad(format!(
            "-b {block_bytes} times -s {segments} is beyond what a file can hold; make one smaller"
        )));
    }
    if transfer_bytes % 8 != 0 && (test.does.check_read || test.does.check_write) {
        return Err(bad(format!(
            "-t is {transfer_bytes} bytes; to verify content it must be a multiple of 8"
        )));
    }
    if test.files.names.iter().any(String::is_empty) {
        return Err(bad(format!(
            "-o is '{}'; a name between @ is empty",
            test.files.given
        )));
    }
    Ok(test)
}

fn help() -> String {
    let mut text = String::from(
        "weft bench ior: reads and writes files in parallel, with IOR's options and output\n\n",
    );
    for (letter, name, takes, meaning) in TABLE {
        let value = match takes {
            Takes::Flag => "",
            Takes::Value => " V",
            Takes::Refused(_) => continue,
        };
        let option = format!("-{letter}{value}");
        text += &format!(
            "  {option:<6} {meaning}{}\n",
            if name.is_empty() {
                String::new()
            } else {
                format!(" [{name}]")
            }
        );
    }
    text + "  --posix.odirect         past the page cache\n  --random-offset-seed N  seed of -z\n  --dryRun                show what would be done\n\
            Names in brackets are for scripts. Without -w, -W, -r or -R, both write and read are done.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Test, Refusal> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map(|mut tests| tests.remove(0))
    }

    #[test]
    fn flags_combine_and_values_follow_in_every_form() {
        let test = read("-Cge -vvv -b=4m -t1m -s 2 -wWF").unwrap();
        assert!(test.order.next_node && test.run.barriers && test.through.sync_at_end);
        assert_eq!((test.output.verbose, test.sizes.segments), (3, 2));
        assert_eq!(
            (test.sizes.block_bytes, test.sizes.transfer_bytes),
            (4 << 20, 1 << 20)
        );
        assert!(
            test.does.write && test.does.check_write && !test.does.read && test.files.per_process
        );
    }

    #[test]
    fn without_a_phase_both_write_and_read_are_done() {
        let test = read("-i 3").unwrap();
        assert!(test.does.write && test.does.read && test.run.repetitions == 3);
    }

    #[test]
    fn bad_values_are_told_with_option_value_and_what_is_allowed() {
        for (line, part) in [
            ("-i 0", "-i is '0'; it must be a whole number, 1 to 1000000"),
            ("-b 3m -t 2m", "multiple of the transfer"),
            ("-l zeros", "offset, incompressible, timestamp or random"),
            ("-O form=x", "summaryFormat=default|JSON|CSV"),
            ("-o a@@b", "a name between @ is empty"),
            ("-t 12 -b 12 -R", "multiple of 8"),
            ("--nonsense", "--nonsense"),
            ("-t", "needs a value"),
            ("file", "no option"),
        ] {
            match read(line) {
                Err(Refusal::BadUsage(why)) => assert!(why.contains(part), "{line}: {why}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}
