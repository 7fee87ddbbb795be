//! The product on the CPU.

use std::time::{Duration, Instant};

use spmv_runtime::matrix::{CsrMatrix, MatrixError, Number, Offset, Value};

use crate::failure::Failure;
use crate::operands::Operands;
use crate::product::Product;
use crate::quantity;

/// Either of the CPU products.
pub type Multiply<V, O> =
    fn(<V as Number>::Sum, &CsrMatrix<V, O>, &[V], <V as Number>::Sum, &mut [V]) -> Result<(), MatrixError>;

/// A matrix with x and y in the type of its values.
pub struct OnCpu<'a, V: Value, O> {
    multiply: Multiply<V, O>,
    a: &'a CsrMatrix<V, O>,
    alpha: V::Sum,
    beta: V::Sum,
    x: Vec<V>,
    y: Vec<V>,
}

impl<'a, V: Value, O: Offset> OnCpu<'a, V, O> {
    pub fn new(multiply: Multiply<V, O>, a: &'a CsrMatrix<V, O>, operands: &Operands) -> OnCpu<'a, V, O> {
        let vector = |numbers: &[f64]| numbers.iter().map(|&number| V::from_f64(number)).collect();
        OnCpu {
            multiply,
            a,
            alpha: V::Sum::from_f64(operands.alpha),
            beta: V::Sum::from_f64(operands.beta),
            x: vector(&operands.x),
            y: vector(&operands.y),
        }
    }

    fn apply(&mut self) -> Result<(), MatrixError> {
        (self.multiply)(self.alpha, self.a, &self.x, self.beta, &mut self.y)
    }
}

impl<V: Value, O: Offset> Product for OnCpu<'_, V, O> {
    fn product(&mut self, operands: &Operands) -> Result<(Vec<f64>, f64), Failure> {
        for (y, &initial) in self.y.iter_mut().zip(&operands.y) {
            *y = V::from_f64(initial);
        }
        let started = Instant::now();
        self.apply()?;
        let took = quantity::in_ms(started.elapsed());
        Ok((self.y.iter().map(|y| y.to_f64()).collect(), took))
    }

    fn batch(&mut self, products: u32) -> Result<Duration, Failure> {
        let started = Instant::now();
        for _ in 0..products {
            self.apply()?;
        }
        Ok(started.elapsed())
    }

    fn bytes(&self) -> u64 {
        let y_passes = if self.beta == V::Sum::default() { 1 } else { 2 };
        (self.a.bytes() + size_of_val(&self.x[..]) + y_passes * size_of_val(&self.y[..])) as u64
    }
}
