//! The product on the CPU.

use std::time::{Duration, Instant};

use spmv_runtime::matrix::{CsrMatrix, MatrixError, Number, Offset};

use crate::failure::Failure;
use crate::operands::{self, Operands};
use crate::product::Product;
use crate::quantity;

/// Either of the CPU products.
pub type Multiply<V, O> =
    fn(<V as Number>::Sum, &CsrMatrix<V, O>, &[V], <V as Number>::Sum, &mut [V]) -> Result<(), MatrixError>;

/// A matrix with x and y in the type of its values.
pub struct OnCpu<'a, V: Number, O> {
    multiply: Multiply<V, O>,
    a: &'a CsrMatrix<V, O>,
    alpha: V::Sum,
    beta: V::Sum,
    x: Vec<V>,
    y: Vec<V>,
}

impl<'a, V: Number, O: Offset> OnCpu<'a, V, O> {
    pub fn new(multiply: Multiply<V, O>, a: &'a CsrMatrix<V, O>, operands: &Operands) -> OnCpu<'a, V, O> {
        OnCpu {
            multiply,
            a,
            alpha: operands::real(operands.alpha),
            beta: operands::real(operands.beta),
            x: operands::entries(&operands.x),
            y: operands::entries(&operands.y),
        }
    }

    fn apply(&mut self) -> Result<(), MatrixError> {
        (self.multiply)(self.alpha, self.a, &self.x, self.beta, &mut self.y)
    }
}

impl<V: Number, O: Offset> Product for OnCpu<'_, V, O> {
    fn product(&mut self, operands: &Operands) -> Result<(Vec<f64>, f64), Failure> {
        self.y.copy_from_slice(&operands::entries(&operands.y));
        let started = Instant::now();
        self.apply()?;
        let took = quantity::in_ms(started.elapsed());
        Ok((operands::numbers(&self.y), took))
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
