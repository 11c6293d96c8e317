// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The words that mount(8) gives a helper for a line of /etc/fstab: `-o` with options between
//! commas. They become options of the command line. [`crate::main`] calls it.

use std::ffi::OsString;

use crate::mount_error::MountError;

/// Words of mount(8) and systemd that a mount need not do anything about: when and by whom it is
/// mounted, and what this mount does anyway (`nosuid`, `nodev`, `noatime`).
const OF_OTHERS: [&str; 16] = [
    "rw", "defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail",
    "_netdev", "nosuid", "nodev", "noatime", "relatime", "exec",
];
/// Words with another name on the command line.
const NAMES: [(&str, &str); 3] = [
    ("ro", "read-only"),
    ("allow_other", "allow-other"),
    ("allow_root", "allow-root"),
];

/// The words of a command line with what stands behind each `-o` as options of their own.
///
/// # Errors
/// `-o` without a word behind it; a word of it that is not UTF-8, or has no name.
pub fn expanded(words: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, MountError> {
    let words: Vec<OsString> = words.collect();
    if !words.iter().skip(1).any(is_list) {
        return Ok(words);
    }
    let mut expanded = Vec::new();
    let mut words = words.into_iter();
    expanded.extend(words.next());
    while let Some(word) = words.next() {
        if !is_list(&word) {
            // mount(8): no entry in mtab, sloppy, verbose. The type is this program's.
            match word.to_str() {
                Some("-n" | "-s" | "-v") => {}
                Some("-t") => drop(words.next()),
                _ => expanded.push(word),
            }
            continue;
        }
        let list = match word.to_str() {
            Some("-o") => words.next(),
            Some(joined) => Some(joined["-o".len()..].into()),
            None => Some(word),
        };
        let list = list.ok_or_else(|| usage("-o needs options after it, as -o ro,allow-other"))?;
        let list = list
            .to_str()
            .ok_or_else(|| usage(&format!("-o {list:?} is not UTF-8")))?;
        for option in list.split(',').filter(|option| !option.is_empty()) {
            expanded.extend(as_option(option)?);
        }
    }
    Ok(expanded)
}

fn is_list(word: &OsString) -> bool {
    word.as_encoded_bytes().starts_with(b"-o")
}

/// One word as an option; nothing where it is for others.
fn as_option(word: &str) -> Result<Option<OsString>, MountError> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    if name.is_empty() || name.starts_with('-') {
        return Err(usage(&format!(
            "-o has the word `{word}`; write names of options without dashes, as read-only or \
             region=us-east-1"
        )));
    }
    let is_for_others = OF_OTHERS.contains(&name) || name.starts_with("x-") || name == "comment";
    if is_for_others {
        return Ok(None);
    }
    let known = NAMES.iter().find(|(other, _)| *other == name);
    let name = known.map_or(name, |(_, name)| name);
    let value = value.map_or(String::new(), |value| format!("={value}"));
    Ok(Some(format!("--{name}{value}").into()))
}

fn usage(text: &str) -> MountError {
    MountError::Usage(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Result<Vec<String>, String> {
        let words = words.iter().map(OsString::from);
        let expanded = expanded(words).map_err(|error| error.to_string())?;
        let text = |word: OsString| word.into_string().unwrap();
        Ok(expanded.into_iter().map(text).collect())
    }

    #[test]
    fn words_behind_o_become_options_and_those_for_others_are_left_out() {
        // As mount(8) calls /sbin/mount.weft.
        let called = [
            "mount.weft",
            "s3://data/p",
            "/mnt",
            "-n",
            "-v",
            "-t",
            "weft",
            "-o",
            "rw,_netdev,nofail,x-systemd.automount,ro,allow_other,uid=7,region=eu-north-1",
        ];
        let wanted = [
            "mount.weft",
            "s3://data/p",
            "/mnt",
            "--read-only",
            "--allow-other",
            "--uid=7",
            "--region=eu-north-1",
        ];
        assert_eq!(of(&called).unwrap(), wanted);
        let joined = ["weft-mount", "-oro,metadata-ttl=5", "data", "/mnt"];
        let wanted = [
            "weft-mount",
            "--read-only",
            "--metadata-ttl=5",
            "data",
            "/mnt",
        ];
        assert_eq!(of(&joined).unwrap(), wanted);
        // Without -o nothing changes.
        let plain = ["weft-mount", "data", "/mnt", "-t", "x"];
        assert_eq!(of(&plain).unwrap(), plain);
    }

    #[test]
    fn lists_that_are_none_are_refused_with_what_to_write() {
        for (words, said) in [
            (
                &["weft-mount", "data", "/mnt", "-o"][..],
                "needs options after it",
            ),
            (
                &["weft-mount", "data", "/mnt", "-o", "--read-only"],
                "without dashes",
            ),
            (
                &["weft-mount", "data", "/mnt", "-o", "ro,=5"],
                "has the word `=5`",
            ),
        ] {
            let refused = of(words).unwrap_err();
            assert!(refused.contains(said), "{words:?}: {refused}");
        }
    }
}
