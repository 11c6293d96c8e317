// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The network of a testbed, as a user writes it: `direct,mtu=1500` or
//! `paths=4,rate=500mbit,loss=1`.
//!
//! Read by the command line of compare; testbed turns it into options of tests/testbed/testbed.sh.
//! Written out again it has every value, and this text names the testbed in all reports.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Hosts of a testbed; above 2 there must be switches between them. The most is the script's.
const HOSTS: RangeInclusive<usize> = 2..=64;
/// Equal-cost paths between the racks; the most is the script's.
const PATHS: RangeInclusive<usize> = 1..=64;
/// Bytes of a frame, from the least that IPv6 allows (RFC 8200 section 5) to the most of veth.
const MTU_BYTES: RangeInclusive<usize> = 1280..=65535;
/// Loss in percent (chosen: beyond half, no transport gets anywhere).
const LOSS_PERCENT: RangeInclusive<f64> = 0.0..=50.0;
/// Delay of a path in milliseconds (chosen: around the world and back lies below).
const DELAY_MS: RangeInclusive<f64> = 0.001..=500.0;
/// What a flow may send where the network limits each, in Mbit/s; the most is the script's.
const FLOW_MBIT: RangeInclusive<usize> = 1..=1_000_000;
/// The network that is made where nothing else is said; those of the script.
const DEFAULT_PATHS: usize = 4;
const DEFAULT_RATE: &str = "500mbit";
const DEFAULT_MTU_BYTES: usize = 9000;
/// What a path may carry, in kbit/s (chosen: no single link is as fast as the most). A rate that
/// tc(8) cannot hold would become another one without a word.
const RATE_KBIT: RangeInclusive<u64> = 1..=1_000_000_000;
/// Units of a rate, as tc(8) writes them, and their kbit/s.
const RATE_UNITS: [(&str, u64); 3] = [("kbit", 1), ("mbit", 1_000), ("gbit", 1_000_000)];
/// No limit, as a rate.
const UNLIMITED: &str = "none";

/// What joins the hosts of a testbed.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// How many hosts.
    hosts: usize,
    /// Equal-cost paths between two racks; `None` for one cable between two hosts.
    paths: Option<usize>,
    /// Of each path in each direction, as tc(8) writes it; `None` for unlimited.
    rate: Option<String>,
    /// Packets lost at random on every path, in percent.
    loss_percent: f64,
    /// One-way delay of every path in milliseconds.
    delay_ms: f64,
    /// What each flow (addresses and ports) may send, in Mbit/s; `None` for all it likes.
    flow_mbit: Option<usize>,
    /// Of every link.
    mtu_bytes: usize,
}

impl Default for Network {
    /// Two hosts joined by four paths.
    fn default() -> Self {
        Self {
            hosts: *HOSTS.start(),
            paths: Some(DEFAULT_PATHS),
            rate: Some(DEFAULT_RATE.to_owned()),
            loss_percent: 0.0,
            delay_ms: 0.0,
            flow_mbit: None,
            mtu_bytes: DEFAULT_MTU_BYTES,
        }
    }
}

impl Network {
    /// Names of its hosts, as the script gives them: even ones hang in one rack, odd ones in the
    /// other.
    pub fn host_names(&self) -> Vec<String> {
        let rack = |host: usize| if host.is_multiple_of(2) { 'a' } else { 'b' };
        (0..self.hosts)
            .map(|host| format!("{}{host}", rack(host)))
            .collect()
    }

    /// What the script's `up` is told.
    pub fn options(&self) -> Vec<String> {
        let rate = self.rate.as_deref().unwrap_or(UNLIMITED);
        let limited = self.rate.is_some() || !self.faults().is_empty();
        let (hosts, mtu) = (self.hosts.to_string(), self.mtu_bytes.to_string());
        let paths = self.paths.map(|paths| paths.to_string());
        let mut words = match &paths {
            Some(paths) => vec!["--hosts", &hosts, "--paths", paths, "--rate", rate],
            // A cable that is a path of its own, so that it can be slow and lose packets.
            None if limited => vec!["--cables", "1", "--rate", rate],
            None => vec!["--direct"],
        };
        words.extend(["--mtu", &mtu]);
        words.into_iter().map(str::to_owned).collect()
    }

    /// What the script is told once the testbed is up.
    pub fn faults(&self) -> Vec<Vec<String>> {
        let fault = |name: &str, value: String| vec![name.to_owned(), "all".to_owned(), value];
        let loss = (self.loss_percent > 0.0).then(|| fault("loss", self.loss_percent.to_string()));
        let delay = (self.delay_ms > 0.0).then(|| fault("delay", format!("{}ms", self.delay_ms)));
        let limit = |mbit: usize| vec!["flow-limit".to_owned(), mbit.to_string()];
        let limit = self.flow_mbit.map(limit);
        loss.into_iter().chain(delay).chain(limit).collect()
    }

    /// Sets what one word says.
    fn set(&mut self, word: &str) -> Result<(), String> {
        let (name, value) = word.split_once('=').ok_or_else(|| unknown(word))?;
        let wrong = |must: &str| Err(format!("{word}: must be {must}"));
        match name {
            "hosts" => self.hosts = whole(word, value, &HOSTS)?,
            "paths" => self.paths = Some(whole(word, value, &PATHS)?),
            "mtu" => self.mtu_bytes = whole(word, value, &MTU_BYTES)?,
            "rate" if value == UNLIMITED => self.rate = None,
            "rate" if is_rate(value) => self.rate = Some(value.to_owned()),
            "rate" => {
                return wrong("a whole rate from 1kbit to 1000gbit, as 500mbit, or none");
            }
            "loss" => match value.parse() {
                Ok(percent) if LOSS_PERCENT.contains(&percent) => self.loss_percent = percent,
                _ => return wrong("a percentage from 0 to 50"),
            },
            "delay" => match milliseconds(value) {
                Some(delay_ms) if DELAY_MS.contains(&delay_ms) => self.delay_ms = delay_ms,
                _ => return wrong("a time from 1us to 500ms, as 50us or 10ms"),
            },
            "flow" => match megabits(value) {
                Some(mbit) if FLOW_MBIT.contains(&mbit) => self.flow_mbit = Some(mbit),
                _ => return wrong("a rate from 1mbit to 1000gbit, as 500mbit or 5gbit"),
            },
            _ => return Err(unknown(word)),
        }
        Ok(())
    }
}

fn unknown(word: &str) -> String {
    format!(
        "'{word}' is not understood; write direct, or paths=4, then further words with commas \
         between them: rate=500mbit, loss=1, delay=10ms, flow=500mbit, mtu=1500, hosts=4"
    )
}

fn whole(word: &str, value: &str, range: &RangeInclusive<usize>) -> Result<usize, String> {
    match value.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!(
            "{word}: must be a whole number from {} to {}",
            range.start(),
            range.end()
        )),
    }
}

fn is_rate(value: &str) -> bool {
    let kbit = RATE_UNITS.iter().find_map(|(unit, kbit)| {
        let number = value.strip_suffix(unit)?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        number
            .parse::<u64>()
            .ok()
            .filter(|_| is_plain)?
            .checked_mul(*kbit)
    });
    kbit.is_some_and(|kbit| RATE_KBIT.contains(&kbit))
}

fn milliseconds(value: &str) -> Option<f64> {
    let scaled = |unit, factor: f64| Some(value.strip_suffix(unit)?.parse::<f64>().ok()? / factor);
    scaled("us", 1000.0).or_else(|| scaled("ms", 1.0))
}

fn megabits(value: &str) -> Option<usize> {
    let scaled = |unit, factor| {
        value
            .strip_suffix(unit)?
            .parse::<usize>()
            .ok()?
            .checked_mul(factor)
    };
    scaled("mbit", 1).or_else(|| scaled("gbit", 1000))
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut network = Self::default();
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        let name = |word: &str| word.split('=').next().map(str::to_owned);
        for (place, word) in words.iter().enumerate() {
            if words[..place].iter().any(|other| name(other) == name(word)) {
                return Err(format!("{word}: given twice; give it once"));
            }
        }
        let is_direct = words.contains(&"direct");
        if is_direct {
            (network.paths, network.rate) = (None, None);
        }
        for word in words.into_iter().filter(|word| *word != "direct") {
            network.set(word)?;
        }
        if is_direct && network.paths.is_some() {
            return Err("direct is one cable without paths; leave direct or paths out".to_owned());
        }
        if let (None, Some(mbit)) = (network.paths, network.flow_mbit) {
            return Err(format!(
                "flow={mbit}mbit: a switch limits flows, and direct has none; write paths=1 in its \
                 place"
            ));
        }
        if network.paths.is_none() && network.hosts != *HOSTS.start() {
            let hosts = network.hosts;
            return Err(format!(
                "hosts={hosts}: direct joins 2 hosts; leave it out, or write paths=1 in its place"
            ));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.rate.as_deref();
        match self.paths {
            Some(paths) => write!(
                formatter,
                "paths={paths},rate={}",
                rate.unwrap_or(UNLIMITED)
            )?,
            None => write!(formatter, "direct")?,
        }
        if let (None, Some(rate)) = (self.paths, rate) {
            write!(formatter, ",rate={rate}")?;
        }
        if self.loss_percent > 0.0 {
            write!(formatter, ",loss={}", self.loss_percent)?;
        }
        if self.delay_ms > 0.0 {
            write!(formatter, ",delay={}ms", self.delay_ms)?;
        }
        if let Some(mbit) = self.flow_mbit {
            write!(formatter, ",flow={mbit}mbit")?;
        }
        write!(formatter, ",mtu={}", self.mtu_bytes)?;
        if self.hosts != *HOSTS.start() {
            write!(formatter, ",hosts={}", self.hosts)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().expect("good usage")
    }

    #[test]
    fn name_says_every_value_and_is_read_again() {
        for (said, name) in [
            ("direct", "direct,mtu=9000"),
            ("mtu=1500,direct", "direct,mtu=1500"),
            ("direct,rate=1gbit", "direct,rate=1gbit,mtu=9000"),
            ("direct,rate=1000gbit", "direct,rate=1000gbit,mtu=9000"),
            ("direct,rate=1kbit", "direct,rate=1kbit,mtu=9000"),
            ("paths=4", "paths=4,rate=500mbit,mtu=9000"),
            (
                "paths=2,rate=none,loss=1,delay=50us,mtu=1500,hosts=4",
                "paths=2,rate=none,loss=1,delay=0.05ms,mtu=1500,hosts=4",
            ),
            (
                "paths=1,rate=2gbit,flow=1gbit",
                "paths=1,rate=2gbit,flow=1000mbit,mtu=9000",
            ),
        ] {
            assert_eq!(network(said).to_string(), name);
            assert_eq!(network(name), network(said));
        }
    }

    #[test]
    fn script_is_told_what_was_written() {
        let words = |text: &str| network(text).options().join(" ");
        assert_eq!(words("direct,mtu=1500"), "--direct --mtu 1500");
        assert_eq!(words("direct,loss=1"), "--cables 1 --rate none --mtu 9000");
        assert_eq!(
            words("paths=2,hosts=4"),
            "--hosts 4 --paths 2 --rate 500mbit --mtu 9000"
        );
        let faults: Vec<String> = network("paths=1,loss=0.5,flow=500mbit,delay=2ms")
            .faults()
            .iter()
            .map(|words| words.join(" "))
            .collect();
        assert_eq!(faults, ["loss all 0.5", "delay all 2ms", "flow-limit 500"]);
        assert_eq!(
            network("paths=1,hosts=4").host_names(),
            ["a0", "b1", "a2", "b3"]
        );
    }

    #[test]
    fn what_cannot_be_made_is_refused_with_the_limit() {
        for (text, part) in [
            ("", "write direct, or paths=4"),
            ("paths", "'paths' is not understood"),
            ("speed=4", "'speed=4' is not understood"),
            ("paths=0", "paths=0: must be a whole number from 1 to 64"),
            ("direct,mtu=9", "from 1280 to 65535"),
            ("paths=1,rate=500", "500mbit, or none"),
            ("paths=1,rate=0mbit", "from 1kbit to 1000gbit"),
            ("paths=1,rate=-5mbit", "from 1kbit to 1000gbit"),
            ("paths=1,rate=+5mbit", "from 1kbit to 1000gbit"),
            ("direct,rate=1001gbit", "from 1kbit to 1000gbit"),
            ("direct,rate=20000000000000gbit", "from 1kbit to 1000gbit"),
            ("paths=1,loss=51", "from 0 to 50"),
            ("paths=1,loss=NaN", "from 0 to 50"),
            ("paths=1,delay=3", "1us to 500ms"),
            ("paths=1,flow=0mbit", "from 1mbit to 1000gbit"),
            ("paths=1,flow=5", "from 1mbit to 1000gbit"),
            ("direct,flow=500mbit", "write paths=1 in its place"),
            ("paths=1,hosts=1", "from 2 to 64"),
            ("paths=1,paths=2", "given twice"),
            ("direct,paths=2", "leave direct or paths out"),
            ("direct,hosts=4", "direct joins 2 hosts"),
        ] {
            let error = text.parse::<Network>().expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
