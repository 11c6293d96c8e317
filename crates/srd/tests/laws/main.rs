// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The laws of the machine, tested with whole machines under a virtual clock; `pair` is the world
//! they live in.

mod asking;
mod attack;
mod bottleneck;
mod chaos;
mod clock;
mod contact;
mod delivery;
mod exchange;
mod host;
mod hostile;
mod links;
mod long;
mod marked;
mod memory;
mod oversubscribed;
mod pair;
mod reach;
mod recovery;
mod remembered;
mod replay;
mod single_losses;
mod sizes;
mod unasked;
