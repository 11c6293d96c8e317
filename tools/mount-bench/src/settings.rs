// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command line of `weft bench mount`.

use std::path::PathBuf;

use clap::Parser;

use crate::loads::{self, Load};
use crate::peers::{Kind, Peer};

/// The options, checked.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "weft bench mount",
    about = "Measure weft-mount beside other programs that mount buckets, in turns, on an S3 \
        server of the tests",
    after_help = "`make bench-mount` builds the server and the programs, and runs this. Mounting \
        needs root; loads need fio, tar and find.\n\
        Exit codes: 0 all ran; 1 a run failed; 2 wrong usage."
)]
pub struct Settings {
    /// What to do in the mounted folder [default: all]
    #[arg(value_name = "LOAD", value_parser = loads::named)]
    pub loads: Vec<&'static Load>,
    /// The command of the S3 server: weft-bucket-server, from a release build
    #[arg(long, value_name = "COMMAND")]
    pub server: PathBuf,
    /// A program that takes part: weft, weft-async, weft-ttl, mountpoint, mountpoint-ttl, rclone
    /// or s3fs, and its command; once for each program. `local=` is a folder of the local disk
    #[arg(long = "peer", value_name = "NAME=COMMAND", value_parser = peer, required = true)]
    pub peers: Vec<Peer>,
    /// How often each program runs each load
    #[arg(long, short, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Seconds after which a run is ended; it then counts as that long
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// A new folder for the page and the runs as JSON
    #[arg(long, value_name = "FOLDER", default_value = "report/mount")]
    pub out: PathBuf,
}

fn peer(text: &str) -> Result<Peer, String> {
    let (name, command) = text
        .split_once('=')
        .ok_or("give NAME=COMMAND, as weft=dist/bin/weft-mount")?;
    let kind = Kind::named(name).ok_or_else(|| format!("`{name}` is none of {}", Kind::names()))?;
    Ok(Peer {
        kind,
        command: command.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Settings, clap::Error> {
        Settings::try_parse_from([&["mount", "--server", "s"], words].concat())
    }

    #[test]
    fn peers_and_loads_are_known_by_name() {
        let settings = parse(&["--peer", "weft=w", "--peer", "s3fs=/a=b", "list"]).unwrap();
        assert_eq!(settings.peers[1].command, PathBuf::from("/a=b"));
        assert_eq!(settings.loads[0].name, "list");
        for wrong in [&["--peer", "nobody=x"][..], &["--peer", "weft"], &[]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse(&["--peer", "weft=w", "nothing"]).is_err());
    }
}
