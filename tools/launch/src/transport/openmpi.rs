// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Open MPI 4 and 5: which PML, MTL and BTL carry the messages, and how PRRTE (or ORTE) maps and
//! binds.
//!
//! Called by `transport.rs`. MCA parameters go through OMPI_MCA_* variables, which both versions
//! read; mapping goes through arguments, because its variables have different names in ORTE and
//! PRRTE.

use super::{Settings, Shape, Transport, set_provider};
use crate::discover::Installation;

/// Variables that would choose other components than the transport asks for.
const CONTRADICTING: [&str; 10] = [
    "OMPI_MCA_pml",
    "OMPI_MCA_osc",
    "OMPI_MCA_mtl",
    "OMPI_MCA_btl",
    "OMPI_MCA_mtl_ofi_provider_include",
    "OMPI_MCA_mtl_ofi_provider_exclude",
    "OMPI_MCA_btl_ofi_provider_include",
    "OMPI_MCA_btl_ofi_provider_exclude",
    "OMPI_MCA_opal_common_ofi_provider_include",
    "OMPI_MCA_opal_common_ofi_provider_exclude",
];

/// Arguments and environment for a job under Open MPI.
#[must_use]
pub fn settings(mpi: &Installation, transport: &Transport, shape: &Shape) -> Settings {
    let mut settings = Settings::default();
    settings.remove(&CONTRADICTING);
    let five = mpi.version.major >= 5;
    if shape.label {
        settings.argument(if five {
            &["--output", "tag"]
        } else {
            &["--tag-output"]
        });
    }
    map_and_bind(&mut settings, shape, five);
    if shape.oversubscribed() {
        settings.set("OMPI_MCA_mpi_yield_when_idle", "1");
        few_turns(&mut settings, shape);
    }
    if shape.root {
        settings.launcher.set("OMPI_ALLOW_RUN_AS_ROOT", "1");
        settings.launcher.set("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    components(&mut settings, transport, five);
    settle_calls(&mut settings, transport, shape, five);
    reach_other_hosts(&mut settings, transport, shape, five);
    set_provider(&mut settings, transport, shape, None);
    settings
}

/// Has collectives go by the rules for ranks that share cores, over every transport: what counts
/// there is how many turns of the ranks follow one another, whatever carries their messages.
/// Between hosts other things count.
fn few_turns(settings: &mut Settings, shape: &Shape) {
    if let (false, Some(rules)) = (shape.spread, &shape.shared_core_rules) {
        settings.set("OMPI_MCA_coll_tuned_use_dynamic_rules", "1");
        settings.set("OMPI_MCA_coll_tuned_dynamic_rules_filename", rules);
    }
}

fn map_and_bind(settings: &mut Settings, shape: &Shape, five: bool) {
    // By slot: each host gets the ranks that its slots say, in the order of the hosts.
    match (shape.bound, shape.spread) {
        // Open MPI counts cores as slots, and refuses more ranks than slots unless told: those
        // that MPI_Comm_spawn starts too.
        (true, false) => settings.argument(&["--map-by", "core:OVERSUBSCRIBE"]),
        (true, true) => settings.argument(&["--map-by", "slot:OVERSUBSCRIBE"]),
        (false, false) if five => settings.argument(&["--map-by", ":OVERSUBSCRIBE"]),
        (false, true) if five => settings.argument(&["--map-by", "slot:OVERSUBSCRIBE"]),
        (false, false) => settings.argument(&["--oversubscribe"]),
        (false, true) => settings.argument(&["--oversubscribe", "--map-by", "slot"]),
    }
    // A rank that is spawned shares the core of another.
    let bind = if shape.bound {
        "core:overload-allowed"
    } else {
        "none"
    };
    settings.argument(&["--bind-to", bind]);
}

fn components(settings: &mut Settings, transport: &Transport, five: bool) {
    let shared_memory = shared_memory(five);
    match transport {
        Transport::Weft | Transport::Ofi(_) => {
            settings.set("OMPI_MCA_pml", "cm");
            settings.set("OMPI_MCA_mtl", "ofi");
            // With cm, BTLs carry windows and nothing else. Version 5 has no other way for windows;
            // 4 has one over messages.
            settings.set("OMPI_MCA_btl", if five { shared_memory } else { "self" });
            let include = if five {
                "OMPI_MCA_opal_common_ofi_provider_include"
            } else {
                "OMPI_MCA_mtl_ofi_provider_include"
            };
            settings.set(include, transport.provider().unwrap_or_default());
        }
        Transport::Native => {
            settings.set("OMPI_MCA_pml", "ob1");
            settings.set("OMPI_MCA_btl", shared_memory);
        }
        Transport::Tcp => {
            settings.set("OMPI_MCA_pml", "ob1");
            settings.set("OMPI_MCA_btl", "tcp,self");
        }
    }
    // Windows: ucx would bring a transport of its own; in version 4 rdma finds no BTL for them but
    // shared memory, and fails without it.
    let by_messages = !five && *transport != Transport::Native;
    settings.set(
        "OMPI_MCA_osc",
        if by_messages { "^ucx,rdma" } else { "^ucx" },
    );
}

/// What calls need that not every program has in it.
fn settle_calls(settings: &mut Settings, transport: &Transport, shape: &Shape, five: bool) {
    let calls = shape.calls;
    // Shared memory reaches the ranks that started together: those that come later are reached by
    // tcp.
    if *transport == Transport::Native && calls.processes {
        settings.set("OMPI_MCA_btl", format!("{},tcp", shared_memory(five)));
    }
    // The usual way to libfabric (cm, mtl ofi) does not unpack what MPI_Mrecv and MPI_Imrecv
    // receive into a datatype with gaps; ob1 over the BTL ofi does, and takes half as long again.
    if fills_matched_receives(transport, shape) {
        settings.set("OMPI_MCA_pml", "ob1");
        settings.remove(&["OMPI_MCA_mtl"]);
        over_btl(settings, transport, five, "2");
    }
    // Version 4's windows over messages (osc/pt2pt) refuse MPI_THREAD_MULTIPLE; those over a BTL
    // do not.
    if !fills_matched_receives(transport, shape)
        && !five
        && transport.provider().is_some()
        && calls.windows
        && calls.threads
    {
        over_btl(settings, transport, five, "0");
    }
}

/// Whether a program that calls MPI_Mrecv or MPI_Imrecv gets a way on which all of them are filled.
/// Tried on one machine and over Weft alone.
#[must_use]
pub fn fills_matched_receives(transport: &Transport, shape: &Shape) -> bool {
    shape.calls.matched_receives && !shape.spread && *transport == Transport::Weft
}

/// Has windows, and messages in mode 2, go over the BTL ofi.
fn over_btl(settings: &mut Settings, transport: &Transport, five: bool, mode: &str) {
    settings.set("OMPI_MCA_btl", "ofi,self");
    settings.set("OMPI_MCA_btl_ofi_mode", mode);
    settings.set("OMPI_MCA_osc", "^ucx,pt2pt");
    if !five {
        let provider = transport.provider().unwrap_or_default();
        settings.set("OMPI_MCA_btl_ofi_provider_include", provider);
    }
}

/// Shared memory reaches one host only; between hosts the MPI's own way, and the only one for
/// windows in version 5, is tcp.
fn reach_other_hosts(settings: &mut Settings, transport: &Transport, shape: &Shape, five: bool) {
    if !shape.spread || !(five || *transport == Transport::Native) {
        return;
    }
    let list = settings
        .value("OMPI_MCA_btl")
        .and_then(|list| list.to_str());
    if let Some(list) = list.filter(|list| !list.contains("tcp")) {
        let list = format!("{list},tcp");
        settings.set("OMPI_MCA_btl", list);
    }
}

fn shared_memory(five: bool) -> &'static str {
    if five { "sm,self" } else { "vader,self" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Calls;
    use crate::family::Family;
    use std::ffi::OsStr;

    fn open_mpi(major: u32) -> Installation {
        Installation::nowhere(Family::OpenMpi, major)
    }

    fn shape(ranks: u32) -> Shape {
        Shape {
            label: true,
            provider_folder: Some("/w/lib/weft".into()),
            shared_core_rules: Some("/w/lib/weft/openmpi-shared-cores.rules".into()),
            ..Shape::on_two_cores(ranks)
        }
    }

    fn value<'a>(settings: &'a Settings, name: &str) -> Option<&'a OsStr> {
        settings.value(name).map(std::ffi::OsString::as_os_str)
    }

    #[test]
    fn weft_goes_through_cm_and_the_ofi_mtl() {
        let five = settings(&open_mpi(5), &Transport::Weft, &shape(2));
        assert_eq!(value(&five, "OMPI_MCA_pml"), Some(OsStr::new("cm")));
        assert_eq!(
            value(&five, "OMPI_MCA_opal_common_ofi_provider_include"),
            Some(OsStr::new("weft"))
        );
        assert_eq!(
            value(&five, "FI_PROVIDER_PATH"),
            Some(OsStr::new("/w/lib/weft"))
        );
        assert_eq!(value(&five, "FI_PROVIDER"), Some(OsStr::new("weft")));
        let four = settings(&open_mpi(4), &Transport::Weft, &shape(2));
        assert_eq!(
            value(&four, "OMPI_MCA_mtl_ofi_provider_include"),
            Some(OsStr::new("weft"))
        );
        assert_eq!(
            value(&four, "OMPI_MCA_opal_common_ofi_provider_include"),
            None
        );
    }

    #[test]
    fn windows_have_a_way_under_every_transport() {
        let osc = |major, transport| {
            settings(&open_mpi(major), &transport, &shape(2))
                .value("OMPI_MCA_osc")
                .cloned()
        };
        for transport in [
            Transport::Weft,
            Transport::Tcp,
            Transport::Ofi("tcp".into()),
        ] {
            assert_eq!(osc(4, transport.clone()).unwrap(), "^ucx,rdma");
            assert_eq!(osc(5, transport).unwrap(), "^ucx");
        }
        assert_eq!(osc(4, Transport::Native).unwrap(), "^ucx");
        let five = settings(&open_mpi(5), &Transport::Weft, &shape(2));
        assert_eq!(value(&five, "OMPI_MCA_btl"), Some(OsStr::new("sm,self")));
    }

    #[test]
    fn collectives_take_few_turns_where_ranks_share_cores_on_one_host() {
        const NAME: &str = "OMPI_MCA_coll_tuned_dynamic_rules_filename";
        let rules_of = |transport: &Transport, shape: &Shape| {
            let settings = settings(&open_mpi(5), transport, shape);
            assert_eq!(
                settings.value(NAME).is_some(),
                settings
                    .value("OMPI_MCA_coll_tuned_use_dynamic_rules")
                    .is_some()
            );
            settings.value(NAME).cloned()
        };
        let oversubscribed = shape(8);
        let spread = Shape {
            spread: true,
            ..oversubscribed.clone()
        };
        let without_rules = Shape {
            shared_core_rules: None,
            ..oversubscribed.clone()
        };
        for transport in [
            Transport::Weft,
            Transport::Native,
            Transport::Tcp,
            Transport::Ofi("shm".into()),
        ] {
            assert_eq!(
                rules_of(&transport, &oversubscribed),
                oversubscribed.shared_core_rules.clone().map(Into::into)
            );
            for other in [&shape(2), &spread, &without_rules] {
                assert_eq!(rules_of(&transport, other), None, "{transport}");
            }
        }
    }

    #[test]
    fn windows_bear_threads_and_ranks_that_come_later_are_reached() {
        let calling = |calls| Shape { calls, ..shape(2) };
        let windows = calling(Calls {
            windows: true,
            threads: true,
            ..Calls::default()
        });
        let found = settings(&open_mpi(4), &Transport::Weft, &windows);
        assert_eq!(value(&found, "OMPI_MCA_btl"), Some(OsStr::new("ofi,self")));
        assert_eq!(
            value(&found, "OMPI_MCA_osc"),
            Some(OsStr::new("^ucx,pt2pt"))
        );
        assert_eq!(
            value(&found, "OMPI_MCA_btl_ofi_provider_include"),
            Some(OsStr::new("weft"))
        );
        let processes = calling(Calls {
            processes: true,
            ..Calls::default()
        });
        for (major, list) in [(4, "vader,self,tcp"), (5, "sm,self,tcp")] {
            let found = settings(&open_mpi(major), &Transport::Native, &processes);
            assert_eq!(value(&found, "OMPI_MCA_btl"), Some(OsStr::new(list)));
        }
        let plain = calling(Calls::default());
        for (transport, shape) in [(Transport::Weft, &processes), (Transport::Native, &windows)] {
            for major in [4, 5] {
                let as_ever = settings(&open_mpi(major), &transport, &plain);
                assert_eq!(settings(&open_mpi(major), &transport, shape), as_ever);
            }
        }
        let matched = calling(Calls {
            matched_receives: true,
            ..Calls::default()
        });
        for major in [4, 5] {
            let found = settings(&open_mpi(major), &Transport::Weft, &matched);
            assert_eq!(value(&found, "OMPI_MCA_pml"), Some(OsStr::new("ob1")));
            assert_eq!(value(&found, "OMPI_MCA_btl"), Some(OsStr::new("ofi,self")));
            assert_eq!(
                value(&found, "OMPI_MCA_btl_ofi_mode"),
                Some(OsStr::new("2"))
            );
            let spread = Shape {
                spread: true,
                ..matched.clone()
            };
            let found = settings(&open_mpi(major), &Transport::Weft, &spread);
            assert_eq!(value(&found, "OMPI_MCA_pml"), Some(OsStr::new("cm")));
        }
        let of_five = |shape| settings(&open_mpi(5), &Transport::Weft, shape);
        assert_eq!(of_five(&windows), of_five(&plain));
    }

    #[test]
    fn between_hosts_tcp_carries_what_shared_memory_carries_inside() {
        let spread = Shape {
            spread: true,
            ..shape(2)
        };
        for (major, transport, list) in [
            (4, Transport::Native, "vader,self,tcp"),
            (5, Transport::Weft, "sm,self,tcp"),
            (4, Transport::Weft, "self"),
            (5, Transport::Tcp, "tcp,self"),
        ] {
            let found = settings(&open_mpi(major), &transport, &spread);
            assert_eq!(value(&found, "OMPI_MCA_btl"), Some(OsStr::new(list)));
        }
    }

    #[test]
    fn shared_memory_has_another_name_in_each_major_version() {
        assert_eq!(
            value(
                &settings(&open_mpi(5), &Transport::Native, &shape(2)),
                "OMPI_MCA_btl"
            ),
            Some(OsStr::new("sm,self"))
        );
        assert_eq!(
            value(
                &settings(&open_mpi(4), &Transport::Native, &shape(2)),
                "OMPI_MCA_btl"
            ),
            Some(OsStr::new("vader,self"))
        );
        assert_eq!(
            value(
                &settings(&open_mpi(5), &Transport::Native, &shape(2)),
                "FI_PROVIDER"
            ),
            None
        );
    }

    fn line_of(settings: &Settings) -> String {
        let line = settings.arguments.join(OsStr::new(" "));
        line.into_string().unwrap()
    }

    #[test]
    fn more_ranks_than_cores_are_not_bound_and_yield() {
        let oversubscribed = settings(&open_mpi(5), &Transport::Tcp, &shape(3));
        assert!(line_of(&oversubscribed).contains("--map-by :OVERSUBSCRIBE --bind-to none"));
        let spread = Shape {
            spread: true,
            ..shape(2)
        };
        for (job, policy) in [(shape(2), "core"), (spread, "slot")] {
            let words = format!("--map-by {policy}:OVERSUBSCRIBE --bind-to core:overload-allowed");
            for major in [4, 5] {
                let found = settings(&open_mpi(major), &Transport::Weft, &job);
                assert!(line_of(&found).contains(&words), "{found:?}");
            }
        }
        assert_eq!(
            value(&oversubscribed, "OMPI_MCA_mpi_yield_when_idle"),
            Some(OsStr::new("1"))
        );
        let roomy = settings(&open_mpi(5), &Transport::Tcp, &shape(2));
        assert!(line_of(&roomy).contains("--bind-to core"));
        assert_eq!(value(&roomy, "OMPI_MCA_mpi_yield_when_idle"), None);
    }

    #[test]
    fn labels_and_root_follow_the_version_and_the_user() {
        let mut job = shape(2);
        assert!(
            settings(&open_mpi(5), &Transport::Weft, &job)
                .arguments
                .starts_with(&["--output".into(), "tag".into()])
        );
        assert!(
            settings(&open_mpi(4), &Transport::Weft, &job)
                .arguments
                .starts_with(&["--tag-output".into()])
        );
        job.root = false;
        assert_eq!(
            value(
                &settings(&open_mpi(5), &Transport::Weft, &job),
                "OMPI_ALLOW_RUN_AS_ROOT"
            ),
            None
        );
    }
}
