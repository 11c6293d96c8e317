// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Joins a mount to its job: opens the endpoint, asks the other mounts through it, and answers
//! them. docs/job-cache.md. [`crate::serving`] calls it.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use weft_fabric::{Asked, Fabric, Settings};
use weft_files::shared::answers;
use weft_files::{Neighbours, SharedFiles, Unreached};
use weft_udp::seal::{JobKey, Trust};

use crate::log;
use crate::mount_error::MountError;
use crate::options::JobOptions;

/// The other mounts, by the endpoint.
struct ByFabric(Fabric);

#[async_trait]
impl Neighbours for ByFabric {
    fn own(&self) -> usize {
        self.0.own()
    }

    fn node_count(&self) -> usize {
        self.0.node_count()
    }

    async fn ask(&self, node: usize, question: Bytes) -> Result<Bytes, Unreached> {
        Ok(self.0.ask(node, question).await?)
    }

    async fn ask_soon(
        &self,
        node: usize,
        question: Bytes,
        patience: Duration,
    ) -> Result<Bytes, Unreached> {
        Ok(self.0.ask_soon(node, question, patience).await?)
    }
}

/// The other mounts, and what they ask.
pub type Joined = (Arc<dyn Neighbours>, UnboundedReceiver<Asked>);

/// The other mounts, if this mount is in a job. One that a launcher holds goes on by itself where
/// it cannot join, and tells why; unless others shall write its files, too.
///
/// # Errors
/// Addresses that are none, a place in the list that is none, no key.
pub fn join(options: &JobOptions, is_held: bool) -> Result<Option<Joined>, MountError> {
    let (Some(nodes), Some(own)) = (&options.job_nodes, options.job_node) else {
        return Ok(None);
    };
    match joined(nodes, own) {
        Err(error) if is_held && !options.shared_writes => {
            log::tell(&format!(
                "{error}. This mount fetches by itself what the job reads on this host"
            ));
            Ok(None)
        }
        joined => joined.map(Some),
    }
}

fn joined(nodes: &[String], own: usize) -> Result<Joined, MountError> {
    let addresses: Result<Vec<_>, _> = nodes.iter().map(|node| address(node)).collect();
    let mut addresses = addresses?;
    if own >= addresses.len() {
        return Err(MountError::Usage(format!(
            "--job-node is {own}, and --job-nodes has {} nodes, from 0 on",
            addresses.len()
        )));
    }
    addresses[own] = own_address(&addresses, own);
    let settings = Settings {
        nodes: addresses,
        own,
        trust: trust()?,
        tell: log::tell,
    };
    let (fabric, asked) = Fabric::open(settings).map_err(|cause| {
        MountError::Usage(format!(
            "cannot join the job at {}: {cause}. Give each host an address of its own",
            nodes[own]
        ))
    })?;
    Ok((Arc::new(ByFabric(fabric)), asked))
}

/// The address of `HOST:PORT`; of several the first of IPv4, so that all hosts choose alike.
fn address(node: &str) -> Result<SocketAddr, MountError> {
    let found = node.to_socket_addrs().map_err(|error| error.to_string());
    let found = found.and_then(|found| {
        let all: Vec<SocketAddr> = found.collect();
        let chosen = all.iter().find(|address| address.is_ipv4());
        chosen.or(all.first()).copied().ok_or("no address".into())
    });
    found.map_err(|error| {
        MountError::Usage(format!(
            "`{node}` of --job-nodes is no address: {error}. Give HOST:PORT"
        ))
    })
}

/// Where the others reach this host. Its own name often stands for loopback here and for an
/// interface elsewhere; then it is the address from which another host is reached.
fn own_address(addresses: &[SocketAddr], own: usize) -> SocketAddr {
    let named = addresses[own];
    let outside = addresses.iter().find(|address| !address.ip().is_loopback());
    let (true, Some(outside)) = (named.ip().is_loopback(), outside) else {
        return named;
    };
    let towards = || -> std::io::Result<IpAddr> {
        let any: IpAddr = match outside {
            SocketAddr::V4(_) => [0; 4].into(),
            SocketAddr::V6(_) => [0; 16].into(),
        };
        // Connecting sends nothing; it chooses the address.
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect(outside)?;
        Ok(socket.local_addr()?.ip())
    };
    towards().map_or(named, |ip| SocketAddr::new(ip, named.port()))
}

/// The job's key, from the environment, as for the provider.
fn trust() -> Result<Trust, MountError> {
    let set = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let job_key = match set("FI_WEFT_JOB_KEY").map(|text| JobKey::parse(&text)) {
        Some(Err(error)) => {
            return Err(MountError::Usage(format!(
                "FI_WEFT_JOB_KEY is no key: {error}"
            )));
        }
        Some(Ok(key)) => Some(key),
        None => None,
    };
    let trust = Trust {
        job_key,
        job_key_file: set("FI_WEFT_JOB_KEY_FILE").map(Into::into),
        encrypt: set("FI_WEFT_ENCRYPT").is_some_and(|text| text != "0"),
        trust_network: false,
    };
    if trust.reaches_hosts() {
        return Ok(trust);
    }
    Err(MountError::Usage(
        "mounts of a job need its key: start them with weft run, or set FI_WEFT_JOB_KEY to the \
         same 64 hexadecimal digits for all (openssl rand -hex 32)"
            .to_owned(),
    ))
}

/// Answers the other mounts until the mount ends.
pub fn answer(runtime: &Handle, files: Arc<SharedFiles>, mut asked: UnboundedReceiver<Asked>) {
    let handle = runtime.clone();
    runtime.spawn(async move {
        while let Some(asked) = asked.recv().await {
            let files = Arc::clone(&files);
            handle.spawn(async move {
                let answer = answers::answer(&files, asked.node, asked.question.clone()).await;
                asked.answer(answer);
            });
        }
    });
}
