# SPDX-License-Identifier: Apache-2.0 OR MIT
"""ReFrame's own OSU checks, unchanged but for the program they start: their options, sanity and
performance expressions read our output."""

import os

import reframe as rfm
from hpctestlib.microbenchmarks.mpi.osu import osu_benchmark


@rfm.simple_test
class weft_bench(osu_benchmark):
    valid_systems = ['*']
    valid_prog_environs = ['*']
    num_tasks = 2
    num_iters = 20

    @run_before('run')
    def start_weft(self):
        weft = os.environ['WEFT']
        self.executable_opts = ['run', '-n', '2', '--mpi', 'mpich', '--transport', 'native',
            '--timeout', '60', '--', weft, 'bench',
                                self.executable, *self.executable_opts]
        self.executable = weft
        # The launcher of the generic system starts one process, which starts the ranks.
        self.num_tasks = 1
