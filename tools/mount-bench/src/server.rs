// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The S3 server of the tests. This module starts and ends it, and uses its control path
//! (mount/bucket-server/src/control.rs) over plain HTTP. [`crate::rounds`] has one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::fault::Fault;

/// The bucket that peers mount.
pub const BUCKET: &str = "data";

/// A server that runs until this is dropped.
pub struct Server {
    process: Child,
    /// Its address, as `http://127.0.0.1:1234`.
    pub url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Server {
    /// Starts it with an empty bucket.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn start(command: &Path) -> Result<Self, Fault> {
        let failed = Fault::system(format!("start {}", command.display()));
        let mut process = Command::new(command)
            .args(["--bucket", BUCKET, "--counted-etags"])
            .stdout(Stdio::piped())
            .spawn()
            .map_err(&failed)?;
        let mut url = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut url)
                .map_err(&failed)?;
        }
        let url = url.trim().to_owned();
        Ok(Self { process, url })
    }

    /// Makes synthetic objects: `prefix` with a number behind it, if there are several.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn fill(&self, prefix: &str, count: u64, size_bytes: u64) -> Result<(), Fault> {
        let value = json!({"bucket": BUCKET, "prefix": prefix, "count": count, "size": size_bytes});
        self.control("POST", "objects", Some(&value)).map(drop)
    }

    /// Sets how slow it is, and forgets what it counted.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn begin(&self, network: &Value) -> Result<(), Fault> {
        self.control("DELETE", "faults", None)?;
        self.control("POST", "faults", Some(network))?;
        self.control("DELETE", "counters", None).map(drop)
    }

    /// What it counted since.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn counters(&self) -> Result<Value, Fault> {
        self.control("GET", "counters", None)
    }

    /// As fast as it can.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub fn end(&self) -> Result<(), Fault> {
        self.control("DELETE", "faults", None).map(drop)
    }

    fn control(&self, method: &str, path: &str, value: Option<&Value>) -> Result<Value, Fault> {
        let body = value.map(Value::to_string).unwrap_or_default();
        let host = self.url.trim_start_matches("http://");
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(host)?;
            write!(
                stream,
                "{method} /-/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
                 Content-Length: {}\r\n\r\n{body}",
                body.len()
            )?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        let failed = Fault::system(format!("ask the S3 server at {host}"));
        let answer = ask().map_err(failed)?;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        if !head.starts_with("HTTP/1.1 2") {
            return Err(Fault::Server {
                request: format!("{method} {path}"),
                answer: format!("{head}: {body}"),
            });
        }
        Ok(serde_json::from_str(body).unwrap_or(Value::Null))
    }
}
