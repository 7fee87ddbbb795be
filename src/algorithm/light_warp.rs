//! Warps that take rows for all their groups from a global counter.

use super::light_vector::fetching_plan;
use super::{Plan, Plans};
use crate::config::KernelConfig;
use crate::parameter::parameters;

parameters! {
    /// Warps take rows for all their groups from a global counter (LightSpMV, warp level).
    pub struct LightWarp {
        /// Lanes that share a row.
        threads_per_vector = 8, one of [2, 4, 8, 16, 32];
        /// Rows for each of its groups that a warp takes from the counter at once; 0 takes some for each group of a block.
        rows_per_fetch = 0, one of [0, 1, 2, 4, 8, 16];
        /// Terms of a lane whose loads are in flight together.
        unroll = 4, one of [1, 2, 4];
        /// 1 starts a row at a multiple of threads_per_vector entries, so that later accesses are aligned.
        aligned = 0, one of [0, 1];
        /// 1: as many blocks as are resident take rows until none is left; 0: a block a turn, which the hardware hands out.
        resident = 1, one of [0, 1];
    }
}

impl Plans for LightWarp {
    fn plan(&self, config: &KernelConfig) -> Plan {
        fetching_plan(config, self.threads_per_vector, self.rows_per_fetch, self.unroll, self.resident)
    }
}
