// SPDX-License-Identifier: Apache-2.0 OR MIT
//! First contact: finding a remote's region, checking who holds it, and claiming a slot in it.
//!
//! It must not need luck. Connecting to the remote's listener succeeds whether or not the remote is in the
//! library, and names its process and user; where /proc allows it we then open the region file ourselves, and
//! the remote need not do anything. Else we wait for it to hand the file over, and sends wait meanwhile.
//! Called by send and answer; continued by housekeeping.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use weft_contract::{RemoteId, TransferError};
use weft_memory::{Mapping, Reserved};
use weft_os::local_socket::Connection;
use weft_os::process_id::ProcessId;
use weft_os::{clock, crash_point, interface, process, region_file};
use weft_ring::layout::{LANE_BYTES, SHARED_BYTES, SLOT_COUNT};
use weft_ring::{AttachError, Pool, Producer, Region, map_lane};

use crate::backing;
use crate::own::{listener_name, region_name};
use crate::remote::{Attached, Attempt, Link, warm_lane, warm_pipe};
use crate::send::WIDE_LANES;
use crate::transport::Transport;
use crate::views::Views;

/// How long a remote whose slots are all taken is asked again. Chosen: an owner that makes progress looks after the dead ten
/// times a second, and frees what they held.
const FULL_LIMIT_NS: u64 = 2_000_000_000;

/// Why a region that was found is not used now.
enum Obstacle {
    /// It never will be.
    Lasting(TransferError),
    /// All its slots are taken; some of them by the dead, perhaps.
    Full,
    /// Its owner is another process than the one that sends to us from its address: that one is to be lost first.
    Replaced,
}

impl Transport {
    /// Makes sure that `remote` is in contact, or on the way there, or known to be out of reach. Cheap if it is
    /// in contact; else slow path.
    #[inline(always)]
    pub(crate) fn contact(&mut self, remote: RemoteId) {
        if !matches!(self.remotes[remote.index()].link, Link::Ready(_)) {
            self.make_contact(remote);
        }
    }

    #[cold]
    fn make_contact(&mut self, remote: RemoteId) {
        let entry = &self.remotes[remote.index()];
        if !matches!(entry.link, Link::Unknown) || entry.attempt.is_replaced {
            return;
        }
        let link = if self.own.is_at(entry.address) {
            let whole = self.own.region.mapping().clone();
            let region = self.own.region.clone();
            self.attach_file(remote, region, process::own_pid(), |_| Ok(whole))
                .unwrap_or_else(|why| self.put_off(remote, why))
        } else {
            self.reach(remote)
        };
        self.set_link(remote, link);
    }

    /// Tells the user that a remote cannot be reached, once for each reason: whoever names its address again and again waits for it.
    fn report_failure(&mut self, remote: RemoteId, why: TransferError) {
        let entry = &mut self.remotes[remote.index()];
        if entry.told.replace(why) == Some(why) {
            return;
        }
        let address = entry.address;
        (self.settings.report)(&match why {
            TransferError::VersionMismatch => format!(
                "the process at {address} loaded another version of libweft-fi.so, with another memory layout (ours is {}); \
                 let all ranks of the job load the same file",
                weft_ring::layout::LAYOUT_VERSION
            ),
            TransferError::NoMemory => format!(
                "no shared memory with {address}: its region, {} MiB of addresses, cannot be \
                 mapped; see the limits of this job on memory (ulimit -v, cgroup) and on mappings \
                 (vm.max_map_count){}{}",
                (SHARED_BYTES + LANE_BYTES) >> 20,
                weft_os::limits::in_words(),
                if self.settings.has_other_way {
                    "; its messages go over the network"
                } else {
                    "; with a key (FI_WEFT_JOB_KEY) they would go over the network"
                }
            ),
            _ => format!("no contact with {address}: {why}"),
        });
    }

    /// What becomes of a contact that cannot be made now.
    fn put_off(&mut self, remote: RemoteId, why: Obstacle) -> Link {
        let attempt = &mut self.remotes[remote.index()].attempt;
        match why {
            Obstacle::Lasting(why) => Link::Failed(why),
            Obstacle::Replaced => {
                attempt.is_replaced = true;
                self.lost_again.push((remote, TransferError::RemoteLost));
                Link::Unknown
            }
            Obstacle::Full => {
                let now_ns = clock::monotonic_ns();
                if attempt.full_since_ns == 0 {
                    attempt.full_since_ns = now_ns;
                }
                if now_ns - attempt.full_since_ns < FULL_LIMIT_NS {
                    return Link::Unknown;
                }
                (self.settings.report)(&format!(
                    "all {SLOT_COUNT} places for senders at {} are taken by processes that live: as many of one machine can \
                     send to one endpoint",
                    self.remotes[remote.index()].address
                ));
                self.remotes[remote.index()].told = Some(TransferError::NoMemory);
                Link::Failed(TransferError::NoMemory)
            }
        }
    }

    fn set_link(&mut self, remote: RemoteId, link: Link) {
        if self.settings.has_other_way && matches!(link, Link::Failed(TransferError::NoMemory)) {
            self.report_failure(remote, TransferError::NoMemory);
            self.remotes[remote.index()].link = Link::Elsewhere { is_told: false };
            self.lost_again.push((remote, TransferError::NoMemory));
            return;
        }
        match &link {
            Link::Ready(_) => {
                self.statistics.remotes += 1;
                let entry = &mut self.remotes[remote.index()];
                entry.told = None;
                entry.attempt = Attempt::default();
            }
            Link::Failed(why) => self.report_failure(remote, *why),
            _ => {}
        }
        let entry = &mut self.remotes[remote.index()];
        if let Link::Failed(why) = link
            && (entry.watched || entry.inbound.is_some())
        {
            // Somebody waits for what now never comes, or its lane is to be freed.
            self.lost_again.push((remote, why));
        }
        entry.link = link;
    }

    /// Connects to the remote and takes its region, with or without its help.
    fn reach(&mut self, remote: RemoteId) -> Link {
        let address = self.remotes[remote.index()].address;
        let (connection, who) = match Connection::open_own(&listener_name(address)) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Link::Failed(TransferError::NotPermitted);
            }
            // Too many wait for it at this moment: try again with the next send.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Link::Unknown,
            Err(_) if interface::is_own(address.ip()) => {
                return Link::Failed(TransferError::RemoteLost);
            }
            Err(_) => return Link::Failed(TransferError::Unreachable),
        };
        crash_point!(5, "contact: connected, the region not opened");
        if who.pid != 0
            && let Ok(file) =
                process::open_memfd_of(who.pid, &region_name(address), self.own.file.as_raw_fd())
        {
            return self.attach(remote, file, who.pid);
        }
        crash_point!(6, "contact: the region is asked for");
        let process = ProcessId::of(who.pid, &self.own.identity.process);
        // Whoever takes messages of a remote must be able to answer it: now is when that is known.
        match Reserved::new(self.own.file.as_fd(), SHARED_BYTES + LANE_BYTES) {
            Ok(reserved) => Link::Asking(connection, process, reserved),
            Err(_) => Link::Failed(TransferError::NoMemory),
        }
    }

    /// Looks whether a remote that was asked for its region has sent it; true when the question is settled.
    pub(crate) fn continue_asking(&mut self, remote: RemoteId) -> bool {
        let Link::Asking(connection, process, reserved) = &mut self.remotes[remote.index()].link
        else {
            return true;
        };
        let link = match connection.receive_file() {
            Ok(None) => return false,
            Ok(Some(file)) => {
                let pid = process.map_or(0, |process| process.pid);
                reserved.give_back();
                self.attach(remote, file, pid)
            }
            Err(_) => Link::Failed(TransferError::RemoteLost),
        };
        self.set_link(remote, link);
        true
    }

    fn attach(&mut self, remote: RemoteId, file: OwnedFd, pid: u32) -> Link {
        if !region_file::may_be_mapped(file.as_fd()) {
            return Link::Failed(TransferError::Corrupt);
        }
        match Region::attach(file.as_fd()) {
            Ok(region) => {
                crash_point!(7, "contact: the region is mapped, no slot claimed");
                let lane = |slot| map_lane(file.as_fd(), slot);
                let link = match self.attach_file(remote, region, pid, lane) {
                    Ok(link) => link,
                    Err(why) => return self.put_off(remote, why),
                };
                let mut link = reserved(link, file.as_fd());
                if let Link::Ready(attached) = &mut link
                    && self.housekeeping.has_few_ranks
                    && self.statistics.remotes < u64::from(WIDE_LANES)
                    && backing::grows(file.as_fd())
                {
                    attached.warm();
                    warm_pipe(&attached.region);
                }
                link
            }
            Err(error) => Link::Failed(why_not_attached(error)),
        }
    }

    /// Claims a slot in a region, whose lane is then mapped with `lane`.
    fn attach_file(
        &self,
        remote: RemoteId,
        region: Region,
        pid: u32,
        lane: impl FnOnce(usize) -> Result<Mapping, AttachError>,
    ) -> Result<Link, Obstacle> {
        let address = self.remotes[remote.index()].address;
        let owner = region.owner();
        if !is_same_endpoint(owner.address, address) {
            return Err(Obstacle::Lasting(TransferError::Corrupt));
        }
        if self
            .sender_at(remote)
            .is_some_and(|known| known.incarnation != owner.incarnation)
        {
            return Err(Obstacle::Replaced);
        }
        let slot = region
            .slots()
            .claim(&self.own.facing(address))
            .ok_or(Obstacle::Full)?;
        let lane = lane(slot).map_err(|error| {
            // Nobody has heard of the claim yet.
            region.slots().free(slot);
            Obstacle::Lasting(why_not_attached(error))
        })?;
        let ends = (Producer::attach(&lane, slot), Pool::attach(&lane, slot));
        let (Some(producer), Some(pool)) = ends else {
            return Err(Obstacle::Lasting(TransferError::Corrupt));
        };
        Ok(Link::Ready(Box::new(Attached {
            producer,
            pool,
            region,
            lane,
            owner,
            slot,
            pid,
            single_copy: None,
            heap: None,
            heard_bytes: 0,
            row: 0,
            long_bytes: 0,
            is_warm: false,
            views: Views::default(),
        })))
    }

    /// A remote that will send to us: the pages that long messages of its come through are made now, in this process, too, if there are few
    /// ranks and it is one of the first.
    pub(crate) fn expect_long(&mut self, remote: RemoteId, slot: usize) {
        let lanes = self.inbound.iter().flatten().count();
        let entry = &mut self.remotes[remote.index()];
        if !self.housekeeping.has_few_ranks
            || lanes > WIDE_LANES as usize
            || self.own.is_at(entry.address)
            || !backing::grows(self.own.file.as_fd())
        {
            return;
        }
        warm_lane(self.own.region.mapping(), slot);
        warm_pipe(&self.own.region);
        entry.piped.skip_first();
        entry.parted.skip_first();
    }
}

fn why_not_attached(error: AttachError) -> TransferError {
    match error {
        AttachError::OtherLayout { .. } => TransferError::VersionMismatch,
        AttachError::NotMapped(_) => TransferError::NoMemory,
        AttachError::NotARegion => TransferError::Corrupt,
        AttachError::Closed => TransferError::RemoteLost,
    }
}

/// The link, if the pages of our lane are sure to be there.
fn reserved(mut link: Link, file: BorrowedFd<'_>) -> Link {
    let Link::Ready(attached) = &mut link else {
        return link;
    };
    if backing::reserve_lane(file, attached.slot).is_err() {
        // Nobody has heard of the claim yet.
        attached.region.slots().free(attached.slot);
        return Link::Failed(TransferError::NoMemory);
    }
    if !backing::grows(file) {
        attached.long_bytes = u64::MAX; // never wide: those pages are not reserved
    }
    link
}

/// Whether a region's owner may be found under `address`: it is its own, or another one of this host that it listens at.
fn is_same_endpoint(owner: SocketAddr, address: SocketAddr) -> bool {
    owner == address
        || (owner.port() == address.port()
            && interface::is_own(owner.ip())
            && interface::is_own(address.ip()))
}
