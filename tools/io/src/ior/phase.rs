// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One pass over all files: each task opens, moves its bytes and closes. Then every task gets the
//! times of all.
//!
//! Called by ior; calls division, content, file and figures. Each task uses its own monotonic clock
//! and sets it to zero when a barrier ends. So the times of tasks on several hosts are comparable
//! to within the duration of a barrier.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use weft_ranks::refusal::Failed;
use weft_ranks::say;

use weft_mpi::{Buffer, Communicator, Datatype, Operation};

use crate::ior::content::Content;
use crate::ior::division::{self, Place};
use crate::ior::figures::{Access, Row, Times};
use crate::ior::file::{self, Target};
use crate::ior::test::Test;
use weft_ranks::agree;

/// A test on its tasks, with its memory.
pub struct Phase<'a> {
    group: &'a Communicator<'a>,
    test: &'a Test,
    place: Place,
    buffer: RefCell<Buffer>,
}

/// Room for a processor's name in the exchange. Specified: MPI_MAX_PROCESSOR_NAME is at most 256 in
/// the MPIs at hand.
const NAME_BYTES: usize = 256;

pub(crate) fn find_place(group: &Communicator<'_>) -> Result<Place, Failed> {
    let mut own = [0; NAME_BYTES];
    let name = group.session().processor_name();
    let length = name.len().min(NAME_BYTES);
    own[..length].copy_from_slice(&name.as_bytes()[..length]);
    let mut all = vec![0; NAME_BYTES * group.size()];
    group.allgather(&own, &mut all, Datatype::Byte)?;
    let names: Vec<&[u8]> = all.chunks(NAME_BYTES).collect();
    let mut counts = BTreeMap::new();
    for name in &names {
        *counts.entry(*name).or_insert(0) += 1;
    }
    Ok(Place {
        tasks: group.size(),
        nodes: counts.len(),
        tasks_per_node: counts[names[0]],
        by_block: names.len() < 2 || names[0] == names[1],
    })
}

impl<'a> Phase<'a> {
    /// Finds out where the tasks are and takes the memory. Setup.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn prepare(group: &'a Communicator<'a>, test: &'a Test) -> Result<Self, Failed> {
        Ok(Self {
            group,
            test,
            place: find_place(group)?,
            buffer: RefCell::new(Buffer::new(test.sizes.transfer_bytes as usize)),
        })
    }

    /// The test.
    pub fn test(&self) -> &'a Test {
        self.test
    }

    /// Where its tasks are.
    pub fn place(&self) -> Place {
        self.place
    }

    /// This task's number.
    pub fn rank(&self) -> usize {
        self.group.rank()
    }

    /// The path that this task writes.
    pub fn example_path(&self, repetition: u32) -> String {
        division::path(self.test, self.rank(), repetition)
    }

    /// -d, on all tasks.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn pause(&self) -> Result<(), Failed> {
        if self.test.run.delay_s > 0 {
            std::thread::sleep(Duration::from_secs(self.test.run.delay_s));
        }
        Ok(self.group.barrier()?)
    }

    /// The greatest value over the tasks.
    ///
    /// # Errors
    /// What MPI reports.
    pub fn agree_max(&self, value: f64) -> Result<f64, Failed> {
        Ok(agree::over_ranks(self.group, value, Operation::Max)?)
    }

    /// Writes everything. A file of an earlier run is removed first, unless -E keeps it.
    ///
    /// # Errors
    /// What a file or MPI reports; then this task has not taken part in all agreements, and the job
    /// must be ended.
    pub fn write(&self, repetition: u32) -> Result<Row, Failed> {
        if !self.test.files.existing && !self.test.output.dry_run {
            self.remove(repetition)?;
        }
        self.access(repetition, Access::Write)
    }

    /// Reads everything; verifies it for the checks.
    ///
    /// # Errors
    /// As [`Phase::write`].
    pub fn read(&self, repetition: u32, access: Access) -> Result<Row, Failed> {
        self.access(repetition, access)
    }

    /// Removes the files; answers the seconds from the first task's begin to the last one's end.
    ///
    /// # Errors
    /// As [`Phase::write`].
    pub fn remove(&self, repetition: u32) -> Result<f64, Failed> {
        self.group.barrier()?;
        let start = Instant::now();
        let is_mine = self.test.files.per_process || self.rank() == 0;
        if is_mine && !self.test.output.dry_run {
            file::remove(&self.example_path(repetition))?;
        }
        // Several names of a shared file are as many files; task 0 knows them all.
        if is_mine && !self.test.files.per_process && !self.test.output.dry_run {
            for task in 1..self.test.files.names.len().min(self.place.tasks) {
                file::remove(&division::path(self.test, task, repetition))?;
            }
        }
        let removal_s = self.agree_max(start.elapsed().as_secs_f64())?;
        self.group.barrier()?;
        Ok(removal_s)
    }

    fn access(&self, repetition: u32, access: Access) -> Result<Row, Failed> {
        let stands_for = division::stands_for(self.rank(), access, &self.test.order, &self.place);
        let path = division::path(self.test, stands_for, repetition);
        let offsets = division::offsets(self.test, stands_for, self.place.tasks);
        let content = Content {
            kind: self.test.content,
            signature: self.test.signature,
            task: stands_for as u32,
        };
        if self.test.output.dry_run {
            return self.gather(Times::default());
        }
        self.group.barrier()?;
        let zero = Instant::now();
        let since = || zero.elapsed().as_secs_f64();
        let mut times = Times::default();
        times.open_s.0 = since();
        let files = &self.test.files;
        if access == Access::Write && files.own_folder && files.per_process {
            file::make_own_folder(&path)?;
        }
        let target = Target::open(&path, access == Access::Write, self.test.through)?;
        times.open_s.1 = since();
        self.between()?;
        times.move_s.0 = since();
        self.move_all(&target, access, &offsets, content, &mut times)?;
        if access == Access::Write && self.test.through.sync_at_end {
            target.sync()?;
        }
        times.move_s.1 = since();
        self.between()?;
        times.close_s.0 = since();
        target.close()?;
        times.close_s.1 = since();
        self.warn_of_outliers(&times)?;
        self.gather(times)
    }

    /// -g
    fn between(&self) -> Result<(), Failed> {
        if self.test.run.barriers {
            self.group.barrier()?;
        }
        Ok(())
    }

    /// Every transfer in turn, until the deadline; only the calls themselves are timed for the
    /// latency.
    fn move_all(
        &self,
        target: &Target,
        access: Access,
        offsets: &[u64],
        content: Content,
        times: &mut Times,
    ) -> Result<(), Failed> {
        let mut buffer = self.buffer.borrow_mut();
        let (start, mut calls_s, mut done) = (Instant::now(), 0.0, 0);
        let deadline_s = self.test.run.deadline_s as f64;
        let (mut wanted, mut agreed) = (offsets.len(), false);
        while done < wanted {
            let place_bytes = offsets[done];
            let call = |buffer: &mut [u8]| {
                let before = Instant::now();
                match access {
                    Access::Write => target.write(buffer, place_bytes)?,
                    _ => target.read(buffer, place_bytes)?,
                }
                Ok::<f64, Failed>(before.elapsed().as_secs_f64())
            };
            if access == Access::Write {
                content.fill(buffer.bytes(), place_bytes);
            }
            calls_s += call(buffer.bytes())?;
            done += 1;
            if matches!(access, Access::WriteCheck | Access::ReadCheck)
                && let Some(wrong) = content.compare(buffer.bytes(), place_bytes)
            {
                self.tell_wrong(&wrong, target);
                times.wrong_words += wrong.count as f64;
            }
            let is_late = deadline_s > 0.0 && start.elapsed().as_secs_f64() >= deadline_s;
            if is_late && !std::mem::replace(&mut agreed, true) {
                wanted = self.wear_out(done)?.min(offsets.len());
            }
        }
        if deadline_s > 0.0 && !agreed {
            // Who was done in time still takes part in the agreement of those who were not.
            self.wear_out(done)?;
        }
        times.call_s = calls_s / done.max(1) as f64;
        times.moved_bytes = done as f64 * self.test.sizes.transfer_bytes as f64;
        Ok(())
    }

    /// How many transfers are to be made after the deadline: as many as the fastest has made, or no
    /// more.
    fn wear_out(&self, done: usize) -> Result<usize, Failed> {
        if self.test.run.wear_out {
            return Ok(self.agree_max(done as f64)? as usize);
        }
        Ok(done)
    }

    fn tell_wrong(&self, wrong: &crate::ior::content::Wrong, target: &Target) {
        say!(
            "weft bench ior: [{}] Incorrect data on {target}: {} words, the first at byte {}: \
             expected {:#018x}, found {:#018x}",
            self.rank(),
            wrong.count,
            wrong.at_bytes,
            wrong.expected,
            wrong.found
        );
    }

    /// -j
    fn warn_of_outliers(&self, times: &Times) -> Result<(), Failed> {
        let limit_s = self.test.run.outlier_s as f64;
        if limit_s == 0.0 {
            return Ok(());
        }
        for (what, own_s) in [
            ("open", times.open_s.1),
            ("transfers", times.move_s.1),
            ("close", times.close_s.1),
        ] {
            let mean_s = agree::spread(self.group, own_s)?.mean;
            if (own_s - mean_s).abs() > limit_s {
                say!(
                    "weft bench ior: WARNING: task {} ended its {what} at {own_s:.2} s, the mean \
                     is {mean_s:.2} s",
                    self.rank()
                );
            }
        }
        Ok(())
    }

    fn gather(&self, times: Times) -> Result<Row, Failed> {
        let own: Vec<u8> = times
            .numbers()
            .iter()
            .flat_map(|number| number.to_ne_bytes())
            .collect();
        let mut all = vec![0; own.len() * self.place.tasks];
        self.group.allgather(&own, &mut all, Datatype::Double)?;
        let numbers: Vec<f64> = all
            .chunks_exact(8)
            .map(|bytes| f64::from_ne_bytes(bytes.try_into().expect("chunks of 8")))
            .collect();
        let times: Vec<Times> = numbers.chunks(Times::FIELDS).map(Times::of).collect();
        Ok(Row::of(&times, self.test.sizes.transfer_bytes))
    }
}
