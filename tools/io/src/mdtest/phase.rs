// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One iteration on all tasks: runs the phases in turn, times them, and puts the times together.
//!
//! Called by mdtest; calls items and tree. A task that fails says why, and still takes part in the
//! agreement that ends the phase. So all tasks end together and earlier results remain.

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};
use weft_ranks::say;

use weft_mpi::{Communicator, Operation};

use crate::ior::division::Place;
use crate::ior::phase::find_place;
use crate::mdtest::figures::{Row, Subject};
use crate::mdtest::items::{Batch, Worker};
use crate::mdtest::test::Test;
use crate::mdtest::tree::{self, Kind, Layout, Order, Step};
use weft_ranks::agree;
use weft_ranks::refusal::Failed;

/// Why an iteration ends early.
#[derive(Debug)]
pub enum Ended {
    /// A task failed and said why; all tasks know.
    Agreed,
    /// MPI itself fails.
    Broken(Failed),
}

impl From<weft_mpi::Error> for Ended {
    fn from(error: weft_mpi::Error) -> Self {
        Self::Broken(error.into())
    }
}

/// One task's part of a phase.
#[derive(Clone, Copy, Debug)]
struct Part {
    subject: Subject,
    count: u64,
    seconds: f64,
    has_failed: bool,
}

/// A test on its tasks.
pub struct Phase<'a> {
    group: &'a Communicator<'a>,
    test: &'a Test,
    place: Place,
    layout: Layout,
    worker: Worker<'a>,
    /// How many items a deadline allowed: directories, files.
    limits: [Cell<u64>; 2],
    has_failed: Cell<bool>,
}

impl<'a> Phase<'a> {
    /// Finds out where the tasks are. Setup.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn prepare(group: &'a Communicator<'a>, test: &'a Test) -> Result<Self, Failed> {
        let layout = Layout::of(&test.shape).map_err(|why| Failed::new(why.to_string()))?;
        let kept = test
            .run
            .deadline_file
            .as_deref()
            .filter(|_| !test.does.create);
        let limits = match kept {
            Some(path) => read_limits(path, layout.items)?,
            None => [layout.items; 2],
        };
        Ok(Self {
            group,
            test,
            place: find_place(group)?,
            layout,
            worker: Worker::new(test, layout),
            limits: limits.map(Cell::new),
            has_failed: Cell::new(false),
        })
    }

    /// Where the tasks are.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Items of all tasks together, of one kind.
    pub fn items(&self) -> u64 {
        self.layout.items * self.place.tasks as u64
    }

    /// Runs an iteration; `show` gets each phase as it ends. Answers how many files did not hold
    /// what was written.
    ///
    /// # Errors
    /// See [`Ended`].
    pub fn iteration(
        &self,
        iteration: u32,
        show: &mut dyn FnMut(Row) -> Result<(), Failed>,
    ) -> Result<u64, Ended> {
        std::thread::sleep(Duration::from_secs(self.test.run.delay_s));
        let mut tree_s = 0.0;
        if self.test.does.create {
            self.together(|| self.test_folders(iteration, true))?;
            let made = self.trees(iteration, Step::Create)?;
            tree_s = made.seconds;
            show(made).map_err(Ended::Broken)?;
        }
        let mut rows = self.items_of(iteration, show, tree_s)?;
        if self.test.does.remove {
            let removed = self.trees(iteration, Step::Remove)?;
            // What waited for the time of the trees.
            for row in &mut rows {
                row.seconds += removed.seconds;
                show(*row).map_err(Ended::Broken)?;
            }
            show(removed).map_err(Ended::Broken)?;
            self.together(|| self.test_folders(iteration, false))?;
        }
        let wrong = agree::over_ranks(
            self.group,
            self.worker.take_wrong_files() as f64,
            Operation::Sum,
        )?;
        Ok(wrong as u64)
    }

    /// All phases on items. Answers those whose time is not known before the trees are removed
    /// (-t).
    fn items_of(
        &self,
        iteration: u32,
        show: &mut dyn FnMut(Row) -> Result<(), Failed>,
        tree_s: f64,
    ) -> Result<Vec<Row>, Ended> {
        let counts_tree = self.test.sharing.tree_in_time && self.test.sharing.own_tree;
        let (mut parts, mut waiting) = (Vec::new(), Vec::new());
        let mut take = |rows: Vec<Row>| -> Result<(), Failed> {
            for mut row in rows {
                match row.subject {
                    Subject::Items(_, Step::Create) if counts_tree => row.seconds += tree_s,
                    Subject::Items(_, Step::Remove) if counts_tree => {
                        waiting.push(row);
                        continue;
                    }
                    _ => {}
                }
                show(row)?;
            }
            Ok(())
        };
        let is_wanted = |subject: &&Subject| {
            matches!(subject, Subject::Items(..)) && subject.is_done(self.test)
        };
        for subject in Subject::ALL.iter().filter(is_wanted) {
            if let Subject::Items(kind, step) = *subject {
                parts.push(self.part(iteration, kind, step)?);
            }
            if self.test.run.barriers {
                take(self.agree(&std::mem::take(&mut parts))?).map_err(Ended::Broken)?;
            }
        }
        take(self.agree(&parts)?).map_err(Ended::Broken)?;
        Ok(waiting)
    }

    /// This task's part of a phase on items. One that has failed before does nothing.
    fn part(&self, iteration: u32, kind: Kind, step: Step) -> Result<Part, Ended> {
        let limit = &self.limits[kind as usize];
        let has_deadline = step == Step::Create && self.test.run.deadline_s > 0;
        if step == Step::Create {
            limit.set(self.layout.items);
        }
        let seed = self.test.sharing.random_seed.filter(|_| step == Step::Stat);
        let order = Order::of(limit.get(), self.group.rank(), seed);
        let batch = |owner| Batch {
            owner,
            kind,
            iteration,
        };
        if self.test.run.barriers {
            self.group.barrier()?;
        }
        let start = Instant::now();
        let count = if has_deadline {
            self.until_deadline(batch(self.group.rank()))?
        } else {
            let owners = self.owners(step, kind).into_iter();
            owners
                .map(|owner| self.attempt(batch(owner), step, &order, 0..limit.get(), &|| true))
                .sum()
        };
        if self.test.run.sync_phases {
            nix::unistd::sync();
        }
        Ok(Part {
            subject: Subject::Items(kind, step),
            count,
            seconds: start.elapsed().as_secs_f64(),
            has_failed: self.has_failed.get(),
        })
    }

    fn attempt(
        &self,
        batch: Batch,
        step: Step,
        order: &Order,
        places: Range<u64>,
        goes_on: &dyn Fn() -> bool,
    ) -> u64 {
        if self.has_failed.get() {
            return 0;
        }
        let result = self.worker.work(batch, step, order, places, goes_on);
        self.told(result).unwrap_or(0)
    }

    /// Creates until the deadline, and then as much more as the fastest task has made.
    fn until_deadline(&self, batch: Batch) -> Result<u64, Ended> {
        let deadline = Duration::from_secs(self.test.run.deadline_s);
        let start = Instant::now();
        let create = |places, goes_on: &dyn Fn() -> bool| {
            self.attempt(batch, Step::Create, &Order::InTurn, places, goes_on)
        };
        let in_time = create(0..self.layout.items, &|| start.elapsed() < deadline);
        let most = agree::over_ranks(self.group, in_time as f64, Operation::Max)? as u64;
        self.limits[batch.kind as usize].set(most);
        Ok(in_time + create(in_time..most, &|| true))
    }

    /// Whose items this task works on.
    fn owners(&self, step: Step, kind: Kind) -> Vec<usize> {
        let (task, tasks) = (self.group.rank(), self.place.tasks);
        let sharing = self.test.sharing;
        let is_same = sharing.same_files && kind == Kind::File;
        let is_makers = matches!(step, Step::Create | Step::Remove);
        match (is_same, sharing.by_first_task && is_makers) {
            // Only one can remove what all share.
            (true, _) if step == Step::Remove && task > 0 => Vec::new(),
            (true, true) if task > 0 => Vec::new(),
            (true, _) => vec![0],
            (false, true) if task > 0 => Vec::new(),
            (false, true) => (0..tasks).collect(),
            (false, false) => vec![tree::stands_for(task, step, sharing.stride, tasks)],
        }
    }

    /// Whose trees this task makes and removes: its own, or with a shared tree those of the first
    /// task in each folder of -d.
    fn tree_owners(&self) -> Vec<usize> {
        let (task, tasks) = (self.group.rank(), self.place.tasks);
        let owners = if self.test.sharing.own_tree {
            tasks
        } else {
            self.test.roots.len().min(tasks)
        };
        match self.test.sharing.by_first_task {
            true if task > 0 => Vec::new(),
            true => (0..owners).collect(),
            false => (task..owners.min(task + 1)).collect(),
        }
    }

    fn test_folders(&self, iteration: u32, makes: bool) -> Result<(), Failed> {
        if self.group.rank() < self.test.roots.len() {
            self.worker
                .test_folder(self.group.rank(), iteration, makes)?;
        }
        Ok(())
    }

    /// Something that all tasks wait for, untimed.
    fn together(&self, work: impl FnOnce() -> Result<(), Failed>) -> Result<(), Ended> {
        self.told(work());
        let part = Part {
            subject: Subject::Tree(Step::Stat),
            count: 0,
            seconds: 0.0,
            has_failed: self.has_failed.get(),
        };
        self.agree(&[part]).map(drop)
    }

    fn trees(&self, iteration: u32, step: Step) -> Result<Row, Ended> {
        self.group.barrier()?;
        let start = Instant::now();
        let mut count = 0;
        for owner in self.tree_owners() {
            let done = self.worker.tree(owner, iteration, step == Step::Create);
            count += self.told(done).unwrap_or(0);
        }
        let part = Part {
            subject: Subject::Tree(step),
            count,
            seconds: start.elapsed().as_secs_f64(),
            has_failed: self.has_failed.get(),
        };
        Ok(self.agree(&[part])?[0])
    }

    /// Says why this task failed, and remembers it for the next agreement.
    fn told<T>(&self, result: Result<T, Failed>) -> Option<T> {
        result
            .inspect_err(|why| {
                say!("weft bench mdtest: [{}] {why}", self.group.rank());
                self.has_failed.set(true);
            })
            .ok()
    }

    /// Puts the parts of all tasks together: the sum of their items and the time of the slowest.
    /// All ends when one has failed.
    fn agree(&self, parts: &[Part]) -> Result<Vec<Row>, Ended> {
        let mut rows = Vec::new();
        let mut has_failed = false;
        for part in parts {
            let failed = agree::over_ranks(
                self.group,
                f64::from(u8::from(part.has_failed)),
                Operation::Max,
            )?;
            let count = agree::over_ranks(self.group, part.count as f64, Operation::Sum)?;
            let seconds = agree::over_ranks(self.group, part.seconds, Operation::Max)?;
            has_failed |= failed > 0.0;
            rows.push(Row {
                subject: part.subject,
                count: count as u64,
                seconds,
            });
        }
        if has_failed {
            return Err(Ended::Agreed);
        }
        Ok(rows)
    }

    /// Keeps what a deadline allowed, for runs without -C.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn keep_limits(&self) -> Result<(), Failed> {
        let path = self.test.run.deadline_file.as_deref();
        let Some(path) = path.filter(|_| self.test.does.create && self.group.rank() == 0) else {
            return Ok(());
        };
        let [folders, files] = [self.limits[0].get(), self.limits[1].get()];
        std::fs::write(path, format!("directories {folders}\nfiles {files}\n"))
            .map_err(|error| Failed::new(format!("-x {path} cannot be written: {error}")))
    }
}

/// What an earlier run with -W and -x allowed; never more than `items`.
fn read_limits(path: &str, items: u64) -> Result<[u64; 2], Failed> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failed::new(format!(
            "-x {path} cannot be read: {error}; a run with -C, -W and -x makes it"
        ))
    })?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|rest| rest.trim().parse::<u64>().ok());
        number.map(|number| number.min(items)).ok_or_else(|| {
            Failed::new(format!(
                "-x {path} has no line '{name}' with a number; a run with -C, -W and -x makes it"
            ))
        })
    };
    Ok([of("directories ")?, of("files ")?])
}

#[cfg(test)]
mod tests {
    #[test]
    fn limits_of_a_deadline_are_read_and_what_is_wrong_is_told() {
        let room = tempfile::tempdir().unwrap();
        let path = room.path().join("kept").display().to_string();
        let why = super::read_limits(&path, 9).unwrap_err().to_string();
        assert!(why.contains("a run with -C, -W and -x makes it"), "{why}");
        std::fs::write(&path, "directories 3\nfiles 12\n").unwrap();
        assert_eq!(super::read_limits(&path, 9).unwrap(), [3, 9]);
        std::fs::write(&path, "directories 3\nfiles many\n").unwrap();
        let why = super::read_limits(&path, 9).unwrap_err().to_string();
        assert!(why.contains("no line 'files '"), "{why}");
    }
}
