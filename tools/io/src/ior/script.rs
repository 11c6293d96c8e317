// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scripts of tests (-f): `IOR START`, then `name=value` settings with `RUN` after each test, then
//! `IOR STOP`.
//!
//! Called by options. Settings stay for the tests that follow. Names are IOR's, in any case; #
//! begins a comment.

use crate::command_line::{Takes, bad};
use crate::ior::settings::apply;
use crate::ior::table::TABLE;
use crate::ior::test::Test;
use weft_ranks::refusal::Refusal;

/// The tests of a script, on top of what the command line says.
///
/// # Errors
/// The line that is wrong, and why.
pub fn read(path: &str, base: &Test) -> Result<Vec<Test>, Refusal> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| bad(format!("-f names {path}, which cannot be read: {error}")))?;
    parse(&text, base).map_err(|refusal| match refusal {
        Refusal::BadUsage(why) => bad(format!("{path}: {why}")),
        answer @ Refusal::Answer(_) => answer,
    })
}

fn parse(text: &str, base: &Test) -> Result<Vec<Test>, Refusal> {
    let (mut tests, mut test, mut begun) = (Vec::new(), base.clone(), false);
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let at = |why: String| bad(format!("line {}: {why}", index + 1));
        match line.to_ascii_lowercase().as_str() {
            "" => {}
            "ior start" => begun = true,
            _ if !begun => {}
            "ior stop" => break,
            "run" => tests.push(test.clone()),
            _ => {
                for pair in line.split(',') {
                    set(&mut test, pair.trim()).map_err(|refusal| match refusal {
                        Refusal::BadUsage(why) => at(why),
                        answer @ Refusal::Answer(_) => answer,
                    })?;
                }
            }
        }
    }
    if tests.is_empty() {
        return Err(bad(
            "there is no test in it; it needs IOR START, settings, RUN and IOR STOP".to_owned(),
        ));
    }
    Ok(tests)
}

fn set(test: &mut Test, pair: &str) -> Result<(), Refusal> {
    let Some((name, value)) = pair.split_once('=') else {
        return Err(bad(format!(
            "'{pair}' is no setting; settings are name=value"
        )));
    };
    let (name, value) = (name.trim(), value.trim());
    let entry = TABLE
        .iter()
        .find(|(_, known, ..)| !known.is_empty() && known.eq_ignore_ascii_case(name));
    match entry {
        Some((_, _, Takes::Refused(why), _)) => Err(bad(format!("{name} is not offered: {why}"))),
        Some((letter, ..)) => apply(test, letter, value),
        None if name.eq_ignore_ascii_case("posix.odirect")
            || name.eq_ignore_ascii_case("useO_DIRECT") =>
        {
            test.through.direct = value != "0";
            Ok(())
        }
        None => Err(bad(format!(
            "there is no setting '{name}'; weft bench ior -h lists them"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_runs_each_test_with_the_settings_so_far() {
        let text = "ignored before\nIOR START\n  api=POSIX # the only one\n\
            \u{20} blockSize=4m, transferSize=1m\n  RUN\n  fileperproc=1\nRUN\nIOR STOP\nRUN";
        let tests = parse(text, &Test::default()).unwrap();
        assert_eq!(tests.len(), 2);
        assert_eq!(tests[0].sizes.block_bytes, 4 << 20);
        assert!(!tests[0].files.per_process && tests[1].files.per_process);
    }

    #[test]
    fn what_is_wrong_in_a_script_is_told_with_its_line() {
        let why = |text: &str| match parse(text, &Test::default()) {
            Err(Refusal::BadUsage(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(why("IOR START\nblockSize=many\nRUN").starts_with("line 2: -b is 'many'"));
        assert!(why("IOR START\ncolour=1\nRUN").contains("colour"));
        assert!(why("IOR START\nIOR STOP").contains("no test"));
    }
}
