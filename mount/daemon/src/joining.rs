// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A mount's part in its job: opens the endpoint, asks the other mounts by it, and answers them.
//! docs/job-cache.md. [`crate::serving`] calls it.

use std::net::ToSocketAddrs;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedReceiver;
use weft_fabric::{Asked, Fabric, Settings};
use weft_files::{BucketFiles, Neighbours, Unreached};
use weft_udp::seal::{JobKey, Trust};

use crate::log;
use crate::options::JobOptions;
use crate::trouble::Trouble;

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
}

/// The other mounts, and what they ask.
pub type Joined = (Arc<dyn Neighbours>, UnboundedReceiver<Asked>);

/// The other mounts, if this mount is in a job.
///
/// # Errors
/// Addresses that are none, a place in the list that is none, no key.
pub fn join(options: &JobOptions) -> Result<Option<Joined>, Trouble> {
    let (Some(nodes), Some(own)) = (&options.job_nodes, options.job_node) else {
        return Ok(None);
    };
    let mut addresses = Vec::new();
    for node in nodes {
        let found = node.to_socket_addrs().map_err(|error| error.to_string());
        let found = found.and_then(|mut found| found.next().ok_or("no address".to_owned()));
        addresses.push(found.map_err(|error| {
            Trouble::Usage(format!(
                "`{node}` of --job-nodes is no address: {error}. Give HOST:PORT"
            ))
        })?);
    }
    if own >= addresses.len() {
        return Err(Trouble::Usage(format!(
            "--job-node is {own}, and --job-nodes has {} nodes, from 0 on",
            addresses.len()
        )));
    }
    let settings = Settings {
        nodes: addresses,
        own,
        trust: trust()?,
        tell: log::tell,
    };
    let (fabric, asked) = Fabric::open(settings).map_err(|cause| {
        Trouble::Usage(format!(
            "cannot join the job at {}: {cause}. Give each host an address of its own",
            nodes[own]
        ))
    })?;
    Ok(Some((Arc::new(ByFabric(fabric)), asked)))
}

/// The job's key, from the environment, as for the provider.
fn trust() -> Result<Trust, Trouble> {
    let set = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let job_key = match set("FI_WEFT_JOB_KEY").map(|text| JobKey::parse(&text)) {
        Some(Err(error)) => {
            return Err(Trouble::Usage(format!(
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
    Err(Trouble::Usage(
        "mounts of a job need its key: start them with weft run, or set FI_WEFT_JOB_KEY to the \
         same 64 hexadecimal digits for all (openssl rand -hex 32)"
            .to_owned(),
    ))
}

/// Answers the other mounts until the mount ends.
pub fn answer(runtime: &Handle, files: Arc<BucketFiles>, mut asked: UnboundedReceiver<Asked>) {
    let handle = runtime.clone();
    runtime.spawn(async move {
        while let Some(asked) = asked.recv().await {
            let files = Arc::clone(&files);
            handle.spawn(async move {
                let answer = files.answer(asked.question.clone()).await;
                asked.answer(answer);
            });
        }
    });
}
