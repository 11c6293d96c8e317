// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft-fuzz TARGET [--seconds N] [--seed N]`: runs one target for long. Exit code 1 on a finding,
//! 2 on wrong use.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use weft_fuzz::{TARGETS, driver};

fn usage(why: &str) -> ExitCode {
    let names = TARGETS.map(|(name, _)| name).join(", ");
    eprintln!(
        "weft-fuzz: {why}; write weft-fuzz TARGET [--seconds N] [--seed N], with a target of \
         {names}"
    );
    ExitCode::from(2)
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(name) = words.next() else {
        return usage("no target was named");
    };
    let Some((_, target)) = TARGETS.iter().find(|(known, _)| *known == name) else {
        return usage(&format!("there is no target {name}"));
    };
    let clock = SystemTime::now().duration_since(UNIX_EPOCH);
    let (mut seed, mut seconds) = (clock.map_or(1, |since| since.as_nanos() as u64), 60);
    while let Some(word) = words.next() {
        let value = words.next().and_then(|text| text.parse().ok());
        match (word.as_str(), value) {
            ("--seed", Some(value)) => seed = value,
            ("--seconds", Some(value)) => seconds = value,
            _ => return usage(&format!("{word} is no option, or has no number behind it")),
        }
    }
    eprintln!("{name}: {seconds} s from seed {seed}");
    match driver::run(*target, seed, Duration::from_secs(seconds)) {
        Ok(count) => {
            println!("{name}: {count} inputs passed");
            ExitCode::SUCCESS
        }
        Err(finding) => {
            println!(
                "{name}: a finding after {} inputs: weft-fuzz {name} --seconds 0 --seed {}",
                finding.passed_count, finding.seed
            );
            ExitCode::from(1)
        }
    }
}
