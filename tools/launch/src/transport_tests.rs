// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Two transports under one MPI differ in nothing but what carries the messages: so that a
//! comparison compares transports.
//!
//! docs/report.md lists the differences that are permitted; this is the list that is held.

use super::*;
use crate::environment::Environment;
use std::collections::BTreeSet;

/// Variables that choose the transport of Open MPI.
const OPEN_MPI: &[&str] = &[
    "OMPI_MCA_pml",
    "OMPI_MCA_mtl",
    "OMPI_MCA_btl",
    "OMPI_MCA_osc",
    "OMPI_MCA_mtl_ofi_provider_include",
    "OMPI_MCA_opal_common_ofi_provider_include",
    "FI_PROVIDER",
    "FI_PROVIDER_PATH",
];
/// Of MPICH.
const MPICH: &[&str] = &[
    "MPIR_CVAR_CH4_NETMOD",
    "MPIR_CVAR_NOLOCAL",
    "UCX_TLS",
    "FI_PROVIDER",
    "FI_PROVIDER_PATH",
];
/// Of Intel MPI.
const INTEL: &[&str] = &[
    "I_MPI_FABRICS",
    "I_MPI_OFI_PROVIDER",
    "I_MPI_OFI_LIBRARY_INTERNAL",
    "FI_PROVIDER",
    "FI_PROVIDER_PATH",
];

fn installation(family: Family, major: u32) -> Installation {
    Installation {
        libmpi: Some("/m/lib/libmpi.so".into()),
        netmods: vec!["ofi".into()],
        ..Installation::nowhere(family, major)
    }
}

fn shape(ranks: u32, spread: bool) -> Shape {
    Shape {
        spread,
        shared_core_rules: Some("/w/openmpi-shared-cores.rules".into()),
        ..Shape::on_two_cores(ranks)
    }
}

/// Names of variables that have another value, or are set or taken away in only one of the two.
fn other(one: &Environment, two: &Environment) -> BTreeSet<String> {
    let set = one.set.iter().chain(&two.set).map(|(name, _)| name);
    let names = set.chain(&one.remove).chain(&two.remove);
    let is_other = |name: &&String| {
        one.value(name) != two.value(name) || one.remove.contains(name) != two.remove.contains(name)
    };
    names.filter(is_other).cloned().collect()
}

#[test]
fn transports_differ_in_what_carries_the_messages_and_in_nothing_else() {
    let mpis = [
        (Family::OpenMpi, 4, OPEN_MPI),
        (Family::OpenMpi, 5, OPEN_MPI),
        (Family::Mpich, 5, MPICH),
        (Family::Intel, 2021, INTEL),
    ];
    for (family, major, permitted) in mpis {
        let mpi = installation(family, major);
        for (ranks, spread) in [(2, false), (8, false), (2, true), (8, true)] {
            let of = |transport| settings(&mpi, transport, &shape(ranks, spread)).unwrap();
            let native = of(&Transport::Native);
            let others = ["weft", "tcp", "ofi:shm"].map(|name| name.parse().unwrap());
            for transport in &others {
                let found = of(transport);
                assert_eq!(
                    found.arguments, native.arguments,
                    "{family:?} {major}, {ranks} ranks: {transport}"
                );
                assert_eq!(found.launcher, native.launcher, "{family:?}: {transport}");
                let more: Vec<String> = other(&found.ranks, &native.ranks)
                    .into_iter()
                    .filter(|name| !permitted.contains(&name.as_str()))
                    .collect();
                assert!(
                    more.is_empty(),
                    "{family:?} {major}, {ranks} ranks: {transport} and native differ in {more:?}"
                );
            }
        }
    }
}
