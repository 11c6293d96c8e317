// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands and options that the documents tell a user to type: each must exist. The pages are
//! README.md, ARCHITECTURE.md, CONTRIBUTING.md and docs/*.md. ADRs and lab pages are not checked,
//! because they describe their day. `--help` says which commands and options exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter};

/// Tools of `weft`, those of `weft bench` that parse words of their own, and the targets of `weft
/// export`.
const TOOLS: [&str; 18] = [
    "run",
    "submit",
    "jobs",
    "logs",
    "cancel",
    "wait",
    "exec",
    "env",
    "import",
    "export",
    "bench",
    "doctor",
    "info",
    "top",
    "sim",
    "soak",
    "bind",
    "node-agent",
];
/// Those of them that `weft` alone calls, and that have no help.
const INNER_TOOLS: [&str; 2] = ["bind", "node-agent"];
const EXPORTS: [&str; 6] = [
    "batch",
    "batch-submit",
    "parallelcluster",
    "trainjob",
    "mpijob",
    "slurm-shm",
];
const BENCHES: [&str; 7] = ["compare", "app", "figures", "ior", "mdtest", "ft", "is"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names and texts of the pages.
fn pages() -> Vec<(String, String)> {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name));
    let docs = fs::read_dir(root().join("docs")).expect("docs is there");
    let docs = docs.map(|entry| entry.expect("docs can be read").path());
    let docs = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let page = |path: PathBuf| {
        let name = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        (name, fs::read_to_string(path).expect("a page is text"))
    };
    top.into_iter().chain(docs).map(page).collect()
}

/// One command as a page has it: the words behind `weft`.
struct Typed {
    place: String,
    words: Vec<String>,
}

/// The code of a line: all of it in a block, what stands in backticks elsewhere. A comment behind
/// three spaces or a `#` is no code.
fn code_of(line: &str, is_block: bool) -> Vec<&str> {
    if !is_block {
        return line.split('`').skip(1).step_by(2).collect();
    }
    let code = line.trim_start();
    let end = [code.find("   "), code.find(" #")]
        .into_iter()
        .flatten()
        .min();
    vec![&code[..end.unwrap_or(code.len())]]
}

/// The commands of a page. In prose `weft` may be a part of another name.
fn commands(page: &str, text: &str) -> Vec<Typed> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let is_block = is_fenced || line.starts_with("    ");
        for code in code_of(line, is_block) {
            let words: Vec<&str> = code.split_whitespace().collect();
            for (at, word) in words.iter().enumerate() {
                let is_weft = *word == "weft" || word.ends_with("/weft");
                let is_tool = words.get(at + 1).is_some_and(|tool| TOOLS.contains(tool));
                if !is_weft || !is_tool {
                    continue;
                }
                let ends = ["--", "|", ">", "&&"];
                let own = words[at + 1..].iter();
                let own = own.take_while(|word| !ends.contains(word));
                found.push(Typed {
                    place: format!("{page}:{}", index + 1),
                    words: own.map(|word| (*word).to_owned()).collect(),
                });
            }
        }
    }
    found
}

/// The words whose `--help` lists the options of a command.
fn tool_of(words: &[String]) -> Vec<&str> {
    match words.get(1).map(String::as_str) {
        Some(bench) if words[0] == "bench" => {
            let first = bench.split(',').next().unwrap_or(bench);
            let is_name = first
                .chars()
                .all(|letter| letter.is_ascii_lowercase() || letter == '_');
            vec!["bench", if is_name { first } else { "latency" }]
        }
        Some(target) if words[0] == "export" && EXPORTS.contains(&target) => {
            vec!["export", target]
        }
        _ => vec![&words[0]],
    }
}

/// An option without its value: `--out`, `-m`. `None` for other words.
fn option_of(word: &str) -> Option<&str> {
    let word = word.split('=').next()?;
    match word.strip_prefix("--") {
        Some(name) if !name.is_empty() => Some(word),
        Some(_) => None,
        None => (word.len() > 1 && word.starts_with('-')).then(|| &word[..2]),
    }
}

fn lists(help: &str, option: &str) -> bool {
    let ends = |rest: &str| {
        let next = rest.chars().next();
        next.is_none_or(|next| !next.is_ascii_alphanumeric() && next != '-' && next != '_')
    };
    let begins =
        |before: &str| !before.ends_with(|last: char| last.is_alphanumeric() || last == '-');
    help.match_indices(option)
        .any(|(at, _)| begins(&help[..at]) && ends(&help[at + option.len()..]))
}

fn help_of(tool: &[&str]) -> String {
    let help = Command::new(env!("CARGO_BIN_EXE_weft"))
        .args(tool)
        .arg("--help")
        .output()
        .expect("weft can be started");
    assert!(
        help.status.success(),
        "weft {} --help: {help:?}",
        tool.join(" ")
    );
    String::from_utf8(help.stdout).expect("help is text")
}

#[test]
fn options_of_commands_in_documents_exist() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let (mut count, mut missing) = (0, Vec::new());
    for (page, text) in pages() {
        for Typed { place, words } in commands(&page, &text) {
            for option in words.iter().filter_map(|word| option_of(word)) {
                let tool = tool_of(&words);
                let key = tool.iter().map(|word| (*word).to_owned()).collect();
                let help = helps.entry(key).or_insert_with(|| help_of(&tool));
                count += 1;
                if !["--help", "-h"].contains(&option) && !lists(help, option) {
                    missing.push(format!("{place}: weft {} has no {option}", tool.join(" ")));
                }
            }
        }
    }
    assert!(
        count > 50,
        "only {count} options were found in the documents"
    );
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Sources in which other programs' options stand: those of MPIs' launchers, of git, of our tests.
fn sources(folder: &Path, all: &mut String) {
    for entry in fs::read_dir(folder).expect("a folder of the tree can be read") {
        let path = entry.expect("it can be read").path();
        let is_source = ["rs", "py", "sh"]
            .iter()
            .any(|end| path.extension().is_some_and(|is| is == *end));
        if path.is_dir() {
            sources(&path, all);
        } else if is_source {
            all.push_str(&fs::read_to_string(&path).unwrap_or_default());
        }
    }
}

/// The options of weft-mount, whose program is not built with this one: clap makes them of fields.
fn mount_options() -> String {
    let path = root().join("mount/daemon/src/options.rs");
    let source = fs::read_to_string(path).expect("the options of the mount can be read");
    let fields = source.lines().filter_map(|line| {
        let field = line.strip_prefix("    pub ")?;
        Some(format!(
            "--{}\n",
            field.split_once(':')?.0.replace('_', "-")
        ))
    });
    fields.collect()
}

#[test]
fn options_that_documents_name_stand_in_a_help_or_a_source() {
    let tools = TOOLS.iter().filter(|tool| !INNER_TOOLS.contains(tool));
    let tools = tools.map(|tool| vec![*tool]);
    let benches = BENCHES.iter().chain(iter::once(&"latency"));
    let helps = tools.chain(benches.map(|bench| vec!["bench", *bench]));
    let helps = helps.chain(EXPORTS.iter().map(|target| vec!["export", *target]));
    let mut known: String = helps.map(|tool| help_of(&tool)).collect();
    known += &mount_options();
    for folder in ["tests", "scripts", "tools"] {
        sources(&root().join(folder), &mut known);
    }
    let mut missing = Vec::new();
    for (page, text) in pages() {
        for (index, line) in text.lines().enumerate() {
            let named = code_of(line, false)
                .into_iter()
                .filter(|code| code.starts_with("--"));
            for option in named.filter_map(|code| option_of(code.split(' ').next()?)) {
                if !lists(&known, option) {
                    missing.push(format!("{page}:{}: {option}", index + 1));
                }
            }
        }
    }
    assert!(
        missing.is_empty(),
        "named and nowhere to be found:\n{}",
        missing.join("\n")
    );
}

#[test]
fn a_made_up_option_is_found_and_comments_are_no_code() {
    let text = "```\nweft run -n 2 --made-up -- ./code --its-own   what --it does\n```\n\
                Say `weft bench latency -m 8` or `weft A`.";
    let found = commands("page", text);
    let options = |typed: &Typed| -> Vec<String> {
        let options = typed.words.iter().filter_map(|word| option_of(word));
        options.map(str::to_owned).collect()
    };
    assert_eq!(found.len(), 2);
    assert_eq!(options(&found[0]), ["-n", "--made-up"]);
    assert_eq!(
        (options(&found[1]), found[1].place.as_str()),
        (vec!["-m".into()], "page:4")
    );
    let help = "  -n, --ranks <N>  Number\n      --made-up-too  Other";
    assert!(lists(help, "-n") && lists(help, "--ranks") && lists(help, "--made-up-too"));
    assert!(!lists(help, "--made-up") && !lists(help, "-r"));
}
