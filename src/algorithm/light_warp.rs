//! Warps that take rows for all their groups from a global counter.

use super::light_vector::{fetching_plan, rounds};
use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::parameter::parameters;
use crate::source::group_depth;

parameters! {
    /// Warps take rows for all their groups from a global counter (LightSpMV, warp level).
    pub struct LightWarp {
        /// Lanes that share a row.
        threads_per_vector = 8, one of [2, 4, 8, 16, 32];
        /// Rows for each of its groups that a warp takes from the counter at once; 0 takes one for each group of a block, four for groups of 2 or 4.
        rows_per_fetch = 0, one of [0, 1, 2, 4, 8, 16];
        /// Terms of a lane whose loads are in flight together.
        unroll = 4, one of [1, 2, 4];
        /// 1 starts a row at a multiple of threads_per_vector entries, so that later accesses are aligned.
        aligned = 0, one of [0, 1];
    }
}

impl Plans for LightWarp {
    fn plan(&self, config: &KernelConfig) -> Plan {
        let rounds = rounds(self.threads_per_vector, self.rows_per_fetch);
        let rows_per_block = config.threads_per_block() / self.threads_per_vector * rounds;
        fetching_plan(config, rows_per_block, group_depth(self.threads_per_vector, self.unroll))
    }
}
