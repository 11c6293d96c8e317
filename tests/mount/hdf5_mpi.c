// SPDX-License-Identifier: Apache-2.0 OR MIT
// Parallel HDF5 on a folder that all ranks share: all ranks make one file with a dataset in chunks
// and one without, write their rows collectively and each for itself, and check every value before
// and after the file is closed; then they open it again and add to it. For tests/mount/mpi.sh.
//
// hdf5_mpi FOLDER
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 16, COLUMNS = 3001 };

static int rank, ranks;

static hid_t must(hid_t id, const char *what) {
    if (id < 0) {
        fprintf(stderr, "rank %d: %s failed\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return id;
}

static double value(hsize_t row, hsize_t column) { return row * 10000.0 + column; }

// Every `ranks`th row from `first` on, by one call.
static hid_t rows_of(hid_t dataset, hsize_t first, hsize_t count) {
    hsize_t start[2] = {first, 0}, stride[2] = {ranks, 1}, block[2] = {1, COLUMNS};
    hsize_t blocks[2] = {count, 1};
    hid_t space = must(H5Dget_space(dataset), "H5Dget_space");
    must(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, blocks, block), "hyperslab");
    return space;
}

static void put_rows(hid_t dataset, hsize_t from, H5FD_mpio_xfer_t how) {
    hsize_t size[2] = {ROWS, COLUMNS};
    double *own = malloc(sizeof(double) * ROWS * COLUMNS);
    hid_t there = rows_of(dataset, from + rank, ROWS), here = H5Screate_simple(2, size, NULL);
    hid_t transfer = must(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
    must(H5Pset_dxpl_mpio(transfer, how), "H5Pset_dxpl_mpio");
    for (hsize_t row = 0; row < ROWS; row++)
        for (hsize_t column = 0; column < COLUMNS; column++)
            own[row * COLUMNS + column] = value(from + row * ranks + rank, column);
    must(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, here, there, transfer, own), "H5Dwrite");
    H5Pclose(transfer), H5Sclose(there), H5Sclose(here), free(own);
}

static void check_rows(hid_t dataset, hsize_t count) {
    double *all = malloc(sizeof(double) * count * COLUMNS);
    must(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, all), "H5Dread");
    for (hsize_t row = 0; row < count; row++)
        for (hsize_t column = 0; column < COLUMNS; column++)
            if (all[row * COLUMNS + column] != value(row, column)) {
                fprintf(stderr, "rank %d: wrong value in row %llu, column %llu\n", rank,
                        (unsigned long long)row, (unsigned long long)column);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
    free(all);
}

static hid_t make(hid_t file, const char *name, int is_chunked) {
    hsize_t size[2] = {(hsize_t)ROWS * ranks, COLUMNS}, chunk[2] = {5, 700};
    hsize_t most[2] = {H5S_UNLIMITED, COLUMNS};
    hid_t space = must(H5Screate_simple(2, size, is_chunked ? most : NULL), "H5Screate_simple");
    hid_t how = must(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
    if (is_chunked) must(H5Pset_chunk(how, 2, chunk), "H5Pset_chunk");
    hid_t made = H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Pclose(how), H5Sclose(space);
    return must(made, "H5Dcreate2");
}

int main(int count, char **words) {
    char path[4096];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 2) must(-1, "hdf5_mpi FOLDER");
    snprintf(path, sizeof path, "%s/parallel.h5", words[1]);
    hid_t access = must(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
    must(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL), "H5Pset_fapl_mpio");

    hid_t file = must(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
    hid_t plain = make(file, "plain", 0), chunked = make(file, "chunked", 1);
    put_rows(plain, 0, H5FD_MPIO_INDEPENDENT);
    put_rows(chunked, 0, H5FD_MPIO_COLLECTIVE);
    must(H5Fflush(file, H5F_SCOPE_GLOBAL), "H5Fflush");
    MPI_Barrier(MPI_COMM_WORLD);
    check_rows(plain, (hsize_t)ROWS * ranks);
    check_rows(chunked, (hsize_t)ROWS * ranks);
    must(H5Dclose(plain), "H5Dclose"), must(H5Dclose(chunked), "H5Dclose");
    must(H5Fclose(file), "H5Fclose");

    // Again, with as many rows behind them.
    hsize_t size[2] = {(hsize_t)ROWS * ranks * 2, COLUMNS};
    file = must(H5Fopen(path, H5F_ACC_RDWR, access), "H5Fopen");
    chunked = must(H5Dopen2(file, "chunked", H5P_DEFAULT), "H5Dopen2");
    check_rows(chunked, (hsize_t)ROWS * ranks);
    must(H5Dset_extent(chunked, size), "H5Dset_extent");
    put_rows(chunked, (hsize_t)ROWS * ranks, H5FD_MPIO_COLLECTIVE);
    must(H5Dclose(chunked), "H5Dclose"), must(H5Fclose(file), "H5Fclose");

    file = must(H5Fopen(path, H5F_ACC_RDONLY, access), "H5Fopen");
    chunked = must(H5Dopen2(file, "chunked", H5P_DEFAULT), "H5Dopen2");
    plain = must(H5Dopen2(file, "plain", H5P_DEFAULT), "H5Dopen2");
    check_rows(chunked, size[0]);
    check_rows(plain, (hsize_t)ROWS * ranks);
    H5Dclose(plain), H5Dclose(chunked), H5Fclose(file), H5Pclose(access);
    if (rank == 0) printf("parallel.h5 is whole\n");
    MPI_Finalize();
    return 0;
}
