// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Takes the cell at the front of a lane, if it is not an inline message: messages go to receives,
//! and what a remote says of our sends goes to sends.

use weft_contract::{Owner, RemoteId};
use weft_ring::Pool;

use crate::contact::lane::{BadCell, Inbound};
use crate::protocol::cell::{Cell, Control};
use crate::receive::receives::Receives;
use crate::receive::request::{Request, Taken};
use crate::send::sends::Sends;

/// Takes the cell at the front of a lane; `opposite` are the chunks of our lane to its sender.
#[inline(never)]
pub(crate) fn take<O: Owner>(
    lane: &mut Inbound,
    opposite: Option<&mut Pool>,
    receives: &mut Receives,
    sends: &mut Sends,
    owner: &mut O,
) -> Request {
    let taken = lane.take(opposite, |cell, piece| {
        let Taken { bytes, request } = match cell {
            Cell::Carrier(carrier) => receives.take(piece, carrier, owner),
            Cell::Control(control) => Taken {
                bytes: 0,
                request: take_control(piece.remote, control, receives, sends, owner),
            },
        };
        (bytes, request)
    });
    match taken {
        Ok(request) => request,
        Err(BadCell::Order) => Request::Corrupt,
        Err(BadCell::Malformed(malformed)) => Request::Malformed(malformed),
    }
}

/// Takes a cell without payload (RTS, CTS, FIN and others).
fn take_control<O: Owner>(
    remote: RemoteId,
    control: Control,
    receives: &mut Receives,
    sends: &mut Sends,
    owner: &mut O,
) -> Request {
    match control {
        Control::Rts(rts) => {
            receives.take_rts(remote, &rts, owner);
            Request::None
        }
        Control::Cts(cts) => match sends.check_cts(remote, &cts) {
            Ok(()) => Request::Transfer(cts),
            Err(_) => Request::Corrupt,
        },
        Control::Fin(fin) => match sends.take_fin(remote, fin, owner) {
            Ok(()) => Request::Finished(fin.send_id as usize),
            Err(_) => Request::Corrupt,
        },
        Control::Bye => Request::Bye,
    }
}
