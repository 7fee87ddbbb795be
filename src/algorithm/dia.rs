//! Diagonals, stored whole.

use super::{Plan, Plans};
use crate::config::{ConfigError, KernelConfig};
use crate::diagonals::Diagonals;
use crate::expr::{Expr, Variable};
use crate::parameter::parameters;
use crate::program::Slots;

parameters! {
    /// Diagonals that hold an entry, stored whole and without columns (DIA).
    pub struct Dia {
        /// Values: 0 as they are, 1 as f32 where every f64 is one, 2 by places in a table of 255, 3 whole ones up to 127 as bytes.
        encoding = 0, one of [0, 1, 2, 3];
    }
}

impl Dia {
    fn diagonals(&self) -> Diagonals {
        Diagonals { encoding: self.encoding, most_packs: 4 }
    }
}

impl Plans for Dia {
    fn check(&self, config: &KernelConfig) -> Result<(), ConfigError> {
        self.diagonals().check(config)
    }

    fn slots(&self, config: &KernelConfig) -> Option<Slots> {
        Some(self.diagonals().slots(config))
    }

    fn plan(&self, config: &KernelConfig) -> Plan {
        // A chain, to which fill adds exact zeros, alpha, beta and two conversions.
        self.diagonals().plan(config, Expr::from(Variable::RowNnz) + 4)
    }
}
