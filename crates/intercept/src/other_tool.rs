// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Another tool of the profiling interface that may hand no call on: it stands before the MPI for a
//! collective. If it calls the MPI's function by its address, and not by its second name (`PMPI_`),
//! this library sees no calls. So at the process's end it tells `weft run` of that file. Told
//! by communicators that a call came; called by unfinished. Source: MPI 4.1, 15.2.

use std::ffi::{CStr, CString, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;

use weft_os::loaded::{anywhere, definer_of, file_of, next_definition};

use crate::calls::{send_report, text_of};
use crate::next::definition_at_exit;

/// A tool may stand before some of them.
const NAMES: [&CStr; 11] = [
    c"MPI_Barrier",
    c"MPI_Bcast",
    c"MPI_Reduce",
    c"MPI_Allreduce",
    c"MPI_Gather",
    c"MPI_Allgather",
    c"MPI_Scatter",
    c"MPI_Alltoall",
    c"MPI_Reduce_scatter",
    c"MPI_Scan",
    c"MPI_Exscan",
];

static HAS_COME: OnceLock<()> = OnceLock::new();

/// A call of a collective has come here.
pub fn note_call() {
    HAS_COME.get_or_init(|| ());
}

/// The process ends: if it used MPI, no call has come, and there is such a tool, tells of that.
pub fn tell(has_mpi: impl FnOnce() -> bool) {
    if HAS_COME.get().is_none()
        && has_mpi()
        && let Some(file) = file()
    {
        let file = text_of(&file.to_string_lossy());
        send_report(&format!(r#""collectives":{{}},"tool":"{file}""#));
    }
}

/// The file of a tool that stands before the MPI, before or behind this library. Looks through the
/// libraries for each name.
fn file() -> Option<CString> {
    let file = |function: NonNull<c_void>| definer_of(function.as_ptr() as usize);
    let own = file_of(note_call as *const () as usize)?;
    let mpis = file(definition_at_exit(c"PMPI_Barrier")?)?;
    let places = NAMES
        .iter()
        .flat_map(|name| [anywhere(name), next_definition(name)]);
    let mut files = places.flatten().filter_map(file);
    files.find(|file| *file != own && *file != mpis)
}
