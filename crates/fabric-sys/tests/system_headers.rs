// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles each structure's list of members against the system's libfabric headers and compares
//! offsets and sizes.
//!
//! Members that the installed headers do not have yet are named here with the version that brought
//! them. Without a C compiler or without the headers (package libfabric-dev) the test says so and
//! passes.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use weft_fabric_sys::version::{fi_major, fi_minor, fi_version};
use weft_fabric_sys::{
    Layout, atomic, av, counter, cq, domain, endpoint, eq, fabric, fid, info, message, mr, poll,
    provider,
};
use weft_fabric_sys::{rma, tagged};

/// One structure: its C name, its size and its members.
type Structure = (&'static str, usize, &'static [(&'static str, usize)]);

fn structure<T: Layout>() -> Structure {
    (T::C_NAME, T::SIZE_BYTES, T::MEMBERS)
}

fn all_structures() -> Vec<Structure> {
    vec![
        structure::<provider::FiContext>(),
        structure::<provider::FiProvider>(),
        structure::<info::FiTxAttr>(),
        structure::<info::FiRxAttr>(),
        structure::<info::FiEpAttr>(),
        structure::<info::FiDomainAttr>(),
        structure::<info::FiFabricAttr>(),
        structure::<info::FiInfo>(),
        structure::<fid::Fid>(),
        structure::<fid::FiOps>(),
        structure::<fabric::FabricObject>(),
        structure::<fabric::FiOpsFabric>(),
        structure::<domain::DomainObject>(),
        structure::<domain::FiOpsDomain>(),
        structure::<av::FiAvAttr>(),
        structure::<av::FidAv>(),
        structure::<av::FiOpsAv>(),
        structure::<mr::FiMrAttr>(),
        structure::<mr::FidMr>(),
        structure::<mr::FiOpsMr>(),
        structure::<eq::FiEqAttr>(),
        structure::<eq::FiEqErrEntry>(),
        structure::<eq::FidEq>(),
        structure::<eq::FiOpsEq>(),
        structure::<cq::FiCqAttr>(),
        structure::<cq::FiCqEntry>(),
        structure::<cq::FiCqMsgEntry>(),
        structure::<cq::FiCqDataEntry>(),
        structure::<cq::FiCqTaggedEntry>(),
        structure::<cq::FiCqErrEntry>(),
        structure::<cq::FidCq>(),
        structure::<cq::FiOpsCq>(),
        structure::<counter::FiCntrAttr>(),
        structure::<counter::FidCntr>(),
        structure::<counter::FiOpsCntr>(),
        structure::<poll::FiPollAttr>(),
        structure::<poll::FidPoll>(),
        structure::<poll::FiOpsPoll>(),
        structure::<endpoint::EndpointObject>(),
        structure::<endpoint::FiOpsEp>(),
        structure::<endpoint::FiOpsCm>(),
        structure::<message::FiMsg>(),
        structure::<message::FiOpsMsg>(),
        structure::<tagged::FiMsgTagged>(),
        structure::<tagged::FiOpsTagged>(),
        structure::<rma::FiRmaIov>(),
        structure::<rma::FiMsgRma>(),
        structure::<rma::FiOpsRma>(),
        structure::<atomic::FiIoc>(),
        structure::<atomic::FiRmaIoc>(),
        structure::<atomic::FiAtomicAttr>(),
        structure::<atomic::FiMsgAtomic>(),
        structure::<atomic::FiOpsAtomic>(),
    ]
}

/// The version that brought a member, for those younger than 1.17.
fn since(c_name: &str, member: &str) -> u32 {
    match (c_name, member) {
        (_, "xpu_ctx" | "max_xpu_ctx_cnt") => fi_version(2, 7),
        (_, "max_cntr_value" | "max_err_cntr_value") => fi_version(2, 5),
        (_, "max_group_id") => fi_version(2, 0),
        (_, "max_ep_auth_key" | "page_size" | "base_mr" | "sub_mr_cnt") => fi_version(1, 20),
        ("struct fi_cq_err_entry", "src_addr") => fi_version(1, 20),
        (_, "hmem_data") => fi_version(1, 18),
        _ => fi_version(1, 0),
    }
}

fn include_folder() -> PathBuf {
    std::env::var_os("LIBFABRIC_INCLUDE")
        .map_or_else(|| PathBuf::from("/usr/include"), PathBuf::from)
}

/// The C program: one line `structure member offset` for each member, `structure sizeof size` for
/// each structure.
fn program(headers: u32) -> String {
    let mut source =
        String::from("#include <stdio.h>\n#include <stddef.h>\n#include <pthread.h>\n");
    for header in [
        "fabric",
        "fi_domain",
        "fi_endpoint",
        "fi_eq",
        "fi_cm",
        "fi_tagged",
        "fi_rma",
        "fi_atomic",
    ] {
        let _ = writeln!(source, "#include <rdma/{header}.h>");
    }
    source.push_str("#include <rdma/providers/fi_prov.h>\nint main(void)\n{\n");
    for (c_name, _, members) in all_structures() {
        let _ = writeln!(
            source,
            "printf(\"{c_name}|sizeof|%zu\\n\", sizeof({c_name}));"
        );
        for (member, _) in members
            .iter()
            .filter(|(member, _)| since(c_name, member) <= headers)
        {
            let member = member.trim_start_matches("r#");
            let _ = writeln!(
                source,
                "printf(\"{c_name}|{member}|%zu\\n\", offsetof({c_name}, {member}));"
            );
        }
    }
    source.push_str("return 0;\n}\n");
    source
}

fn headers_version() -> Option<u32> {
    let text = std::fs::read_to_string(include_folder().join("rdma/fabric.h")).ok()?;
    let number = |name: &str| -> Option<u32> {
        text.lines().find_map(|line| {
            line.strip_prefix("#define ")?
                .strip_prefix(name)?
                .trim()
                .parse()
                .ok()
        })
    };
    Some(fi_version(
        number("FI_MAJOR_VERSION")?,
        number("FI_MINOR_VERSION")?,
    ))
}

fn compile_and_run(source: &str) -> Option<String> {
    let binary = std::env::temp_dir().join(format!("weft-layout-{}", std::process::id()));
    let mut compiler = Command::new("cc")
        .args(["-w", "-x", "c", "-", "-o"])
        .arg(&binary)
        .arg("-I")
        .arg(include_folder())
        .stdin(Stdio::piped())
        .spawn()
        .ok()?;
    compiler.stdin.take()?.write_all(source.as_bytes()).ok()?;
    assert!(
        compiler.wait().ok()?.success(),
        "the program does not compile:\n{source}"
    );
    let output = Command::new(&binary)
        .output()
        .expect("the compiled program starts");
    let _ = std::fs::remove_file(&binary);
    Some(String::from_utf8(output.stdout).expect("the program prints ASCII"))
}

#[test]
fn layouts_equal_those_of_the_installed_headers() {
    let Some(headers) = headers_version() else {
        eprintln!(
            "skipped: no libfabric headers in {} (install libfabric-dev)",
            include_folder().display()
        );
        return;
    };
    let Some(printed) = compile_and_run(&program(headers)) else {
        eprintln!("skipped: no C compiler `cc`");
        return;
    };
    let found: HashMap<(&str, &str), usize> = printed
        .lines()
        .map(|line| {
            let mut parts = line.split('|');
            let mut next = || parts.next().expect("three parts");
            ((next(), next()), next().parse().expect("a number"))
        })
        .collect();
    let mut compared = 0;
    for (c_name, size, members) in all_structures() {
        let mut complete = true;
        for (member, offset) in members {
            match found.get(&(c_name, member.trim_start_matches("r#"))) {
                Some(there) => {
                    assert_eq!(there, offset, "{c_name}.{member}");
                    compared += 1;
                }
                None => complete = false,
            }
        }
        let there = found[&(c_name, "sizeof")];
        // Tables of functions may be longer in newer headers: what lies behind `size` counts as
        // absent.
        let may_be_longer = c_name.starts_with("struct fi_ops");
        if complete && !may_be_longer {
            assert_eq!(there, size, "sizeof({c_name})");
        }
        assert!(
            !complete || there >= size,
            "{c_name} is {there} bytes in C, {size} here"
        );
    }
    assert!(compared > 250, "only {compared} members were compared");
    println!(
        "{compared} members compared with libfabric {}.{}",
        fi_major(headers),
        fi_minor(headers)
    );
}
