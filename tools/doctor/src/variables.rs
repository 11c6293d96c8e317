// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Variables in the environment that would keep an MPI from using Weft when it is started without
//! `weft run`, which overrides them.
//!
//! Called by `lib.rs`. Facts: fi_provider(7) for FI_PROVIDER; the MPIs' parameters as in
//! weft-launch's transports.

use std::ffi::OsString;

use crate::check::{Check, Status};

/// A variable and what its value must be for Weft.
struct Rule {
    name: &'static str,
    fits: fn(&str) -> bool,
    effect: &'static str,
}

/// Whether a comma list (with `^` in front: a list of what is left out) admits `wanted`.
fn admits(list: &str, wanted: &str) -> bool {
    match list.strip_prefix('^') {
        Some(left_out) => !left_out.split(',').any(|one| one == wanted),
        None => list.is_empty() || list.split(',').any(|one| one == wanted),
    }
}

const RULES: [Rule; 13] = [
    Rule {
        name: "FI_PROVIDER",
        fits: |value| admits(value, "weft"),
        effect: "libfabric shows only the providers it names",
    },
    Rule {
        name: "OMPI_MCA_pml",
        fits: |value| admits(value, "cm"),
        effect: "Open MPI uses libfabric's tagged messages through pml cm alone",
    },
    Rule {
        name: "OMPI_MCA_mtl",
        fits: |value| admits(value, "ofi"),
        effect: "Open MPI uses libfabric through mtl ofi",
    },
    Rule {
        name: "OMPI_MCA_opal_common_ofi_provider_include",
        fits: |value| admits(value, "weft"),
        effect: "Open MPI takes the providers it names",
    },
    Rule {
        name: "OMPI_MCA_mtl_ofi_provider_include",
        fits: |value| admits(value, "weft"),
        effect: "Open MPI takes the providers it names",
    },
    Rule {
        name: "OMPI_MCA_opal_common_ofi_provider_exclude",
        fits: |value| !starts_weft(value),
        effect: "Open MPI leaves out the providers it names",
    },
    Rule {
        name: "OMPI_MCA_mtl_ofi_provider_exclude",
        fits: |value| !starts_weft(value),
        effect: "Open MPI leaves out the providers it names",
    },
    Rule {
        name: "MPIR_CVAR_CH4_NETMOD",
        fits: |value| value.is_empty() || value == "ofi",
        effect: "MPICH uses libfabric through its module ofi",
    },
    Rule {
        name: "MPIR_CVAR_NOLOCAL",
        fits: |value| !off(value),
        effect: "with 0, MPICH keeps messages inside a machine in its own shared memory",
    },
    Rule {
        name: "MPIR_CVAR_OFI_USE_PROVIDER",
        fits: |value| value.is_empty() || value == "weft",
        effect: "MPICH no longer reads it and says so",
    },
    Rule {
        name: "I_MPI_FABRICS",
        fits: |value| value == "ofi",
        effect: "Intel MPI sends messages inside a machine to libfabric only with ofi",
    },
    Rule {
        name: "I_MPI_OFI_PROVIDER",
        fits: |value| value.is_empty() || value == "weft",
        effect: "Intel MPI takes the provider it names",
    },
    Rule {
        name: "FI_HOOK",
        fits: str::is_empty,
        effect: "libfabric puts the hook between the MPI and Weft, which costs time on each \
            message",
    },
];

/// Open MPI compares only the beginning of a provider's name with each entry.
fn starts_weft(list: &str) -> bool {
    list.split(',')
        .any(|one| !one.is_empty() && "weft".starts_with(&one.to_lowercase()))
}

fn off(value: &str) -> bool {
    ["0", "no", "false", "off"].contains(&value.to_lowercase().as_str())
}

/// One check for each variable in the way, or a single good one.
#[must_use]
pub fn checks(environment: &[(OsString, OsString)]) -> Vec<Check> {
    let judge = |rule: &Rule| {
        let (_, value) = environment.iter().find(|(name, _)| name == rule.name)?;
        // All values that fit are text.
        if value.to_str().is_some_and(rule.fits) {
            return None;
        }
        let name = rule.name;
        let check = Check::ok(name, format!("{value:?}"), rule.effect);
        Some(check.but(
            Status::Warn,
            format!("unset {name}, or start programs with weft run, which sets what Weft needs"),
        ))
    };
    let bad: Vec<Check> = RULES.iter().filter_map(judge).collect();
    if bad.is_empty() {
        return vec![Check::ok(
            "variables",
            "none in the way",
            "FI_*, OMPI_MCA_*, MPIR_CVAR_* and I_MPI_* variables can turn an MPI away from Weft",
        )];
    }
    bad
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[(&str, &str)]) -> Vec<String> {
        let environment: Vec<(OsString, OsString)> = list
            .iter()
            .map(|&(name, value)| (name.into(), value.into()))
            .collect();
        checks(&environment)
            .into_iter()
            .filter(Check::is_wrong)
            .map(|check| {
                check.assert_wrong(Status::Warn, &format!("unset {}, or", check.name));
                check.name
            })
            .collect()
    }

    #[test]
    fn variables_that_turn_an_mpi_away_are_named() {
        assert_eq!(names(&[("FI_PROVIDER", "tcp")]), ["FI_PROVIDER"]);
        assert_eq!(names(&[("FI_PROVIDER", "^weft")]), ["FI_PROVIDER"]);
        assert_eq!(
            names(&[("OMPI_MCA_pml", "ob1"), ("OMPI_MCA_mtl", "^ofi")]),
            ["OMPI_MCA_pml", "OMPI_MCA_mtl"]
        );
        assert_eq!(
            names(&[("OMPI_MCA_mtl_ofi_provider_exclude", "shm,we")]),
            ["OMPI_MCA_mtl_ofi_provider_exclude"]
        );
        assert_eq!(
            names(&[
                ("I_MPI_FABRICS", "shm:ofi"),
                ("MPIR_CVAR_CH4_NETMOD", "ucx")
            ]),
            ["MPIR_CVAR_CH4_NETMOD", "I_MPI_FABRICS"]
        );
    }

    #[test]
    fn a_value_that_is_no_text_is_in_the_way_and_shown_with_escapes() {
        use std::os::unix::ffi::OsStringExt;
        let value = OsString::from_vec(b"weft,\xe9".to_vec());
        let check = checks(&[("FI_PROVIDER".into(), value)]).remove(0);
        check.assert_wrong(Status::Warn, "unset FI_PROVIDER, or");
        assert_eq!(check.value, r#""weft,\xE9""#);
    }

    #[test]
    fn variables_that_leave_weft_alone_are_not() {
        let fine = [
            ("FI_PROVIDER", "weft"),
            ("FI_PROVIDER", "^tcp"),
            ("OMPI_MCA_pml", "^ucx"),
            ("OMPI_MCA_mtl_ofi_provider_exclude", "shm,tcp"),
            ("MPIR_CVAR_NOLOCAL", "1"),
            ("I_MPI_FABRICS", "ofi"),
            ("FI_LOG_LEVEL", "warn"),
        ];
        for pair in fine {
            assert!(names(&[pair]).is_empty(), "{pair:?}");
        }
        assert_eq!(checks(&[])[0].value, "none in the way");
    }
}
