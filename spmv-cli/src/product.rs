//! A product that can be computed again and again, and what is found out about it.

use std::time::Duration;

use spmv_runtime::ptx_sim::Counters;

use crate::expected::{Expected, Promise, Verification};
use crate::failure::Failure;
use crate::measure::{Effort, Performance, measure};
use crate::operands::Operands;

/// A matrix with operands, ready to be multiplied.
pub trait Product {
    /// One product from the operands' y, and how many milliseconds passed until it was finished.
    fn product(&mut self, operands: &Operands) -> Result<(Vec<f64>, f64), Failure>;

    /// So many products one after the other, and how long they took.
    fn batch(&mut self, products: u32) -> Result<Duration, Failure>;

    /// Bytes that must move for one product.
    fn bytes(&self) -> u64;

    /// On the simulator, what was counted since this was last asked.
    fn take_counters(&mut self) -> Option<Counters> {
        None
    }
}

/// What two products gave, and what was measured between them.
pub struct Computed {
    /// What the first product gave.
    pub first: Vec<f64>,
    second: Vec<f64>,
    pub first_ms: f64,
    /// Of the first product, on the simulator.
    pub counters: Option<Counters>,
    /// Nothing is timed on the simulator: its time is no GPU's.
    pub performance: Option<Performance>,
}

/// Computes a product, times more of them, and computes it once again.
pub fn compute(
    product: &mut impl Product,
    operands: &Operands,
    multiplications: usize,
    effort: Option<Effort>,
) -> Result<Computed, Failure> {
    // Whatever came before the product does not count.
    product.take_counters();
    let (first, first_ms) = product.product(operands)?;
    let counters = product.take_counters();
    let performance = match effort {
        Some(effort) if counters.is_none() => {
            let samples = measure(effort, |products| product.batch(products))?;
            Some(Performance::new(samples, multiplications, product.bytes()))
        }
        _ => None,
    };
    let (second, _) = product.product(operands)?;
    Ok(Computed { first, second, first_ms, counters, performance })
}

impl Computed {
    /// Compares both products with what they must be, and with each other.
    pub fn verify(&self, expected: &Expected, promise: &Promise) -> Verification {
        expected.verify(&self.first, &self.second, promise)
    }
}
