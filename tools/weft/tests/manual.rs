// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft manual`: the pages against what `--help` says.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn weft(words: &[&str]) -> Output {
    let mut weft = Command::new(env!("CARGO_BIN_EXE_weft"));
    weft.args(words).output().expect("weft starts")
}

fn help(words: &[&str]) -> String {
    let output = weft(&[words, &["--help"]].concat());
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The text of a page as it is read: without the escapes and the changes of font.
fn read(folder: &Path, name: &str) -> String {
    let page = fs::read_to_string(folder.join(format!("{name}.1"))).expect(name);
    let mut text = page.replace("\\-", "-").replace("\\*(Aq", "'");
    for font in ["\\fB", "\\fI", "\\fR"] {
        text = text.replace(font, "");
    }
    text
}

/// Words that begin with two dashes at the beginning of a line of `--help`, maybe behind a short
/// one.
fn options(help: &str) -> impl Iterator<Item = &str> {
    help.lines().filter_map(|line| {
        let mut words = line
            .split_whitespace()
            .map(|word| word.trim_end_matches(','));
        let first = words.next().filter(|word| word.starts_with('-'))?;
        let own = if first.starts_with("--") {
            first
        } else {
            words.next()?
        };
        own.starts_with("--")
            .then(|| own.split(['[', '=']).next().unwrap_or(own))
    })
}

#[test]
fn each_tool_has_a_page_with_each_of_its_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = weft(&["manual", &folder.path().to_string_lossy()]);
    assert!(output.status.success(), "{output:?}");

    let top = help(&[]);
    let listed = top.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let tools = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let tools: Vec<&str> = tools.filter(|tool| !["", "help"].contains(tool)).collect();
    assert!(
        tools.contains(&"run") && tools.contains(&"completions"),
        "{tools:?}"
    );
    let overview = read(folder.path(), "weft");
    for tool in &tools {
        assert!(overview.contains(&format!("weft-{tool}(1)")), "{tool}");
        let page = read(folder.path(), &format!("weft-{tool}"));
        assert!(page.contains(&format!("weft-{tool} - ")), "{page}");
    }

    let mut seen = 0;
    let benches = ["compare", "app", "figures"].map(|name| vec!["bench", name]);
    // The words of weft mount are those of a program of its own, which need not be built.
    let others = tools.iter().filter(|tool| **tool != "mount");
    let others = others.map(|tool| vec![*tool]);
    for words in others.chain(benches) {
        let name = words.join("-");
        let page = read(folder.path(), &format!("weft-{name}"));
        for option in options(&help(&words)) {
            assert!(
                page.contains(option),
                "{option} is not in the page of {name}"
            );
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} options were looked for");
    let page = read(folder.path(), "weft-bench");
    for option in options(&help(&["bench", "latency"])) {
        assert!(
            page.contains(option),
            "{option} is not in the page of bench"
        );
    }
    // Weft alone starts these.
    for hidden in ["node-agent", "bind", "manual"] {
        assert!(
            !folder.path().join(format!("weft-{hidden}.1")).exists(),
            "{hidden}"
        );
    }
}

#[test]
fn text_behind_the_options_becomes_sections() {
    let folder = tempfile::tempdir().expect("a folder");
    weft(&["manual", &folder.path().to_string_lossy()]);
    let page = read(folder.path(), "weft-run");
    for line in [
        ".SH EXAMPLES",
        ".SH NOTES",
        ".SH \"EXIT STATUS\"",
        ".SH \"SEE ALSO\"",
    ] {
        assert!(page.lines().any(|own| own == line), "{line}: {page}");
    }
    assert!(
        page.contains(".TP\n124\n--timeout ended the job\n"),
        "{page}"
    );
    assert!(
        !page.contains("FI_WEFT_DEAD_AFTER="),
        "values that only a shell wants"
    );
}

#[test]
fn a_folder_that_is_not_there_is_an_error() {
    let output = weft(&["manual", "/no/such/folder"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text.contains("/no/such/folder"), "{text}");
}
