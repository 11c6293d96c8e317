// SPDX-License-Identifier: Apache-2.0 OR MIT
//! mdtest's command line: sets the given options on a test one after the other, and then checks the
//! test as a whole.
//!
//! Called by mdtest. An option that is not offered is refused with a sentence, never ignored.

use crate::command_line::{self, Entry, Takes, bad, spelled, whole};
use crate::ior::size;
use crate::mdtest::table::TABLE;
use crate::mdtest::test::{Does, Test};
use crate::mdtest::tree::{Layout, MOST_ITEMS};
use weft_ranks::refusal::Refusal;

/// Reads the arguments after `mdtest`.
///
/// # Errors
/// See [`Refusal`].
pub fn parse(arguments: &[String]) -> Result<Test, Refusal> {
    let mut test = Test::default();
    for (option, value) in command_line::read(TABLE, arguments)? {
        let takes = TABLE.iter().find(|(name, ..)| *name == option);
        match (option, takes.map(|entry| entry.1)) {
            ("R" | "random-seed", _) => {
                let seed = if value.is_empty() { "0" } else { &value };
                test.sharing.random_seed = Some(whole(seed, &spelled(option), 0..=u64::MAX)?);
            }
            (_, Some(Takes::Value)) => apply_value(&mut test, option, &value)?,
            _ => apply_flag(&mut test, option, value.trim() != "0")?,
        }
    }
    finish(test)
}

fn apply_flag(test: &mut Test, letter: &str, on: bool) -> Result<(), Refusal> {
    match letter {
        // mdtest's own -B=0 says the same as -B.
        "B" => test.run.barriers = false,
        "c" => test.sharing.by_first_task = on,
        "C" => test.does.create = on,
        "T" => test.does.stat = on,
        "E" => test.does.read = on,
        "U" => test.does.rename = on,
        "r" => test.does.remove = on,
        "D" => test.shape.files = !on,
        "F" => test.shape.folders = !on,
        "L" => test.shape.leaves_only = on,
        "k" => test.moves.by_mknod = on,
        "X" | "verify-read" => test.moves.verify_read = on,
        "y" => test.moves.sync_file = on,
        "Y" => test.run.sync_phases = on,
        "S" => test.sharing.same_files = on,
        "t" => test.sharing.tree_in_time = on,
        "u" => test.sharing.own_tree = on,
        "P" => test.output.times = on,
        "Z" => (test.output.rates, test.output.times) = (!on, on),
        "v" => test.output.verbose += u32::from(on),
        "h" | "help" => return Err(Refusal::Answer(help())),
        "json" => test.output.json = on,
        "posix.odirect" => test.moves.direct = on,
        "verify-write" => test.moves.verify_write = on,
        "warningAsErrors" => {}
        other => return Err(bad(format!("-{other} cannot be used here"))),
    }
    Ok(())
}

fn apply_value(test: &mut Test, letter: &str, value: &str) -> Result<(), Refusal> {
    let option = format!("-{letter}");
    let number = |range| whole(value, &option, range);
    let bytes = || {
        let most = i64::MAX as u64;
        let parsed = size::parse(value).filter(|&bytes| bytes <= most);
        parsed.map(|bytes| bytes as usize).ok_or_else(|| {
            bad(format!(
                "{option} is '{value}'; it must be a size, such as 0, 3901, 4k or 1m"
            ))
        })
    };
    match letter {
        "a" if value.eq_ignore_ascii_case("posix") => {}
        "a" => return Err(bad(format!("-a is '{value}'; POSIX alone is offered"))),
        "b" => test.shape.branching = number(0..=1_000_000)?,
        "z" => test.shape.depth = number(0..=1000)? as u32,
        "n" => test.shape.items = number(0..=MOST_ITEMS)?,
        "I" => test.shape.per_folder = number(0..=MOST_ITEMS)?,
        "d" => test.roots = value.split('@').map(str::to_owned).collect(),
        "e" => test.moves.read_bytes = bytes()?,
        "w" => test.moves.write_bytes = bytes()?,
        "G" => test.moves.signature = number(0..=u64::MAX)?,
        "i" => test.run.iterations = number(1..=1_000_000)? as u32,
        "p" => test.run.delay_s = number(0..=86_400)?,
        "f" => test.run.tasks.0 = number(1..=1 << 20)? as usize,
        "l" => test.run.tasks.1 = number(0..=1 << 20)? as usize,
        "s" => test.run.tasks.2 = number(1..=1 << 20)? as usize,
        "N" => test.sharing.stride = number(0..=1 << 20)? as usize,
        "V" => test.output.verbose = number(0..=100)? as u32,
        "W" => test.run.deadline_s = number(0..=86_400 * 7)?,
        "x" => test.run.deadline_file = Some(value.to_owned()),
        other => return Err(bad(format!("-{other} cannot be used here"))),
    }
    Ok(())
}

/// What holds only when all options are known.
fn finish(mut test: Test) -> Result<Test, Refusal> {
    if test.does == Does::default() {
        test.does = Does::ALL;
    }
    let refused = of_items(&test).into_iter().chain(of_tasks(&test));
    for (holds, why) in refused {
        if holds {
            return Err(bad(why.to_owned()));
        }
    }
    Layout::of(&test.shape).map_err(|why| bad(why.to_string()))?;
    Ok(test)
}

/// What is wrong with items and their content.
fn of_items(test: &Test) -> Vec<(bool, &'static str)> {
    vec![
        (
            !test.shape.files && !test.shape.folders,
            "-D and -F exclude each other: nothing is left to work on",
        ),
        (
            test.shape.items > 0 && test.shape.per_folder > 0,
            "-n counts a task's items in all and -I those in each folder; give one of the two",
        ),
        (
            test.shape.items == 0 && test.shape.per_folder == 0,
            "there are no items; give -n (a task's items in all) or -I (items in each folder)",
        ),
        (
            test.shape.branching == 0 && test.shape.depth > 0,
            "-b is 0, so that no folder has subfolders, but -z asks for levels below the first; \
             make -b 1 or more",
        ),
        (
            test.roots.iter().any(String::is_empty),
            "-d has an empty name before, after or between @",
        ),
        (
            test.moves.verify_read && test.moves.read_bytes == 0,
            "-X verifies what is read, but -e is 0; give -e",
        ),
        (
            test.moves.read_bytes > test.moves.write_bytes
                && test.does.create
                && test.does.read
                && test.shape.files,
            "-e is more than -w: files are shorter than what is to be read",
        ),
    ]
}

/// What is wrong with who works on what.
fn of_tasks(test: &Test) -> Vec<(bool, &'static str)> {
    let (first, last, step) = test.run.tasks;
    vec![
        (
            !test.shape.files && test.sharing.same_files,
            "-S is about files, and -D leaves them out",
        ),
        (
            test.sharing.same_files && test.sharing.own_tree,
            "-S shares files between tasks, and -u separates them; give one of the two",
        ),
        (
            last > 0 && last < first,
            "-l is below -f; the last number of tasks cannot be below the first",
        ),
        (
            step > 1 && last == 0,
            "-s is a step from -f to -l; give -l too",
        ),
        (
            !test.run.barriers
                && (test.sharing.stride > 0
                    || test.sharing.same_files
                    || test.sharing.by_first_task),
            "-B lets tasks run ahead of each other, but -N, -S and -c work on what other tasks \
             make; leave -B out",
        ),
        (
            test.run.deadline_s > 0 && (test.sharing.same_files || test.sharing.by_first_task),
            "-W compares the tasks' own items, which -S and -c do not have; give one of them",
        ),
        (
            test.run.deadline_file.is_some() && test.run.deadline_s == 0 && test.does.create,
            "-x keeps what -W allowed; give -W too",
        ),
    ]
}

fn help() -> String {
    let line = |(name, takes, meaning): &Entry| command_line::help(name, *takes, meaning);
    let options: String = TABLE.iter().map(line).collect();
    format!(
        "weft bench mdtest: makes, stats, reads and removes files and directories, with mdtest's \
         options and output\n\n{options}Without -C, -T, -E, -U or -r, all phases are done.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Test, Refusal> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn flags_combine_and_values_follow_in_every_form() {
        let test =
            read("-CTF -b=4 -z2 -I 10 -vvv -R7 -uLy -N 1 -d=/a@/b -w 3901 -a=POSIX").unwrap();
        assert!(test.does.create && test.does.stat && !test.does.remove && !test.does.read);
        assert!(test.shape.files && !test.shape.folders && test.shape.leaves_only);
        assert_eq!(
            (
                test.shape.branching,
                test.shape.depth,
                test.shape.per_folder
            ),
            (4, 2, 10)
        );
        assert_eq!(
            (test.output.verbose, test.sharing.random_seed),
            (3, Some(7))
        );
        assert!(test.sharing.own_tree && test.moves.sync_file);
        assert_eq!(test.roots, ["/a", "/b"]);
        assert_eq!(test.moves.write_bytes, 3901);
    }

    #[test]
    fn without_a_phase_all_are_done_and_random_order_needs_no_seed() {
        let test = read("-n 4 -RF").unwrap();
        assert_eq!(test.does, Does::ALL);
        assert_eq!(test.sharing.random_seed, Some(0));
        assert!(!test.shape.folders && test.run.barriers);
    }

    #[test]
    fn barriers_go_away_in_both_spellings() {
        assert!(!read("-n 1 -B").unwrap().run.barriers);
        assert!(!read("-n 1 -B=0").unwrap().run.barriers);
    }

    #[test]
    fn bad_values_are_told_with_option_value_and_what_is_allowed() {
        for (line, part) in [
            ("", "give -n"),
            ("-n 1 -I 1", "give one of the two"),
            ("-n many", "-n is 'many'; it must be a whole number, 0 to"),
            (
                "-i 0 -n 1",
                "-i is '0'; it must be a whole number, 1 to 1000000",
            ),
            ("-n 1 -D -F", "exclude each other"),
            ("-n 1 -a S3", "POSIX alone"),
            ("-n 1 -g", "not offered"),
            ("-n 1 -w 1.5k", "such as 0, 3901, 4k or 1m"),
            ("-n 1 -d a@@b", "empty name"),
            ("-n 3 -b 2 -z 2", "-n is 3, but the tree has 7 folders"),
            ("-n 1 -b 1000000 -z 1000", "folders"),
            ("-n 1 -X", "give -e"),
            ("-n 1 -e 5 -w 4", "-e is more than -w"),
            ("-n 1 -z 1 -b 0", "make -b 1 or more"),
            ("-n 1 -f 3 -l 2", "cannot be below"),
            ("-n 1 -B -N 1", "leave -B out"),
            ("-n 1 --nonsense", "--nonsense"),
            ("-n", "needs a value"),
            ("-n 1 file", "no option"),
        ] {
            match read(line) {
                Err(Refusal::BadUsage(why)) => assert!(why.contains(part), "{line}: {why}"),
                other => panic!("{line}: {other:?}"),
            }
        }
    }
}
