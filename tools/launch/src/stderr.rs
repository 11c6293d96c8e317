// SPDX-License-Identifier: Apache-2.0 OR MIT
//! How `weft run` prints on stderr. `say!` is like `eprintln!`, with two differences. It writes
//! each line with one write(2), so that lines of ranks and launchers do not mix with it. It does
//! not panic when nobody reads any more, as behind `2>&1 | head -1` or after a terminal was closed.
//!
//! Called by every module that prints for the user, also in a rank (`bind`).

use std::ffi::OsString;
use std::fmt::Arguments;
use std::io::{self, IsTerminal, Write};

use clap::error::ErrorKind;
use weft_job::answer::answer;

/// `eprintln!`, but whole and never a reason to fail.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::stderr::line(&mut std::io::stderr(), format_args!($($words)*))
    };
}
pub(crate) use say;

/// Writes one line at once.
pub(crate) fn line(out: &mut impl Write, words: Arguments<'_>) {
    let whole = format!("{words}\n");
    let _: io::Result<()> = out.write_all(whole.as_bytes());
}

/// A command line that clap read.
pub(crate) struct CommandLine<'a> {
    /// The command, as in `weft run`.
    pub tool: &'a str,
    /// How it may be written.
    pub example: &'a str,
    /// What clap was told of it.
    pub command: clap::Command,
    /// The words that clap read.
    pub words: &'a [OsString],
}

/// Shows what clap has to say about a command line, help on stdout and errors on stderr, and
/// returns the exit code.
pub(crate) fn refusal(error: &clap::Error, line: CommandLine<'_>) -> u8 {
    let (tool, example) = (line.tool, line.example);
    // The program is the only word that must be there.
    if error.kind() == ErrorKind::MissingRequiredArgument {
        say!("{tool}: no PROGRAM was named; write it last, as in: {example}");
    } else if error.kind() == ErrorKind::InvalidUtf8 {
        say!("{tool}: {}", not_utf8(line.command, line.words));
    } else if error.use_stderr() {
        let coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        refuse_on(&mut io::stderr(), error, coloured);
    } else {
        return answer(tool, error);
    }
    u8::try_from(error.exit_code()).unwrap_or(2)
}

/// What is wrong with the words of a command line of which one is not UTF-8 and should be. Clap
/// does not say which, and others may be any bytes: so each is tried with text for the others.
#[must_use]
pub fn not_utf8(mut command: clap::Command, words: &[OsString]) -> String {
    let mut is_refused = |at: usize| {
        let tried = words.iter().enumerate().map(|(other, word)| match other {
            other if other == at => word.clone(),
            _ => word.to_string_lossy().into_owned().into(),
        });
        let read = command.try_get_matches_from_mut(tried.collect::<Vec<OsString>>());
        read.is_err_and(|error| error.kind() == ErrorKind::InvalidUtf8)
    };
    let options = words.iter().take_while(|word| *word != "--").enumerate();
    let odd = options.filter(|(_, word)| word.to_str().is_none());
    let refused = odd.filter(|&(at, _)| is_refused(at));
    let shown: Vec<String> = refused.map(|(_, word)| format!("{word:?}")).collect();
    format!(
        "not UTF-8: {}. Only the program with its arguments, the value of --env, and paths of \
         files and folders may have any bytes, but not the folder of --mount; write another value",
        shown.join(", ")
    )
}

/// Writes an error of several lines at once.
fn refuse_on(out: &mut impl Write, error: &clap::Error, coloured: bool) {
    let text = error.render();
    let text = if coloured {
        text.ansi().to_string()
    } else {
        text.to_string()
    };
    let _: io::Result<()> = out.write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    /// What each call wrote.
    #[derive(Default)]
    struct Calls(Vec<String>);

    impl Write for Calls {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_word_that_should_be_text_is_shown_with_its_bytes() {
        use crate::arguments::Arguments;
        for line in [
            &b"--hosts caf\xe9 ./a"[..],
            b"--wdir d\xe9 --hosts caf\xe9 ./a\xe9 b\xe9",
            b"--env A=\xe9 --hosts caf\xe9 -- --hosts a\xe9",
            b"--wdir d\xe9 --mount caf\xe9 ./a\xe9",
        ] {
            let words = line.split(|&byte| byte == b' ');
            let words: Vec<OsString> = words.map(|word| OsStr::from_bytes(word).into()).collect();
            let error = Arguments::try_parse_from(&words).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidUtf8);
            let text = not_utf8(Arguments::command(), &words);
            assert!(text.starts_with(r#"not UTF-8: "caf\xE9". Only"#), "{text}");
            assert!(text.contains("but not the folder of --mount"), "{text}");
        }
    }

    #[test]
    fn a_line_is_written_whole() {
        let mut calls = Calls::default();
        line(&mut calls, format_args!("host {} has {} cores", "a", 20));
        assert_eq!(calls.0, ["host a has 20 cores\n"]);
    }

    #[test]
    fn an_error_in_the_command_line_is_written_whole() {
        let error = crate::arguments::Arguments::try_parse_from(["--nonsense"]).unwrap_err();
        let mut calls = Calls::default();
        refuse_on(&mut calls, &error, false);
        assert_eq!(calls.0.len(), 1, "{:?}", calls.0);
        assert!(
            calls.0[0].contains("--nonsense") && calls.0[0].ends_with('\n'),
            "{:?}",
            calls.0
        );
    }

    /// Whoever forgets is found here: the other ways to write to stderr write in pieces.
    #[test]
    fn nothing_of_this_crate_writes_to_stderr_in_another_way() {
        let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
        // Put together here, or this file would be found itself.
        let forbidden = ["eprint".to_owned() + "ln!(", "eprint".to_owned() + "!("];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                for words in &forbidden {
                    assert!(
                        !text.contains(words.as_str()),
                        "{}: {words}",
                        path.display()
                    );
                }
            }
        }
    }
}
