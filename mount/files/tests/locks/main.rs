// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Laws of locks: [`table`] compares the table with a naive model, [`job`] has nodes that take
//! locks from each other, without a network. [`keeper`] compares what is kept for one node at most.

mod job;
mod keeper;
mod table;
