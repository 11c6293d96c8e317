// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `bibw`: both ranks send windows of messages at once; the figure counts both directions.
//!
//! Made by catalogue, called by runner; the work is bandwidth's.

use super::bandwidth;
use super::window::Ways;
use crate::options::Settings;
use crate::runner::Benchmark;
use weft_mpi::{Communicator, Result};

/// Makes it.
///
/// # Errors
/// None; the signature is the catalogue's.
pub fn make<'a>(
    world: &'a Communicator<'a>,
    settings: &'a Settings,
) -> Result<Box<dyn Benchmark + 'a>> {
    Ok(bandwidth::make_with(world, settings, Ways::Both))
}
