// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options in the spelling of other launchers: those whose meaning is clear are read as ours, the
//! others are answered in one line with what to write instead, and a misspelled option with the
//! nearest one.
//!
//! Called by `lib.rs` with the words before clap sees them; `launcher_options.rs` is the table.
//! Words behind the program, or behind `--`, stay as they are.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use clap::CommandFactory;

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::launcher_options::{self, Meaning};

/// How alike two names must be for one to be taken for the other, of 1 (Jaro and Winkler's
/// measure). Chosen: `timeot` and `timeout` have 0.97, `hostfile` and `host-timeout` 0.87.
const ALIKE: f64 = 0.88;

/// The words in our spelling. `variable` reads the environment, for `-x NAME`.
///
/// # Errors
/// `Fault::Usage` with the answer to an option that weft run does not take.
pub fn in_ours(
    words: Vec<OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<OsString>, Fault> {
    let own = Own::read();
    let mut reader = Reader {
        words: words.into_iter(),
        found: Vec::new(),
        variable,
    };
    while let Some(word) = reader.words.next() {
        let whole = word.clone();
        let Some(option) = Spelled::of(&whole) else {
            reader.rest(word)?;
            break;
        };
        if let Some(takes_value) = own.takes_value(&option) {
            reader.found.push(own.written(&option, word));
            if takes_value && option.value.is_none() {
                reader.found.extend(reader.words.next());
            }
        } else {
            let meaning =
                launcher_options::meaning(option.name).ok_or_else(|| own.unknown(&option))?;
            reader.translate(&option, meaning)?;
        }
    }
    Ok(reader.found)
}

/// An option as it was written.
struct Spelled<'a> {
    /// With its dashes and without its value.
    written: &'a str,
    name: &'a str,
    /// Any bytes.
    value: Option<&'a OsStr>,
    is_long: bool,
}

impl<'a> Spelled<'a> {
    /// `None` for the program, and for `--`. A name that is not UTF-8 is no option's, and so the
    /// program's.
    fn of(word: &'a OsStr) -> Option<Self> {
        let bytes = word.as_bytes();
        let end = memchr::memchr(b'=', bytes);
        let text = std::str::from_utf8(&bytes[..end.unwrap_or(bytes.len())]).ok()?;
        let rest = text.strip_prefix('-').filter(|rest| !rest.is_empty())?;
        if rest == "-" {
            return None;
        }
        let is_long = rest.starts_with('-');
        let bare = rest.strip_prefix('-').unwrap_or(rest);
        let name = bare;
        let value = end.map(|end| OsStr::from_bytes(&bytes[end + 1..]));
        // -n4
        let count = name.strip_prefix('n').unwrap_or_default();
        let is_count = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
        if !is_long && is_count {
            return Some(Self {
                written: "-n",
                name: "n",
                value: Some(OsStr::new(count)),
                is_long,
            });
        }
        Some(Self {
            written: text,
            name,
            value,
            is_long,
        })
    }
}

/// Our own options: the name of each, and whether a value follows.
struct Own {
    options: Vec<(String, bool)>,
}

impl Own {
    fn read() -> Self {
        let mut command = Arguments::command();
        command.build();
        let named = command.get_arguments().flat_map(|one| {
            let takes_value = one.get_action().takes_values();
            let long = one.get_long().map(str::to_owned);
            let short = one.get_short().map(String::from);
            [long, short]
                .into_iter()
                .flatten()
                .map(move |name| (name, takes_value))
        });
        Self {
            options: named.collect(),
        }
    }

    /// Whether a value belongs to this option of ours; `None` for one that is not ours. MPICH's
    /// -env has two words behind it, our --env one.
    fn takes_value(&self, option: &Spelled<'_>) -> Option<bool> {
        let is_of_hydra = option.name == "env" && !option.is_long;
        let mut own = self.options.iter().filter(|(name, _)| name == option.name);
        own.next()
            .filter(|_| !is_of_hydra)
            .map(|&(_, takes_value)| takes_value)
    }

    /// A long name behind one dash gets its second.
    fn written(&self, option: &Spelled<'_>, word: OsString) -> OsString {
        match (option.is_long, option.name.len()) {
            (false, 2..) => {
                let mut fixed = OsString::from("-");
                fixed.push(word);
                fixed
            }
            (true, 1) => OsStr::from_bytes(&word.as_bytes()[1..]).to_owned(),
            _ => word,
        }
    }

    fn unknown(&self, option: &Spelled<'_>) -> Fault {
        let own = self.options.iter().map(|(name, _)| name.as_str());
        let likeness = |name: &str| strsim::jaro_winkler(name, option.name);
        let theirs = launcher_options::names().map(|name| -> &str { name });
        let nearest = own
            .chain(theirs)
            .filter(|name| name.len() > 1 && likeness(name) >= ALIKE)
            .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
        let suggestion = nearest.map_or_else(
            || "`weft run --help` lists them".to_owned(),
            |name| format!("did you mean --{name}?"),
        );
        Fault::Usage(format!(
            "{} is not an option of weft run; {suggestion}",
            option.written
        ))
    }
}

struct Reader<V> {
    words: std::vec::IntoIter<OsString>,
    found: Vec<OsString>,
    variable: V,
}

impl<V: Fn(&str) -> Option<OsString>> Reader<V> {
    /// The program and everything behind it.
    fn rest(&mut self, first: OsString) -> Result<(), Fault> {
        let separated = first == "--";
        let behind: Vec<OsString> = self.words.by_ref().collect();
        let is_option = |word: &OsString| word.as_bytes().starts_with(b"-");
        let mut pairs = behind.windows(2);
        if !separated && pairs.any(|pair| pair[0] == ":" && is_option(&pair[1])) {
            return Err(Fault::Usage(
                "weft run starts one program, and takes no second one after `:`; write -- before \
                 the program if `:` is a word for it"
                    .into(),
            ));
        }
        self.found.push(first);
        self.found.extend(behind);
        Ok(())
    }

    fn value(&mut self, option: &Spelled<'_>) -> Result<OsString, Fault> {
        if let Some(value) = option.value {
            return Ok(value.to_owned());
        }
        let missing = || Fault::Usage(format!("{} needs a value after it", option.written));
        self.words.next().ok_or_else(missing)
    }

    /// A value that can be text alone.
    fn text(&mut self, option: &Spelled<'_>) -> Result<String, Fault> {
        let value = self.value(option)?;
        value.into_string().map_err(|word| {
            Fault::Usage(format!(
                "{} {word:?}: the value is not UTF-8, and must be; write another one",
                option.written
            ))
        })
    }

    fn push<const N: usize>(&mut self, words: [&OsStr; N]) {
        self.found.extend(words.map(OsStr::to_owned));
    }

    fn set(&mut self, name: &OsStr, value: &OsStr) {
        let pair = [name, value].join(OsStr::new("="));
        self.push(["--env".as_ref(), &pair]);
    }

    fn translate(&mut self, option: &Spelled<'_>, meaning: Meaning) -> Result<(), Fault> {
        match meaning {
            Meaning::Done => {}
            Meaning::Flag(own) => self.push([own.as_ref()]),
            Meaning::Value(own) => {
                let value = self.value(option)?;
                self.push([own.as_ref(), &value]);
            }
            Meaning::Variable => {
                let value = self.value(option)?;
                self.hand_on(option, &value)?;
            }
            Meaning::Variables => {
                let value = self.text(option)?;
                for name in value.split(',').filter(|name| !name.is_empty()) {
                    self.hand_on(option, name.as_ref())?;
                }
            }
            Meaning::Pair => {
                let name = self.value(option)?;
                if name.as_bytes().contains(&b'=') {
                    self.push(["--env".as_ref(), &name]);
                } else {
                    let value = self.value(option)?;
                    self.set(&name, &value);
                }
            }
            Meaning::Parameter => {
                let (name, value) = (self.text(option)?, self.value(option)?);
                self.set(format!("OMPI_MCA_{name}").as_ref(), &value);
            }
            Meaning::Map => self.read(option, launcher_options::map)?,
            Meaning::Bind => self.read(option, launcher_options::bind)?,
            Meaning::Output => self.read(option, launcher_options::output)?,
            Meaning::Answer(text) => {
                return Err(Fault::Usage(format!("{}: {text}", option.written)));
            }
        }
        Ok(())
    }

    fn read(
        &mut self,
        option: &Spelled<'_>,
        ours: fn(&str) -> Result<Vec<String>, Fault>,
    ) -> Result<(), Fault> {
        let words = ours(&self.text(option)?)?;
        self.found.extend(words.into_iter().map(OsString::from));
        Ok(())
    }

    /// `NAME=VALUE` as it is, `NAME` with the value that it has here.
    fn hand_on(&mut self, option: &Spelled<'_>, word: &OsStr) -> Result<(), Fault> {
        if word.as_bytes().contains(&b'=') {
            self.push(["--env".as_ref(), word]);
            return Ok(());
        }
        let written = option.written;
        let Some(name) = word.to_str() else {
            return Err(Fault::Usage(format!(
                "{written} {word:?}: the name of a variable must be UTF-8; only its value may be \
                 any bytes"
            )));
        };
        let value = (self.variable)(name).ok_or_else(|| {
            Fault::Usage(format!(
                "{written} {name}: {name} is not set here; write {written} {name}=VALUE"
            ))
        })?;
        self.set(word, &value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(line: &str) -> Result<String, String> {
        let words = line.split_whitespace().map(OsString::from).collect();
        let set = |name: &str| (name == "HOME").then(|| OsString::from("/h"));
        let found = in_ours(words, set).map_err(|fault| fault.to_string())?;
        let words: Vec<String> = found
            .into_iter()
            .map(|one| one.into_string().unwrap())
            .collect();
        Ok(words.join(" "))
    }

    #[test]
    fn the_spelling_of_other_launchers_is_read_as_ours() {
        for (theirs, own) in [
            ("-np 4 ./a", "--np 4 ./a"),
            ("--np 4 ./a", "--np 4 ./a"),
            ("--n 4 ./a", "-n 4 ./a"),
            ("-n4 -l ./a", "-n4 --label ./a"),
            ("-c 2 -H a,b ./a", "-n 2 --hosts a,b ./a"),
            ("-host a:2 ./a", "--hosts a:2 ./a"),
            ("--host=a:2 ./a", "--hosts a:2 ./a"),
            ("-hosts a,b -ppn 2 ./a", "--hosts a,b --ppn 2 ./a"),
            ("-hostfile f ./a", "--hostfile f ./a"),
            ("-machinefile f -npernode 3 ./a", "--hostfile f --ppn 3 ./a"),
            ("-x A=1 -x HOME ./a", "--env A=1 --env HOME=/h ./a"),
            ("-genv A 1 -env B 2 -genvall ./a", "--env A=1 --env B=2 ./a"),
            ("--env A=1 ./a", "--env A=1 ./a"),
            ("-genvlist HOME ./a", "--env HOME=/h ./a"),
            (
                "--mca btl_base_verbose 9 ./a",
                "--env OMPI_MCA_btl_base_verbose=9 ./a",
            ),
            (
                "--oversubscribe -wdir /t ./a",
                "--oversubscribe --wdir /t ./a",
            ),
            (
                "--map-by ppr:2:node --bind-to none a",
                "--ppn 2 --bind none a",
            ),
            ("-bind-to core -map-by core a", "--bind core a"),
            ("--report-bindings --tag-output a", "--label a"),
            (
                "--timeout 5 -quiet a -np 3 -x",
                "--timeout 5 --quiet a -np 3 -x",
            ),
            ("-n 2 -- a : -n 3 b", "-n 2 -- a : -n 3 b"),
            ("--json -np 2 a", "--json -np 2 a"),
        ] {
            assert_eq!(ours(theirs).unwrap(), own, "{theirs}");
        }
    }

    #[test]
    fn values_that_are_no_text_stay_as_they_are_and_hide_no_option_behind_them() {
        let words = |line: &[u8]| -> Vec<OsString> {
            let words = line.split(|&byte| byte == b' ');
            words
                .map(|word| OsStr::from_bytes(word).to_owned())
                .collect()
        };
        let set = |_: &str| Some(OsStr::from_bytes(b"\xe9").to_owned());
        for (theirs, own) in [
            (
                &b"-wdir /\xe9 -np 2 ./a"[..],
                &b"--wdir /\xe9 --np 2 ./a"[..],
            ),
            (b"--wdir=/\xe9 -l a", b"--wdir=/\xe9 --label a"),
            (
                b"-x A=\xe9 -x B ./\xe9 -l",
                b"--env A=\xe9 --env B=\xe9 ./\xe9 -l",
            ),
            (
                b"-genv A \xe9 -machinefile \xe9 a",
                b"--env A=\xe9 --hostfile \xe9 a",
            ),
            (b"--mca a \xe9 a", b"--env OMPI_MCA_a=\xe9 a"),
        ] {
            assert_eq!(in_ours(words(theirs), set).unwrap(), words(own));
        }
        let refusal = in_ours(words(b"--map-by \xe9 a"), set)
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains(r#"--map-by "\xE9": the value is not UTF-8"#),
            "{refusal}"
        );
    }

    #[test]
    fn what_weft_run_has_not_is_answered_in_one_line() {
        for (line, words) in [
            ("--map-by node a", "--hosts a:2,b:2"),
            ("--rank-by slot a", "--rank-by: weft run fills"),
            ("--bind-to socket a", "--bind core"),
            ("-x NOT_SET a", "-x NOT_SET=VALUE"),
            ("-x", "-x needs a value"),
            ("-genvnone a", "env -i"),
            ("--version", "weft --version"),
            ("-n 1 a : -n 2 b", "one program"),
            ("--timeot 5 a", "did you mean --timeout?"),
            ("--hostfle f a", "did you mean --hostfile?"),
            ("-hotsfile f a", "did you mean --hostfile?"),
            ("--oversubscibe a", "did you mean --oversubscribe?"),
            ("--nonsense a", "`weft run --help` lists them"),
            ("-zz a", "-zz is not an option of weft run"),
        ] {
            let text = ours(line).unwrap_err();
            assert!(
                text.contains(words) && !text.contains('\n'),
                "{line}: {text}"
            );
        }
    }
}
