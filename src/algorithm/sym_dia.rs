//! The product with a symmetric, skew-symmetric or Hermitian matrix from diagonals of its lower triangle.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::diagonals::Diagonals;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::Slots;

parameters! {
    /// Diagonals of the lower triangle, stored whole and without columns: every slot comes from memory once, for both halves.
    pub struct SymDia computes [Symmetric, SkewSymmetric, Hermitian] {
        /// Diagonals whose loads are under way at once, those of their mirror images too.
        unroll = 2, one of [1, 2, 3, 4];
        /// Values: 0 as they are, 1 as f32 where every f64 is one, 2 by places in a table of 255, 3 whole ones up to 127 as bytes.
        encoding = 0, one of [0, 1, 2, 3];
    }
}

impl SymDia {
    fn diagonals(&self) -> Diagonals {
        Diagonals { encoding: self.encoding, most_packs: 2 }
    }
}

impl Plans for SymDia {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        self.diagonals().check(config)
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        Some(self.diagonals().slots(config))
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        // A chain for each half, to which fill adds exact zeros, their sum, alpha, beta and two conversions.
        self.diagonals().plan(config, Expr::from(Variable::RowNnz) + 6)
    }
}
