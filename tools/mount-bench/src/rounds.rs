// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All runs. In each round every peer runs the load once, each on a fresh mount. So a disturbance
//! of the machine meets all peers alike.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use weft_ranks::say;

use crate::fault::Fault;
use crate::loads::{self, Load};
use crate::local;
use crate::peers::{Kind, Mount, Peer};
use crate::server::Server;
use crate::settings::Settings;

/// One run of one peer.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// The load's name.
    pub load: &'static str,
    /// The peer's name.
    pub peer: &'static str,
    /// From 0 on.
    pub round: u32,
    /// In the load's unit; nothing where the run failed.
    pub figure: Option<f64>,
    /// The run was ended at the limit, and counts as so long.
    pub is_cut: bool,
    /// What failed.
    pub failure: Option<String>,
    /// What the program asked for, in bytes.
    pub asked_bytes: u64,
    /// What the server counted: requests by their names, bytes.
    pub counters: Value,
    /// The most memory that the mount's process had, in bytes.
    pub resident_bytes: u64,
}

/// Runs everything.
///
/// # Errors
/// Where there is no server. Runs that fail are among the answer.
pub fn all(settings: &Settings) -> Result<Vec<Run>, Fault> {
    let server = Server::start(&settings.server)?;
    loads::fill(&server)?;
    let chosen: Vec<&Load> = if settings.loads.is_empty() {
        loads::ALL.iter().collect()
    } else {
        settings.loads.clone()
    };
    let are_all = settings.loads.is_empty();
    let limit = Duration::from_secs(settings.limit);
    let mut runs = Vec::new();
    for load in chosen {
        for round in 0..settings.rounds {
            for peer in &settings.peers {
                if are_all && !is_for(load, peer.kind) {
                    continue;
                }
                let run = one(&server, load, peer, round, limit)?;
                let figure = run
                    .figure
                    .map_or("failed".to_owned(), |figure| format!("{figure:.3}"));
                say!("{} {round} {}: {figure} {}", load.name, run.peer, load.unit);
                runs.push(run);
            }
        }
    }
    Ok(runs)
}

fn one(
    server: &Server,
    load: &Load,
    peer: &Peer,
    round: u32,
    limit: Duration,
) -> Result<Run, Fault> {
    let mut run = Run {
        load: load.name,
        peer: peer.kind.name(),
        round,
        figure: None,
        is_cut: false,
        failure: None,
        asked_bytes: 0,
        counters: Value::Null,
        resident_bytes: 0,
    };
    let mounted = match peer.kind {
        Kind::Local => Mount::of_local_disk(|folder| local::make(load, folder)),
        _ => Mount::new(peer, server),
    };
    let mount = match mounted {
        Ok(mount) => mount,
        Err(fault) => {
            run.failure = Some(fault.to_string());
            return Ok(run);
        }
    };
    server.begin(&load.network.settings())?;
    match (load.work)(&mount.folder(), limit) {
        Ok(outcome) => {
            run.figure = Some(outcome.figure);
            run.is_cut = outcome.is_cut;
            run.asked_bytes = outcome.asked_bytes;
        }
        Err(fault) => run.failure = Some(fault.to_string()),
    }
    run.counters = server.counters()?;
    run.resident_bytes = mount.resident_bytes();
    server.end()?;
    Ok(run)
}

/// Whether a peer runs a load where all loads are run: its figure says something then.
fn is_for(load: &Load, kind: Kind) -> bool {
    match kind {
        Kind::Local => local::has(load),
        // Only who closes files waits until they are published.
        Kind::WeftAsync => load.name.starts_with("unpack"),
        Kind::WeftTtl | Kind::MountpointTtl => load.name == "list-again",
        // The first takes names that are known for longer than a listing, the other an hour.
        _ => !matches!(load.name, "list-again" | "unpack-10000"),
    }
}
