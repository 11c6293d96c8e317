// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the FI_WEFT_* variables of the environment are right, by the rows of
//! [`weft_facts::parameter`].
//!
//! Called by `lib.rs` and `info.rs`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use weft_facts::parameter::{self, Parameter, Values};
use weft_job::nearest::nearest;
use weft_job::shell;

use crate::check::{Check, Status};

/// What all of them begin with.
const PREFIX: &str = "FI_WEFT_";

/// What is shown in place of a key.
const NOT_SHOWN: &str = "(set, not shown)";

/// Whether `value` is one of the parameter's values; `known` are the interfaces' names and
/// addresses. Paths may have any bytes; all other values are text.
fn allows(parameter: &Parameter, value: &OsStr, known: &[String]) -> bool {
    let path = Path::new(value);
    let Some(text) = value.to_str() else {
        return match parameter.values {
            Values::Folder => path.is_absolute() && path.is_dir(),
            Values::KeyFile => weft_seal::key_file::read(path).is_ok(),
            _ => false,
        };
    };
    match parameter.values {
        Values::Number(range) => range.parse(text).is_some(),
        Values::Interfaces(most) => {
            let mut words = text.split(',').map(str::trim);
            words.clone().count() <= most && words.all(|word| known.iter().any(|one| one == word))
        }
        Values::Words(words) => words.contains(&text.trim()),
        Values::Folder => path.is_absolute() && path.is_dir(),
        Values::Key => weft_seal::JobKey::parse(text).is_ok(),
        Values::KeyFile => weft_seal::key_file::read(path).is_ok(),
        Values::Socket => true,
    }
}

/// The names and addresses that FI_WEFT_IFACE may be.
#[must_use]
pub fn known_interfaces() -> Vec<String> {
    let all = weft_os::interface::addresses().unwrap_or_default();
    all.into_iter()
        .flat_map(|entry| [entry.name, entry.address.to_string()])
        .collect()
}

/// One check for each FI_WEFT_* variable that is wrong, or a single good one.
#[must_use]
pub fn checks(environment: &[(OsString, OsString)], known: &[String]) -> Vec<Check> {
    let set: Vec<&(OsString, OsString)> = environment
        .iter()
        .filter(|(name, _)| name.as_bytes().starts_with(PREFIX.as_bytes()))
        .collect();
    let bad: Vec<Check> = set
        .iter()
        .filter_map(|(name, value)| judge(name, value, known))
        .collect();
    if !bad.is_empty() {
        return bad;
    }
    let value = match set.as_slice() {
        [] => "none set".to_owned(),
        some => some
            .iter()
            .map(|(name, value)| format!("{}={}", escaped(name), shown(name, value)))
            .collect::<Vec<_>>()
            .join(" "),
    };
    vec![Check::ok(
        "parameters",
        value,
        "FI_WEFT_* variables change the provider's defaults, which need no tuning",
    )]
}

/// The parameter of this name.
fn find(name: &OsStr) -> Option<&'static Parameter> {
    name.to_str().and_then(Parameter::find)
}

/// What may be shown of a value: of a key only that it is one. What is not UTF-8 has quotes and
/// escapes.
pub(crate) fn shown(name: &OsStr, value: &OsStr) -> String {
    if find(name).is_some_and(Parameter::is_secret) {
        NOT_SHOWN.to_owned()
    } else {
        escaped(value)
    }
}

/// Text as it is, other bytes in quotes and with escapes.
fn escaped(word: &OsStr) -> String {
    word.to_str()
        .map_or_else(|| format!("{word:?}"), str::to_owned)
}

fn judge(name: &OsStr, value: &OsStr, known: &[String]) -> Option<Check> {
    let Some(parameter) = find(name) else {
        return Some(unknown(name, value));
    };
    if allows(parameter, value, known) {
        return None;
    }
    let wrong = match (parameter.values, value.to_str()) {
        (Values::KeyFile, _) => weft_seal::key_file::read(Path::new(value))
            .err()
            .map(|error| error.to_string()),
        (Values::Key, Some(text)) => weft_seal::JobKey::parse(text)
            .err()
            .map(|error| error.to_string()),
        (Values::Folder, _) | (_, Some(_)) => None,
        (values, None) => Some(format!("it is not UTF-8; it must be {}", values.describe())),
    };
    let wrong = wrong.unwrap_or_else(|| format!("it must be {}", parameter.values.describe()));
    let (status, why) = match parameter.values {
        Values::Socket => (
            Status::Warn,
            "the provider replaces what is not UTF-8, so its reports reach nobody",
        ),
        _ => (
            Status::Fail,
            "the provider refuses to open with a wrong parameter",
        ),
    };
    let name = parameter.variable;
    let value = if parameter.is_secret() {
        format!("\"{NOT_SHOWN}\"")
    } else {
        format!("{value:?}")
    };
    let check = Check::ok(name, format!("{value}, but {wrong}"), why);
    let choice = if matches!(parameter.values, Values::Interfaces(_)) {
        format!(" (here: {})", known.join(", "))
    } else {
        String::new()
    };
    Some(check.but(status, format!("correct or unset {name}{choice}")))
}

/// A variable that no parameter reads. It may be a misspelled key, which is not shown either.
fn unknown(name: &OsStr, value: &OsStr) -> Check {
    let text = name.to_str().and_then(|text| text.strip_prefix(PREFIX));
    // Without what all begin with: it would make any two names alike.
    let ends = || parameter::ALL.map(|one| one.variable.trim_start_matches(PREFIX));
    let meant = text.and_then(|text| nearest(text, ends()));
    let meant = meant.and_then(|end| Parameter::find(&format!("{PREFIX}{end}")));
    let is_key = |value: &str| weft_seal::JobKey::parse(value).is_ok();
    let is_secret = meant.is_some_and(Parameter::is_secret) || value.to_str().is_some_and(is_key);
    let value = if is_secret {
        format!("\"{NOT_SHOWN}\"")
    } else {
        format!("{value:?}")
    };
    let wrong = match text {
        Some(_) => "there is no such parameter",
        None => "the name is not UTF-8, and there is no such parameter",
    };
    let check = Check::ok(
        &escaped(name),
        format!("{value}, but {wrong}"),
        "an unknown parameter is ignored",
    );
    let advice = meant.map_or_else(
        || {
            let names = parameter::ALL.map(|one| one.variable).join(", ");
            format!("there are {names}")
        },
        |meant| format!("did you mean {}?", meant.variable),
    );
    check.but(Status::Warn, format!("{}; {advice}", without(name)))
}

/// How to be without a variable: shells unset only what could be a variable of theirs.
fn without(name: &OsStr) -> String {
    let could_be = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let written = shell::quote_as_text(name);
    if name.as_bytes().iter().all(could_be) {
        format!("unset {written}")
    } else {
        format!("start programs without it: env -u {written} PROGRAM")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs<W: AsRef<OsStr>>(list: &[(W, W)]) -> Vec<(OsString, OsString)> {
        list.iter()
            .map(|(name, value)| (name.as_ref().into(), value.as_ref().into()))
            .collect()
    }

    fn check_of_bytes(name: &[u8], value: &[u8]) -> Check {
        let pair = (OsStr::from_bytes(name), OsStr::from_bytes(value));
        checks(&pairs(&[pair]), &[]).remove(0)
    }

    #[test]
    fn what_is_wrong_with_a_key_file_is_said() {
        use std::os::unix::fs::PermissionsExt;
        let file = std::env::temp_dir().join(format!("weft-doctor-key-{}", std::process::id()));
        let said = |path: &Path| {
            let path = path.to_string_lossy();
            let check = checks(&pairs(&[("FI_WEFT_JOB_KEY_FILE", &*path)]), &[]).remove(0);
            check.assert_wrong(Status::Fail, "correct or unset FI_WEFT_JOB_KEY_FILE");
            check.value
        };
        assert!(
            said(&file).contains("cannot be read: No such file"),
            "{}",
            said(&file)
        );
        std::fs::write(&file, "0123456789abcdef".repeat(4)).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let open = said(&file);
        std::fs::write(&file, "short").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let short = said(&file);
        std::fs::remove_file(&file).unwrap();
        assert!(open.contains("chmod 600"), "{open}");
        assert!(short.contains("5 characters"), "{short}");
    }

    #[test]
    fn a_key_is_told_to_be_set_and_never_shown() {
        let key = "0123456789abcdef".repeat(4);
        let good = checks(&pairs(&[("FI_WEFT_JOB_KEY", &*key)]), &[]).remove(0);
        assert_eq!(good.status, Status::Ok);
        let bad = checks(&pairs(&[("FI_WEFT_JOB_KEY", &key[1..])]), &[]).remove(0);
        assert_eq!(bad.status, Status::Fail);
        for check in [good, bad] {
            assert!(check.value.contains("set, not shown"), "{}", check.value);
            assert!(!check.value.contains(&key[1..9]) && !check.fix.contains(&key[1..9]));
        }
    }

    #[test]
    fn a_key_under_a_misspelled_name_is_not_shown() {
        let key = "0123456789abcdef".repeat(4);
        for (name, value) in [("FI_WEFT_JOBKEY", "secret"), ("FI_WEFT_X", &key)] {
            let check = checks(&pairs(&[(name, value)]), &[]).remove(0);
            assert_eq!(check.status, Status::Warn);
            assert!(check.value.contains("set, not shown"), "{check:?}");
            assert!(!check.value.contains(value), "{check:?}");
        }
    }

    #[test]
    fn values_that_are_not_utf8_are_shown_with_escapes() {
        let number = check_of_bytes(b"FI_WEFT_DEAD_AFTER", b"5\xe9");
        number.assert_wrong(Status::Fail, "correct or unset FI_WEFT_DEAD_AFTER");
        let said = r#""5\xE9", but it is not UTF-8; it must be a number of seconds from 1 to 3600"#;
        assert_eq!(number.value, said);
        let key = check_of_bytes(b"FI_WEFT_JOB_KEY", b"secret\xe9");
        key.assert_wrong(Status::Fail, "correct or unset FI_WEFT_JOB_KEY");
        assert!(key.value.contains("but it is not UTF-8"), "{key:?}");
        assert!(!key.value.contains("secret"), "{key:?}");
        let socket = check_of_bytes(b"FI_WEFT_REPORT", b"a\xe9");
        socket.assert_wrong(Status::Warn, "correct or unset FI_WEFT_REPORT");
        let file = check_of_bytes(b"FI_WEFT_JOB_KEY_FILE", b"/none\xe9");
        file.assert_wrong(Status::Fail, "correct or unset FI_WEFT_JOB_KEY_FILE");
        assert!(file.value.contains("No such file"), "{file:?}");
    }

    #[test]
    fn a_folder_may_have_any_bytes() {
        let mut path = std::env::temp_dir().into_os_string();
        path.push(OsStr::from_bytes(b"/weft-doctor-caf\xe9-"));
        path.push(std::process::id().to_string());
        let variable = OsStr::new("FI_WEFT_REGION_DIR");
        let judged = || checks(&pairs(&[(variable, &*path)]), &[]).remove(0);
        let missing = judged();
        std::fs::create_dir(&path).unwrap();
        let there = judged();
        std::fs::remove_dir(&path).unwrap();
        assert_eq!(missing.status, Status::Fail);
        assert!(missing.value.contains(r"caf\xE9-"), "{missing:?}");
        assert!(!missing.value.contains("UTF-8"), "{missing:?}");
        assert_eq!(there.status, Status::Ok);
        assert!(there.value.contains(r"caf\xE9-"), "{there:?}");
    }

    #[test]
    fn names_that_no_shell_unsets_are_left_out_by_env() {
        let odd = check_of_bytes(b"FI_WEFT_IFAC\xc9", b"lo");
        assert_eq!(odd.name, r#""FI_WEFT_IFAC\xC9""#);
        assert!(odd.value.starts_with(r#""lo", but the name is not UTF-8"#));
        odd.assert_wrong(
            Status::Warn,
            r"env -u $'FI_WEFT_IFAC\311' PROGRAM; there are",
        );
        let dashed = check_of_bytes(b"FI_WEFT_DEAD-AFTER", b"5");
        let remedy = "env -u FI_WEFT_DEAD-AFTER PROGRAM; did you mean FI_WEFT_DEAD_AFTER?";
        dashed.assert_wrong(Status::Warn, remedy);
    }

    #[test]
    fn unknown_parameters_warn_and_wrong_values_fail() {
        let known = ["lo".to_owned(), "127.0.0.1".to_owned()];
        let check = |name: &str, value: &str| {
            checks(&pairs(&[("PATH", "x"), (name, value)]), &known).remove(0)
        };
        let unknown = check("FI_WEFT_INJECTSIZE", "64");
        let remedy = "unset FI_WEFT_INJECTSIZE; did you mean FI_WEFT_INJECT_SIZE?";
        unknown.assert_wrong(Status::Warn, remedy);
        for word in ["FI_WEFT_X", "FI_WEFT_"] {
            let remedy = format!("unset {word}; there are FI_WEFT_DEAD_AFTER, FI_WEFT_ENCRYPT, ");
            check(word, "1").assert_wrong(Status::Warn, &remedy);
        }
        for bad in ["63", "65537", "abc", ""] {
            assert_eq!(
                check("FI_WEFT_INJECT_SIZE", bad).status,
                Status::Fail,
                "{bad}"
            );
        }
        assert_eq!(check("FI_WEFT_INJECT_SIZE", "64").status, Status::Ok);
        assert_eq!(check("FI_WEFT_IFACE", "lo").status, Status::Ok);
        assert_eq!(check("FI_WEFT_IFACE", "lo, 127.0.0.1").status, Status::Ok);
        for bad in ["lo,eth9", "lo,", "lo,lo,lo,lo,lo"] {
            let remedy = "correct or unset FI_WEFT_IFACE (here: lo, 127.0.0.1)";
            check("FI_WEFT_IFACE", bad).assert_wrong(Status::Fail, remedy);
        }
        assert_eq!(check("FI_WEFT_SINGLE_COPY", "never").status, Status::Ok);
        assert_eq!(check("FI_WEFT_SINGLE_COPY", "no").status, Status::Fail);
        assert_eq!(check("FI_WEFT_REGION_DIR", "/").status, Status::Ok);
        assert_eq!(check("FI_WEFT_REGION_DIR", "relative").status, Status::Fail);
        for (good, bad) in [("FI_WEFT_ENCRYPT", "1"), ("FI_WEFT_TRUST_NETWORK", "0")]
            .map(|(name, value)| (check(name, value), check(name, "yes")))
        {
            assert_eq!((good.status, bad.status), (Status::Ok, Status::Fail));
        }
        assert_eq!(
            checks(&pairs(&[("PATH", "x")]), &known)[0].value,
            "none set"
        );
    }
}
