// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Warnings about this program under this MPI. Each is printed once, before the job starts, also
//! with `--quiet`.
//!
//! Called by `job.rs` and `ranks.rs`; printed by `lib.rs` and `exec.rs`.

use crate::discover::Installation;
use crate::family::Family;
use crate::transport::{Shape, Transport, openmpi};

/// The warning, if there is one.
///
/// Open MPI receives into a buffer of its own where the datatype has gaps. For MPI_Mrecv and
/// MPI_Imrecv its usual path to libfabric then frees that buffer without unpacking it, with any
/// provider (ompi/mca/mtl/ofi/mtl_ofi.h, ompi_mtl_ofi_mrecv_callback, in 4.1, 5.0 and main).
pub(crate) fn of(mpi: &Installation, transport: &Transport, shape: &Shape) -> Option<String> {
    let is_theirs = mpi.family == Family::OpenMpi && transport.provider().is_some();
    if !is_theirs || !shape.calls.matched_receives {
        return None;
    }
    Some(if openmpi::fills_matched_receives(transport, shape) {
        "the program calls MPI_Mrecv or MPI_Imrecv, so Open MPI uses its slower ob1 over BTL ofi: \
         with its faster cm these calls do not fill datatypes with gaps. If the program receives \
         no such datatype by them, set --env OMPI_MCA_pml=cm"
            .to_owned()
    } else {
        format!(
            "the program calls MPI_Mrecv or MPI_Imrecv: over libfabric, with any provider, these \
             calls of {} do not fill datatypes with gaps. If the program receives such datatypes \
             by them, use MPI_Probe and MPI_Recv, another MPI, or --transport native",
            mpi.describe()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Calls;
    use crate::family::Version;

    #[test]
    fn only_open_mpi_over_libfabric_loses_what_matched_receives_take() {
        let mpi = |family| Installation {
            family,
            version: Version {
                major: 5,
                minor: 0,
                patch: 11,
            },
            mpiexec: "/o/bin/mpiexec".into(),
            libmpi: None,
            netmods: Vec::new(),
            origin: String::new(),
        };
        let shape = |matched_receives, spread| Shape {
            spread,
            calls: Calls {
                matched_receives,
                ..Calls::default()
            },
            ..Shape::on_two_cores(2)
        };
        let open_mpi = mpi(Family::OpenMpi);
        let here = of(&open_mpi, &Transport::Weft, &shape(true, false)).unwrap();
        assert!(here.contains("OMPI_MCA_pml=cm"), "{here}");
        let tcp = Transport::Ofi("tcp".into());
        for (transport, spread) in [(&Transport::Weft, true), (&tcp, false)] {
            let warning = of(&open_mpi, transport, &shape(true, spread)).unwrap();
            assert!(warning.contains("Open MPI 5.0.11"), "{warning}");
        }
        assert_eq!(of(&open_mpi, &Transport::Native, &shape(true, false)), None);
        assert_eq!(of(&open_mpi, &Transport::Weft, &shape(false, false)), None);
        let mpich = mpi(Family::Mpich);
        assert_eq!(of(&mpich, &Transport::Weft, &shape(true, false)), None);
    }
}
