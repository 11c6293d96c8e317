// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft sim` on its own: `cargo run --release -p weft-netsim --example sim -- incast`.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(weft_netsim::run(std::env::args_os().skip(1).collect()))
}
