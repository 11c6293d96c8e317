// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What each MPI's launcher is told about several hosts: their names, the ranks on each, the remote
//! shell, and the network interface.
//!
//! Called by `job.rs` after `transport.rs`, whose settings it extends, and by `command.rs`. Tried
//! with Open MPI 4.1.4 and 5.0.11, MPICH 5.0.2 and Intel MPI 2021.18. Hydra passes the whole
//! environment to the ranks through its own connection. Open MPI passes the variables that it is
//! told by name (`-x`). So no value is on a command line on any host.

use std::ffi::OsStr;

use crate::discover::Installation;
use crate::family::Family;
use crate::placement::Share;
use crate::remote_shell::RemoteShell;
use crate::transport::Settings;

/// Where the ranks go, and the way there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    /// Hosts with their ranks, in the order of the ranks.
    pub shares: Vec<Share>,
    /// What runs commands on them.
    pub shell: RemoteShell,
    /// The network interface for everything, where the user named one.
    pub interface: Option<String>,
}

impl Spread {
    /// Ranks in all.
    #[must_use]
    pub fn ranks(&self) -> u32 {
        self.shares.iter().map(|share| share.ranks).sum()
    }

    /// The hosts, in the order of the ranks.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        self.shares.iter().map(|share| share.host.clone()).collect()
    }

    /// Ranks on the host that has most.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.shares
            .iter()
            .map(|share| share.ranks)
            .max()
            .unwrap_or(1)
    }

    fn counted(&self) -> String {
        let words: Vec<String> = self
            .shares
            .iter()
            .map(|share| format!("{}:{}", share.host, share.ranks))
            .collect();
        words.join(",")
    }
}

/// Adds what `mpi` must be told.
pub fn add(settings: &mut Settings, mpi: &Installation, spread: &Spread) {
    match mpi.family {
        Family::OpenMpi => open_mpi(settings, mpi, spread),
        Family::Mpich => mpich(settings, spread),
        Family::Intel => intel(settings, spread),
    }
    if let Some(interface) = &spread.interface {
        settings.set(weft_facts::parameter::INTERFACE.variable, interface);
        settings.set("FI_TCP_IFACE", first_of(interface));
    }
}

/// For those that take no list.
fn first_of(interfaces: &str) -> &str {
    interfaces.split(',').next().unwrap_or(interfaces).trim()
}

fn open_mpi(settings: &mut Settings, mpi: &Installation, spread: &Spread) {
    let five = mpi.version.major >= 5;
    settings.argument(&["--host", &spread.counted()]);
    let shell = spread.shell.path.as_os_str();
    if five {
        settings.launcher.set("PRTE_MCA_plm", "ssh");
        settings.launcher.set("PRTE_MCA_plm_ssh_agent", shell);
    } else {
        settings.launcher.set("OMPI_MCA_plm", "rsh");
        settings.launcher.set("OMPI_MCA_plm_rsh_agent", shell);
    }
    if let Some(interface) = &spread.interface {
        settings.set("OMPI_MCA_btl_tcp_if_include", interface);
        let control = if five {
            "PRTE_MCA_prte_if_include"
        } else {
            "OMPI_MCA_oob_tcp_if_include"
        };
        settings.launcher.set(control, interface);
    }
}

fn mpich(settings: &mut Settings, spread: &Spread) {
    settings.argument(&["-launcher", "ssh", "-launcher-exec"]);
    settings.path_argument(&spread.shell.path);
    settings.argument(&["-hosts", &spread.counted()]);
    if let Some(interface) = &spread.interface {
        settings.argument(&["-iface", first_of(interface)]);
        settings.set("UCX_NET_DEVICES", interface);
    }
}

fn intel(settings: &mut Settings, spread: &Spread) {
    settings.launcher.set("I_MPI_HYDRA_BOOTSTRAP", "ssh");
    settings
        .launcher
        .set("I_MPI_HYDRA_BOOTSTRAP_EXEC", spread.shell.path.as_os_str());
    // It takes no counts in its list: one number for all, or a host for each rank.
    let even = spread
        .shares
        .iter()
        .all(|share| share.ranks == spread.most());
    let (hosts, each): (Vec<&str>, u32) = if even {
        (
            spread
                .shares
                .iter()
                .map(|share| share.host.as_str())
                .collect(),
            spread.most(),
        )
    } else {
        let repeated = spread
            .shares
            .iter()
            .flat_map(|share| std::iter::repeat_n(share.host.as_str(), share.ranks as usize));
        (repeated.collect(), 1)
    };
    settings.argument(&["-hosts", &hosts.join(","), "-ppn", &each.to_string()]);
    // With only shared memory allowed, ranks of two hosts would find no way.
    if settings
        .value("I_MPI_FABRICS")
        .is_some_and(|fabric| fabric == OsStr::new("shm"))
    {
        settings.set("I_MPI_FABRICS", "shm:ofi");
    }
    if let Some(interface) = &spread.interface {
        settings
            .launcher
            .set("I_MPI_HYDRA_IFACE", first_of(interface));
    }
}

/// Inherited variables that a rank on another host needs as much as one here. Open MPI passes on
/// its own by itself.
const PASSED_ON: [&str; 5] = ["FI_", "WEFT_", "UCX_", "OMP_", "PYTHON"];

/// What Open MPI is to pass on by name: everything that was set for the ranks, and what was
/// inherited under the names above.
#[must_use]
pub fn exported(
    set: &[(String, std::ffi::OsString)],
    inherited: impl Iterator<Item = String>,
    extra: &[&str],
) -> Vec<String> {
    let own = |name: &str| {
        ["OMPI_", "PRTE_", "PMIX_"]
            .iter()
            .any(|start| name.starts_with(start))
    };
    let mut names: Vec<String> = set.iter().map(|(name, _)| name.clone()).collect();
    names.extend(inherited.filter(|name| {
        name == "LD_LIBRARY_PATH" || PASSED_ON.iter().any(|start| name.starts_with(start))
    }));
    names.extend(extra.iter().map(|&name| name.to_owned()));
    names.retain(|name| !own(name));
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(counts: &[(&str, u32)], interface: Option<&str>) -> Spread {
        Spread {
            shares: counts
                .iter()
                .map(|&(host, ranks)| Share {
                    host: host.into(),
                    ranks,
                })
                .collect(),
            shell: RemoteShell::choose(
                Some(OsStr::new("/bin/true")),
                Family::OpenMpi,
                |_| None,
                None,
            )
            .unwrap(),
            interface: interface.map(str::to_owned),
        }
    }

    fn added(family: Family, major: u32, set: &[(&str, &str)], spread: &Spread) -> Settings {
        let mut settings = Settings::default();
        for (name, value) in set {
            settings.set(name, *value);
        }
        add(&mut settings, &Installation::nowhere(family, major), spread);
        settings
    }

    #[test]
    fn open_mpi_names_its_agent_differently_in_each_version() {
        let two = spread(&[("a", 2), ("b", 1)], None);
        let four = added(Family::OpenMpi, 4, &[], &two);
        assert_eq!(four.arguments, ["--host", "a:2,b:1"]);
        assert_eq!(four.value("OMPI_MCA_plm_rsh_agent").unwrap(), "/bin/true");
        let five = added(Family::OpenMpi, 5, &[], &two);
        assert_eq!(five.value("PRTE_MCA_plm_ssh_agent").unwrap(), "/bin/true");
    }

    #[test]
    fn intel_gets_a_host_for_each_rank_where_the_counts_differ() {
        let even = added(
            Family::Intel,
            2021,
            &[("I_MPI_FABRICS", "shm")],
            &spread(&[("a", 2), ("b", 2)], None),
        );
        assert_eq!(even.arguments, ["-hosts", "a,b", "-ppn", "2"]);
        assert_eq!(even.value("I_MPI_FABRICS").unwrap(), "shm:ofi");
        let uneven = added(
            Family::Intel,
            2021,
            &[],
            &spread(&[("a", 1), ("b", 3)], None),
        );
        assert_eq!(uneven.arguments, ["-hosts", "a,b,b,b", "-ppn", "1"]);
    }

    #[test]
    fn one_interface_is_told_to_everyone_who_would_choose() {
        let named = spread(&[("a", 1), ("b", 1)], Some("eth7"));
        for (family, major, name) in [
            (Family::OpenMpi, 4, "OMPI_MCA_oob_tcp_if_include"),
            (Family::OpenMpi, 5, "PRTE_MCA_prte_if_include"),
            (Family::Mpich, 5, "UCX_NET_DEVICES"),
            (Family::Intel, 2021, "I_MPI_HYDRA_IFACE"),
        ] {
            let settings = added(family, major, &[], &named);
            assert_eq!(settings.value(name).unwrap(), "eth7", "{family}");
            assert_eq!(settings.value("FI_WEFT_IFACE").unwrap(), "eth7", "{family}");
        }
        let several = spread(&[("a", 1), ("b", 1)], Some("eth7,eth8"));
        for (family, name, told) in [
            (Family::OpenMpi, "OMPI_MCA_btl_tcp_if_include", "eth7,eth8"),
            (Family::Mpich, "UCX_NET_DEVICES", "eth7,eth8"),
            (Family::Intel, "I_MPI_HYDRA_IFACE", "eth7"),
            (Family::Mpich, "FI_WEFT_IFACE", "eth7,eth8"),
            (Family::Mpich, "FI_TCP_IFACE", "eth7"),
        ] {
            let settings = added(family, 5, &[], &several);
            assert_eq!(settings.value(name).unwrap(), told, "{family} {name}");
        }
    }

    #[test]
    fn only_names_are_passed_on_and_never_open_mpis_own() {
        let set = [
            ("FI_PROVIDER".to_owned(), "weft".into()),
            ("OMPI_MCA_pml".to_owned(), "cm".into()),
        ];
        let inherited = [
            "FI_WEFT_JOB_KEY",
            "HOME",
            "LD_LIBRARY_PATH",
            "FI_PROVIDER",
            "PMIX_MCA_x",
        ];
        let names = exported(
            &set,
            inherited.iter().map(|&name| name.to_owned()),
            &["WEFT_JOB"],
        );
        assert_eq!(
            names,
            [
                "FI_PROVIDER",
                "FI_WEFT_JOB_KEY",
                "LD_LIBRARY_PATH",
                "WEFT_JOB"
            ]
        );
    }
}
