// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A command that begins with `weft run`, as `weft export` writes it.
//!
//! Called by `launcher.rs`.

use super::count;
use crate::fault::Fault;
use crate::job::Job;
use crate::node::shortened;

/// Reads what stands behind `weft run`.
///
/// # Errors
/// An option that is not among those of a job file, or no program.
pub(super) fn job_of(mut words: impl Iterator<Item = String>) -> Result<Job, Fault> {
    // The program is put in when it is met.
    let mut job = Job::of(String::new());
    while let Some(word) = words.next() {
        if word == "--" || !word.starts_with('-') {
            let program = if word == "--" {
                words.next()
            } else {
                Some(word)
            };
            job.program = program.unwrap_or_default();
            job.arguments = words.collect();
            break;
        }
        let missing = format!("{word} of weft run needs a value after it");
        let value = words.next().ok_or_else(|| Fault::new(missing))?;
        match word.as_str() {
            "-n" => job.ranks = Some(count(&word, value)?),
            "--ppn" => job.ranks_per_node = Some(count(&word, value)?),
            "--mpi" => job.mpi = Some(value),
            "--transport" => job.transport = Some(value),
            "--wdir" => job.folder = Some(value),
            "--mount" => job.mounts.push(value.parse().map_err(Fault::new)?),
            "--env" => {
                let Some((name, set)) = value.split_once('=') else {
                    let shown = shortened(&value);
                    let text = format!("--env {shown}: its value is not known here");
                    return Err(Fault::new(text));
                };
                job.environment.insert(name.to_owned(), set.to_owned());
            }
            // The other system names its hosts there.
            "--hostfile" => {}
            _ => {
                let word = shortened(&word);
                let text = format!("{word} of weft run cannot be said in a command that is read");
                return Err(Fault::new(text));
            }
        }
    }
    if job.program.is_empty() {
        return Err(Fault::new("no program follows weft run"));
    }
    job.set_version();
    Ok(job)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::whole::Whole;

    fn read(line: &str) -> Result<Job, Fault> {
        job_of(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_of_a_job_file_are_read() {
        let job = read(
            "--hostfile h -n 4 --ppn 2 --mpi mpich --env A=b=c --wdir /w \
             --mount s3://data/a:/b:ro -- -x -n 7",
        );
        let job = job.unwrap();
        assert_eq!(job.mounts[0].to_string(), "s3://data/a:/b:ro");
        assert_eq!(job.version.get(), 1);
        let shared = read("--mount s3://data/a:/b:shared-writes a").unwrap();
        assert!(shared.mounts[0].shared_writes && shared.version.get() == 2);
        assert_eq!((job.program.as_str(), job.arguments.len()), ("-x", 2));
        assert_eq!(job.ranks.map(Whole::get), Some(4));
        assert_eq!(job.ranks_per_node.map(Whole::get), Some(2));
        assert_eq!(job.environment["A"], "b=c");
        assert_eq!(read("a --").unwrap().arguments, ["--"]);
    }

    #[test]
    fn other_words_are_refused() {
        for (line, said) in [
            ("", "no program"),
            ("-n 4 --", "no program"),
            ("-n", "-n of weft run needs a value"),
            ("-n 0 a", "-n: 0 is not possible"),
            ("--label a", "--label of weft run cannot be said"),
            ("--iface eth0 a", "--iface of weft run cannot be said"),
            ("--env A a", "--env A: its value"),
            ("--mount s3://data a", "names no folder"),
        ] {
            let answer = read(line).map(|_| ()).unwrap_err().to_string();
            assert!(answer.contains(said), "{line}: {answer}");
        }
    }
}
