// SPDX-License-Identifier: Apache-2.0 OR MIT
//! IOR's CSV output: one line for each row. Called by report.

use crate::ior::figures::{Access, Row};
use crate::ior::finished::MIB;
use crate::ior::test::Test;

/// The first line.
pub const HEAD: &str = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),\
                        open(s),wr/rd(s),close(s),total(s),numTasks,iter\n";

/// One row.
pub fn row(test: &Test, access: Access, row: &Row, tasks: usize, repetition: u32) -> String {
    format!(
        "{},{:.4},{:.4},{:.6},{:.2},{:.2},{:.6},{:.6},{:.6},{:.6},{},{}\n",
        access.name(),
        row.bytes_per_s / MIB,
        row.transfers_per_s,
        row.latency_s,
        test.sizes.block_bytes as f64 / 1024.0,
        test.sizes.transfer_bytes as f64 / 1024.0,
        row.open_s,
        row.move_s,
        row.close_s,
        row.total_s,
        tasks,
        repetition
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_as_many_fields_as_the_head() {
        let line = row(&Test::default(), Access::Read, &Row::default(), 4, 2);
        assert_eq!(line.matches(',').count(), HEAD.matches(',').count());
        assert!(line.starts_with("read,") && line.ends_with(",4,2\n"));
    }
}
