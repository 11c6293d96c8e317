// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Words as a POSIX shell reads them, and the commands of three shells that set variables. Used by
//! `command` for what is shown, by `remote_shell` for what another host's shell reads, by `env`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

pub use weft_job::shell::quote;

/// A kind of shell, by how it sets a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// sh, bash, zsh, ksh.
    Sh,
    /// csh, tcsh.
    Csh,
    /// fish.
    Fish,
}

impl Shell {
    /// The command that sets a variable for all programs.
    #[must_use]
    pub fn set(self, name: &OsStr, value: &OsStr) -> OsString {
        let (start, middle, value) = match self {
            Self::Sh => ("export ", "=", quote(value)),
            Self::Csh => ("setenv ", " ", csh_quoted(value)),
            Self::Fish => ("set -gx ", " ", fish_quoted(value)),
        };
        let mut text = OsString::from(start);
        for word in [name, OsStr::new(middle), &value, OsStr::new(";")] {
            text.push(word);
        }
        text
    }

    /// The command that takes a variable away.
    #[must_use]
    pub fn unset(self, name: &OsStr) -> OsString {
        let mut text = OsString::from(match self {
            Self::Sh => "unset ",
            Self::Csh => "unsetenv ",
            Self::Fish => "set -e ",
        });
        text.push(name);
        text.push(";");
        text
    }
}

/// Quoted for csh, where also a quoted `!` stands for an earlier command.
fn csh_quoted(word: &OsStr) -> OsString {
    let quoted = quote(word).into_vec();
    let escape = |byte: u8| match byte {
        b'!' => b"\\!".to_vec(),
        other => vec![other],
    };
    OsString::from_vec(quoted.into_iter().flat_map(escape).collect())
}

/// Quoted for fish, where a backslash escapes inside quotes.
fn fish_quoted(word: &OsStr) -> OsString {
    let escape = |&byte: &u8| match byte {
        b'\'' | b'\\' => vec![b'\\', byte],
        other => vec![other],
    };
    let inside = word.as_bytes().iter().flat_map(escape);
    let quoted = std::iter::once(b'\'').chain(inside).chain(Some(b'\''));
    OsString::from_vec(quoted.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Where the shell is installed, it must give back what was set.
    #[test]
    fn each_shell_sets_the_value_as_it_is() {
        let value = "it's $HOME `x` \\ a \\\\ \"q\" wow!";
        let (name, value) = (OsStr::new("WEFT_TEST"), OsStr::new(value));
        for (shell, programs) in [
            (Shell::Sh, &["sh", "bash", "zsh"][..]),
            (Shell::Csh, &["tcsh", "csh"]),
            (Shell::Fish, &["fish"]),
        ] {
            let mut script = shell.set(name, value);
            script.push("printenv WEFT_TEST;");
            script.push(shell.unset(name));
            script.push("printenv WEFT_TEST; true");
            for program in programs {
                let Ok(output) = Command::new(program).arg("-c").arg(&script).output() else {
                    continue;
                };
                let mut expected = value.as_bytes().to_vec();
                expected.push(b'\n');
                assert_eq!(output.stdout, expected, "{program}: {output:?}");
            }
        }
    }
}
