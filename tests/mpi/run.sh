#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 OR MIT
# Real MPI programs over Weft. Usage: tests/mpi/run.sh [--full] [--transport weft|native|tcp]
# [--collectives auto|weft|mpi] [--mpi NAME]... [SUITE]...
#
#   --full        every size and every module; without it the whole takes at most 15 minutes on two
#                 cores
#   --transport   what carries the messages (default weft; native is for telling Weft's faults from
#                 the program's)
#   --collectives who carries out collectives (default auto, as of weft run)
#   --mpi         only this MPI: debian-openmpi, openmpi, mpich or intel; may be given again
#   SUITE         a file of tests/mpi/suites without .sh; default all
#
# Prints `ok`, `not ok` or `skip` with the time of each case, and at the end
# `N passed, N failed, N skipped`. What a case printed lies in report/mpi-tests/. Exit code 0 when
# none failed, 1 when one did, 2 for bad usage. WEFT names another weft command to test with.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
RUN=tests/mpi/run.sh
# shellcheck source=tests/own_shm.sh
. tests/own_shm.sh
own_dev_shm $RUN "$@"
# shellcheck source=tests/mpi/arguments.sh
. tests/mpi/arguments.sh
read_arguments "$@"
[ ${#suites[@]} -gt 0 ] ||
    suites=(driver ends start spec standard local_sends bench windows applications imb mpi4py)
prepare_run mpi-tests

for suite in "${suites[@]}"; do
    # shellcheck source=/dev/null
    . "tests/mpi/suites/$suite.sh"
done
summary
