// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The benchmarks without the rest of `weft`: `mpiexec -n 2 target/release/examples/bench latency`.

use std::process::ExitCode;

fn main() -> ExitCode {
    weft_bench::run(std::env::args_os().skip(1).collect()).into()
}
