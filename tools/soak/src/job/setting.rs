// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is the same for every job of a soak. Made by the run.

use std::path::PathBuf;

use crate::fault::FaultSet;

/// What every job needs to know.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Folder of the provider.
    pub provider_dir: PathBuf,
    /// libfabric, if not the one that the loader finds.
    pub libfabric: Option<PathBuf>,
    /// Processes.
    pub ranks: u8,
    /// Faults that may come.
    pub faults: FaultSet,
    /// Where ledgers go.
    pub folder: PathBuf,
    /// Hosts can be made here.
    pub is_divided: bool,
}
