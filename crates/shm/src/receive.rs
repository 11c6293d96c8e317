// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The side that receives: what a cell means, and messages until their receives have them.
//!
//! - [`take`] and [`request`]: cells by kind; [`offers`]: messages that no receive is known for;
//!   [`receipts`]
//! - [`stream`] and [`streams`]: messages that come in pieces, and their rest (early data)
//! - [`receives`]: all of these

pub(crate) mod offers;
pub(crate) mod receipts;
pub(crate) mod receives;
pub(crate) mod request;
pub(crate) mod stream;
pub(crate) mod streams;
pub(crate) mod take;
