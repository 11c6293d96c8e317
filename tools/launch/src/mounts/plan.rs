// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a job of `weft run` does about `--mount`: decided before it starts.
//!
//! Called by `job.rs`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use weft_job::mount::check_all;
use weft_job::size::ShmSize;

use crate::arguments::Arguments;
use crate::command::Launch;
use crate::fault::Fault;
use crate::job_key;
use crate::mounts::holder::Holder;
use crate::mounts::keeper_request::KeeperRequest;
use crate::mounts::nodes::Nodes;
use crate::mounts::{ENTER, JOIN, variables};
use crate::rank_arguments::Variable;
use crate::stderr::say;
use crate::transport::Settings;

/// What is mounted for a job, and how the ranks come to it.
#[derive(Debug)]
pub(crate) struct Plan {
    wants: KeeperRequest,
    weft: PathBuf,
    /// On each host by its node agent, and each rank goes in; else the launcher does.
    is_elsewhere: bool,
}

impl Plan {
    /// What was asked for; `None` where that is nothing. `shm_size` is what this host has allowed,
    /// `hosts` are those of the ranks, if they were named.
    ///
    /// # Errors
    /// `Fault::Usage` where two buckets want the same folder.
    pub(crate) fn of(
        arguments: &Arguments,
        shm_size: Option<ShmSize>,
        mark: &str,
        hosts: Option<Vec<String>>,
    ) -> Result<Option<Self>, Fault> {
        let mounts = arguments.mounts.clone();
        if mounts.is_empty() {
            return Ok(None);
        }
        check_all(&mounts).map_err(|why| Fault::Usage(format!("--mount: {}", why.text())))?;
        let weft = std::env::current_exe().map_err(Fault::system("finding the path of weft"))?;
        let is_elsewhere = hosts.is_some();
        // The mark is random.
        let seed = u64::from_str_radix(&mark[..mark.len().min(15)], 16).unwrap_or(0);
        // Each node agent sees the job from its own host.
        let nodes = hosts.and_then(|hosts| {
            let first = hosts.first().cloned()?;
            Nodes::new(hosts, &first, seed)
        });
        let wants = KeeperRequest {
            name: KeeperRequest::name(mark),
            first: None,
            shm_size,
            mounts,
            nodes,
        };
        Ok(Some(Self {
            wants,
            weft,
            is_elsewhere,
        }))
    }

    /// What node agents are to mount.
    pub(crate) fn elsewhere(&self) -> Option<KeeperRequest> {
        self.is_elsewhere.then(|| self.wants.clone())
    }

    /// The variables that node agents give to what mounts there: those of stores, and the key of
    /// the mounts, which no rank has. `given` is what `--env` sets.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub(crate) fn variables_elsewhere(
        &self,
        given: &[Variable],
    ) -> Result<BTreeMap<String, OsString>, Fault> {
        let mut all = variables();
        if self.is_elsewhere && self.wants.nodes.is_some() {
            all.extend(job_key::of_mounts(given)?);
        }
        Ok(all)
    }

    /// Has the ranks go in on their hosts, before anything else that starts them.
    pub(crate) fn before_ranks(&self, settings: &mut Settings) {
        if self.is_elsewhere {
            let words = ["mounts", JOIN, &self.wants.name].map(OsString::from);
            let words = std::iter::once(self.weft.clone().into()).chain(words);
            settings.before_program.splice(..0, words);
        }
    }

    /// Mounts on this machine, where all ranks run, and has the launcher start inside.
    ///
    /// # Errors
    /// `Fault::Limit`: why it cannot be mounted, and what to do.
    pub(crate) fn begin(&self, launch: &mut Launch, is_dry: bool) -> Result<Option<Holder>, Fault> {
        if self.is_elsewhere {
            return Ok(None);
        }
        if is_dry {
            say!(
                "weft: note: what --mount mounts is not in this command; weft run mounts it first"
            );
            return Ok(None);
        }
        let started = Holder::start(&self.wants, &variables());
        let holder = started.map_err(|why| Fault::Limit(format!("--mount {why}")))?;
        let words = ["mounts", ENTER, &holder.pid().to_string()].map(Into::into);
        let first = std::iter::once(self.weft.clone().into());
        launch.start_by(first.chain(words).collect());
        Ok(Some(holder))
    }
}
