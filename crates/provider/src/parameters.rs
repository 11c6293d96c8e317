// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The FI_WEFT_* parameters: what they are called, which values they take, what they are set to.
//!
//! prov_ini announces them, so that `fi_info -e` lists them; info and endpoint read them. They are announced as strings,
//! because libfabric's own number parser takes "abc" for 0. Source: fi_provider(3).

use std::ffi::{CStr, CString, c_char};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use weft_endpoint::shm::SingleCopy;
use weft_endpoint::srd::seal::trust::WAYS_OUT;
use weft_endpoint::srd::seal::{JobKey, Trust};
use weft_fabric_sys::provider::{FI_PARAM_STRING, FiProvider};

use crate::host::host;
use crate::interfaces::Interfaces;
use crate::{prov_ini, report};

/// How remotes shall be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteWish {
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
    /// The network interfaces to use; the first one's address where the application names none.
    pub interfaces: Interfaces,
    /// Whether large messages may be fetched from the sender's memory.
    pub single_copy: SingleCopy,
    /// Where files for shared regions go; `None` for none.
    pub region_directory: Option<PathBuf>,
    /// Which remotes are reached through shared memory.
    pub route: RouteWish,
    /// How long a remote on another host may be silent while something is expected of it.
    pub dead_after: Duration,
    /// The abstract unix datagram socket that hears what each endpoint has carried; `None` for nobody.
    pub report: Option<String>,
    /// Who is trusted between hosts.
    pub trust: Trust,
}

const INJECT_SIZE: &CStr = c"inject_size";
const INTERFACE: &CStr = c"iface";
const SINGLE_COPY: &CStr = c"single_copy";
const REGION_DIRECTORY: &CStr = c"region_dir";
const ROUTE: &CStr = c"route";
const DEAD_AFTER: &CStr = c"dead_after";
const TRUST_NETWORK: &CStr = c"trust_network";
const REPORT: &CStr = c"report";
const ENCRYPT: &CStr = c"encrypt";
const JOB_KEY_FILE: &CStr = c"job_key_file";
/// Read from the environment and never through libfabric, which logs the values it reads.
const JOB_KEY: &CStr = c"job_key";

/// The values of FI_WEFT_SINGLE_COPY.
const SINGLE_COPY_WORDS: [(&str, SingleCopy); 3] = [
    ("auto", SingleCopy::Auto),
    ("always", SingleCopy::Always),
    ("never", SingleCopy::Never),
];

/// The values of FI_WEFT_ROUTE.
const ROUTE_WORDS: [(&str, RouteWish); 3] = [
    ("auto", RouteWish::Auto),
    ("shm", RouteWish::SharedMemory),
    ("srd", RouteWish::Datagrams),
];

/// The values of FI_WEFT_TRUST_NETWORK and FI_WEFT_ENCRYPT.
const YES_OR_NO: [(&str, bool); 2] = [("0", false), ("1", true)];

/// FI_WEFT_DEAD_AFTER in seconds when it is not set: chosen, longer than any pause of a process that is well.
const DEAD_AFTER_DEFAULT_S: u64 = 5;
/// Its range in seconds. Chosen: less than one loses processes that only wait for a processor.
const DEAD_AFTER_S: std::ops::RangeInclusive<u64> = 1..=3600;

/// Lowest FI_WEFT_INJECT_SIZE: specified by MPICH, whose control messages are up to 64 bytes.
const INJECT_SIZE_LOWEST_BYTES: usize = 64;
/// Highest FI_WEFT_INJECT_SIZE: the longest message that every route takes without waiting for the other side.
const INJECT_SIZE_HIGHEST_BYTES: usize = weft_endpoint::DEFAULT_INJECT_LIMIT_BYTES;

/// Announces all parameters to the host. Setup.
pub fn define(provider: *const FiProvider) {
    let inject_size = format!(
        "Longest message in bytes that fi_inject and its kin take: {INJECT_SIZE_LOWEST_BYTES} to \
         {INJECT_SIZE_HIGHEST_BYTES} (default: {INJECT_SIZE_HIGHEST_BYTES})"
    );
    define_one(provider, INJECT_SIZE, &inject_size);
    define_one(
        provider,
        INTERFACE,
        "Network interfaces (such as eth0 or eth0,eth1) or IP addresses of this machine to use, up to 4; the first is the \
         one to be known by where the application names none (default: the first one that is up and not loopback, and \
         up to 3 others of the same kind, speed and MTU)",
    );
    define_one(
        provider,
        SINGLE_COPY,
        "Fetch large messages straight from the sender's memory (process_vm_readv): auto, where the kernel permits it and \
         it is faster; always, where the kernel permits it; never (default: auto)",
    );
    define_one(
        provider,
        REGION_DIRECTORY,
        "Directory for the nameless files that hold shared memory, where memfd_create is not wanted (default: none)",
    );
    define_one(
        provider,
        ROUTE,
        "How remotes are reached: auto, shared memory on this host and datagrams over many paths (srd) beyond it; shm or \
         srd, all of them so, to compare (default: auto)",
    );
    define_one(
        provider,
        DEAD_AFTER,
        "Seconds that a process on another host may be silent, while something is expected of it, before it counts as \
         dead: 1 to 3600 (default: 5)",
    );
    define_one(
        provider,
        TRUST_NETWORK,
        "1: everybody who can send to this machine may take part in the job; without it, and without a key, only \
         processes of this host are talked to (default: 0)",
    );
    define_one(
        provider,
        REPORT,
        "Abstract unix socket that hears of each endpoint: that it is open, and its counts when it closes; weft run sets it \
         (default: none)",
    );
    define_one(
        provider,
        JOB_KEY_FILE,
        "File with the job's key, 64 hexadecimal digits, that nobody else may read; FI_WEFT_JOB_KEY, which weft run sets, goes \
         before it (default: none)",
    );
    define_one(
        provider,
        ENCRYPT,
        "Encrypt what goes to other hosts with the job's key: 0 or 1 (default: 0)",
    );
}

fn define_one(provider: *const FiProvider, name: &CStr, help: &str) {
    let (Some(define), Ok(help)) = (host().param_define, CString::new(help)) else {
        return;
    };
    // SAFETY: the provider structure and the strings are valid C; the format takes exactly one C string.
    let code = unsafe {
        define(
            provider,
            name.as_ptr(),
            FI_PARAM_STRING,
            c"%s".as_ptr(),
            help.as_ptr(),
        )
    };
    if code != 0 {
        report::line(&format!(
            "libfabric refused the parameter {} with error {code}",
            environment_name(name)
        ));
    }
}

/// The settings, read on the first call. `None` if one is out of range; then stderr says which, once.
pub fn settings() -> Option<&'static Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    SETTINGS
        .get_or_init(|| read().inspect_err(|why| report::line(why)).ok())
        .as_ref()
}

fn read() -> Result<Settings, String> {
    let inject_size_bytes = match value(INJECT_SIZE) {
        None => INJECT_SIZE_HIGHEST_BYTES,
        Some(text) => parse_size(
            INJECT_SIZE,
            &text,
            INJECT_SIZE_LOWEST_BYTES,
            INJECT_SIZE_HIGHEST_BYTES,
        )?,
    };
    let interfaces = match value(INTERFACE) {
        None => Interfaces::default(),
        Some(text) => Interfaces::parse(&text, &environment_name(INTERFACE))?,
    };
    let single_copy = word(SINGLE_COPY, &SINGLE_COPY_WORDS)?.unwrap_or_default();
    let dead_after_s = match value(DEAD_AFTER) {
        None => DEAD_AFTER_DEFAULT_S,
        Some(text) => parse_seconds(DEAD_AFTER, &text)?,
    };
    let region_directory = value(REGION_DIRECTORY)
        .map(|text| parse_directory(&text))
        .transpose()?;
    let route = word(ROUTE, &ROUTE_WORDS)?.unwrap_or_default();
    let trust = read_trust()?;
    check_route(route, &trust)?;
    Ok(Settings {
        inject_size_bytes,
        interfaces,
        single_copy,
        region_directory,
        route,
        dead_after: Duration::from_secs(dead_after_s),
        report: value(REPORT),
        trust,
    })
}

/// Who wants datagrams for everything must say whom to trust: told here, before a job starts that could send nothing.
fn check_route(route: RouteWish, trust: &Trust) -> Result<(), String> {
    if route == RouteWish::Datagrams && !trust.reaches_hosts() {
        let name = environment_name(ROUTE);
        return Err(format!(
            "{name} is \"srd\", so that all goes by datagrams, but nothing says who may take part. {WAYS_OUT} Else unset {name}."
        ));
    }
    Ok(())
}

fn read_trust() -> Result<Trust, String> {
    let job_key = std::env::var_os(environment_name(JOB_KEY))
        .map(|text| parse_job_key(&text.to_string_lossy()))
        .transpose()?;
    let trust = Trust {
        job_key,
        job_key_file: value(JOB_KEY_FILE).map(PathBuf::from),
        encrypt: word(ENCRYPT, &YES_OR_NO)?.unwrap_or_default(),
        trust_network: word(TRUST_NETWORK, &YES_OR_NO)?.unwrap_or_default(),
    };
    trust
        .choose()
        .map(|_| trust)
        .map_err(|error| error.to_string())
}

/// What the host, or without it the environment, says a parameter is set to.
fn value(name: &CStr) -> Option<String> {
    let Some(get) = host().param_get else {
        return std::env::var(environment_name(name)).ok();
    };
    let mut text: *mut c_char = std::ptr::null_mut();
    // SAFETY: the provider structure and the name are valid; a parameter defined as a string yields a char pointer.
    let code = unsafe { get(prov_ini::provider(), name.as_ptr(), (&raw mut text).cast()) };
    if code != 0 || text.is_null() {
        return None;
    }
    // SAFETY: the host answered with a C string of its own.
    Some(
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    )
}

fn environment_name(name: &CStr) -> String {
    format!("FI_WEFT_{}", name.to_string_lossy().to_uppercase())
}

fn parse_size(name: &CStr, text: &str, lowest: usize, highest: usize) -> Result<usize, String> {
    text.trim().parse().ok().filter(|value| (lowest..=highest).contains(value)).ok_or_else(|| {
        let name = environment_name(name);
        format!("{name} is \"{text}\", but must be a number of bytes from {lowest} to {highest}: correct or unset {name}")
    })
}

fn parse_seconds(name: &CStr, text: &str) -> Result<u64, String> {
    let known = text.trim().parse().ok();
    known.filter(|seconds| DEAD_AFTER_S.contains(seconds)).ok_or_else(|| {
        let (name, least, most) = (environment_name(name), DEAD_AFTER_S.start(), DEAD_AFTER_S.end());
        format!("{name} is \"{text}\", but must be a number of seconds from {least} to {most}: correct or unset {name}")
    })
}

/// What the word that a parameter is set to stands for; `None` if it is not set.
fn word<T: Copy>(name: &CStr, words: &[(&str, T)]) -> Result<Option<T>, String> {
    value(name)
        .map(|text| parse_word(name, &text, words))
        .transpose()
}

fn parse_word<T: Copy>(name: &CStr, text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let known = words.iter().find(|(word, _)| *word == text.trim());
    known.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let name = environment_name(name);
        let (last, others) = words.split_last().expect("a parameter has values");
        let others: Vec<&str> = others.iter().map(|(word, _)| *word).collect();
        let (others, last) = (others.join(", "), last.0);
        format!("{name} is \"{text}\", but must be {others} or {last}: correct or unset {name}")
    })
}

fn parse_job_key(text: &str) -> Result<JobKey, String> {
    JobKey::parse(text).map_err(|error| {
        let name = environment_name(JOB_KEY);
        format!("{name} is not a job key: {error}; correct or unset {name}")
    })
}

fn parse_directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if path.is_absolute() && path.is_dir() {
        return Ok(path);
    }
    let name = environment_name(REGION_DIRECTORY);
    Err(format!(
        "{name} is \"{text}\", but must be the absolute path of a directory: correct or unset {name}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_out_of_range_is_refused_with_name_value_range_and_fix() {
        for text in ["abc", "-1", "63", "4097", "", "1e3"] {
            let why = parse_size(INJECT_SIZE, text, 64, 4096).expect_err("refused");
            for part in [
                "FI_WEFT_INJECT_SIZE",
                &format!("\"{text}\""),
                "64 to 4096",
                "unset",
            ] {
                assert!(why.contains(part), "{why:?} lacks {part:?}");
            }
        }
        assert_eq!(parse_size(INJECT_SIZE, " 64 ", 64, 4096), Ok(64));
        assert_eq!(parse_size(INJECT_SIZE, "4096", 64, 4096), Ok(4096));
    }

    #[test]
    fn a_wrong_key_is_refused_without_being_shown() {
        let why = parse_job_key("5ec4e7").expect_err("refused");
        assert!(
            why.contains("FI_WEFT_JOB_KEY") && why.contains("openssl rand -hex 32"),
            "{why}"
        );
        assert!(!why.contains("5ec4e7"), "{why}");
        assert!(parse_job_key(&"0123456789abcdef".repeat(4)).is_ok());
    }

    #[test]
    fn words_and_directories_are_checked() {
        let parse = |text| parse_word(SINGLE_COPY, text, &SINGLE_COPY_WORDS);
        assert_eq!(parse("never"), Ok(SingleCopy::Never));
        let why = parse("no").expect_err("refused");
        assert!(
            why.contains("FI_WEFT_SINGLE_COPY") && why.contains("auto, always or never"),
            "{why}"
        );
        assert_eq!(parse_directory("/"), Ok(PathBuf::from("/")));
        for text in ["", "tmp", "/no/such/directory"] {
            assert!(
                parse_directory(text)
                    .expect_err("refused")
                    .contains("FI_WEFT_REGION_DIR")
            );
        }
    }

    #[test]
    fn datagrams_for_everything_are_refused_without_trust_and_both_ways_out_are_named() {
        let trusting = Trust {
            trust_network: true,
            ..Trust::default()
        };
        let why = check_route(RouteWish::Datagrams, &Trust::default()).expect_err("refused");
        for part in [
            "FI_WEFT_ROUTE is \"srd\"",
            "FI_WEFT_JOB_KEY",
            "FI_WEFT_TRUST_NETWORK=1",
            "unset FI_WEFT_ROUTE",
        ] {
            assert!(why.contains(part), "{why:?} lacks {part:?}");
        }
        assert_eq!(check_route(RouteWish::Datagrams, &trusting), Ok(()));
        for route in [RouteWish::Auto, RouteWish::SharedMemory] {
            assert_eq!(check_route(route, &Trust::default()), Ok(()));
        }
    }

    #[test]
    fn a_time_beyond_its_range_is_refused() {
        assert_eq!(parse_seconds(DEAD_AFTER, "3600"), Ok(3600));
        for text in ["0", "3601", "soon"] {
            let why = parse_seconds(DEAD_AFTER, text).expect_err("refused");
            assert!(
                why.contains("FI_WEFT_DEAD_AFTER") && why.contains("1 to 3600"),
                "{why}"
            );
        }
    }
}
