! SPDX-License-Identifier: Apache-2.0 OR MIT
! Collectives of a program in Fortran, by each of the three interfaces: INTERFACE_H (mpif.h),
! INTERFACE_MPI (module mpi) or INTERFACE_F08 (module mpi_f08). All are checked, also with
! MPI_IN_PLACE and MPI_BOTTOM. Ends with `all is well`, or says what is not.
#ifdef INTERFACE_F08
#define COMMUNICATOR type(MPI_Comm)
#define DATATYPE type(MPI_Datatype)
#else
#define COMMUNICATOR integer
#define DATATYPE integer
#endif
program fortran
#ifdef INTERFACE_F08
    use mpi_f08
#endif
#ifdef INTERFACE_MPI
    use mpi
#endif
    implicit none
#ifdef INTERFACE_H
    include 'mpif.h'
#endif
    integer, parameter :: most = 64, turns = 50
    COMMUNICATOR :: both
    integer :: rank, ranks, turn, error, at
    integer :: one, many(most), other(most * most), counts(most), places(most), bytes(most)
    double precision :: number, total
    logical :: truth, all_true

    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    call MPI_Comm_dup(MPI_COMM_WORLD, both, error)
    do turn = 1, turns
        call to_all_and_from_all()
        call reductions()
        call parts()
        call at_the_bottom()
        call MPI_Barrier(both, error)
    end do
    call MPI_Comm_free(both, error)
    call refusal()
    if (rank == 0) print '(a)', 'all is well'
    call MPI_Finalize(error)

contains

    subroutine check(is_right, what)
        logical, intent(in) :: is_right
        character(*), intent(in) :: what
        integer :: code
        if (is_right .and. error == MPI_SUCCESS) return
        print '(a, i0, a, i0, 2a)', 'rank ', rank, ', turn ', turn, ': ', what
        call MPI_Abort(MPI_COMM_WORLD, 1, code)
    end subroutine

    subroutine to_all_and_from_all()
        integer :: root
        root = mod(turn, ranks)
        one = merge(turn, -1, rank == root)
        call MPI_Bcast(one, 1, MPI_INTEGER, root, both, error)
        call check(one == turn, 'bcast')
        call MPI_Allgather(rank, 1, MPI_INTEGER, many, 1, MPI_INTEGER, both, error)
        call check(all(many(:ranks) == [(at, at = 0, ranks - 1)]), 'allgather')
        many = -1
        many(rank + 1) = rank
        call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, many, 1, MPI_INTEGER, both, error)
        call check(all(many(:ranks) == [(at, at = 0, ranks - 1)]), 'allgather in place')
        other(:ranks) = [(rank * 100 + at, at = 0, ranks - 1)]
        call MPI_Alltoall(other, 1, MPI_INTEGER, many, 1, MPI_INTEGER, both, error)
        call check(all(many(:ranks) == [(at * 100 + rank, at = 0, ranks - 1)]), 'alltoall')
        call MPI_Gather(rank, 1, MPI_INTEGER, many, 1, MPI_INTEGER, root, both, error)
        if (rank == root) many = many * 2
        call MPI_Scatter(many, 1, MPI_INTEGER, one, 1, MPI_INTEGER, root, both, error)
        call check(one == 2 * rank, 'gather and scatter')
        if (rank == root) then
            call MPI_Scatter(many, 1, MPI_INTEGER, MPI_IN_PLACE, 1, MPI_INTEGER, root, both, error)
        else
            call MPI_Scatter(many, 1, MPI_INTEGER, one, 1, MPI_INTEGER, root, both, error)
        end if
        call check(one == 2 * rank, 'scatter in place')
    end subroutine

    subroutine reductions()
        number = rank + 1
        call MPI_Allreduce(number, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, both, error)
        call check(total == ranks * (ranks + 1) / 2, 'allreduce')
        call MPI_Allreduce(MPI_IN_PLACE, number, 1, MPI_DOUBLE_PRECISION, MPI_MAX, both, error)
        call check(number == ranks, 'allreduce in place')
        total = -1
        call MPI_Reduce(number, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, both, error)
        call check(rank /= 0 .or. total == ranks * ranks, 'reduce')
        if (rank == 0) then
            call MPI_Reduce(MPI_IN_PLACE, number, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, both, error)
        else
            call MPI_Reduce(number, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, both, error)
        end if
        call check(rank /= 0 .or. number == ranks * ranks, 'reduce in place')
        truth = rank /= 0
        call MPI_Allreduce(truth, all_true, 1, MPI_LOGICAL, MPI_LAND, both, error)
        call check(.not. all_true, 'allreduce of logicals')
        call MPI_Scan(rank, one, 1, MPI_INTEGER, MPI_SUM, both, error)
        call check(one == rank * (rank + 1) / 2, 'scan')
        call MPI_Exscan(rank, one, 1, MPI_INTEGER, MPI_SUM, both, error)
        call check(rank == 0 .or. one == rank * (rank - 1) / 2, 'exscan')
        many = 1
        counts = 1
        call MPI_Reduce_scatter(many, one, counts, MPI_INTEGER, MPI_SUM, both, error)
        call check(one == ranks, 'reduce_scatter')
        call MPI_Reduce_scatter_block(many, one, 1, MPI_INTEGER, MPI_SUM, both, error)
        call check(one == ranks, 'reduce_scatter_block')
    end subroutine

    ! Rank r has r + 1 elements.
    subroutine parts()
        DATATYPE :: kinds(most)
        integer :: own, root, sum
        root = mod(turn, ranks)
        own = rank + 1
        counts(:ranks) = [(at, at = 1, ranks)]
        places(:ranks) = [(at * (at - 1) / 2, at = 1, ranks)]
        sum = ranks * (ranks + 1) / 2
        many = rank
        other = -1
        call MPI_Allgatherv(many, own, MPI_INTEGER, other, counts, places, MPI_INTEGER, both, error)
        call check(all([(other(places(at) + at) == at - 1, at = 1, ranks)]), 'allgatherv')
        other = -1
        call MPI_Gatherv(many, own, MPI_INTEGER, other, counts, places, MPI_INTEGER, root, both, &
            error)
        call check(rank /= root .or. other(sum) == ranks - 1, 'gatherv')
        many = -1
        call MPI_Scatterv(other, counts, places, MPI_INTEGER, many, own, MPI_INTEGER, root, both, &
            error)
        call check(many(own) == rank, 'scatterv')
        ! Each gives rank r one element, and takes one of each.
        counts = 1
        places(:ranks) = [(at - 1, at = 1, ranks)]
        bytes(:ranks) = places(:ranks) * 4
        kinds = MPI_INTEGER
        other(:ranks) = [(rank * 100 + at, at = 0, ranks - 1)]
        call MPI_Alltoallv(other, counts, places, MPI_INTEGER, many, counts, places, MPI_INTEGER, &
            both, error)
        call check(all(many(:ranks) == [(at * 100 + rank, at = 0, ranks - 1)]), 'alltoallv')
        many = -1
        call MPI_Alltoallw(other, counts, bytes, kinds, many, counts, bytes, kinds, both, error)
        call check(all(many(:ranks) == [(at * 100 + rank, at = 0, ranks - 1)]), 'alltoallw')
        call MPI_Alltoallw(MPI_IN_PLACE, counts, bytes, kinds, many, counts, bytes, kinds, both, &
            error)
        call check(all(many(:ranks) == other(:ranks)), 'alltoallw in place')
    end subroutine

    ! A type that says where the data lie.
    subroutine at_the_bottom()
        DATATYPE :: kind
        integer(kind=MPI_ADDRESS_KIND) :: address(1)
        integer :: lengths(1)
        integer, save, target :: cell
        lengths = 1
        cell = merge(turn, -1, rank == 0)
        call MPI_Get_address(cell, address(1), error)
        call MPI_Type_create_hindexed(1, lengths, address, MPI_INTEGER, kind, error)
        call MPI_Type_commit(kind, error)
        call MPI_Bcast(MPI_BOTTOM, 1, kind, 0, both, error)
        call look_at(cell)
        call MPI_Type_free(kind, error)
    end subroutine

    subroutine look_at(cell)
        integer, intent(in) :: cell
        call check(cell == turn, 'bcast from the bottom')
    end subroutine

    ! What the MPI refuses comes back as its error code.
    subroutine refusal()
        call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
        call MPI_Bcast(one, 1, MPI_INTEGER, ranks, MPI_COMM_WORLD, error)
        if (error == MPI_SUCCESS) print '(a)', 'a root that does not exist was taken'
        error = MPI_SUCCESS
        call MPI_Barrier(MPI_COMM_WORLD, error)
        call check(.true., 'barrier after a refusal')
    end subroutine
end program
