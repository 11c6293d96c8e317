// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The store behind a bucket, asked without credentials: whether its name and its port are reached,
//! what its clock says, and in which region the bucket is.
//!
//! Called by `lib.rs` for `weft doctor --bucket`. Only plain HTTP is spoken, and nothing secret is
//! sent. Sources: the API reference of S3, HeadBucket (`x-amz-bucket-region`); RFC 9110, clause
//! 5.6.7 (dates); Signature Version 4 of AWS, which refuses clocks 15 minutes apart.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::check::{Check, Status, shell_word};

/// How long a store may take to answer. Chosen.
const PATIENCE: Duration = Duration::from_secs(5);
/// An answer's head is no longer. Chosen: HTTP servers stop there, too.
const HEAD_MOST_BYTES: u64 = 16 << 10;
/// Clocks farther apart are refused. Specified by Signature Version 4.
const REFUSED_S: i64 = 15 * 60;
/// Clocks farther apart are wrong. Chosen: as between hosts.
const WRONG_S: i64 = 90;

/// `AWS_ENDPOINT_URL` names no store.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("AWS_ENDPOINT_URL is `{0}`; it must be http://HOST:PORT or https://HOST")]
pub struct NoAddress(String);

/// Where the bucket's store is, from the variables of AWS's SDKs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    host: String,
    port: u16,
    is_plain: bool,
    region: Option<String>,
}

impl Store {
    /// By these variables.
    ///
    /// # Errors
    /// An address that is none.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, NoAddress> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let region = variable("AWS_REGION").or_else(|| variable("AWS_DEFAULT_REGION"));
        let named = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
        let Some(url) = named else {
            // S3 answers on port 80 too; objects go through TLS.
            let host = match &region {
                Some(region) => format!("s3.{region}.amazonaws.com"),
                None => "s3.amazonaws.com".to_owned(),
            };
            return Ok(Self {
                host,
                port: 80,
                is_plain: true,
                region,
            });
        };
        let wrong = || NoAddress(url.clone());
        let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
        let is_plain = match scheme {
            "http" => true,
            "https" => false,
            _ => return Err(wrong()),
        };
        let place = rest.split('/').next().unwrap_or_default();
        let usual = if is_plain { 80 } else { 443 };
        let (host, port) = match place.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong())?)
            }
            _ => (place, usual),
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(wrong());
        }
        Ok(Self {
            host,
            port,
            is_plain,
            region,
        })
    }

    /// Reaches the store and asks for the bucket, without credentials.
    #[must_use]
    pub fn checks(&self, bucket: &str) -> Vec<Check> {
        self.judge(self.ask(bucket), now_s())
    }

    /// The head of its answer; none where it speaks TLS.
    fn ask(&self, bucket: &str) -> io::Result<Option<String>> {
        let mut last = io::Error::other("its name has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(stream) if self.is_plain => return self.head(stream, bucket).map(Some),
                Ok(_) => return Ok(None),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn head(&self, mut stream: TcpStream, bucket: &str) -> io::Result<String> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let host = &self.host;
        write!(
            stream,
            "HEAD /{bucket} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )?;
        let mut text = Vec::new();
        stream.take(HEAD_MOST_BYTES).read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn judge(&self, asked: io::Result<Option<String>>, now_s: i64) -> Vec<Check> {
        let why = "--mount reads and writes objects there";
        let place = format!("{}:{}", self.host, self.port);
        let head = match asked {
            // Parts of it reach the user's terminal, where control characters are commands.
            Ok(Some(head)) => head.replace(|one: char| one.is_control() && one != '\n', ""),
            Ok(None) => {
                let clock = Check::ok(CLOCK, format!("{place} speaks TLS"), WHY_CLOCK);
                return vec![
                    Check::ok(STORE, format!("{place} was reached"), why),
                    clock.not_tried("the check of the bucket signs requests by it"),
                ];
            }
            Err(error) => {
                let value = format!("{place} is not reached: {error}");
                let fix = "see whether this host may reach it (a name server, a route, a firewall, \
                           an endpoint of S3 in the VPC); AWS_ENDPOINT_URL and AWS_REGION name it";
                return vec![Check::ok(STORE, value, why).but(Status::Fail, fix)];
            }
        };
        let field = |name: &str| {
            let lines = head.lines().skip(1).map_while(|line| line.split_once(':'));
            let mut fields = lines.filter(|(one, _)| one.trim().eq_ignore_ascii_case(name));
            fields.next().map(|(_, value)| value.trim().to_owned())
        };
        let answer = head.split_whitespace().nth(1).unwrap_or("nothing");
        let told = field("x-amz-bucket-region");
        let is_elsewhere = self.region.is_some() && told.is_some() && told != self.region;
        let region = told
            .as_ref()
            .map_or(String::new(), |region| format!(", region {region}"));
        let value = format!("{place} answered {answer}{region}");
        let reached = Check::ok(STORE, value, why)
            .but_if(
                is_elsewhere,
                Status::Warn,
                &format!("export AWS_REGION={}", shell_word(told.unwrap_or_default())),
            )
            .limited_by(format!(
                "AWS_REGION is {}",
                self.region.as_deref().unwrap_or("not set")
            ));
        vec![reached, clock(field("date").as_deref(), now_s)]
    }
}

const STORE: &str = "store";
const CLOCK: &str = "store's clock";
const WHY_CLOCK: &str = "a store refuses requests whose time is 15 minutes from its own";

fn clock(date: Option<&str>, now_s: i64) -> Check {
    let Some(there_s) = date.and_then(seconds_of) else {
        return Check::ok(CLOCK, "the store told no time", WHY_CLOCK)
            .not_tried("the check of the bucket signs requests by it");
    };
    let apart_s = now_s - there_s;
    let fix = "set this host's clock (chronyc makestep, or timedatectl set-ntp true)";
    let status = match apart_s.abs() {
        REFUSED_S.. => Status::Fail,
        _ => Status::Warn,
    };
    Check::ok(
        CLOCK,
        format!("this host is {apart_s:+} s from it"),
        WHY_CLOCK,
    )
    .but_if(apart_s.abs() > WRONG_S, status, fix)
    .limited_by(format!(
        "{WRONG_S} s: a clock is wrong; {REFUSED_S} s: the store refuses requests"
    ))
}

fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}

/// Seconds since 1970 of a date as `Tue, 24 Nov 2026 17:10:00 GMT`.
fn seconds_of(date: &str) -> Option<i64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut words = date.split_once(", ")?.1.split([' ', ':']);
    let day: i64 = words.next()?.parse().ok()?;
    let month = words.next().filter(|month| month.len() == 3)?;
    let month = i64::try_from(MONTHS.find(month)? / 3 + 1).ok()?;
    let mut number = || words.next()?.parse::<i64>().ok();
    let (year, hour, minute, second) = (number()?, number()?, number()?, number()?);
    if !(1970..10_000).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March here, so that the day in February that some have is their last.
    let (year, month) = if month < 3 {
        (year - 1, month + 9)
    } else {
        (year, month - 3)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    // Days from 1 March of year 0 to 1 January 1970.
    Some((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(variables: &[(&str, &str)]) -> Result<Store, NoAddress> {
        Store::of(|name| {
            let found = variables.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_store_is_found_as_the_sdks_find_it() {
        for (variables, host, port, is_plain) in [
            (&[][..], "s3.amazonaws.com", 80, true),
            (
                &[("AWS_REGION", "eu-west-1")],
                "s3.eu-west-1.amazonaws.com",
                80,
                true,
            ),
            (
                &[("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/")],
                "127.0.0.1",
                9000,
                true,
            ),
            (
                &[("AWS_ENDPOINT_URL", "https://minio")],
                "minio",
                443,
                false,
            ),
            (
                &[("AWS_ENDPOINT_URL", "http://[::1]:9000")],
                "::1",
                9000,
                true,
            ),
            (&[("AWS_ENDPOINT_URL", "http://[::1]")], "::1", 80, true),
            (
                &[
                    ("AWS_ENDPOINT_URL", "https://a"),
                    ("AWS_ENDPOINT_URL_S3", "http://b"),
                ],
                "b",
                80,
                true,
            ),
        ] {
            let found = store(variables).unwrap();
            assert_eq!(
                (&*found.host, found.port, found.is_plain),
                (host, port, is_plain)
            );
        }
        for wrong in [
            "minio:9000",
            "ftp://a",
            "http://",
            "http://a:b",
            "http://a b",
        ] {
            let said = store(&[("AWS_ENDPOINT_URL", wrong)]).unwrap_err();
            let said = said.to_string();
            assert!(said.contains(wrong) && said.contains("must be"), "{said}");
        }
    }

    #[test]
    fn dates_are_seconds_since_1970() {
        assert_eq!(seconds_of("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(
            seconds_of("Tue, 29 Feb 2000 23:59:59 GMT"),
            Some(951_868_799)
        );
        assert_eq!(
            seconds_of("Tue, 24 Nov 2026 17:10:05 GMT"),
            Some(1_795_540_205)
        );
        for wrong in [
            "",
            "today",
            "Tue, 24 Nov",
            "Tue, 24 Xyz 2026 17:10:05 GMT",
            "T, 1 anF 1 1:1:1",
        ] {
            assert_eq!(seconds_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_a_store_answers_gives_a_terminal_no_commands_and_a_shell_one_word() {
        let asked = store(&[("AWS_REGION", "eu-west-1")]).unwrap();
        let head = "HTTP/1.1 4\x1b[2J03 Forbidden\r\nx-amz-bucket-region: a;\x1b]0;b\x07 c\r\n\r\n";
        let check = asked.judge(Ok(Some(head.to_owned())), 0).remove(0);
        check.assert_wrong(Status::Warn, "export AWS_REGION='a;]0;b c'");
        assert!(
            check.value.ends_with("answered 4[2J03, region a;]0;b c"),
            "{check:?}"
        );
    }

    #[test]
    fn an_answer_tells_the_clock_and_the_region() {
        let asked = store(&[("AWS_REGION", "eu-west-1")]).unwrap();
        let head = "HTTP/1.1 403 Forbidden\r\nX-Amz-Bucket-Region: us-east-2\r\n\
                    Date: Thu, 01 Jan 1970 00:16:40 GMT\r\n\r\n";
        let judged = |now_s| asked.judge(Ok(Some(head.to_owned())), now_s);
        let checks = judged(1000);
        checks[0].assert_wrong(Status::Warn, "export AWS_REGION=us-east-2");
        assert_eq!(
            checks[0].value,
            "s3.eu-west-1.amazonaws.com:80 answered 403, region us-east-2"
        );
        assert_eq!(checks[1].status, Status::Ok);
        for (now_s, status) in [
            (1100, Status::Warn),
            (1900, Status::Fail),
            (100, Status::Fail),
        ] {
            let late = &judged(now_s)[1];
            late.assert_wrong(status, "chronyc makestep");
            assert!(
                late.value.contains(&format!("{:+} s", now_s - 1000)),
                "{late:?}"
            );
        }
        assert_eq!(
            asked.judge(Ok(Some(String::new())), 0)[1].status,
            Status::NotTried
        );
        assert_eq!(asked.judge(Ok(None), 0)[1].status, Status::NotTried);
        let gone = asked.judge(Err(io::Error::other("no such name")), 0);
        assert_eq!(gone.len(), 1);
        gone[0].assert_wrong(Status::Fail, "AWS_ENDPOINT_URL");
    }
}
