// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The command `weft-bucket-server`: starts a server, prints its address, and serves until a signal
//! ends it.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use weft_bucket_server::{Faults, Keys, Options, Server};

/// An S3 server for tests: objects in memory, faults and speeds as asked.
///
/// The first line on stdout is the endpoint, as http://127.0.0.1:PORT. Faults and counters are
/// found at the path /-/ while it runs; every setting of --faults can be changed there.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Where to listen, as HOST:PORT; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0", value_name = "HOST:PORT")]
    listen: String,
    /// A bucket that is there from the start; may be given more than once
    #[arg(long = "bucket", value_name = "NAME")]
    buckets: Vec<String>,
    /// The access key that is taken
    #[arg(long, default_value = "weft", value_name = "KEY")]
    access_key: String,
    /// The secret key that goes with it
    #[arg(long, default_value = "weft-secret", value_name = "KEY")]
    secret_key: String,
    /// A session token that must come along
    #[arg(long, value_name = "TOKEN")]
    session_token: Option<String>,
    /// Take requests without a signature too, as a public bucket does
    #[arg(long)]
    anonymous: bool,
    /// Settings as JSON, as {"first_byte_ms": 30, "connection_rate": 90000000}
    #[arg(long, default_value = "{}", value_name = "JSON")]
    faults: String,
    /// Tags count up rather than being MD5 sums, which saves time on large objects
    #[arg(long)]
    counted_etags: bool,
    /// The least size of a part that is not the last; S3 has 5242880
    #[arg(long, default_value_t = 5 << 20, value_name = "BYTES")]
    least_part: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let faults: Faults = match serde_json::from_str(&arguments.faults) {
        Ok(faults) => faults,
        Err(error) => {
            eprintln!("weft-bucket-server: --faults {}: {error}", arguments.faults);
            return ExitCode::from(2);
        }
    };
    let options = Options {
        listen: arguments.listen,
        buckets: arguments.buckets,
        keys: Keys {
            access_key: arguments.access_key,
            secret_key: arguments.secret_key,
            session_token: arguments.session_token,
        },
        anonymous: arguments.anonymous,
        faults,
        etag_md5: !arguments.counted_etags,
        least_part_bytes: arguments.least_part,
    };
    match serve(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("weft-bucket-server: {error}");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn serve(options: Options) -> std::io::Result<()> {
    let listen = options.listen.clone();
    let server = Server::start(options).await.map_err(|error| {
        std::io::Error::new(error.kind(), format!("cannot listen on {listen}: {error}"))
    })?;
    println!("{}", server.url());
    std::future::pending().await
}
