// SPDX-License-Identifier: Apache-2.0 OR MIT
//! First contact: finding a remote's region, checking who holds it, and claiming a slot in it.
//!
//! It must not need luck. Connecting to the remote's listener succeeds whether or not the remote is
//! in the library, and names its process and user; where /proc allows it we then open the region
//! file ourselves, and the remote need not do anything. Else we wait for it to hand the file over,
//! and sends wait meanwhile. Called by contacts, which keeps what comes of it.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use weft_contract::TransferError;
use weft_memory::{Mapping, Reserved};
use weft_os::process_id::ProcessId;
use weft_os::{crash_point, interface, own_listener, process, region_file};
use weft_ring::layout::{LANE_BYTES, SHARED_BYTES};
use weft_ring::{AttachError, Region, map_lane};

use crate::contact::attached::{Attached, warm_pipe};
use crate::contact::backing;
use crate::contact::outbound::Outbound;
use crate::contact::own::{Own, listener_name, region_name};
use crate::contact::remote::Link;

/// Why a region that was found is not used now.
pub(super) enum Obstacle {
    /// It never will be.
    Lasting(TransferError),
    /// All its slots are taken; some of them by the dead, perhaps.
    Full,
    /// The owner of this region is not the process that sends to us from the same address. First
    /// that process must be given up.
    Replaced,
}

/// Somebody to be reached.
pub(super) struct Sought {
    pub(super) address: SocketAddr,
    /// The incarnation that sends to us from there, if one does.
    pub(super) sender: Option<u64>,
    /// The pages that long messages go through are to be made at once.
    pub(super) is_warmed: bool,
}

impl Sought {
    /// Connects to it and takes its region, with or without its help.
    pub(super) fn reach(&self, own: &Own) -> Result<Link, Obstacle> {
        if own.is_at(self.address) {
            let (region, whole) = (own.region().clone(), own.region().mapping().clone());
            let attached = self.claim(own, region, process::own_pid(), |_| Ok(whole))?;
            return Ok(Link::Ready(Box::new(attached)));
        }
        let (connection, who) = match own_listener::connect(&listener_name(self.address)) {
            Ok(found) => found,
            // Too many wait for it at this moment: try again with the next send.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Link::Unknown),
            Err(error) => return Err(Obstacle::Lasting(self.why_not_connected(error.kind()))),
        };
        crash_point!(5, "contact: connected, the region not opened");
        let number = own.file().as_raw_fd();
        if who.pid != 0
            && let Ok(file) = process::open_memfd_of(who.pid, &region_name(self.address), number)
        {
            return self.attach(own, file, who.pid);
        }
        crash_point!(6, "contact: the region is asked for");
        let process = ProcessId::of(who.pid, &own.identity().process);
        // Whoever takes messages of a remote must be able to answer it: now is when that is known.
        let reserved = Reserved::new(own.file(), SHARED_BYTES + LANE_BYTES);
        let reserved = reserved.map_err(|_| Obstacle::Lasting(TransferError::NoMemory))?;
        Ok(Link::Asking(connection, process, reserved))
    }

    fn why_not_connected(&self, kind: ErrorKind) -> TransferError {
        match kind {
            ErrorKind::PermissionDenied => TransferError::NotPermitted,
            _ if interface::is_own(self.address.ip()) => TransferError::RemoteLost,
            _ => TransferError::Unreachable,
        }
    }

    /// Maps the region in `file`, and claims a slot there whose pages are sure to be there; `pid`
    /// is its owner's process, 0 if that is not visible.
    pub(super) fn attach(&self, own: &Own, file: OwnedFd, pid: u32) -> Result<Link, Obstacle> {
        let file = file.as_fd();
        if !region_file::may_be_mapped(file) {
            return Err(Obstacle::Lasting(TransferError::Corrupt));
        }
        let region = Region::attach(file).map_err(not_attached)?;
        crash_point!(7, "contact: the region is mapped, no slot claimed");
        let mut attached = self.claim(own, region, pid, |slot| map_lane(file, slot))?;
        if backing::reserve_lane(file, attached.lane().slot()).is_err() {
            attached.free_slot();
            return Err(Obstacle::Lasting(TransferError::NoMemory));
        }
        if !backing::grows(file) {
            attached.lane_mut().stay_narrow();
        } else if self.is_warmed {
            attached.lane_mut().warm();
            warm_pipe(attached.region());
        }
        Ok(Link::Ready(Box::new(attached)))
    }

    /// Claims a slot in a region, whose lane is then mapped with `lane`.
    fn claim(
        &self,
        own: &Own,
        region: Region,
        pid: u32,
        lane: impl FnOnce(usize) -> Result<Mapping, AttachError>,
    ) -> Result<Attached, Obstacle> {
        let owner = region.owner();
        if !is_same_endpoint(owner.address, self.address) {
            return Err(Obstacle::Lasting(TransferError::Corrupt));
        }
        if self.sender.is_some_and(|known| known != owner.incarnation) {
            return Err(Obstacle::Replaced);
        }
        let facing = own.facing(self.address);
        let slot = region.slots().claim(&facing).ok_or(Obstacle::Full)?;
        let lane = lane(slot).map_err(|error| {
            // Nobody has heard of the claim yet.
            region.slots().free(slot);
            not_attached(error)
        })?;
        let lane = Outbound::new(lane, slot).ok_or(Obstacle::Lasting(TransferError::Corrupt))?;
        Ok(Attached::new(region, owner, lane, pid))
    }
}

fn not_attached(error: AttachError) -> Obstacle {
    Obstacle::Lasting(match error {
        AttachError::OtherLayout { .. } => TransferError::VersionMismatch,
        AttachError::NotMapped(_) => TransferError::NoMemory,
        AttachError::NotARegion => TransferError::Corrupt,
        AttachError::Closed => TransferError::RemoteLost,
    })
}

/// Whether a region's owner may be found under `address`: it is its own, or another one of this
/// host that it listens at.
fn is_same_endpoint(owner: SocketAddr, address: SocketAddr) -> bool {
    owner == address
        || (owner.port() == address.port()
            && interface::is_own(owner.ip())
            && interface::is_own(address.ip()))
}
