// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The FI_WEFT_* parameters: what they are set to, and what that means here. Their names, values
//! and defaults are the rows of [`weft_facts::parameter`].
//!
//! prov_ini announces them, so that `fi_info -e` lists them; info and endpoint read them. They are
//! announced as strings, because libfabric's own number parser takes "abc" for 0. Source:
//! fi_provider(3).

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use weft_fabric_sys::provider::{FI_PARAM_STRING, FiProvider};
use weft_facts::parameter::{self, Parameter, Range};
use weft_shm::SingleCopy;
use weft_udp::seal::trust::WAYS_OUT;
use weft_udp::seal::{JobKey, Trust};

use crate::host::{host, provider};
use crate::interfaces::Interfaces;
use crate::report;

/// How remotes shall be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteChoice {
    /// By shared memory on this host, by datagrams beyond it.
    #[default]
    Auto,
    /// All by shared memory.
    SharedMemory,
    /// All by datagrams.
    Datagrams,
}

/// The settings of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Longest message of an inject call in bytes.
    pub inject_size_bytes: usize,
    /// The network interfaces to use. If the application names no address, an endpoint gets that of
    /// the first one.
    pub interfaces: Interfaces,
    /// Whether large messages may be fetched from the sender's memory.
    pub single_copy: SingleCopy,
    /// Where files for shared regions go; `None` for none.
    pub region_directory: Option<PathBuf>,
    /// Which remotes are reached through shared memory.
    pub route: RouteChoice,
    /// How long a remote on another host may be silent while an answer from it is expected.
    pub dead_after: Duration,
    /// The abstract unix datagram socket to which each endpoint reports what it has carried; `None`
    /// for no report.
    pub report: Option<String>,
    /// Which processes on other hosts are trusted.
    pub trust: Trust,
}

/// The values of FI_WEFT_SINGLE_COPY.
const SINGLE_COPY_WORDS: [(&str, SingleCopy); 3] = [
    ("auto", SingleCopy::Auto),
    ("always", SingleCopy::Always),
    ("never", SingleCopy::Never),
];

/// The values of FI_WEFT_ROUTE.
const ROUTE_WORDS: [(&str, RouteChoice); 3] = [
    ("auto", RouteChoice::Auto),
    ("shm", RouteChoice::SharedMemory),
    ("srd", RouteChoice::Datagrams),
];

/// The values of FI_WEFT_TRUST_NETWORK and FI_WEFT_ENCRYPT.
const YES_OR_NO: [(&str, bool); 2] = [("0", false), ("1", true)];

/// Announces all parameters to libfabric, except the key, because libfabric logs the values that it
/// reads. Setup.
pub fn define(provider: *const FiProvider) {
    for parameter in parameter::ALL.into_iter().filter(|one| !one.is_secret()) {
        define_one(provider, parameter);
    }
}

fn define_one(provider: *const FiProvider, parameter: &Parameter) {
    let (values, default) = (parameter.values.describe(), parameter.default);
    let help = format!("{}: {values} (default: {default})", parameter.meaning);
    let (Some(define), Ok(help)) = (host().param_define, CString::new(help)) else {
        return;
    };
    // SAFETY: the provider structure and the strings are valid C; the format takes exactly one C
    // string.
    let code = unsafe {
        define(
            provider,
            parameter.key.as_ptr(),
            FI_PARAM_STRING,
            c"%s".as_ptr(),
            help.as_ptr(),
        )
    };
    if code != 0 {
        report::line(&format!(
            "libfabric refused the parameter {} with error {code}",
            parameter.variable
        ));
    }
}

/// The settings, read on the first call. `None` if one is out of range; then stderr says which,
/// once.
pub fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    SETTINGS
        .get_or_init(|| read().inspect_err(|Refused(why)| report::line(why)).ok())
        .as_ref()
}

/// Why a parameter is refused: a sentence with the variable, its value, what it must be, and the
/// fix.
#[derive(Debug, PartialEq, Eq)]
struct Refused(String);

impl Refused {
    /// What is wrong with a value, in words to follow "but".
    fn new(parameter: &Parameter, text: &str, wrong: impl fmt::Display) -> Self {
        let name = parameter.variable;
        Self(format!(
            "{name} is \"{text}\", but {wrong}; correct or unset {name}"
        ))
    }

    /// A value that is none of the parameter's.
    fn not_one(parameter: &Parameter, text: &str) -> Self {
        let values = parameter.values.describe();
        Self::new(parameter, text, format_args!("must be {values}"))
    }
}

fn read() -> Result<Settings, Refused> {
    let interfaces = text(&parameter::INTERFACE).map(|text| parse_interfaces(&text));
    let region_directory = value(&parameter::REGION_DIRECTORY).map(|path| parse_directory(&path));
    let dead_after_s = number(&parameter::DEAD_AFTER, &parameter::DEAD_AFTER_S)?;
    let inject_size_bytes = number(&parameter::INJECT_SIZE, &parameter::INJECT_SIZE_BYTES)?;
    let route = word(&parameter::ROUTE, &ROUTE_WORDS)?.unwrap_or_default();
    let trust = read_trust()?;
    check_route(route, &trust)?;
    Ok(Settings {
        inject_size_bytes: inject_size_bytes as usize,
        interfaces: interfaces.transpose()?.unwrap_or_default(),
        single_copy: word(&parameter::SINGLE_COPY, &SINGLE_COPY_WORDS)?.unwrap_or_default(),
        region_directory: region_directory.transpose()?,
        route,
        dead_after: Duration::from_secs(dead_after_s),
        report: text(&parameter::REPORT),
        trust,
    })
}

/// FI_WEFT_ROUTE=srd needs a key or trust in the network. Says so here, before a job starts that
/// could send nothing.
fn check_route(route: RouteChoice, trust: &Trust) -> Result<(), Refused> {
    if route == RouteChoice::Datagrams && !trust.reaches_hosts() {
        let name = parameter::ROUTE.variable;
        return Err(Refused(format!(
            "{name} is \"srd\", which sends everything by datagrams, but there is no job key. \
             {WAYS_OUT} Or unset {name}."
        )));
    }
    Ok(())
}

fn read_trust() -> Result<Trust, Refused> {
    let job_key = std::env::var_os(parameter::JOB_KEY.variable)
        .map(|text| parse_job_key(&text.to_string_lossy()))
        .transpose()?;
    let trust = Trust {
        job_key,
        job_key_file: value(&parameter::JOB_KEY_FILE).map(PathBuf::from),
        encrypt: word(&parameter::ENCRYPT, &YES_OR_NO)?.unwrap_or_default(),
        trust_network: word(&parameter::TRUST_NETWORK, &YES_OR_NO)?.unwrap_or_default(),
    };
    trust
        .choose()
        .map(|_| trust)
        .map_err(|error| Refused(error.to_string()))
}

/// What the host, or without it the environment, says a parameter is set to: any bytes.
fn value(parameter: &Parameter) -> Option<OsString> {
    let Some(get) = host().param_get.filter(|_| !provider().is_null()) else {
        return std::env::var_os(parameter.variable);
    };
    let mut text: *mut c_char = std::ptr::null_mut();
    // SAFETY: the provider structure and the name are valid; a parameter defined as a string yields
    // a char pointer.
    let code = unsafe { get(provider(), parameter.key.as_ptr(), (&raw mut text).cast()) };
    if code != 0 || text.is_null() {
        return None;
    }
    // SAFETY: the host answered with a C string of its own.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes();
    Some(OsStr::from_bytes(bytes).to_owned())
}

/// The same as text, for parameters all of whose values are text.
fn text(parameter: &Parameter) -> Option<String> {
    value(parameter).map(|bytes| bytes.to_string_lossy().into_owned())
}

/// The number that a parameter is set to, or its default.
fn number(parameter: &Parameter, range: &Range) -> Result<u64, Refused> {
    text(parameter).map_or(Ok(range.default), |text| {
        parse_number(parameter, range, &text)
    })
}

fn parse_number(parameter: &Parameter, range: &Range, text: &str) -> Result<u64, Refused> {
    let number = range.parse(text);
    number.ok_or_else(|| Refused::not_one(parameter, text))
}

/// What the word that a parameter is set to stands for; `None` if it is not set.
fn word<T: Copy>(parameter: &Parameter, words: &[(&str, T)]) -> Result<Option<T>, Refused> {
    text(parameter)
        .map(|text| parse_word(parameter, &text, words))
        .transpose()
}

fn parse_word<T: Copy>(
    parameter: &Parameter,
    text: &str,
    words: &[(&str, T)],
) -> Result<T, Refused> {
    let known = words.iter().find(|(word, _)| *word == text.trim());
    let meaning = known.map(|(_, meaning)| *meaning);
    meaning.ok_or_else(|| Refused::not_one(parameter, text))
}

fn parse_interfaces(text: &str) -> Result<Interfaces, Refused> {
    Interfaces::parse(text).map_err(|wrong| Refused::new(&parameter::INTERFACE, text, wrong))
}

fn parse_job_key(text: &str) -> Result<JobKey, Refused> {
    JobKey::parse(text).map_err(|error| {
        let name = parameter::JOB_KEY.variable;
        Refused(format!(
            "{name} is not a job key: {error}; correct or unset {name}"
        ))
    })
}

fn parse_directory(path: &OsStr) -> Result<PathBuf, Refused> {
    let path = PathBuf::from(path);
    if path.is_absolute() && path.is_dir() {
        return Ok(path);
    }
    let shown = path.to_string_lossy();
    Err(Refused::not_one(&parameter::REGION_DIRECTORY, &shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_facts::parameter::Values;

    #[test]
    fn a_size_out_of_range_is_refused_with_name_value_range_and_fix() {
        let parse = |text| {
            let range = &parameter::INJECT_SIZE_BYTES;
            parse_number(&parameter::INJECT_SIZE, range, text)
        };
        for text in ["abc", "-1", "63", "65537", "", "1e3"] {
            let Refused(why) = parse(text).expect_err("refused");
            for part in [
                "FI_WEFT_INJECT_SIZE",
                &format!("\"{text}\""),
                "64 to 65536",
                "unset",
            ] {
                assert!(why.contains(part), "{why:?} lacks {part:?}");
            }
        }
        assert_eq!(parse(" 64 "), Ok(64));
        assert_eq!(parse("65536"), Ok(65536));
    }

    #[test]
    fn words_mean_what_the_table_lists_and_the_first_is_the_default() {
        fn check<T: Copy + Default + PartialEq>(parameter: &Parameter, words: &[(&str, T)]) {
            let Values::Words(listed) = parameter.values else {
                panic!("{} takes no words", parameter.variable);
            };
            let here: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            assert_eq!(here, listed, "{}", parameter.variable);
            assert!(words[0].1 == T::default(), "{}", parameter.variable);
        }
        check(&parameter::SINGLE_COPY, &SINGLE_COPY_WORDS);
        check(&parameter::ROUTE, &ROUTE_WORDS);
        check(&parameter::ENCRYPT, &YES_OR_NO);
        check(&parameter::TRUST_NETWORK, &YES_OR_NO);
    }

    #[test]
    fn a_wrong_key_is_refused_without_being_shown() {
        let Refused(why) = parse_job_key("5ec4e7").expect_err("refused");
        assert!(
            why.contains("FI_WEFT_JOB_KEY") && why.contains("openssl rand -hex 32"),
            "{why}"
        );
        assert!(!why.contains("5ec4e7"), "{why}");
        assert!(parse_job_key(&"0123456789abcdef".repeat(4)).is_ok());
    }

    #[test]
    fn words_and_directories_are_checked() {
        let parse = |text| parse_word(&parameter::SINGLE_COPY, text, &SINGLE_COPY_WORDS);
        assert_eq!(parse("never"), Ok(SingleCopy::Never));
        let Refused(why) = parse("no").expect_err("refused");
        assert!(
            why.contains("FI_WEFT_SINGLE_COPY") && why.contains("auto, always or never"),
            "{why}"
        );
        assert_eq!(parse_directory(OsStr::new("/")), Ok(PathBuf::from("/")));
        for text in ["", "tmp", "/no/such/directory"] {
            assert!(
                parse_directory(OsStr::new(text))
                    .expect_err("refused")
                    .0
                    .contains("FI_WEFT_REGION_DIR")
            );
        }
    }

    #[test]
    fn a_directory_may_have_any_bytes() {
        let mut name = OsStr::from_bytes(b"weft-parameters-caf\xe9-").to_owned();
        name.push(std::process::id().to_string());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory");
        let parsed = parse_directory(path.as_os_str());
        std::fs::remove_dir(&path).expect("it is empty");
        assert_eq!(parsed, Ok(path));
    }

    #[test]
    fn datagrams_for_everything_are_refused_without_trust_and_the_refusal_names_every_remedy() {
        let trusting = Trust {
            trust_network: true,
            ..Trust::default()
        };
        let Refused(why) =
            check_route(RouteChoice::Datagrams, &Trust::default()).expect_err("refused");
        for part in [
            "FI_WEFT_ROUTE is \"srd\"",
            "FI_WEFT_JOB_KEY",
            "FI_WEFT_TRUST_NETWORK=1",
            "unset FI_WEFT_ROUTE",
        ] {
            assert!(why.contains(part), "{why:?} lacks {part:?}");
        }
        assert_eq!(check_route(RouteChoice::Datagrams, &trusting), Ok(()));
        for route in [RouteChoice::Auto, RouteChoice::SharedMemory] {
            assert_eq!(check_route(route, &Trust::default()), Ok(()));
        }
    }

    #[test]
    fn a_time_beyond_its_range_is_refused() {
        let parse = |text| {
            let range = &parameter::DEAD_AFTER_S;
            parse_number(&parameter::DEAD_AFTER, range, text)
        };
        assert_eq!(parse("3600"), Ok(3600));
        for text in ["0", "3601", "soon"] {
            let Refused(why) = parse(text).expect_err("refused");
            assert!(
                why.contains("FI_WEFT_DEAD_AFTER") && why.contains("1 to 3600"),
                "{why}"
            );
        }
    }
}
