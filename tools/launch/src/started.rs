// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Who started this rank, and which rank it is: read out of the variables that launchers set.
//!
//! Called by `exec.rs`. Sources: mpirun(1) of Open MPI, "Exported Environment Variables"; Hydra's
//! environment as MPICH 5.0.2 and Intel MPI 2021.18 show it; srun(1), "OUTPUT ENVIRONMENT
//! VARIABLES". A launcher that runs inside a batch job leaves the batch system's variables to its
//! ranks, so its own come first.

use std::fmt;

use crate::fault::Fault;

/// A launcher of ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starter {
    /// Open MPI's mpirun.
    OpenMpi,
    /// Hydra, mpiexec of MPICH and of Intel MPI.
    Hydra,
    /// Slurm's srun.
    Slurm,
    /// Another one that speaks PMI or PMIx.
    Other,
}

impl fmt::Display for Starter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OpenMpi => "Open MPI's mpirun",
            Self::Hydra => "mpiexec (Hydra)",
            Self::Slurm => "srun",
            Self::Other => "a launcher",
        })
    }
}

/// One rank, as its launcher tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Who started it.
    pub by: Starter,
    /// The variable that holds its number: the launcher's own processes do not have it.
    pub variable: &'static str,
    /// Its number in the job.
    pub rank: u32,
    /// Ranks of the job.
    pub size: Option<u32>,
    /// Ranks of the job on this host.
    pub local_size: Option<u32>,
    /// Its number among those of its host.
    pub local_rank: Option<u32>,
    /// PMIx is offered.
    pub pmix: bool,
    /// PMI 1 or 2 is offered.
    pub pmi: bool,
}

/// Reads one variable.
type Get<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Started {
    /// This process as a rank; `None` where no launcher has started it.
    ///
    /// # Errors
    /// `Fault::Usage` where a launcher's variable holds no number.
    pub fn of_this_process() -> Result<Option<Self>, Fault> {
        Self::of(&|name| std::env::var(name).ok())
    }

    fn of(get: Get<'_>) -> Result<Option<Self>, Fault> {
        let Some((by, variable)) = starter(get) else {
            return Ok(None);
        };
        let number = |name: &str| number(name, get);
        let Some(rank) = number(variable)? else {
            return Ok(None);
        };
        let (size, local_size, local_rank) = match by {
            Starter::OpenMpi => (
                number("OMPI_COMM_WORLD_SIZE")?,
                number("OMPI_COMM_WORLD_LOCAL_SIZE")?,
                number("OMPI_COMM_WORLD_LOCAL_RANK")?,
            ),
            Starter::Hydra => (
                number("PMI_SIZE")?,
                number("MPI_LOCALNRANKS")?,
                number("MPI_LOCALRANKID")?,
            ),
            Starter::Slurm => (
                number("SLURM_STEP_NUM_TASKS")?,
                slurm_local(get, number("SLURM_NODEID")?.unwrap_or(0)),
                number("SLURM_LOCALID")?,
            ),
            Starter::Other => (number("PMI_SIZE")?, None, None),
        };
        Ok(Some(Self {
            by,
            variable,
            rank,
            size,
            local_size,
            local_rank,
            pmix: get("PMIX_RANK").is_some(),
            pmi: ["PMI_FD", "PMI_PORT", "PMI_RANK"]
                .iter()
                .any(|name| get(name).is_some()),
        }))
    }

    /// Whether the job has ranks on other hosts too; `false` where the launcher does not say.
    #[must_use]
    pub fn is_spread(&self) -> bool {
        matches!((self.size, self.local_size), (Some(all), Some(local)) if local < all)
    }

    /// Whether it may do what one rank of each host does: it is the first one of its host, or its
    /// launcher does not say.
    #[must_use]
    pub fn is_first_of_host(&self) -> bool {
        self.local_rank.is_none_or(|rank| rank == 0)
    }

    /// Whether it is the only rank; `false` where the launcher does not say.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.size == Some(1)
    }
}

/// Whether the launcher started as many ranks as the job is to have: fewer would be several jobs,
/// or a part of one, and end well. A launcher that does not say how many is believed.
///
/// # Errors
/// `Fault::Mismatch` with both numbers.
pub fn check_world(started: Option<&Started>, world: u32) -> Result<(), Fault> {
    let (by, size) = match started {
        None => ("no launcher".to_owned(), Some(1)),
        Some(rank) => (rank.by.to_string(), rank.size),
    };
    match size {
        Some(size) if size != world => Err(Fault::Mismatch(format!(
            "--world {world}: {by} started this process as one of {size} ranks; start all of them \
             with one srun or mpirun, or give the number that is meant"
        ))),
        _ => Ok(()),
    }
}

/// The launcher whose variables are there, and the one with the rank.
fn starter(get: Get<'_>) -> Option<(Starter, &'static str)> {
    let has = |name: &str| get(name).is_some();
    if has("OMPI_COMM_WORLD_RANK") {
        Some((Starter::OpenMpi, "OMPI_COMM_WORLD_RANK"))
    } else if has("MPI_LOCALNRANKS") && has("PMI_RANK") {
        Some((Starter::Hydra, "PMI_RANK"))
    } else if has("SLURM_STEP_NUM_TASKS") && has("SLURM_PROCID") {
        // A batch script has SLURM_PROCID too, but is no step.
        Some((Starter::Slurm, "SLURM_PROCID"))
    } else if has("PMIX_RANK") {
        Some((Starter::Other, "PMIX_RANK"))
    } else if has("PMI_RANK") {
        Some((Starter::Other, "PMI_RANK"))
    } else {
        None
    }
}

fn number(name: &str, get: Get<'_>) -> Result<Option<u32>, Fault> {
    let Some(text) = get(name) else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        Fault::Usage(format!(
            "{name} is \"{text}\", but a launcher sets it to a whole number; unset it, or start \
             the program with mpirun, mpiexec or srun"
        ))
    })
}

/// The tasks of a step on this node, from a list such as `4(x2),3`: its nodes in order.
fn slurm_local(get: Get<'_>, node: u32) -> Option<u32> {
    let list = get("SLURM_STEP_TASKS_PER_NODE").or_else(|| get("SLURM_TASKS_PER_NODE"))?;
    let mut before = 0_u32;
    for part in list.split(',') {
        let (count, nodes) = match part.split_once("(x") {
            Some((count, nodes)) => (count, nodes.strip_suffix(')')?.parse().ok()?),
            None => (part, 1_u32),
        };
        before = before.saturating_add(nodes);
        if node < before {
            return count.parse().ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(set: &[(&str, &str)]) -> Result<Option<Started>, Fault> {
        Started::of(&|name| {
            let found = set.iter().find(|(set, _)| *set == name);
            found.map(|&(_, value)| value.to_owned())
        })
    }

    const OPEN_MPI: [(&str, &str); 4] = [
        ("OMPI_COMM_WORLD_RANK", "3"),
        ("OMPI_COMM_WORLD_SIZE", "4"),
        ("OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
        ("PMIX_RANK", "3"),
    ];
    const HYDRA: [(&str, &str); 4] = [
        ("PMI_RANK", "1"),
        ("PMI_SIZE", "2"),
        ("PMI_FD", "11"),
        ("MPI_LOCALNRANKS", "2"),
    ];
    const SLURM: [(&str, &str); 4] = [
        ("SLURM_PROCID", "5"),
        ("SLURM_STEP_NUM_TASKS", "7"),
        ("SLURM_STEP_TASKS_PER_NODE", "2(x2),3"),
        ("SLURM_NODEID", "2"),
    ];

    #[test]
    fn each_launcher_is_known_by_its_own_variables_also_inside_a_batch_job() {
        let of = |set: &[(&str, &str)]| started(set).unwrap().unwrap();
        let open_mpi = of(&OPEN_MPI);
        assert_eq!((open_mpi.by, open_mpi.rank), (Starter::OpenMpi, 3));
        assert!(open_mpi.is_spread() && open_mpi.pmix && !open_mpi.pmi);
        let hydra = of(&HYDRA);
        assert_eq!((hydra.by, hydra.rank), (Starter::Hydra, 1));
        assert!(!hydra.is_spread() && !hydra.is_alone() && hydra.pmi && !hydra.pmix);
        let slurm = of(&SLURM);
        assert_eq!((slurm.by, slurm.rank), (Starter::Slurm, 5));
        assert_eq!((slurm.size, slurm.local_size), (Some(7), Some(3)));
        assert!(!slurm.pmi && !slurm.pmix);
        for (inner, by) in [(OPEN_MPI, Starter::OpenMpi), (HYDRA, Starter::Hydra)] {
            let both: Vec<_> = SLURM.into_iter().chain(inner).collect();
            assert_eq!(of(&both).by, by);
        }
        let pmi2: Vec<_> = SLURM.into_iter().chain([("PMI_RANK", "5")]).collect();
        assert_eq!((of(&pmi2).by, of(&pmi2).pmi), (Starter::Slurm, true));
    }

    #[test]
    fn one_rank_of_a_host_is_its_first_and_all_are_where_nobody_says() {
        let is_first = |set: &[(&str, &str)], local: (&'static str, &'static str)| {
            let set: Vec<_> = set.iter().copied().chain([local]).collect();
            started(&set).unwrap().unwrap().is_first_of_host()
        };
        for (set, name) in [
            (OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_RANK"),
            (HYDRA, "MPI_LOCALRANKID"),
            (SLURM, "SLURM_LOCALID"),
        ] {
            assert!(is_first(&set, (name, "0")) && !is_first(&set, (name, "1")));
        }
        assert!(is_first(&[("PMIX_RANK", "3")], ("SLURM_LOCALID", "3")));
    }

    #[test]
    fn a_batch_script_and_a_shell_are_no_ranks() {
        assert_eq!(started(&[]).unwrap(), None);
        let script = [("SLURM_PROCID", "0"), ("SLURM_NTASKS", "4")];
        assert_eq!(started(&script).unwrap(), None);
    }

    #[test]
    fn a_world_of_another_size_than_the_jobs_is_refused_with_both_numbers() {
        let four = started(&OPEN_MPI).unwrap();
        assert!(check_world(four.as_ref(), 4).is_ok());
        let text = check_world(four.as_ref(), 8).unwrap_err().to_string();
        assert!(
            text.contains("--world 8") && text.contains("one of 4"),
            "{text}"
        );
        assert!(check_world(None, 1).is_ok());
        let text = check_world(None, 2).unwrap_err().to_string();
        assert!(text.contains("no launcher"), "{text}");
    }

    #[test]
    fn tasks_of_a_node_are_read_from_slurms_list() {
        let local = |list: &'static str, node| {
            slurm_local(
                &|name| (name == "SLURM_TASKS_PER_NODE").then(|| list.to_owned()),
                node,
            )
        };
        assert_eq!(
            (local("2(x3),1", 2), local("2(x3),1", 3)),
            (Some(2), Some(1))
        );
        assert_eq!((local("4", 0), local("4", 1)), (Some(4), None));
        for odd in ["", "x", "2(x", "2(x3", "(x2)"] {
            assert_eq!(local(odd, 0), None, "{odd}");
        }
    }

    #[test]
    fn a_number_that_is_none_is_refused_with_its_name_and_value() {
        let odd = [("OMPI_COMM_WORLD_RANK", "one")];
        let text = started(&odd).unwrap_err().to_string();
        assert!(text.contains("OMPI_COMM_WORLD_RANK is \"one\""), "{text}");
    }
}
