// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft mount`: replaces itself with `weft-mount`, which is a program of its own because only it
//! uses AWS's SDK. Called by `main.rs`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::process::Command;

use weft_launch::mounts::{PROGRAM, program};

/// What completions and the manual know of it; the options are those of `weft-mount --help`.
pub(crate) fn command_line() -> clap::Command {
    let word =
        |name: &'static str, help: &'static str| clap::Arg::new(name).required(true).help(help);
    clap::Command::new("mount")
        .about("Mount a bucket of S3 on a folder")
        .arg(word("bucket", "The bucket: NAME, or s3://NAME/PREFIX"))
        .arg(word("directory", "An empty folder").value_hint(clap::ValueHint::DirPath))
        .arg(
            clap::Arg::new("options")
                .num_args(0..)
                .allow_hyphen_values(true)
                .help("The options of weft-mount: weft mount --help lists them"),
        )
}

/// Becomes `weft-mount`; answers an exit code only where that cannot be.
pub(crate) fn run(words: Vec<OsString>) -> u8 {
    let program = program();
    let error = Command::new(&program).args(words).exec();
    if error.kind() == ErrorKind::NotFound {
        eprintln!(
            "weft mount: the program {PROGRAM} is neither beside weft nor on the PATH; install the \
             package weft-mount, or call make build-mount in a checkout"
        );
        return 127;
    }
    eprintln!("weft mount: cannot start {}: {error}", program.display());
    126
}
