// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A command that begins with mpirun or mpiexec: the program behind it, and its ranks.
//!
//! Called by `container.rs`; hands a `weft run` to `weft_run.rs`. Sources: mpirun(1) of Open MPI 5;
//! mpiexec of MPICH and Intel MPI.

use super::{count, weft_run};
use crate::fault::Fault;
use crate::job::Job;
use crate::whole::Whole;

/// Reads a command: the program and its arguments as they are, or what a launcher would start.
///
/// # Errors
/// An option of the launcher that a job file cannot say, or no program behind it.
pub(crate) fn job_of(words: Vec<String>) -> Result<Job, Fault> {
    let mut words = words.into_iter().peekable();
    let first = words.next().filter(|word| !word.is_empty());
    let first = first.ok_or_else(|| Fault::new("the command is empty; a job has a program"))?;
    let name = first.rsplit('/').next().unwrap_or_default();
    if name == "weft" && words.next_if(|word| word == "run").is_some() {
        return weft_run::job_of(words);
    }
    if !matches!(
        name,
        "mpirun" | "mpiexec" | "orterun" | "prterun" | "mpiexec.hydra"
    ) {
        // The other system starts it once on each node.
        let mut job = Job::of(first);
        job.arguments = words.collect();
        job.ranks_per_node = Some(Whole::least());
        return Ok(job);
    }
    // The program is put in when it is met.
    let mut job = Job::of(String::new());
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix('-') else {
            job.program = word;
            job.arguments = words.collect();
            if job.ranks.is_none() && job.ranks_per_node.is_none() {
                job.ranks_per_node = Some(Whole::least());
            }
            return Ok(job);
        };
        let option = option.strip_prefix('-').unwrap_or(option);
        let mut value = || {
            let missing = format!("{word} of {name} needs a value after it");
            words.next().ok_or_else(|| Fault::new(missing))
        };
        match option {
            "n" | "np" | "c" => job.ranks = Some(count(&word, value()?)?),
            "N" | "npernode" | "ppn" | "perhost" => {
                job.ranks_per_node = Some(count(&word, value()?)?);
            }
            "x" | "env" | "genv" => {
                let text = value()?;
                let (key, set) = match text.split_once('=') {
                    Some((key, set)) => (key.to_owned(), set.to_owned()),
                    None if option != "x" => (text, value()?),
                    None => {
                        return Err(Fault::new(format!(
                            "{word} {text}: its value is not known here; write {word} {text}=VALUE"
                        )));
                    }
                };
                job.environment.insert(key, set);
            }
            "mca" => {
                let (key, set) = (value()?, value()?);
                job.environment.insert(format!("OMPI_MCA_{key}"), set);
            }
            "wdir" | "wd" => job.folder = Some(value()?),
            "allow-run-as-root" | "oversubscribe" | "genvall" => {}
            _ => {
                return Err(Fault::new(format!(
                    "{word} of {name} cannot be said in a job file; remove it from the command"
                )));
            }
        }
    }
    Err(Fault::new(format!("no program follows {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Job, Fault> {
        job_of(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn the_program_behind_a_launcher_is_the_jobs() {
        let job = read(
            "/opt/amazon/openmpi/bin/mpirun --allow-run-as-root -np 4 -N 2 -x A=1 --mca btl self \
             -wdir /w ./osu_latency -m 8",
        )
        .unwrap();
        assert_eq!(
            (job.program.as_str(), job.arguments.len()),
            ("./osu_latency", 2)
        );
        assert_eq!(job.ranks.map(Whole::get), Some(4));
        assert_eq!(job.ranks_per_node.map(Whole::get), Some(2));
        assert_eq!(job.environment["A"], "1");
        assert_eq!(job.environment["OMPI_MCA_btl"], "self");
        assert_eq!(job.folder.as_deref(), Some("/w"));
        let job = read("mpiexec -genv B 2 -n 3 a -n 7").unwrap();
        assert_eq!(
            (job.environment["B"].as_str(), job.arguments.len()),
            ("2", 2)
        );
        let job = read("./a -np 4").unwrap();
        assert_eq!((job.program.as_str(), job.ranks), ("./a", None));
    }

    #[test]
    fn what_a_job_file_cannot_say_is_refused() {
        for (line, said) in [
            ("", "the command is empty"),
            ("mpirun -np 4", "no program follows mpirun"),
            ("mpirun -np", "-np of mpirun needs a value"),
            ("mpirun -np 0 a", "-np: 0 is not possible"),
            (
                "mpirun --rankfile f a",
                "--rankfile of mpirun cannot be said",
            ),
            ("mpirun -x HOME a", "write -x HOME=VALUE"),
        ] {
            let answer = read(line).unwrap_err().to_string();
            assert!(answer.contains(said), "{line}: {answer}");
        }
    }
}
