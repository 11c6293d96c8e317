// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Every call of the crate with known answers, for 2 ranks or more:
//! `mpiexec -n 3 target/release/examples/self_test`.
//!
//! Rank 0 prints one line with the library's version when all is well; a wrong answer ends the job
//! with a panic.

use weft_mpi::{
    Buffer, Collective, Communicator, Datatype, Direction, Error, Form, Layout, Line, Operation,
    Origin, Persistent, Prepared, Requests, Result, Session, Specification, There, ThreadLevel,
    Window,
};

fn main() -> Result<()> {
    let (session, level) = Session::init_thread(ThreadLevel::Funneled)?;
    assert!(level >= ThreadLevel::Single);
    {
        let world = Communicator::world(&session)?;
        assert!(world.size() >= 2, "needs 2 ranks or more");
        ring(&world)?;
        in_flight(&world)?;
        reductions(&world)?;
        gatherings(&world)?;
        exchanges(&world)?;
        split(&world)?;
        prepared(&world)?;
        window(&world)?;
        persistent(&world)?;
        refusals(&world)?;
        assert!(session.wtime() <= session.wtime());
        assert!(Session::init().is_err(), "a second session must be refused");
        world.barrier()?;
        if world.rank() == 0 {
            println!(
                "ok {} ranks on {}: {}",
                world.size(),
                session.processor_name(),
                session.library_version()
            );
        }
    }
    session.finalize()
}

/// Each rank's number goes once round the ring.
fn ring(world: &Communicator<'_>) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut taken = [0u8; 4];
    if rank == 0 {
        world.send(&[7; 4], Datatype::Int, next as i32, 3)?;
        world.recv(&mut taken, Datatype::Int, previous as i32, 3)?;
    } else {
        world.recv(&mut taken, Datatype::Int, previous as i32, 3)?;
        world.send(&taken, Datatype::Int, next as i32, 3)?;
    }
    assert_eq!(taken, [7; 4]);
    Ok(())
}

/// A window of messages each way between neighbours in pairs, polled to its end.
fn in_flight(world: &Communicator<'_>) -> Result<()> {
    const COUNT: usize = 16;
    const LENGTH: usize = 70_000;
    let other = world.rank() ^ 1;
    if other >= world.size() {
        return Ok(());
    }
    let (mut given, taken) = (Buffer::new(LENGTH), Buffer::new(COUNT * LENGTH));
    given.bytes().fill(world.rank() as u8 + 1);
    let mut requests = Requests::new(2 * COUNT);
    requests.scope(world, |scope| {
        for index in 0..COUNT {
            scope.irecv(
                &taken,
                index * LENGTH..(index + 1) * LENGTH,
                Datatype::Char,
                other as i32,
                9,
            )?;
        }
        for _ in 0..COUNT {
            scope.isend(&given, 0..LENGTH, Datatype::Char, other as i32, 9)?;
        }
        let refused: Result<()> = scope.isend(&given, 0..1, Datatype::Char, other as i32, 9);
        assert!(refused.is_err(), "one message more than there is room for");
        while !scope.test_all()? {}
        Ok(())
    })?;
    let mut taken = taken;
    assert!(taken.bytes().iter().all(|byte| *byte == other as u8 + 1));
    Ok(())
}

fn reductions(world: &Communicator<'_>) -> Result<()> {
    let (rank, size) = (world.rank() as f64, world.size() as f64);
    for (operation, expected) in [
        (Operation::Sum, size * (size - 1.0) / 2.0),
        (Operation::Min, 0.0),
        (Operation::Max, size - 1.0),
    ] {
        let mut in_place = rank.to_ne_bytes();
        world.allreduce_in_place(&mut in_place, Datatype::Double, operation)?;
        assert_eq!(f64::from_ne_bytes(in_place), expected);
    }
    Ok(())
}

fn gatherings(world: &Communicator<'_>) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let expected: Vec<u8> = (0..size).flat_map(|rank| [rank as u8; 3]).collect();
    let mut gathered = vec![0; size * 3];
    world.allgather(&[rank as u8; 3], &mut gathered, Datatype::Char)?;
    assert_eq!(gathered, expected);
    let mut told = [if rank == 1 { 9 } else { 0 }; 5];
    world.bcast(&mut told, Datatype::Byte, 1)?;
    assert_eq!(told, [9; 5]);
    Ok(())
}

/// Rank r gives s bytes of value r to rank s, by both exchanges.
fn exchanges(world: &Communicator<'_>) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    let given = vec![rank as u8; size * 8];
    let mut taken = vec![255; size * 8];
    world.alltoall(&given, &mut taken, Datatype::Double)?;
    assert_eq!(
        taken,
        (0..size)
            .flat_map(|rank| [rank as u8; 8])
            .collect::<Vec<_>>()
    );

    let from = Layout::new((0..size).map(|other| (other, other * 8)))?;
    let to = Layout::new((0..size).map(|other| (rank, other * 8)))?;
    taken.fill(255);
    world.alltoallv((&given, &from), (&mut taken, &to), Datatype::Char)?;
    let expected = |length: usize| -> Vec<u8> {
        (0..size * 8)
            .map(|index| {
                if index % 8 < length {
                    (index / 8) as u8
                } else {
                    255
                }
            })
            .collect()
    };
    assert_eq!(taken, expected(rank.min(8)));

    Ok(())
}

fn split(world: &Communicator<'_>) -> Result<()> {
    let half = world.split((world.rank() % 2) as i32, -(world.rank() as i32))?;
    let ranks = (world.size() + 1 - world.rank() % 2) / 2;
    // The key orders backwards.
    assert_eq!(
        (half.size(), half.rank()),
        (ranks, ranks - 1 - world.rank() / 2)
    );
    half.barrier()
}

/// A sum and a broadcast in every form; what is out of reach while in flight is the type's own
/// business.
fn prepared(world: &Communicator<'_>) -> Result<()> {
    for form in [Form::Blocking, Form::Nonblocking, Form::Persistent] {
        let specification = Specification {
            which: Collective::Allreduce,
            form,
            kind: Datatype::Int,
            operation: Operation::Sum,
            largest_bytes: 64,
        };
        let mut sum = Prepared::new(world, specification)?;
        assert!(sum.resize(68).is_err(), "larger than specified");
        sum.resize(8)?;
        for round in 1..4i32 {
            sum.given()
                .copy_from_slice(&[round.to_ne_bytes(); 2].concat());
            sum.start()?;
            while !sum.test()? {}
            let expected = (round * world.size() as i32).to_ne_bytes();
            assert_eq!(sum.taken(), [expected; 2].concat());
        }
        let mut told = Prepared::new(
            world,
            Specification {
                which: Collective::Bcast,
                ..specification
            },
        )?;
        told.resize(4)?;
        for root in 0..world.size() {
            told.set_root(root)?;
            told.taken().fill(if world.rank() == root { 7 } else { 0 });
            told.run()?;
            assert_eq!(told.taken(), [7; 4]);
        }
        assert!(told.set_root(world.size()).is_err());
    }
    Ok(())
}

/// Every rank puts its number into the window of the next and fetches it back.
fn window(world: &Communicator<'_>) -> Result<()> {
    let (rank, size) = (world.rank(), world.size());
    for origin in [Origin::Create, Origin::Allocate, Origin::Dynamic] {
        let mut window = Window::new(world, origin, 16)?;
        let there = There {
            rank: ((rank + 1) % size) as i32,
            place: 8,
        };
        window.own().write(0, &[0; 16]);
        window.outgoing()[..8].copy_from_slice(&(rank as i64).to_ne_bytes());
        window.fence()?;
        window.put(0..8, Datatype::Long, there)?;
        assert!(window.put(0..24, Datatype::Long, there).is_err());
        assert!(
            window
                .put(0..8, Datatype::Long, There { place: 9, ..there })
                .is_err()
        );
        window.fence()?;
        let mut own = [0; 8];
        window.own().read(8, &mut own);
        assert_eq!(i64::from_ne_bytes(own) as usize, (rank + size - 1) % size);
        window.get(0..8, Datatype::Long, there)?;
        window.fence()?;
        assert_eq!(window.incoming()[..8], (rank as i64).to_ne_bytes());
        world.barrier()?;
    }
    Ok(())
}

fn persistent(world: &Communicator<'_>) -> Result<()> {
    let other = world.rank() ^ 1;
    if other >= world.size() {
        return Ok(());
    }
    let line = |direction| Line {
        direction,
        kind: Datatype::Char,
        other: other as i32,
        tag: 5,
    };
    let mut sends = Persistent::new(world, line(Direction::Send), 30);
    let mut receives = Persistent::new(world, line(Direction::Receive), 30);
    let outside: [std::ops::Range<usize>; 1] = std::array::from_fn(|_| 20..40);
    assert!(sends.prepare(outside).is_err(), "outside the buffer");
    for parts in [1, 3] {
        let each = |part: usize| part * 10..part * 10 + 10;
        sends.prepare((0..parts).map(each))?;
        receives.prepare((0..parts).map(each))?;
        for round in 0..3 {
            sends.bytes().fill(round + world.rank() as u8);
            receives.bytes().fill(99);
            receives.start()?;
            sends.start()?;
            sends.wait()?;
            receives.wait()?;
            let used = &receives.bytes()[..parts * 10];
            assert!(used.iter().all(|byte| *byte == round + other as u8));
        }
    }
    Ok(())
}

fn refusals(world: &Communicator<'_>) -> Result<()> {
    let nobody = world.size() as i32 + 5;
    let error: Error = world
        .send(&[1], Datatype::Char, nobody, 0)
        .expect_err("no such rank");
    assert!(
        error.to_string().contains("MPI_Send failed with code"),
        "{error}"
    );
    assert!(world.alltoall(&[0; 3], &mut [0; 3], Datatype::Int).is_err());
    assert!(world.bcast(&mut [0; 3], Datatype::Int, 0).is_err());
    Ok(())
}
