// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The hosts that the user named, by `--hosts` or in a file, in the forms of Open MPI
//! (`name slots=N`) and of MPICH (`name:N`).
//!
//! Called by `lib.rs`; gives a list to `placement.rs`. Names are checked here once, as they go into
//! command lines on every host. Sources: mpirun(1) of Open MPI 5, "Host files"; the Hydra manual,
//! "Host files"; RFC 1123 section 2.1 for the letters of a name.

use std::path::Path;

use crate::fault::Fault;

/// One host, named once however often it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Its name, or an IPv4 address.
    pub name: String,
    /// How many ranks it takes, where the user said so.
    pub slots: Option<u32>,
    /// The most ranks it may take (`max_slots=N`), where the user said so.
    pub most: Option<u32>,
}

/// Most ranks on one host: far more than any has processors. Chosen.
const MOST_SLOTS: u32 = 65_536;

/// Reads `A,B:4,C`.
///
/// # Errors
/// `Fault::Usage`, naming the word.
pub fn from_list(text: &str) -> Result<Vec<Host>, Fault> {
    let mut hosts = Vec::new();
    for word in text.split(',') {
        let host = one(&[word.trim()])
            .map_err(|reason| Fault::Usage(format!("--hosts {text}: {reason}")))?;
        add(&mut hosts, host);
    }
    Ok(hosts)
}

/// Reads a host file.
///
/// # Errors
/// `Fault::Usage`, naming the file, the line and the word; `Fault::System` when the file cannot be
/// read.
pub fn from_file(path: &Path) -> Result<Vec<Host>, Fault> {
    let text = std::fs::read_to_string(path).map_err(|source| Fault::System {
        what: format!("--hostfile {} cannot be read", path.display()),
        source,
    })?;
    let hosts = from_text(&text).map_err(|(line, reason)| {
        Fault::Usage(format!(
            "--hostfile {}, line {line}: {reason}",
            path.display()
        ))
    })?;
    if hosts.is_empty() {
        return Err(Fault::Usage(format!(
            "--hostfile {} names no host; write one on each line, as `name slots=4` or `name:4`",
            path.display()
        )));
    }
    Ok(hosts)
}

/// Reads the text of a host file; an error comes with the number of its line, from 1.
fn from_text(text: &str) -> Result<Vec<Host>, (usize, String)> {
    let mut hosts = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        // Open MPI allows blanks around the sign.
        let line = line.replace('=', " = ");
        let mut words: Vec<String> = Vec::new();
        let mut pieces = line.split_whitespace();
        while let Some(piece) = pieces.next() {
            match (piece, words.last_mut()) {
                ("=", Some(last)) => {
                    last.push('=');
                    last.push_str(pieces.next().unwrap_or_default());
                }
                _ => words.push(piece.to_owned()),
            }
        }
        if words.is_empty() {
            continue;
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        add(
            &mut hosts,
            one(&words).map_err(|reason| (index + 1, reason))?,
        );
    }
    Ok(hosts)
}

/// A host that is named again has the slots of both; a bare name then counts as one.
fn add(hosts: &mut Vec<Host>, host: Host) {
    match hosts.iter_mut().find(|one| one.name == host.name) {
        Some(known) => {
            let sum = known
                .slots
                .unwrap_or(1)
                .saturating_add(host.slots.unwrap_or(1));
            known.slots = Some(sum);
            known.most = host.most.or(known.most);
        }
        None => hosts.push(host),
    }
}

/// One host from the words of a line: `name`, `name:N`, `name slots=N max_slots=M`.
fn one(words: &[&str]) -> Result<Host, String> {
    let (first, rest) = words.split_first().ok_or("no host is named")?;
    let (name, count) = match first.split_once(':') {
        Some((_, after)) if after.contains(':') => {
            return Err(format!(
                "`{first}` is an IPv6 address, which MPI launchers mistake for host:count; give it \
                 a name in /etc/hosts and write that"
            ));
        }
        Some((name, count)) => (name, Some(count)),
        None => (*first, None),
    };
    check_name(name)?;
    let mut host = Host {
        name: name.to_owned(),
        slots: count.map(|text| slots(text, first)).transpose()?,
        most: None,
    };
    for word in rest {
        match word.split_once('=') {
            Some(("slots", text)) if host.slots.is_none() => host.slots = Some(slots(text, word)?),
            Some(("max_slots" | "max-slots", text)) => host.most = Some(slots(text, word)?),
            _ => {
                return Err(format!(
                    "`{word}` is not understood; a line is `name`, `name:4` or `name slots=4 \
                     max_slots=8`"
                ));
            }
        }
    }
    match (host.slots, host.most) {
        (Some(slots), Some(most)) if slots > most => Err(format!(
            "host {name} has slots={slots}, more than its max_slots={most}"
        )),
        _ => Ok(host),
    }
}

fn slots(text: &str, word: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(count) if (1..=MOST_SLOTS).contains(&count) => Ok(count),
        _ => Err(format!(
            "`{word}`: the number of ranks is `{text}`; it must be a whole number from 1 to \
             {MOST_SLOTS}"
        )),
    }
}

/// Letters, digits, `.`, `-` and `_`, beginning with none of the signs: the name becomes a word for
/// ssh, which must not be an option.
fn check_name(name: &str) -> Result<(), String> {
    if name.contains('@') {
        return Err(format!(
            "`{name}` names a user; MPI launchers differ in how they take that, so put `User` for \
             this host into ~/.ssh/config"
        ));
    }
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(good)
        && name.len() <= 253
    {
        return Ok(());
    }
    Err(format!(
        "`{name}` is not a host name; it must be letters, digits, `.`, `-` and `_`, at most 253, \
         and begin with a letter or a digit"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, slots: Option<u32>) -> Host {
        Host {
            name: name.into(),
            slots,
            most: None,
        }
    }

    #[test]
    fn a_list_is_read_with_and_without_counts() {
        let found = from_list("a0,b1:4,10.1.2.3").unwrap();
        assert_eq!(
            found,
            [
                host("a0", None),
                host("b1", Some(4)),
                host("10.1.2.3", None)
            ]
        );
    }

    #[test]
    fn a_host_named_again_has_the_slots_of_both() {
        assert_eq!(
            from_list("a,b,a").unwrap(),
            [host("a", Some(2)), host("b", None)]
        );
        assert_eq!(from_text("a:2\na slots=3\n").unwrap(), [host("a", Some(5))]);
    }

    #[test]
    fn both_forms_of_host_files_are_read() {
        let text = "# two racks\n\na0 slots=2  # first\nb1:3\nc-2.rack slots = 4 max-slots=8\nd\n";
        let found = from_text(text).unwrap();
        let mut c = host("c-2.rack", Some(4));
        c.most = Some(8);
        assert_eq!(
            found,
            [host("a0", Some(2)), host("b1", Some(3)), c, host("d", None)]
        );
    }

    #[test]
    fn an_error_names_the_line_and_the_word() {
        for (text, line, word) in [
            ("a\nb slots=0", 2, "slots=0"),
            ("a:x", 1, "a:x"),
            ("a\n\nb cpus=2", 3, "cpus=2"),
            ("a slots=4 max_slots=2", 1, "max_slots=2"),
            ("-oProxyCommand=x", 1, "-oProxyCommand"),
            ("me@a", 1, ".ssh/config"),
            ("fd00::1", 1, "/etc/hosts"),
            ("a:2 slots=3", 1, "slots=3"),
            ("a slots=99999999999", 1, "65536"),
        ] {
            let (number, reason) = from_text(text).unwrap_err();
            assert!(
                number == line && reason.contains(word),
                "{text:?}: {number}: {reason}"
            );
        }
        for bad in ["", "a,,b", "a;b", "$(x)", "a b"] {
            assert!(matches!(from_list(bad), Err(Fault::Usage(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_file_that_names_no_host_or_is_missing_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        assert!(
            from_file(&path)
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
        std::fs::write(&path, "# nobody\n").unwrap();
        assert!(
            from_file(&path)
                .unwrap_err()
                .to_string()
                .contains("names no host")
        );
        std::fs::write(&path, "a\nb slots=no\n").unwrap();
        let text = from_file(&path).unwrap_err().to_string();
        assert!(text.contains("hosts, line 2: `slots=no`"), "{text}");
    }
}
