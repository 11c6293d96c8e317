// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is refused, and what becomes of a call when other ranks die, differ or write rubbish: an
//! error, and no access beyond the buffers.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use fastrand::Rng;
use weft_collectives::{
    Block, Blocks, Element, Fault, Leaving, Operation, Reduction, Reductions, Shape, Stopped, Team,
    Uneven, Wait, segment_bytes,
};
use weft_memory::{BytesView, BytesViewMut, Mapping};

use crate::blocks::BlockCase;
use crate::threads::{Memory, run};

/// Names the shared file to a process that is the second rank.
const SECOND_RANK: &str = "WEFT_TEST_SECOND_RANK";

/// Gives up after so many looks.
struct Impatient(u32);

impl Wait for Impatient {
    fn pause(&mut self, _: u32) -> Result<(), Stopped> {
        std::thread::yield_now();
        self.0 = self.0.checked_sub(1).ok_or(Stopped)?;
        Ok(())
    }
}

fn sum() -> Reduction {
    Reduction::new(Element::U32, Operation::Sum).expect("known")
}

#[test]
fn a_rank_that_is_told_to_give_up_does_and_its_team_is_of_no_more_use() {
    let memory = Memory::new(2);
    let mut team = memory.team(0, &Shape::flat(2, true));
    assert_eq!(team.barrier(&mut Impatient(3)), Err(Fault::Stopped));
    let nobody_waits = &mut Impatient(0);
    assert_eq!(team.barrier(nobody_waits), Err(Fault::Stopped));
    let mut data = [1; 8];
    let buffer = BytesViewMut::from_slice(&mut data);
    assert_eq!(team.bcast(nobody_waits, buffer, 0), Err(Fault::Stopped));
}

#[test]
fn a_root_is_not_held_up_by_a_rank_that_never_comes_until_its_flags_are_used_up() {
    let memory = Memory::new(2);
    let mut team = memory.team(0, &Shape::flat(2, true));
    let mut bcast = || {
        let mut data = [1; 8];
        team.bcast(&mut Impatient(3), BytesViewMut::from_slice(&mut data), 0)
    };
    for _ in 0..8 {
        assert_eq!(bcast(), Ok(()));
    }
    assert_eq!(bcast(), Err(Fault::Stopped));
}

#[test]
fn a_call_that_one_rank_refuses_is_refused_by_all_and_the_next_one_is_not() {
    let patient = || Impatient(1_000_000);
    let found = run(&Shape::flat(3, true), |team, _| {
        let mut data = [team.rank() as u8; 8];
        let blocks = [Block::default(); 3];
        let blocks = Blocks::Uneven(&blocks);
        let refused = match team.rank() {
            1 => team.refuse(&mut patient(), Uneven::Alltoall),
            _ => {
                let recv = BytesViewMut::from_slice(&mut data);
                team.alltoall(&mut patient(), None, recv, blocks, blocks)
            }
        };
        let next = team.bcast(&mut patient(), BytesViewMut::from_slice(&mut data), 2);
        (refused, next, data)
    });
    assert_eq!(found, [(Err(Fault::Refused), Ok(()), [2; 8]); 3]);
}

/// Goes on for long, and then gives up: nobody may have to wait for ever.
fn long() -> Impatient {
    Impatient(2_000_000)
}

/// So many ranks in these calls, and then in a barrier: all are told, and none waits for ever.
/// In one cache domain, and where the first one has one of its own.
fn differ(ranks: usize, first: impl Fn(&mut Team) -> Result<(), Fault> + Sync) {
    let apart = Shape {
        domains: (0..ranks as u32).map(|rank| rank.min(1)).collect(),
        oversubscribed: true,
    };
    for shape in [Shape::flat(ranks, true), apart] {
        let found = run(&shape, |team, _| {
            first(team).and_then(|()| team.barrier(&mut long()))
        });
        let is_told = |end: &Result<(), Fault>| matches!(end, Err(Fault::Mismatch { .. }));
        assert!(found.iter().all(is_told), "{shape:?}: {found:?}");
    }
}

fn bytes(team: &mut Team, length: usize, root: usize) -> Result<(), Fault> {
    let mut data = vec![0; length];
    team.bcast(&mut long(), BytesViewMut::from_slice(&mut data), root)
}

fn combine(team: &mut Team, length: usize, operation: Operation) -> Result<(), Fault> {
    let reduction = Reduction::new(Element::U32, operation).expect("known");
    let mut data = vec![0; length];
    let recv = BytesViewMut::from_slice(&mut data);
    team.allreduce(&mut long(), None, recv, reduction)
}

#[test]
#[cfg_attr(miri, ignore = "long waits")]
fn ranks_that_differ_in_call_length_or_operation_are_told() {
    for ranks in [2, 3] {
        differ(ranks, |team| match team.rank() {
            0 => team.barrier(&mut long()),
            _ => combine(team, 8, Operation::Sum),
        });
        differ(ranks, |team| bytes(team, 8 + team.rank(), 0));
        differ(ranks, |team| bytes(team, 100_000 + 60_000 * team.rank(), 0));
        differ(ranks, |team| {
            combine(team, 8 << team.rank(), Operation::Sum)
        });
        differ(ranks, |team| {
            combine(team, 40_000 << team.rank(), Operation::Sum)
        });
        let operations = [Operation::Sum, Operation::Product, Operation::Sum];
        differ(ranks, |team| combine(team, 8, operations[team.rank()]));
    }
}

#[test]
#[cfg_attr(miri, ignore = "long waits")]
fn ranks_that_name_other_roots_are_told_where_one_waits_for_another() {
    // Each waits for the next one.
    for length in [8, 3000, 100_000] {
        differ(3, |team| bytes(team, length, (team.rank() + 1) % 3));
        // The second one gives; the third one waits for the first one, which is in the barrier.
        differ(3, |team| bytes(team, length, usize::from(team.rank() < 2)));
        differ(3, |team| {
            let (send, mut recv) = (vec![0; length], vec![0; 3 * length]);
            let (send, recv) = (
                Some(BytesView::from_slice(&send)),
                BytesViewMut::from_slice(&mut recv),
            );
            let root = usize::from(team.rank() == 2);
            team.gather(&mut long(), send, recv, Blocks::Even(length), root)
        });
    }
}

#[test]
#[cfg_attr(miri, ignore = "long waits")]
fn ranks_that_agree_to_leave_calls_of_other_lengths_are_told() {
    for ranks in [2, 3] {
        differ(ranks, |team| {
            let length_bytes = 100_000 + team.rank();
            Leaving(team).agree(&mut long(), 1, 0, length_bytes)
        });
        differ(ranks, |team| match team.rank() {
            0 => Leaving(team).agree(&mut long(), 1, 0, 100_000),
            _ => bytes(team, 30_000, 0),
        });
    }
    let found = run(&Shape::flat(3, true), |team, _| {
        let end = Leaving(team).agree(&mut long(), 1, 0, 100_000);
        end.and_then(|()| team.barrier(&mut long()))
    });
    assert_eq!(found, [Ok(()); 3]);
}

#[test]
#[cfg_attr(miri, ignore = "long waits")]
fn a_rank_that_waits_where_another_has_left_the_call_is_told_and_may_follow() {
    let found = run(&Shape::flat(2, true), |team, _| {
        if team.rank() == 0 {
            Leaving(team).note();
            return (Ok(()), Ok(()));
        }
        let first = combine(team, 8, Operation::Sum);
        (first, team.barrier(&mut long()))
    });
    let told = Err(Fault::Mismatch { rank: 0 });
    let followed = Err(Fault::Left { rank: 0 });
    assert_eq!(found, [(Ok(()), Ok(())), (followed, told)]);
    // In a later call there is nothing to follow.
    let found = run(&Shape::flat(2, true), |team, _| {
        if team.rank() == 0 {
            Leaving(team).note();
            return Ok(());
        }
        team.report(&mut long(), 0)?;
        combine(team, 8, Operation::Sum)
    });
    assert_eq!(found, [Ok(()), Err(Fault::Mismatch { rank: 0 })]);
}

#[test]
#[cfg_attr(miri, ignore = "long waits")]
fn a_rank_may_stay_long_in_a_call_that_all_have_left() {
    let found = run(&Shape::flat(3, true), |team, wait| {
        for turn in 0..20 {
            Leaving(team).note();
            if turn % 3 == team.rank() {
                let begun = std::time::Instant::now();
                while begun.elapsed() < std::time::Duration::from_millis(20) {
                    wait.pause(0).expect("nobody has panicked");
                }
            }
            combine(team, 8, Operation::Sum)?;
            bytes(team, 3000, turn % 3)?;
        }
        team.barrier(&mut long())
    });
    assert_eq!(found, [Ok(()); 3]);
}

#[test]
#[cfg_attr(miri, ignore = "long waits")]
fn a_rank_that_abandons_the_team_is_not_waited_for_in_a_later_call() {
    let found = run(&Shape::flat(2, true), |team, _| {
        if team.rank() == 0 {
            team.abandon(&mut long());
            return Ok(());
        }
        // Publishes, and waits for nobody.
        team.report(&mut long(), 0)?;
        bytes(team, 8, 0)
    });
    assert_eq!(found, [Ok(()), Err(Fault::Mismatch { rank: 0 })]);
}

#[test]
fn two_ranks_that_both_give_keep_their_own_data_and_are_not_told() {
    let found = run(&Shape::flat(2, true), |team, _| {
        let own = team.rank() as u8;
        let mut data = [own; 8];
        let buffer = BytesViewMut::from_slice(&mut data);
        let end = team.bcast(&mut long(), buffer, usize::from(own));
        (end, data, team.barrier(&mut long()))
    });
    assert_eq!(found, [(Ok(()), [0; 8], Ok(())), (Ok(()), [1; 8], Ok(()))]);
}

#[test]
#[cfg_attr(miri, ignore = "long waits")]
fn a_rank_that_is_waited_for_may_come_late() {
    let found = run(&Shape::flat(3, true), |team, wait| {
        for turn in 0..20 {
            // One rank is far behind.
            if turn % 3 == team.rank() {
                let begun = std::time::Instant::now();
                while begun.elapsed() < std::time::Duration::from_millis(20) {
                    wait.pause(0).expect("nobody has panicked");
                }
            }
            bytes(team, 8, turn % 3)?;
            combine(team, 8, Operation::Sum)?;
            bytes(team, 3000, (turn + 1) % 3)?;
        }
        team.barrier(&mut long())
    });
    assert_eq!(found, [Ok(()); 3]);
}

#[test]
fn what_does_not_fit_or_does_not_exist_is_refused_before_anything_is_sent() {
    let memory = Memory::new(2);
    let mut team = memory.team(0, &Shape::flat(2, true));
    let wait = &mut Impatient(0);
    let given = [0; 8];
    let send = BytesView::from_slice(&given);
    let mut short = [0; 4];
    let length = |given_bytes, needed_bytes| {
        Err(Fault::Length {
            given_bytes,
            needed_bytes,
        })
    };
    let recv = BytesViewMut::from_slice(&mut short);
    assert_eq!(team.allreduce(wait, Some(send), recv, sum()), length(4, 8));
    let recv = BytesViewMut::from_slice(&mut short);
    assert_eq!(
        team.allgather(wait, Some(send), recv, Blocks::Even(8)),
        length(4, 16)
    );
    let far = [
        Block::default(),
        Block {
            offset_bytes: usize::MAX,
            length_bytes: 2,
        },
    ];
    let recv = BytesViewMut::from_slice(&mut short);
    let refused = team.gather(wait, Some(send), recv, Blocks::Uneven(&far), 0);
    assert_eq!(refused, length(4, usize::MAX));
    let recv = BytesViewMut::from_slice(&mut short);
    let huge = Blocks::Even(usize::MAX / 2 + 1);
    assert_eq!(
        team.scatter(wait, send, Some(recv), huge, 0),
        length(4, usize::MAX / 2 + 1)
    );
    let no_root = Err(Fault::Ranks { ranks: 2, rank: 2 });
    assert_eq!(
        team.bcast(wait, BytesViewMut::from_slice(&mut short), 2),
        no_root
    );
    // Nothing was begun: the other rank's first call finds this one's first.
    let mut data = [5; 4];
    assert_eq!(
        team.bcast(wait, BytesViewMut::from_slice(&mut data), 0),
        Ok(())
    );
    let mut other = memory.team(1, &Shape::flat(2, true));
    assert_eq!(
        other.bcast(wait, BytesViewMut::from_slice(&mut short), 0),
        Ok(())
    );
    assert_eq!(short, [5; 4]);
}

#[test]
fn a_team_that_cannot_be_is_refused() {
    let memory = Memory::new(2);
    let attach = |offset: usize, ranks, rank| {
        // SAFETY: refused before the memory is touched.
        unsafe {
            Team::attach(
                memory.base().add(offset),
                ranks,
                rank,
                &Shape::flat(2, true),
            )
        }
        .map(|_| ())
    };
    assert_eq!(attach(0, 2, 2), Err(Fault::Ranks { ranks: 2, rank: 2 }));
    assert_eq!(
        attach(0, 513, 0),
        Err(Fault::Ranks {
            ranks: 513,
            rank: 0
        })
    );
    assert_eq!(attach(64, 2, 0), Err(Fault::Unaligned));
}

/// Copies words of the segment over each other, and random ones, while ranks make calls; each of
/// them ends, and no byte beside a buffer changes.
#[test]
#[cfg_attr(miri, ignore = "races with staged bytes are what it makes")]
fn rubbish_in_the_segment_changes_results_alone() {
    let seed = std::env::var("WEFT_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seed: u64 = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("WEFT_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    for ranks in [2, 3] {
        let memory = Memory::new(ranks);
        let cases: Vec<BlockCase> = (0..300)
            .map(|_| {
                let longest_bytes = [8, 40, 3000, 30_000][rng.usize(..4)];
                BlockCase::new(&mut rng, ranks, longest_bytes)
            })
            .collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (memory, cases, over) = (&memory, &cases, &over);
            let mut rng = rng.fork();
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    memory.spoil(&mut rng);
                    std::thread::yield_now();
                }
            });
            let rank = |rank| {
                scope.spawn(move || {
                    let mut team = memory.team(rank, &Shape::flat(ranks, true));
                    for case in cases {
                        let end = case.attempt(&mut team, &mut Impatient(200));
                        if end.is_err() {
                            team = memory.team(rank, &Shape::flat(ranks, true));
                        }
                    }
                })
            };
            let all: Vec<_> = (0..ranks).map(rank).collect();
            let ends: Vec<_> = all.into_iter().map(|rank| rank.join()).collect();
            over.store(true, Ordering::Relaxed);
            assert!(ends.iter().all(Result::is_ok), "a rank panicked");
        });
    }
}

/// Gives up when the other process has ended.
struct Watching<'a>(&'a mut Child);

impl Wait for Watching<'_> {
    fn pause(&mut self, _: u32) -> Result<(), Stopped> {
        std::thread::yield_now();
        match self.0.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(Stopped),
        }
    }
}

/// Goes on for ever: its process is killed.
struct Tireless;

impl Wait for Tireless {
    fn pause(&mut self, _: u32) -> Result<(), Stopped> {
        std::thread::yield_now();
        Ok(())
    }
}

fn mapped(file: &File, rank: usize) -> (Mapping, Team) {
    let mapping = Mapping::shared(file.as_fd(), segment_bytes(2)).expect("mapped");
    let base = mapping.bytes(0, segment_bytes(2)).expect("all of it");
    let base = NonNull::new(base).expect("not null");
    // SAFETY: the mapping has as many bytes, which were zero, and is kept as long as the team.
    let team = unsafe { Team::attach(base, 2, rank, &Shape::flat(2, true)) };
    (mapping, team.expect("attached"))
}

fn add_up(team: &mut Team, wait: &mut dyn Wait, length: usize) -> Result<(), Fault> {
    let mut data = vec![1; length];
    team.allreduce(wait, None, BytesViewMut::from_slice(&mut data), sum())
}

/// The second process of the test below; passes at once when run by itself.
#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn second_rank() {
    let Some(path) = std::env::var_os(SECOND_RANK) else {
        return;
    };
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .expect("the file");
    let (_mapping, mut team) = mapped(&file, 1);
    for length in [8, 400, 4000, 400_000].into_iter().cycle() {
        add_up(&mut team, &mut Tireless, length).expect("added");
    }
}

#[test]
#[cfg_attr(miri, ignore = "needs processes")]
fn a_rank_that_is_killed_fails_the_call_of_the_other() {
    let path = std::env::temp_dir().join(format!("weft-collectives-{}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)
        .expect("a file");
    file.set_len(segment_bytes(2) as u64).expect("its length");
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "faults::second_rank", "--nocapture"])
        .env(SECOND_RANK, &path)
        .spawn()
        .expect("started");
    let (_mapping, mut team) = mapped(&file, 0);
    for length in [8, 400, 4000, 400_000].repeat(10) {
        add_up(&mut team, &mut Watching(&mut child), length).expect("both live");
    }
    std::fs::remove_file(&path).expect("removed");
    child.kill().expect("killed");
    let end = [8, 400, 4000, 400_000]
        .into_iter()
        .cycle()
        .find_map(|length| add_up(&mut team, &mut Watching(&mut child), length).err());
    assert_eq!(end, Some(Fault::Stopped));
    child.wait().expect("reaped");
}
