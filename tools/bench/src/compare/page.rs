// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The comparison as one self-contained HTML page: the plot, the machine, the tables, the command lines.
//!
//! Called by files; reads record through table. No script, no font and no picture from elsewhere: the page can be mailed.

use super::environment::Environment;
use super::plan::Plan;
use super::record::Record;
use super::table;
use std::fmt::Write;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:1180px;margin:2em auto;padding:0 1em;color:#222}\
pre{font:12px/1.4 monospace;overflow-x:auto;background:#f6f6f4;padding:1em}svg{max-width:100%;height:auto}\
td{padding:0 1em 0 0;vertical-align:top}td:first-child{color:#777}";

/// The whole page; `svg` is the plot's text.
pub fn page(plan: &Plan, environment: &Environment, record: &Record, svg: &str) -> String {
    let mut text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Weft against other transports</title>\
         <style>{STYLE}</style></head><body>\n<h1>Weft against other transports</h1>\n"
    );
    text.push_str(&machine(environment));
    let _ = write!(text, "<h2>Curves</h2>\n{}\n", without_prologue(svg));
    let _ = write!(
        text,
        "<h2>Figures</h2>\n<pre>{}</pre>\n",
        escaped(table::all(plan, record).trim())
    );
    list(&mut text, "Left out", &plan.left_out);
    list(&mut text, "Failed runs", &record.failures());
    let commands = plan.legs.iter().map(|leg| {
        leg.command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    });
    let launches = plan
        .contenders
        .iter()
        .map(|(contender, shown)| format!("{contender}: {shown}"));
    list(&mut text, "Runs of a round", &commands.collect::<Vec<_>>());
    list(
        &mut text,
        "How each MPI was started",
        &launches.collect::<Vec<_>>(),
    );
    text.push_str("</body></html>\n");
    text
}

fn machine(environment: &Environment) -> String {
    let kind = if environment.virtual_machine {
        " (virtual machine)"
    } else {
        ""
    };
    let rows = [
        (
            "Processor",
            format!(
                "{}, {} cores{kind}",
                environment.processor, environment.core_count
            ),
        ),
        ("Memory", format!("{} GiB", environment.memory_bytes >> 30)),
        ("Kernel", environment.kernel.clone()),
        ("Load before", format!("{:.2}", environment.load)),
        ("Command", environment.command.join(" ")),
        ("Weft", environment.weft.to_owned()),
    ];
    let mut text = String::from("<table>");
    for (name, value) in rows {
        let _ = write!(text, "<tr><td>{name}</td><td>{}</td></tr>", escaped(&value));
    }
    text + "</table>\n"
}

fn list(text: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        let _ = write!(
            text,
            "<h2>{title}</h2>\n<pre>{}</pre>\n",
            escaped(&lines.join("\n"))
        );
    }
}

/// An SVG inside HTML has no XML declaration.
fn without_prologue(svg: &str) -> &str {
    svg.find("<svg").map_or("", |start| &svg[start..])
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::environment;
    use crate::compare::record::tests::{contender, filled, leg};

    #[test]
    fn page_holds_plot_figures_and_reasons_and_loads_nothing() {
        let plan = Plan {
            contenders: ["weft", "native"]
                .map(|transport| (contender("mpich", transport), "env A=1 mpiexec".to_owned()))
                .to_vec(),
            left_out: vec!["intel over weft: <none>".into()],
            legs: vec![leg("mpich", "weft", "latency")],
        };
        let text = page(
            &plan,
            &environment::of_this_machine(),
            &filled(),
            "<?xml version=\"1.0\"?>\n<svg id=\"plot\"></svg>",
        );
        for word in [
            "<svg id=\"plot\">",
            "0.30 [0.22-0.38]",
            "intel over weft: &lt;none&gt;",
            "env A=1 mpiexec",
        ] {
            assert!(text.contains(word), "{word} is missing");
        }
        assert!(!text.contains("<?xml") && !text.contains("src=") && !text.contains("href="));
    }
}
