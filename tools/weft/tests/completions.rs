// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft completions` as a shell uses it.

use std::process::{Command, Output};

const WEFT: &str = env!("CARGO_BIN_EXE_weft");

fn script(shell: &str) -> Output {
    let mut weft = Command::new(WEFT);
    weft.args(["completions", shell]);
    weft.output().expect("weft starts")
}

/// What bash offers behind these words, the last of which is not finished; `None` where there is no
/// bash.
fn offered(words: &[&str]) -> Option<Vec<String>> {
    let script = r#"eval "$("$0" completions bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _weft weft "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
        printf '%s\n' "${COMPREPLY[@]}""#;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", script, WEFT]).args(words);
    let output = bash.output().ok()?;
    assert!(output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    Some(text.lines().map(str::to_owned).collect())
}

#[test]
fn bash_offers_tools_options_benchmarks_and_variables() {
    for (words, among) in [
        (&["weft", "do"][..], "doctor"),
        (&["weft", "run", "--req"], "--require-weft"),
        (
            &["weft", "run", "--env", "FI_WEFT_DEAD"],
            "FI_WEFT_DEAD_AFTER=",
        ),
        (&["weft", "bench", "all"], "allreduce"),
        (&["weft", "bench", "compare", "--bef"], "--before"),
        (&["weft", "soak", "--se"], "--seed"),
    ] {
        let Some(offered) = offered(words) else {
            eprintln!("skipped: there is no bash");
            return;
        };
        assert!(
            offered.iter().any(|one| one == among),
            "{words:?}: {offered:?}"
        );
    }
    // Each tool that --help lists, and no other.
    let help = Command::new(WEFT)
        .arg("--help")
        .output()
        .expect("weft starts");
    let help = String::from_utf8_lossy(&help.stdout);
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    for line in listed.take_while(|line| !line.is_empty()) {
        let (_, name) = line.split_at(2);
        let tool = name.split(' ').next().unwrap_or_default();
        // A line that goes on with the one before, or clap's own `help`.
        if tool.is_empty() || tool == "help" {
            continue;
        }
        let offered = offered(&["weft", tool]).unwrap_or_default();
        assert!(offered.iter().any(|one| one == tool), "{line}");
    }
    let hidden = offered(&["weft", "node"]).unwrap_or_default();
    assert!(hidden.iter().all(String::is_empty), "{hidden:?}");
}

#[test]
fn other_shells_have_a_script_and_unknown_ones_an_error() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = script(shell);
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{shell}: {output:?}");
        assert!(text.contains("require-weft"), "{shell}");
    }
    let output = script("tcsh");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text.contains("'tcsh'") && text.contains("bash"), "{text}");
}
