// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each of IOR's settings does to a test, by the letter of its option.
//!
//! Called by options for the command line and by script for a file of tests.

use crate::command_line::{bad, whole};
use crate::ior::content::Kind;
use crate::ior::size;
use crate::ior::test::{Form, Test};
use weft_ranks::refusal::Refusal;

fn bytes(text: &str, letter: &str) -> Result<u64, Refusal> {
    size::parse(text).filter(|&bytes| bytes > 0).ok_or_else(|| {
        bad(format!(
            "-{letter} is '{text}'; it must be a size above 0, such as 8, 4k, 2m, 1g or 1t"
        ))
    })
}

/// Sets one option; flags have the value 1, or 0 in a script.
pub(super) fn apply(test: &mut Test, letter: &str, value: &str) -> Result<(), Refusal> {
    let option = format!("-{letter}");
    let whole = |range| whole(value, &option, range);
    let on = value.trim() != "0";
    match letter {
        "b" => test.sizes.block_bytes = bytes(value, letter)?,
        "t" => test.sizes.transfer_bytes = bytes(value, letter)?,
        "s" => test.sizes.segments = whole(1..=u64::from(u32::MAX))?,
        "i" => test.run.repetitions = whole(1..=1_000_000)? as u32,
        "d" => test.run.delay_s = whole(0..=86_400)?,
        "D" => test.run.deadline_s = whole(0..=86_400 * 7)?,
        "j" => test.run.outlier_s = whole(0..=86_400)?,
        "T" => test.run.limit_minutes = whole(0..=1_000_000)? as f64,
        "g" => test.run.barriers = on,
        "N" => test.tasks = whole(0..=u64::from(u32::MAX))? as usize,
        "Q" => test.order.task_offset = whole(0..=u64::from(u32::MAX))?,
        "X" => test.order.random_seed = whole(0..=u64::MAX)?,
        "G" => test.signature = whole(0..=u64::from(u32::MAX))? as u32,
        "A" => test.output.reference = whole(0..=i64::MAX as u64)? as i64,
        "v" => test.output.verbose += u32::from(on),
        _ => return apply_rest(test, letter, value, on),
    }
    Ok(())
}

fn apply_rest(test: &mut Test, letter: &str, value: &str, on: bool) -> Result<(), Refusal> {
    match letter {
        "w" => test.does.write = on,
        "W" => test.does.check_write = on,
        "r" => test.does.read = on,
        "R" => test.does.check_read = on,
        "C" => test.order.next_node = on,
        "Z" => test.order.random_task = on,
        "z" => test.order.random_offset = on,
        "F" => test.files.per_process = on,
        "m" => test.files.per_repetition = on,
        "u" => test.files.own_folder = on,
        "k" => test.files.keep = on,
        "K" => test.files.keep_if_wrong = on,
        "E" => test.files.existing = on,
        "e" => test.through.sync_at_end = on,
        "Y" => test.through.sync_each = on,
        "c" => test.through.collective = on,
        "x" | "q" => {}
        "o" => {
            test.files.given = value.to_owned();
            test.files.names = value.split('@').map(str::to_owned).collect();
        }
        "a" if value.eq_ignore_ascii_case("posix") => {}
        "a" => return Err(bad(format!("-a is '{value}'; POSIX alone is offered"))),
        "l" => {
            test.content = Kind::named(value).ok_or_else(|| {
                bad(format!(
                    "-l is '{value}'; it must be offset, incompressible, timestamp or random"
                ))
            })?;
        }
        "O" => return apply_pair(test, value),
        other => return Err(bad(format!("-{other} cannot be used here"))),
    }
    test.does.given |= matches!(letter, "w" | "W" | "r" | "R");
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
                    "-O has '{pair}'; offered are summaryFile=FILE, summaryFormat=default|JSON|CSV \
                     and stoneWallingWearOut=0|1"
                )));
            }
        }
    }
    Ok(())
}
