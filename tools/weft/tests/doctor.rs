// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `weft doctor`, `weft info` and the top of the `weft` command as a user sees them.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `weft` with an environment in which nothing but the given variables could matter.
fn weft(words: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    for (name, _) in std::env::vars() {
        if ["FI_", "OMPI_MCA_", "MPIR_CVAR_", "I_MPI_", "WEFT_"]
            .iter()
            .any(|start| name.starts_with(start))
        {
            command.env_remove(name);
        }
    }
    command
        .args(words)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == name)
        .unwrap_or_else(|| panic!("no check {name}"))
}

/// A shared library that looks like the provider from outside.
fn look_alike(folder: &Path, source: &str) {
    let input = folder.join("provider.c");
    std::fs::write(&input, source).unwrap();
    let output = folder.join("libweft-fi.so");
    assert!(
        Command::new("cc")
            .args(["-shared", "-fPIC"])
            .arg(input)
            .arg("-o")
            .arg(output)
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn every_check_has_a_value_and_a_reason_and_bad_ones_a_fix() {
    let output = weft(
        &["doctor", "--json"],
        &[("WEFT_PROVIDER_DIR", "/no/such/folder")],
    );
    let report = json(&output);
    assert_eq!(
        (output.status.code(), &report["status"]),
        (Some(2), &"fail".into())
    );
    let checks = report["checks"].as_array().unwrap();
    assert!(checks.len() > 10);
    for check in checks {
        let text = |key: &str| check[key].as_str().unwrap().to_owned();
        assert!(
            !text("name").is_empty() && !text("value").is_empty() && !text("why").is_empty(),
            "{check}"
        );
        let is_bad = ["warn", "fail"].contains(&text("status").as_str());
        assert_eq!(text("fix").is_empty(), !is_bad, "{check}");
        let is_untried = text("status") == "not_tried";
        assert_eq!(text("how").is_empty(), !is_untried, "{check}");
    }
    assert!(
        check(&report, "provider")["fix"]
            .as_str()
            .unwrap()
            .contains("/no/such/folder")
    );
}

#[test]
fn a_provider_with_stray_exports_or_missing_functions_is_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    look_alike(
        folder.path(),
        "void *fi_prov_ini(void){return 0;} void stray(void){}",
    );
    let report = json(&weft(
        &["doctor", "--json"],
        &[("WEFT_PROVIDER_DIR", place)],
    ));
    assert_eq!(check(&report, "provider's symbols")["status"], "warn");
    assert!(
        check(&report, "provider's symbols")["value"]
            .as_str()
            .unwrap()
            .contains("stray")
    );
    look_alike(
        folder.path(),
        "void *fi_dupinfo(void *); void *fi_prov_ini(void){return fi_dupinfo(0);}",
    );
    let report = json(&weft(
        &["doctor", "--json"],
        &[("WEFT_PROVIDER_DIR", place)],
    ));
    assert_eq!(check(&report, "provider's symbols")["status"], "fail");
}

#[test]
fn single_copy_is_tried_by_another_process() {
    let report = json(&weft(&["doctor", "--json"], &[]));
    let single_copy = check(&report, "single copy");
    // Either answer is right for the machine at hand; a broken attempt is not.
    let value = single_copy["value"].as_str().unwrap();
    let fits = match single_copy["status"].as_str().unwrap() {
        "ok" => value.starts_with("another process read"),
        _ => value.starts_with("process_vm_readv: "),
    };
    assert!(fits, "{single_copy}");
}

#[test]
fn direct_access_is_tried_by_another_process_and_told_by_info() {
    let report = json(&weft(&["doctor", "--json"], &[]));
    let direct = check(&report, "direct access");
    // As above; a container may forbid it.
    let value = direct["value"].as_str().unwrap();
    let fits = match direct["status"].as_str().unwrap() {
        "ok" => value.starts_with("another process mapped"),
        _ => value.contains("by messages") && !direct["fix"].as_str().unwrap().is_empty(),
    };
    assert!(fits, "{direct}");
    let info = json(&weft(&["info", "--json"], &[]));
    let choices = info["choices"].as_array().unwrap();
    let told = choices
        .iter()
        .find(|choice| choice["name"] == "direct access");
    assert_eq!(told.expect("it is told")["value"], direct["value"]);
}

#[test]
fn variables_and_parameters_of_the_environment_are_judged() {
    let variables = [
        ("FI_PROVIDER", "tcp"),
        ("FI_WEFT_INJECT_SIZE", "9"),
        ("FI_WEFT_TYPO", "1"),
    ];
    let report = json(&weft(&["doctor", "--json"], &variables));
    assert_eq!(check(&report, "FI_PROVIDER")["status"], "warn");
    assert_eq!(check(&report, "FI_WEFT_INJECT_SIZE")["status"], "fail");
    assert_eq!(check(&report, "FI_WEFT_TYPO")["status"], "warn");
}

#[test]
fn text_has_no_colour_when_it_is_not_for_a_terminal() {
    for words in [&["doctor"][..], &["doctor", "--explain"], &["info"]] {
        let output = weft(words, &[]);
        assert!(
            !output.stdout.is_empty() && !output.stdout.contains(&0x1b),
            "{words:?}"
        );
        assert!(output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn info_shows_what_is_here_for_scripts() {
    let info = json(&weft(&["info", "--json"], &[("FI_WEFT_IFACE", "lo")]));
    assert_eq!(info["weft"], env!("CARGO_PKG_VERSION"));
    assert!(
        info["machine"]
            .as_array()
            .unwrap()
            .iter()
            .any(|fact| fact["name"] == "processors")
    );
    let interface = info["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "FI_WEFT_IFACE")
        .unwrap();
    assert_eq!(interface["current"], "lo");
}

#[test]
fn each_tool_answers_to_help_and_wrong_usage_gives_2() {
    for tool in ["run", "bench", "doctor", "info"] {
        let help = weft(&[tool, "--help"], &[]);
        assert_eq!(help.status.code(), Some(0), "{tool}: {help:?}");
        assert!(
            String::from_utf8_lossy(&help.stdout).contains(&format!("weft {tool}")),
            "{tool}: {help:?}"
        );
    }
    for words in [
        &["doctor", "--nonsense"][..],
        &["info", "extra"],
        &["nonsense"],
        &["run", "--nonsense", "--", "true"],
    ] {
        assert_eq!(weft(words, &[]).status.code(), Some(2), "{words:?}");
    }
    let version = weft(&["--version"], &[]);
    assert_eq!(
        String::from_utf8_lossy(&version.stdout),
        format!("weft {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert!(String::from_utf8_lossy(&weft(&["--help"], &[]).stdout).contains("weft run -n 4 --"));
}

/// The hosts are this machine, reached by a script in the place of ssh.
#[test]
fn each_host_of_a_job_is_examined_and_one_that_is_not_reached_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("shell");
    let script = "#!/bin/sh\n[ \"$1\" = lost ] && { echo no route >&2; exit 255; }\n\
                  [ \"$1\" = slow ] && exec sleep 100\nexec sh -c \"$2\"\n";
    std::fs::write(&shell, script).unwrap();
    std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).unwrap();
    let shell = shell.to_str().unwrap();
    let on = |list: &str, more: &[&str]| {
        let words = ["doctor", "--hosts", list, "--quick", "--launcher", shell];
        weft(&[&words, more].concat(), &[])
    };
    let output = on("a,lost,b", &["--json"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let found = json(&output);
    let hosts = found["hosts"].as_array().unwrap();
    let names: Vec<_> = hosts.iter().map(|host| host["host"].as_str()).collect();
    assert_eq!(names, [Some("a"), Some("lost"), Some("b")]);
    assert!(hosts[0]["facts"]["kernel"].is_string() && hosts[0]["checks"].is_array());
    let why = hosts[1]["unreachable"].as_str().unwrap();
    assert!(why.contains("255") && why.contains("no route"), "{why}");
    assert_eq!(found["differences"], serde_json::json!({}));

    let output = on("slow", &["--host-timeout", "1"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("slow: not reached: no answer within 1 s"),
        "{text}"
    );

    let output = on("a b", &[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty());
}
