// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Intel MPI 2021: which fabric carries the messages, where its libfabric and providers lie, and
//! its pinning.
//!
//! Called by `transport.rs`. libmpi loads libfabric.so.1 by name while it runs, and its providers
//! are files of their own: FI_PROVIDER_PATH names the folder of Weft's, or else that of Intel's.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::{Settings, Shape, Transport, set_provider};
use crate::discover::Installation;

/// Variables that would choose another fabric or library than the transport asks for.
const CONTRADICTING: [&str; 5] = [
    "I_MPI_FABRICS",
    "I_MPI_OFI_PROVIDER",
    "I_MPI_OFI_LIBRARY",
    "I_MPI_OFI_LIBRARY_INTERNAL",
    "FI_PROVIDER_PATH",
];

/// Arguments and environment for a job under Intel MPI.
#[must_use]
pub fn settings(mpi: &Installation, transport: &Transport, shape: &Shape) -> Settings {
    let mut settings = Settings::default();
    settings.remove(&CONTRADICTING);
    if shape.label {
        settings.argument(&["-l"]);
    }
    let pin = if shape.bound { "1" } else { "0" };
    settings.launcher.set("I_MPI_PIN", pin);
    let own = providers_of(mpi);
    let fabric = match (transport, shape.calls.processes) {
        (Transport::Native, false) => "shm",
        // Shared memory alone crashes in MPI_Comm_spawn (2021.18): ranks that come later, and no
        // others on this machine, are reached over libfabric.
        (Transport::Native, true) => "shm:ofi",
        _ => "ofi",
    };
    settings.set("I_MPI_FABRICS", fabric);
    match transport {
        Transport::Native => {
            settings.remove(&["FI_PROVIDER"]);
            if let (true, Some(folder)) = (shape.calls.processes, &own) {
                settings.set("FI_PROVIDER_PATH", folder);
            }
        }
        Transport::Tcp => {
            settings.set("FI_PROVIDER", "tcp");
            settings.set("I_MPI_OFI_PROVIDER", "tcp");
            if let Some(folder) = &own {
                settings.set("FI_PROVIDER_PATH", folder);
            }
        }
        Transport::Weft | Transport::Ofi(_) => {
            settings.set(
                "I_MPI_OFI_PROVIDER",
                transport.provider().unwrap_or_default(),
            );
            set_provider(&mut settings, transport, shape, own.as_deref());
        }
    }
    if fabric != "shm" {
        settings.set("I_MPI_OFI_LIBRARY_INTERNAL", "1");
    }
    settings
}

/// The folders that LD_LIBRARY_PATH must name: that of libmpi, and that of libfabric where it is
/// another.
#[must_use]
pub fn library_folders(mpi: &Installation) -> Vec<PathBuf> {
    let own = mpi.library_folder().map(Path::to_owned);
    let fabric = fabric_of(mpi).filter(|folder| Some(folder) != own.as_ref());
    own.into_iter().chain(fabric).collect()
}

/// The folder of Intel's libfabric.so.1: beside libmpi (the wheel), or under the prefix (oneAPI
/// since 2024, and before).
fn fabric_of(mpi: &Installation) -> Option<PathBuf> {
    let library = mpi.library_folder()?;
    let prefix = prefix_of(library);
    let places = [
        library.to_owned(),
        prefix.join("opt/mpi/libfabric/lib"),
        prefix.join("libfabric/lib"),
    ];
    places
        .into_iter()
        .find(|folder| folder.join("libfabric.so.1").exists())
}

/// The folder of Intel's own providers: `prov` below its libfabric, or the same folder (the wheel).
fn providers_of(mpi: &Installation) -> Option<PathBuf> {
    let fabric = fabric_of(mpi)?;
    let below = fabric.join("prov");
    Some(if below.is_dir() { below } else { fabric })
}

/// The prefix above `lib` or `lib/release`.
fn prefix_of(library: &Path) -> &Path {
    let library = match library.file_name() {
        Some(name) if name == OsStr::new("release") || name == OsStr::new("debug") => {
            library.parent().unwrap_or(library)
        }
        _ => library,
    };
    library.parent().unwrap_or(library)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{Family, Version};

    fn intel(folder: &Path, fabric: &str) -> Installation {
        for place in ["bin", "lib", fabric] {
            std::fs::create_dir_all(folder.join(place)).unwrap();
        }
        std::fs::write(folder.join(fabric).join("libfabric.so.1"), "").unwrap();
        Installation {
            family: Family::Intel,
            version: Version {
                major: 2021,
                minor: 18,
                patch: 1,
            },
            mpiexec: folder.join("bin/mpiexec"),
            libmpi: Some(folder.join("lib/libmpi.so.12")),
            netmods: Vec::new(),
            origin: String::new(),
        }
    }

    fn shape(ranks: u32) -> Shape {
        Shape {
            label: true,
            ..Shape::on_two_cores(ranks)
        }
    }

    #[test]
    fn only_wefts_folder_is_loaded_over_weft() {
        let folder = tempfile::tempdir().unwrap();
        let found = settings(&intel(folder.path(), "lib"), &Transport::Weft, &shape(2));
        assert_eq!(found.value("FI_PROVIDER_PATH").unwrap(), OsStr::new("/w"));
        assert_eq!(found.value("I_MPI_FABRICS").unwrap(), "ofi");
        assert_eq!(found.value("I_MPI_OFI_PROVIDER").unwrap(), "weft");
        assert_eq!(found.arguments, ["-l"]);
    }

    #[test]
    fn the_layout_of_oneapi_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let mpi = intel(folder.path(), "opt/mpi/libfabric/lib");
        std::fs::create_dir_all(folder.path().join("opt/mpi/libfabric/lib/prov")).unwrap();
        let found = settings(&mpi, &Transport::Ofi("shm".into()), &shape(2));
        assert_eq!(
            found.value("FI_PROVIDER_PATH").unwrap(),
            &folder
                .path()
                .join("opt/mpi/libfabric/lib/prov")
                .into_os_string()
        );
        assert_eq!(
            library_folders(&mpi),
            [
                folder.path().join("lib"),
                folder.path().join("opt/mpi/libfabric/lib")
            ]
        );
    }

    #[test]
    fn native_is_shared_memory_alone_and_oversubscribed_ranks_are_not_pinned() {
        let folder = tempfile::tempdir().unwrap();
        let found = settings(&intel(folder.path(), "lib"), &Transport::Native, &shape(3));
        assert_eq!(found.value("I_MPI_FABRICS").unwrap(), "shm");
        assert_eq!(found.value("I_MPI_PIN").unwrap(), "0");
        assert!(found.ranks.remove.iter().any(|name| name == "FI_PROVIDER"));
        assert_eq!(found.value("FI_PROVIDER_PATH"), None);
        let mut spawning = shape(2);
        spawning.calls.processes = true;
        let found = settings(&intel(folder.path(), "lib"), &Transport::Native, &spawning);
        assert_eq!(found.value("I_MPI_FABRICS").unwrap(), "shm:ofi");
        assert!(found.value("FI_PROVIDER_PATH").is_some());
    }
}
