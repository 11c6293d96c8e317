// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether the FI_WEFT_* variables of the environment are right, by the rows of
//! [`weft_facts::parameter`].
//!
//! Called by `lib.rs` and `info.rs`.

use std::path::Path;

use weft_facts::parameter::{self, Parameter, Values};

use crate::check::{Check, Status};

/// Whether `text` is one of the parameter's values; `known` are the interfaces' names and
/// addresses.
fn allows(parameter: &Parameter, text: &str, known: &[String]) -> bool {
    match parameter.values {
        Values::Number(range) => range.parse(text).is_some(),
        Values::Interfaces(most) => {
            let mut words = text.split(',').map(str::trim);
            words.clone().count() <= most && words.all(|word| known.iter().any(|one| one == word))
        }
        Values::Words(words) => words.contains(&text.trim()),
        Values::Folder => Path::new(text).is_absolute() && Path::new(text).is_dir(),
        Values::Key => weft_seal::JobKey::parse(text).is_ok(),
        Values::KeyFile => weft_seal::key_file::read(Path::new(text)).is_ok(),
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
pub fn checks(environment: &[(String, String)], known: &[String]) -> Vec<Check> {
    let set: Vec<&(String, String)> = environment
        .iter()
        .filter(|(name, _)| name.starts_with("FI_WEFT_"))
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
            .map(|(name, value)| format!("{name}={}", shown(name, value)))
            .collect::<Vec<_>>()
            .join(" "),
    };
    vec![Check::ok(
        "parameters",
        value,
        "FI_WEFT_* variables change the provider's defaults, which need no tuning",
    )]
}

/// What may be shown of a value: of a key only that it is one.
pub(crate) fn shown<'a>(name: &str, value: &'a str) -> &'a str {
    if Parameter::find(name).is_some_and(Parameter::is_secret) {
        "(set, not shown)"
    } else {
        value
    }
}

fn judge(name: &str, value: &str, known: &[String]) -> Option<Check> {
    let Some(parameter) = Parameter::find(name) else {
        let names = parameter::ALL
            .map(|parameter| parameter.variable)
            .join(", ");
        let check = Check::ok(
            name,
            format!("\"{value}\", but there is no such parameter"),
            "an unknown parameter is ignored",
        );
        return Some(check.but(Status::Warn, format!("unset {name}; there are {names}")));
    };
    if allows(parameter, value, known) {
        return None;
    }
    let wrong = match parameter.values {
        Values::Key => weft_seal::JobKey::parse(value)
            .err()
            .map(|error| error.to_string()),
        Values::KeyFile => weft_seal::key_file::read(Path::new(value))
            .err()
            .map(|error| error.to_string()),
        _ => None,
    };
    let wrong = wrong.unwrap_or_else(|| format!("it must be {}", parameter.values.describe()));
    let why = "the provider refuses to open with a wrong parameter";
    let check = Check::ok(
        name,
        format!("\"{}\", but {wrong}", shown(name, value)),
        why,
    );
    let choice = if matches!(parameter.values, Values::Interfaces(_)) {
        format!(" (here: {})", known.join(", "))
    } else {
        String::new()
    };
    Some(check.but(Status::Fail, format!("correct or unset {name}{choice}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn what_is_wrong_with_a_key_file_is_said() {
        use std::os::unix::fs::PermissionsExt;
        let file = std::env::temp_dir().join(format!("weft-doctor-key-{}", std::process::id()));
        let said = |path: &Path| {
            let path = path.to_string_lossy();
            let check = checks(&pairs(&[("FI_WEFT_JOB_KEY_FILE", &path)]), &[]).remove(0);
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
        let good = checks(&pairs(&[("FI_WEFT_JOB_KEY", &key)]), &[]).remove(0);
        assert_eq!(good.status, Status::Ok);
        let bad = checks(&pairs(&[("FI_WEFT_JOB_KEY", &key[1..])]), &[]).remove(0);
        assert_eq!(bad.status, Status::Fail);
        for check in [good, bad] {
            assert!(check.value.contains("set, not shown"), "{}", check.value);
            assert!(!check.value.contains(&key[1..9]) && !check.fix.contains(&key[1..9]));
        }
    }

    #[test]
    fn unknown_parameters_warn_and_wrong_values_fail() {
        let known = ["lo".to_owned(), "127.0.0.1".to_owned()];
        let check = |name: &str, value: &str| {
            checks(&pairs(&[("PATH", "x"), (name, value)]), &known).remove(0)
        };
        let unknown = check("FI_WEFT_INJECTSIZE", "64");
        unknown.assert_wrong(Status::Warn, "unset FI_WEFT_INJECTSIZE; there are");
        assert!(unknown.fix.contains("FI_WEFT_INJECT_SIZE"), "{unknown:?}");
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
