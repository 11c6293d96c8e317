// SPDX-License-Identifier: Apache-2.0 OR MIT
//! MPICH 4 and 5: which network module carries the messages, whether its own shared memory is used,
//! and Hydra's binding.
//!
//! Called by `transport.rs`. Two kinds of MPICH are about: with ofi among its network modules (the
//! wheel), and with ucx alone (Debian's).

use super::{Settings, Shape, Transport, set_provider};
use crate::discover::Installation;

/// Variables that would choose another module or path than the transport asks for.
const CONTRADICTING: [&str; 6] = [
    "MPIR_CVAR_CH4_NETMOD",
    "MPIR_CVAR_NOLOCAL",
    "MPIR_CVAR_NO_LOCAL",
    "MPIR_CVAR_OFI_USE_PROVIDER",
    "MPIR_CVAR_ODD_EVEN_CLIQUES",
    "MPIR_CVAR_NUM_CLIQUES",
];

/// Variables by which Hydra would bind ranks in its own way.
const BINDING: [&str; 2] = ["HYDRA_BINDING", "HYDRA_MAPPING"];

/// Arguments and environment for a job under MPICH.
#[must_use]
pub fn settings(mpi: &Installation, transport: &Transport, shape: &Shape) -> Settings {
    let mut settings = Settings::default();
    settings.remove(&CONTRADICTING);
    settings.launcher.remove(&BINDING);
    if shape.label {
        settings.argument(&["-l"]);
    }
    bind(&mut settings, shape);
    let ucx_alone = !mpi.netmods.is_empty() && !mpi.netmods.iter().any(|name| name == "ofi");
    match transport {
        Transport::Weft | Transport::Ofi(_) => {
            settings.set("MPIR_CVAR_CH4_NETMOD", "ofi");
            // With its own shared memory on, no message between ranks of one machine would reach
            // the provider.
            settings.set("MPIR_CVAR_NOLOCAL", "1");
        }
        Transport::Native => settings.set("MPIR_CVAR_NOLOCAL", "0"),
        Transport::Tcp if ucx_alone => {
            settings.set("MPIR_CVAR_NOLOCAL", "1");
            settings.set("UCX_TLS", "tcp,self");
        }
        Transport::Tcp => {
            settings.set("MPIR_CVAR_CH4_NETMOD", "ofi");
            settings.set("MPIR_CVAR_NOLOCAL", "1");
            settings.set("FI_PROVIDER", "tcp");
            settings.remove(&["FI_PROVIDER_PATH"]);
        }
    }
    set_provider(&mut settings, transport, shape, None);
    settings
}

/// Binds ranks without a word to Hydra: a job that was started with -bind-to, `none` included, ends
/// at its first MPI_Comm_spawn ("duplicate setting: binding", 5.0.2). This command lies at the same
/// place on every host (the node agents see to that), and finds the cores of its own.
fn bind(settings: &mut Settings, shape: &Shape) {
    match (&shape.own_command, shape.bound) {
        (_, false) => {}
        (Some(command), true) => {
            settings.before_program = vec![command.into(), "bind".into()];
        }
        (None, true) => settings.argument(&["-bind-to", "core", "-map-by", "core"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::{Family, Version};
    use std::ffi::OsStr;

    fn mpich(netmods: &[&str]) -> Installation {
        Installation {
            family: Family::Mpich,
            version: Version {
                major: 5,
                minor: 0,
                patch: 2,
            },
            mpiexec: "/m/bin/mpiexec".into(),
            libmpi: None,
            netmods: netmods.iter().map(|&name| name.to_owned()).collect(),
            origin: String::new(),
        }
    }

    fn value<'a>(settings: &'a Settings, name: &str) -> Option<&'a OsStr> {
        settings.value(name).map(std::ffi::OsString::as_os_str)
    }

    #[test]
    fn weft_takes_the_ofi_module_and_turns_own_shared_memory_off() {
        let found = settings(
            &mpich(&["ucx", "ofi"]),
            &Transport::Weft,
            &Shape::on_two_cores(2),
        );
        assert_eq!(
            value(&found, "MPIR_CVAR_CH4_NETMOD"),
            Some(OsStr::new("ofi"))
        );
        assert_eq!(value(&found, "MPIR_CVAR_NOLOCAL"), Some(OsStr::new("1")));
        assert_eq!(value(&found, "FI_PROVIDER"), Some(OsStr::new("weft")));
    }

    #[test]
    fn native_keeps_own_shared_memory_whatever_the_user_had_set() {
        let found = settings(
            &mpich(&["ucx", "ofi"]),
            &Transport::Native,
            &Shape::on_two_cores(2),
        );
        assert_eq!(value(&found, "MPIR_CVAR_NOLOCAL"), Some(OsStr::new("0")));
        assert!(
            found
                .ranks
                .remove
                .iter()
                .any(|name| name == "MPIR_CVAR_NO_LOCAL")
        );
        assert_eq!(value(&found, "MPIR_CVAR_CH4_NETMOD"), None);
    }

    #[test]
    fn tcp_without_ofi_goes_through_ucx() {
        let found = settings(&mpich(&["ucx"]), &Transport::Tcp, &Shape::on_two_cores(3));
        assert_eq!(value(&found, "UCX_TLS"), Some(OsStr::new("tcp,self")));
        assert_eq!(value(&found, "FI_PROVIDER"), None);
        assert!(found.arguments.is_empty(), "{found:?}");
    }

    #[test]
    fn hydra_binds_only_where_this_command_is_not_known() {
        for spread in [false, true] {
            let bound = Shape {
                own_command: Some("/w/bin/weft".into()),
                spread,
                ..Shape::on_two_cores(2)
            };
            let found = settings(&mpich(&["ofi"]), &Transport::Weft, &bound);
            assert!(found.arguments.is_empty(), "{found:?}");
            assert_eq!(found.before_program, ["/w/bin/weft", "bind"]);
            assert!(
                found
                    .launcher
                    .remove
                    .iter()
                    .any(|name| name == "HYDRA_BINDING")
            );
        }
        let found = settings(&mpich(&["ofi"]), &Transport::Weft, &Shape::on_two_cores(2));
        assert_eq!(found.arguments, ["-bind-to", "core", "-map-by", "core"]);
        assert!(found.before_program.is_empty());
    }

    #[test]
    fn another_provider_is_used_without_wefts_folder() {
        let found = settings(
            &mpich(&["ofi"]),
            &Transport::Ofi("sm2".into()),
            &Shape::on_two_cores(2),
        );
        assert_eq!(value(&found, "FI_PROVIDER"), Some(OsStr::new("sm2")));
        assert_eq!(value(&found, "FI_PROVIDER_PATH"), None);
        assert!(
            found
                .ranks
                .remove
                .iter()
                .any(|name| name == "FI_PROVIDER_PATH")
        );
    }
}
