// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Starts the processes of a job on their hosts, each at an address of its own.
//!
//! Called by the crew; a thread for each process reads what it says.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;

use super::process::Process;
use super::setting::Setting;
use crate::control::{Peer, Role, Word};
use crate::network::Host;
use crate::random::seed_of;
use crate::schedule::{self, DEAD_AFTER_S};
use crate::traffic::Life;

/// Ports of a rank. Chosen: more than an endpoint opens.
const PORTS: u16 = 64;

/// What a worker says.
pub(super) struct Heard {
    pub(super) life: Life,
    /// `None` when its output has ended.
    pub(super) word: Option<Word>,
}

/// What starts processes.
pub(super) struct Starter {
    pub(super) setting: Setting,
    pub(super) job: schedule::Job,
    hosts: Vec<Host>,
    base_port: u16,
}

impl Starter {
    pub(super) fn new(setting: Setting, job: schedule::Job, hosts: Vec<Host>) -> Self {
        // On this machine's loopback others have ports too.
        let spread = if setting.is_divided {
            0
        } else {
            std::process::id() as u16 % 300
        };
        Self {
            setting,
            job,
            hosts,
            base_port: 11_000 + spread * 32,
        }
    }

    fn host(&self, rank: u8) -> &Host {
        &self.hosts[usize::from(rank) % self.hosts.len()]
    }

    fn address(&self, rank: u8) -> SocketAddr {
        let port = self.base_port + u16::from(rank) * PORTS;
        (self.host(rank).address, port).into()
    }

    fn talk_file(&self) -> PathBuf {
        self.setting.folder.join("talk")
    }

    /// Starts a process, whose words come through `speaker`.
    pub(super) fn start(&self, life: Life, speaker: Sender<Heard>) -> io::Result<Process> {
        let role = Role {
            life,
            address: self.address(life.rank),
            libfabric: self.setting.libfabric.clone(),
            folder: self.setting.folder.clone(),
            traffic: self.job.traffic(),
            queue_entries: self.job.queue_entries,
            receives: self.job.receives,
            window: self.job.window,
            ranks: self.setting.ranks,
        };
        let talk = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.talk_file())?;
        let mut command = self.command(&role, talk)?;
        // Started by the host's thread, it lives in the host's namespace.
        let mut child = self.host(life.rank).run(move || command.spawn())??;
        let output = child.stdout.take();
        let output = output.ok_or_else(|| io::Error::other("a worker without an output"))?;
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(word) = serde_json::from_str(&line) {
                    let _ = speaker.send(Heard {
                        life,
                        word: Some(word),
                    });
                }
            }
            let _ = speaker.send(Heard { life, word: None });
        });
        Ok(Process::new(life, child))
    }

    fn command(&self, role: &Role, talk: File) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        let role = serde_json::to_string(role)?;
        command.args(["soak", "--worker"]).arg(role);
        for (name, _) in std::env::vars_os() {
            let is_libfabrics = name.to_str().is_some_and(|name| name.starts_with("FI_"));
            if is_libfabrics {
                command.env_remove(name);
            }
        }
        let folder = &self.setting.provider_dir;
        command
            .env("FI_PROVIDER_PATH", folder)
            .env("FI_PROVIDER", "weft")
            .env("FI_WEFT_ROUTE", self.job.route)
            .env("FI_WEFT_SINGLE_COPY", self.job.single_copy)
            .env("FI_WEFT_DEAD_AFTER", DEAD_AFTER_S.to_string())
            .env("RUST_BACKTRACE", "1");
        if self.job.has_key {
            let part = |number| seed_of(self.job.seed, &[2, number]);
            let key: String = (0..4)
                .map(|number| format!("{:016x}", part(number)))
                .collect();
            command.env("FI_WEFT_JOB_KEY", key);
            command.env("FI_WEFT_ENCRYPT", if self.job.encrypts { "1" } else { "0" });
        } else {
            command.env("FI_WEFT_TRUST_NETWORK", "1");
        }
        let heap = folder.join("libweft-heap.so");
        if self.job.has_heap && heap.exists() {
            command.env("LD_PRELOAD", heap);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(talk)
            .process_group(0);
        Ok(command)
    }

    pub(super) fn peer(&self, life: Life) -> Peer {
        Peer {
            life,
            address: self.address(life.rank),
        }
    }

    /// The end of what the workers said on standard error.
    pub(super) fn talk(&self) -> String {
        let text = std::fs::read(self.talk_file()).unwrap_or_default();
        let from = text.len().saturating_sub(4_000);
        String::from_utf8_lossy(&text[from..]).into_owned()
    }
}
