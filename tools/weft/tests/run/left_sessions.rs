// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Session folders that killed launchers have left.

use crate::fake::Fake;

/// How many numbers after our own are those of killed launchers, but for each 50th of them.
const LEFT: u32 = 4000;

#[test]
fn a_launcher_does_not_get_the_number_of_one_that_left_its_session() {
    let fake = Fake::new();
    let temporary = fake.path("tmp");
    for number in std::process::id()..std::process::id() + LEFT {
        if number % 50 != 0 {
            std::fs::create_dir_all(format!("{temporary}/ompi.{number}")).unwrap();
        }
    }
    // As Open MPI 5's launcher does; this one becomes the program, and so has its number.
    fake.program("[ ! -e \"$TMPDIR/ompi.$$\" ] || exit 213");
    let (launcher, program) = (fake.path("bin/mpiexec"), fake.path("program"));
    let words = ["--transport", "native", "--mpi", &launcher, "-n", "1"];
    let mut command = fake.command(&[&words[..], &["--", &program]].concat());
    let output = command.env("TMPDIR", &temporary).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
