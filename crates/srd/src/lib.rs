// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Scalable reliable datagrams: messages between processes of different hosts over many network
//! paths at once.
//!
//! - *Purpose*: the protocol itself, docs/srd-protocol.md, without sockets and without a clock.
//! - *Used by*: udp, which drives it over sockets; `weft sim`, on simulated hosts; fuzz targets.
//! - *Start at*: [`machine`], then `transmit` (what leaves) and `flow` (what a packet does).
//!
//! The machine is sans-IO: it has no socket, no clock and no thread. Its caller tells it what
//! arrived and what time it is. The machine says what to send and when to call it again. So the
//! same code runs over sockets, in unit tests under a virtual clock, and on thousands of simulated
//! hosts. The protocol is specified in `docs/srd-protocol.md`; the code cites it.
//!
//! What it promises:
//!
//! - Every message arrives once, or its sender learns that it did not.
//! - Messages of one sender are handed out in the sender's order.
//! - Pieces of large messages are handed out as they come, to be placed at their final address.
//! - Memory is bounded, per remote and in all.
//!
//! A payload that leaves never enters the machine. A payload that arrives enters it only when the
//! message has to wait for earlier ones or for its other segments.
//!
//! One message down: [`Machine::post_send`] -> `send_queue`; [`Machine::poll_transmit`] -> `flows`
//! -> `transmit` -> `sender`. One packet up: [`Machine::handle_datagram`] -> `contact` -> `flow` ->
//! `loss` (its acknowledgement) and `receiver` -> `order` or `landing`.
//!
//! Two machines and no network:
//!
//! ```
//! use std::net::SocketAddr;
//!
//! use weft_srd::{Arrival, Config, Instant, Machine, Send};
//!
//! let here: SocketAddr = "10.0.0.1:1".parse().unwrap();
//! let there: SocketAddr = "10.0.0.2:1".parse().unwrap();
//! let mut sender = Machine::new(Config::default(), 0x1234).unwrap();
//! let mut receiver = Machine::new(Config::default(), 0x5678).unwrap();
//! let payload = b"hello";
//!
//! let remote = sender.remote(there).unwrap();
//! let send = Send {
//!     remote,
//!     tag: Some(7),
//!     cq_data: None,
//!     length_bytes: 5,
//!     wants_receipt: false,
//!     is_awaited: false,
//!     is_service: false,
//!     token: 1,
//! };
//! let now = Instant(1_000);
//! sender.post_send(now, &send).unwrap();
//! let transmit = sender.poll_transmit(now).unwrap();
//! assert_eq!(transmit.to, there);
//! let part = transmit.payload.unwrap();
//! let bytes = &payload[part.offset_bytes as usize..][..part.length_bytes as usize];
//! let datagram = [transmit.head.as_bytes(), bytes].concat();
//!
//! match receiver.handle_datagram(Instant(11_000), here, &datagram) {
//!     Arrival::Message { message, payload, .. } => {
//!         assert_eq!((message.tag, payload), (Some(7), &b"hello"[..]));
//!     }
//!     other => panic!("{other:?}"),
//! }
//! ```
//!
//! Modules, from the top down; imports go down this list:
//! - [`machine`]: the calls of owner and driver; [`inspection`]: what it shows of its state;
//!   [`remote_control`]: calls about one remote
//! - `contact`: which flow a packet belongs to, restarts, ends; `greeting`: strangers prove that
//!   they live; `replies`: answers that belong to no flow
//! - `flows`: turns, grants, deadlines; `remotes`: the table of them
//! - `transmit`: which packet of a flow leaves next; `timeouts`: what time does to a flow
//! - `flow`: all that is under way with one remote, in these parts:
//!   - `identity` (`reach`: which paths there are between hosts of several addresses)
//!   - `send_queue` (`outgoing`: messages being sent)
//!   - `sender`: when and where; `sent` (unacknowledged packets), `window` (cwnd), `pacing`, `path`
//!     (`path_health` of each), `first_flight` (how much keeps to one path); `loss`: what an
//!     acknowledgement or its absence means
//!     - `window` uses `base_rtt` (round trips without a queue), `quick_adaptation` (a window many
//!       times too large), `loss_undo` (packets that were not lost after all) and `rivals` (other
//!       flows that fill queues; `overflow`: queues too short to be seen in delays, `cubic`:
//!       sharing them)
//!   - `receiver`: `ack` (which sequences arrived; `ack_timer`: when to say so, `ack_hold`: how
//!     long that waits for our own next message), `order` (the sender's order), `reassembly`
//!     (ranges), `landing` (where an accepted message goes), `credit` (who may send how much)
//!   - `mtu`: how large datagrams may be
//!   - `silence`: when nothing is heard, and when that means death; `refusals`: what a host says of
//!     it; `idleness`: when memory is given back
//! - `shared`: what all flows share; `send_delay`: how long datagrams took to leave
//! - [`config`], [`events`]: what can be set; what goes in and comes out; `timers`: round trips and
//!   deadlines; [`random`]: seeded numbers; [`heartbeat`]: answers while a program computes
#![forbid(unsafe_code)]

mod ack;
mod ack_hold;
mod ack_timer;
mod asking;
mod awaited;
mod base_rtt;
pub mod config;
mod congestion_marks;
mod contact;
mod credit;
mod cubic;
pub mod events;
mod first_flight;
mod flow;
mod flows;
mod greeting;
pub mod heartbeat;
mod identity;
mod idleness;
pub mod inspection;
mod landing;
mod lengthening;
mod long_packet;
mod loss;
mod loss_undo;
mod lost_unseen;
pub mod machine;
mod marks_heard;
mod mtu;
mod order;
mod outgoing;
mod overflow;
mod pacing;
mod path;
mod path_health;
mod quick_adaptation;
pub mod random;
mod reach;
mod reassembly;
mod receiver;
mod recent_losses;
mod refusals;
pub mod remote_control;
mod remotes;
mod repeats;
mod replies;
mod rivals;
mod send_delay;
mod send_queue;
mod sender;
mod sent;
mod shared;
mod silence;
mod timeouts;
mod timers;
mod transmit;
mod tried;
mod window;

pub use config::Config;
pub use events::{
    Arrival, Condition, Event, Failure, Offer, Origin, Payload, PostError, Remote, Send,
    Statistics, Transmit,
};
pub use heartbeat::HeartbeatResponder;
pub use machine::Machine;
pub use weft_wire::marks::Ecn;
pub use weft_wire::port_addresses::FURTHER_ADDRESSES;
pub use weft_wire::refusal::Reason;
pub use weft_wire::time::{Instant, Nanos};
pub use weft_wire::{Message, PATH_COUNT, PORT_COUNT, Piece, PortAddresses, Segment, piece};
