// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A bucket that somebody names to the doctor: whose credentials are used, and whether it can be
//! mounted, listed and read, as a job of this user would.
//!
//! Called by `lib.rs` for `weft doctor --bucket`; the process that looks into the mounted folder is
//! `weft doctor --read-bucket` ([`read`]). Source: the documentation of AWS's SDK for Rust,
//! "Credential providers", for the order of credentials.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weft_launch::mounts::trial::Trial;
use weft_launch::number_text::size;

use crate::check::{Check, Status};
use crate::store::Store;

/// Names that are listed at most, and what is read of one file. Chosen: a second or two.
const NAMES_MOST: usize = 1000;
const READ_MOST_BYTES: u64 = 64 << 20;
const READ_MOST: Duration = Duration::from_secs(5);

/// What `s3://BUCKET/PREFIX` names.
///
/// # Errors
/// What to write instead.
fn bucket_of(text: &str) -> Result<&str, String> {
    let rest = text.strip_prefix("s3://").unwrap_or_default();
    let bucket = rest.split('/').next().unwrap_or_default();
    if bucket.is_empty()
        || !bucket
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    {
        return Err(format!(
            "`{text}` names no bucket; write s3://BUCKET or s3://BUCKET/PREFIX"
        ));
    }
    Ok(bucket)
}

/// All checks of the bucket `source`; `program` is the path of this one.
#[must_use]
pub fn checks(
    source: &str,
    variable: impl Fn(&str) -> Option<String> + Copy,
    program: Option<&Path>,
) -> Vec<Check> {
    let bucket = match bucket_of(source) {
        Ok(bucket) => bucket,
        Err(text) => return vec![unusable(text)],
    };
    let mut checks = match Store::of(variable) {
        Ok(store) => store.checks(bucket),
        Err(fault) => return vec![unusable(fault.to_string())],
    };
    checks.push(credentials(variable, Path::exists));
    checks.push(mounted(source, program));
    checks
}

fn unusable(text: String) -> Check {
    Check::ok(BUCKET, text, WHY).but(Status::Fail, "name another one")
}

const BUCKET: &str = "bucket";
const WHY: &str = "a job that asks for it is refused unless it can be mounted on every node";

/// Which credentials are there, by name: the first of the SDK's order. Their use is the bucket's.
fn credentials(variable: impl Fn(&str) -> Option<String>, exists: impl Fn(&Path) -> bool) -> Check {
    let why = "the store answers by who asks";
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let check =
        |value: String| Check::ok("credentials", format!("{value}, read and not tried"), why);
    match (set("AWS_ACCESS_KEY_ID"), set("AWS_SECRET_ACCESS_KEY")) {
        (Some(_), Some(_)) => return check("AWS_ACCESS_KEY_ID and its secret".to_owned()),
        (None, None) => {}
        (one, _) => {
            let missing =
                ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"][usize::from(one.is_some())];
            return Check::ok(
                "credentials",
                format!("{missing} is missing beside the other"),
                why,
            )
            .but(Status::Warn, format!("export {missing}, or unset both"));
        }
    }
    let home = set("HOME").map(PathBuf::from).unwrap_or_default();
    let file = |name: &str, usual: &str| set(name).map_or_else(|| home.join(usual), PathBuf::from);
    let files = [
        file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
        file("AWS_CONFIG_FILE", ".aws/config"),
    ];
    let profile = set("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
    if let Some(path) = files.iter().find(|path| exists(path)) {
        return check(format!("profile {profile} of {}", path.display()));
    }
    if let Some(path) = set("AWS_WEB_IDENTITY_TOKEN_FILE") {
        return check(format!("the web identity in {path}"));
    }
    let container = [
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    if let Some(name) = container.into_iter().find(|name| set(name).is_some()) {
        return check(format!("the container's role ({name})"));
    }
    if set("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Check::ok("credentials", "none are named", why).but(
            Status::Warn,
            "export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile (AWS_PROFILE)",
        );
    }
    check("none are named; those of the instance are left".to_owned())
}

/// What another process found in the mounted folder.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    names: usize,
    bytes: u64,
    seconds: f64,
}

/// Mounts the bucket, lists it, and reads the first file.
fn mounted(source: &str, program: Option<&Path>) -> Check {
    let Some(program) = program else {
        return crate::attempt::alone(BUCKET, WHY);
    };
    if crate::bucket::program().is_none() {
        let check = Check::ok(BUCKET, "weft-mount is not installed here", WHY);
        return check.not_tried(crate::bucket::HOW_TO_INSTALL);
    }
    let begin = Instant::now();
    let trial = match Trial::start(source) {
        Ok(trial) => trial,
        Err(fault) => return judge(Err(fault.to_string())),
    };
    let took = begin.elapsed();
    let folder = trial.folder().as_os_str();
    let words = [
        program.as_os_str(),
        "doctor".as_ref(),
        "--read-bucket".as_ref(),
        folder,
    ];
    let output = trial
        .command(&words)
        .and_then(|mut command| command.output());
    judge(match output {
        Ok(output) => serde_json::from_slice::<Seen>(&output.stdout)
            .map(|seen| (took, seen))
            .map_err(|_| String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("looking into it: {error}")),
    })
}

fn judge(tried: Result<(Duration, Seen), String>) -> Check {
    let (took, seen) = match tried {
        Ok(found) => found,
        Err(why_not) => {
            return Check::ok(BUCKET, why_not, WHY).but(
                Status::Fail,
                "the reason says what to change (docs/mount-in-jobs.md)",
            );
        }
    };
    let names = match seen.names {
        0 => "nothing in it".to_owned(),
        1 => "1 name".to_owned(),
        NAMES_MOST.. => format!("{NAMES_MOST} names or more"),
        count => format!("{count} names"),
    };
    let rate = seen.bytes as f64 / seen.seconds.max(1e-6) / 1e6;
    let read = match seen.bytes {
        0 => "no file to read at its top".to_owned(),
        bytes => format!("{} read in order at {rate:.1} MB/s", size(bytes)),
    };
    let value = format!("mounted in {:.2} s, {names}, {read}", took.as_secs_f64());
    Check::ok(BUCKET, value, WHY)
}

/// Lists a mounted folder, reads its first file, and prints what came of it.
///
/// # Errors
/// What the folder answered.
pub fn read(folder: &Path) -> io::Result<()> {
    let mut seen = Seen::default();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)?.take(NAMES_MOST) {
        let entry = entry?;
        seen.names += 1;
        if entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    if let Some(path) = files.first() {
        let begin = Instant::now();
        seen.bytes = read_some(path)?;
        seen.seconds = begin.elapsed().as_secs_f64();
    }
    println!("{}", serde_json::to_string(&seen)?);
    Ok(())
}

fn read_some(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?.take(READ_MOST_BYTES);
    let (mut block, mut bytes, begin) = (vec![0; 1 << 20], 0, Instant::now());
    while begin.elapsed() < READ_MOST {
        match file.read(&mut block)? {
            0 => break,
            count => bytes += count as u64,
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bucket_is_one() {
        assert_eq!(bucket_of("s3://data/a/b"), Ok("data"));
        for wrong in ["data", "s3://", "s3:///a", "s3://a\r\nb", "http://data"] {
            assert!(
                bucket_of(wrong).unwrap_err().contains("s3://BUCKET"),
                "{wrong}"
            );
        }
    }

    fn judged(variables: &[(&str, &str)], file: &str) -> Check {
        let set = |name: &str| {
            let found = variables.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        credentials(set, |path| path == Path::new(file))
    }

    #[test]
    fn credentials_are_named_and_never_shown() {
        let (key, secret) = (
            ("AWS_ACCESS_KEY_ID", "AKIA1"),
            ("AWS_SECRET_ACCESS_KEY", "hidden"),
        );
        for (variables, file, status, said) in [
            (&[key, secret][..], "", Status::Ok, "AWS_ACCESS_KEY_ID and"),
            (&[key], "", Status::Warn, "AWS_SECRET_ACCESS_KEY is missing"),
            (&[secret], "", Status::Warn, "AWS_ACCESS_KEY_ID is missing"),
            (
                &[("HOME", "/h"), ("AWS_PROFILE", "p")],
                "/h/.aws/credentials",
                Status::Ok,
                "profile p of",
            ),
            (
                &[("AWS_WEB_IDENTITY_TOKEN_FILE", "/t")],
                "",
                Status::Ok,
                "web identity in /t",
            ),
            (
                &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "u")],
                "",
                Status::Ok,
                "container's role",
            ),
            (&[], "", Status::Ok, "those of the instance"),
            (
                &[("AWS_EC2_METADATA_DISABLED", "true")],
                "",
                Status::Warn,
                "none are named",
            ),
        ] {
            let check = judged(variables, file);
            assert!(
                check.status == status && check.value.contains(said),
                "{check:?}"
            );
            assert!(!check.value.contains("hidden") && !check.fix.contains("hidden"));
            if status == Status::Warn {
                check.assert_wrong(status, "export AWS_");
            }
        }
    }

    #[test]
    fn what_was_seen_is_said_with_its_rate() {
        let seen = Seen {
            names: 4,
            bytes: 8_000_000,
            seconds: 0.5,
        };
        let check = judge(Ok((Duration::from_millis(120), seen)));
        assert_eq!(
            check.value,
            "mounted in 0.12 s, 4 names, 7.6 MiB read in order at 16.0 MB/s"
        );
        let nothing = judge(Ok((Duration::ZERO, Seen::default())));
        assert!(nothing.value.contains("nothing in it, no file to read"));
        let refused = judge(Err("no such bucket".to_owned()));
        refused.assert_wrong(Status::Fail, "docs/mount-in-jobs.md");
        unusable("data is no bucket".to_owned()).assert_wrong(Status::Fail, "name another one");
    }

    #[test]
    fn a_folder_is_listed_and_its_first_file_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), vec![1; 3 << 20]).unwrap();
        assert_eq!(read_some(&folder.path().join("a")).unwrap(), 3 << 20);
        assert!(read(folder.path()).is_ok() && read(Path::new("/nowhere")).is_err());
    }
}
