// SPDX-License-Identifier: Apache-2.0 OR MIT
//! docs/parameters.md is what the tables say. `WEFT_RECORD=1 cargo test -p weft-facts` writes it
//! anew.

use std::fmt::Write as _;
use std::path::Path;

use weft_facts::parameter::{Parameter, Values};
use weft_facts::{Unit, copy, limit, parameter, protocol};

const HEAD: &str = "\
# Parameters and limits

You need not set any of these variables. `weft doctor` says when a variable is wrong; `weft info`
shows the values of this environment. A wrong value makes fi_getinfo fail, with a line on stderr
that says which values are allowed.

A test writes this page from the tables of [crates/facts](../crates/facts/src/lib.rs). Do not edit
it: change a table, then run `WEFT_RECORD=1 cargo test -p weft-facts`.
";

fn page() -> String {
    let mut page = String::from(HEAD);
    page.push_str("\n## Variables\n\n");
    page.push_str(
        "| variable | what it does | values | default | since |\n|---|---|---|---|---|\n",
    );
    for one in parameter::ALL {
        let Parameter {
            variable,
            meaning,
            default,
            since,
            ..
        } = one;
        let values = values(&one.values);
        let _ = writeln!(
            page,
            "| `{variable}` | {meaning} | {values} | {default} | {since} |"
        );
    }
    page.push_str("\n## Limits\n\n| limit | value | what it is |\n|---|---|---|\n");
    for one in &limit::ALL {
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            one.name,
            amount(one.value, one.unit),
            one.meaning
        );
    }
    page.push_str(
        "\n## Protocols inside a host\n\n\
         `weft run`, `weft info` and `weft top` count them by these names. All messages to\n\
         other hosts count as `srd`.\n\n\
         | protocol | messages up to | what happens |\n|---|---|---|\n",
    );
    for one in &protocol::ALL {
        let longest = one.longest_bytes.map_or("any length".to_owned(), |bytes| {
            amount(bytes as u64, Unit::Bytes)
        });
        let _ = writeln!(page, "| {} | {longest} | {} |", one.name, one.meaning);
    }
    page.push_str(
        "\n## Copy methods inside a host\n\n\
         How Weft copies the payload of a message that travels by rendezvous. `weft info` and\n\
         `weft top` name the method that Weft uses now for each length.\n\n\
         | method | what happens |\n|---|---|\n",
    );
    for one in &copy::ALL {
        let _ = writeln!(page, "| {} | {} |", one.name, one.meaning);
    }
    page
}

fn values(values: &Values) -> String {
    match values {
        Values::Number(range) => {
            let (unit, most) = (range.unit, amount(range.most, range.unit));
            match unit {
                Unit::Bytes => format!("{} to {most}", amount(range.least, unit)),
                _ => format!("{} to {most}", range.least),
            }
        }
        Values::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        other => other.describe(),
    }
}

/// 8192 bytes as "8 KiB (8192 bytes)".
fn amount(value: u64, unit: Unit) -> String {
    let plain = format!("{value} {}", unit.name()).trim_end().to_owned();
    let scale = (value.max(1).trailing_zeros() / 10).min(4);
    if unit != Unit::Bytes || scale == 0 || value >> (10 * scale) >= 1024 {
        return plain;
    }
    let prefix = ["", "Ki", "Mi", "Gi", "Ti"][scale as usize];
    format!("{} {prefix}B ({plain})", value >> (10 * scale))
}

#[test]
fn the_page_about_parameters_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/parameters.md");
    if std::env::var_os("WEFT_RECORD").is_some() {
        std::fs::write(&path, page()).expect("the page is writable");
    }
    let written = std::fs::read_to_string(&path).expect("the page is readable");
    assert!(
        written == page(),
        "docs/parameters.md is not what crates/facts says: run WEFT_RECORD=1 cargo test -p \
         weft-facts"
    );
}

#[test]
fn amounts_are_written_with_their_prefix() {
    assert_eq!(amount(8192, Unit::Bytes), "8 KiB (8192 bytes)");
    assert_eq!(amount(1 << 40, Unit::Bytes), "1 TiB (1099511627776 bytes)");
    assert_eq!(amount(296, Unit::Bytes), "296 bytes");
    assert_eq!(
        (amount(5, Unit::Seconds), amount(4096, Unit::Count)),
        ("5 seconds".into(), "4096".into())
    );
}
