// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IOR's command line: sets the given options on a test one after the other, and then checks the
//! test as a whole.
//!
//! Called by ior. An option that is not offered is refused with a sentence, never ignored.

use crate::command_line::{self, Entry, bad, whole};
use crate::ior::script;
use crate::ior::settings::apply;
use crate::ior::table::{LONG, Setting, TABLE};
use crate::ior::test::{Sizes, Test};
use weft_ranks::refusal::Refusal;

/// Reads the arguments after `ior`: one test, or those of a script.
///
/// # Errors
/// See [`Refusal`].
pub fn parse(arguments: &[String]) -> Result<Vec<Test>, Refusal> {
    let short = TABLE.iter();
    let short = short.map(|(letter, _, takes, meaning)| (*letter, *takes, *meaning));
    let known: Vec<Entry> = short.chain(LONG.iter().copied()).collect();
    let mut test = Test::default();
    let mut scripted = None;
    for (option, value) in command_line::read(&known, arguments)? {
        match option {
            "f" => scripted = Some(value),
            "h" | "help" => return Err(Refusal::Answer(help())),
            "posix.odirect" => test.through.direct = true,
            "dryRun" => test.output.dry_run = true,
            "warningAsErrors" => {}
            "random-offset-seed" => {
                test.order.offset_seed = whole(&value, "--random-offset-seed", 0..=u64::MAX)?;
            }
            letter => apply(&mut test, letter, &value)?,
        }
    }
    let tests = match scripted {
        Some(path) => script::read(&path, &test)?,
        None => vec![test],
    };
    tests.into_iter().map(finish).collect()
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
            "-b is {block_bytes} and -t is {transfer_bytes} bytes; the block must be a multiple of \
             the transfer"
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
    let meaning = |(letter, name, takes, meaning): &Setting| {
        let scripted = match name.is_empty() || meaning.is_empty() {
            true => (*meaning).to_owned(),
            false => format!("{meaning} [{name}]"),
        };
        command_line::help(letter, *takes, &scripted)
    };
    let long = LONG
        .iter()
        .map(|(name, takes, meaning)| command_line::help(name, *takes, meaning));
    let options: String = TABLE.iter().map(meaning).chain(long).collect();
    format!(
        "weft bench ior: reads and writes files in parallel, with IOR's options and output\n\n\
         {options}Names in brackets are for scripts. Without -w, -W, -r or -R, both write and read \
         are done.\n"
    )
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
