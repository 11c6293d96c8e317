// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copy methods for a long message, timed on this machine: one copy by the kernel, or two through a
//! ring of chunks at once, by ordinary or non-temporal stores.
//!
//! Called by `info.rs`. The same structures of crates/ring and crates/memory are used as by a job,
//! between two threads. A job measures again as it runs, message by message
//! (docs/long-messages.md): this shows where it will begin.

use std::time::Instant;

use serde::Serialize;
use weft_facts::copy;
use weft_memory::{UserBuffer, single_copy};
use weft_ring::layout::REGION_BYTES;
use weft_ring::{Identity, PipeReader, PipeWriter, Region};

/// Sizes that are timed: from the shortest message that is offered on.
const SIZES: [usize; 4] = [64 << 10, 256 << 10, 1 << 20, 4 << 20];

/// Transfers of each; the best counts. Chosen: sees past interruptions, and all sizes take a
/// twentieth of a second.
const ROUNDS: usize = 9;

/// Times for messages of one length, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Timing {
    /// The length.
    pub bytes: usize,
    /// Read by the kernel; none where it is refused.
    pub single_copy_us: Option<f64>,
    /// Through chunks.
    pub pipelined_us: f64,
    /// The same by non-temporal stores.
    pub non_temporal_us: f64,
}

impl Timing {
    /// The fastest method.
    #[must_use]
    pub fn best(&self) -> &'static str {
        let two = if self.non_temporal_us < self.pipelined_us {
            (copy::PIPELINED_NON_TEMPORAL.name, self.non_temporal_us)
        } else {
            (copy::PIPELINED.name, self.pipelined_us)
        };
        match self.single_copy_us {
            Some(one) if one < two.1 => copy::SINGLE_COPY.name,
            _ => two.0,
        }
    }

    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        let single = self
            .single_copy_us
            .map_or_else(|| "refused".to_owned(), |us| format!("{us:.0} us"));
        format!(
            "{} (pipelined {:.0} us, non-temporal {:.0} us, single copy {single})",
            self.best(),
            self.pipelined_us,
            self.non_temporal_us
        )
    }
}

/// Times all sizes; `None` where no region can be made.
#[must_use]
pub fn timings(single_copy_works: bool) -> Option<Vec<Timing>> {
    let file = weft_os::region_file::create_memfd("weft-info", REGION_BYTES as u64).ok()?;
    let nobody = Identity {
        address: ([127, 0, 0, 1], 0).into(),
        incarnation: 0,
        process: weft_os::process_id::ProcessId::default(),
    };
    let region = Region::create(std::os::fd::AsFd::as_fd(&file), &nobody, (0, 0)).ok()?;
    let largest = SIZES[SIZES.len() - 1];
    let (source, target) = (
        UserBuffer::leaked(&[largest]),
        UserBuffer::leaked(&[largest]),
    );
    let timing = |&bytes: &usize| {
        let message = Message {
            source: &source,
            target: &target,
            bytes,
        };
        Some(Timing {
            bytes,
            single_copy_us: single_copy_works
                .then(|| best(|| message.pulled()))
                .flatten(),
            pipelined_us: best(|| message.piped(&region, false))?,
            non_temporal_us: best(|| message.piped(&region, true))?,
        })
    };
    SIZES.iter().map(timing).collect()
}

fn best(mut transfer: impl FnMut() -> Option<f64>) -> Option<f64> {
    (0..ROUNDS)
        .map(|_| transfer())
        .collect::<Option<Vec<f64>>>()?
        .into_iter()
        .reduce(f64::min)
}

/// A message to be copied; each method answers how long its copy took, in microseconds.
struct Message<'a> {
    source: &'a UserBuffer,
    target: &'a UserBuffer,
    bytes: usize,
}

impl Message<'_> {
    /// By the kernel, in one copy.
    fn pulled(&self) -> Option<f64> {
        let start = Instant::now();
        let (mut done, word) = (0, 77u64);
        while done < self.bytes {
            let address = (self.source.address() + done) as u64;
            let own = single_copy::ProcessMemory {
                pid: std::process::id(),
                probe: ((&raw const word) as u64, word),
            };
            match single_copy::pull(&own, address, self.target, done, self.bytes - done) {
                Ok(count) if count > 0 => done += count,
                _ => return None,
            }
        }
        Some(start.elapsed().as_secs_f64() * 1e6)
    }

    /// Through the first pipe: this thread empties the chunks that another fills.
    fn piped(&self, region: &Region, is_non_temporal: bool) -> Option<f64> {
        let bytes = self.bytes;
        let mut reader = PipeReader::attach(region.mapping(), 0)?;
        let mut writer = PipeWriter::attach(region.mapping(), 0, 0)?;
        let payload = self.source.clone();
        let go = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            let ready = &go;
            scope.spawn(move || {
                ready.wait();
                let mut sent = 0;
                while sent < bytes {
                    let filled = writer.write(|chunk| {
                        let count = chunk.length_bytes().min(bytes - sent);
                        let (mut part, _) = chunk.split_at(count);
                        if is_non_temporal {
                            payload.drain_non_temporal(sent, &mut part);
                        } else {
                            payload.drain(sent, &mut part);
                        }
                        sent += count;
                        count
                    });
                    if !filled {
                        std::thread::yield_now();
                    }
                }
            });
            go.wait();
            let start = Instant::now();
            let mut done = 0;
            while done < bytes {
                let taken = reader.read(|chunk| done += self.target.fill(done, chunk));
                if taken.is_ok_and(|taken| !taken) {
                    std::thread::yield_now();
                }
            }
            Some(start.elapsed().as_secs_f64() * 1e6)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_timed_and_the_fastest_method_is_named() {
        let timings = timings(false).expect("regions can be made where tests run");
        assert_eq!(timings.len(), SIZES.len());
        for timing in timings {
            assert!(timing.pipelined_us > 0.0 && timing.non_temporal_us > 0.0);
            assert!(timing.describe().contains("single copy refused"));
        }
        let timing = Timing {
            bytes: 1,
            single_copy_us: Some(1.0),
            pipelined_us: 3.0,
            non_temporal_us: 2.0,
        };
        assert_eq!(timing.best(), "single copy");
        let timing = Timing {
            single_copy_us: Some(2.5),
            ..timing
        };
        assert_eq!(timing.best(), "pipelined, non-temporal");
    }
}
