//! The products on the CPU.

use spmv_runtime::RealElement;
use spmv_runtime::matrix::{CsrMatrix, MatrixError, Number, Value, cpu_parallel, cpu_serial};

use crate::contender::{Absent, Contender, Facts, Prepared, Product, Task, any_order_depth};
use crate::request::{Operation, Selection};

/// The names of the contenders.
pub(crate) const NAMES: [&str; 2] = ["cpu:parallel", "cpu:serial"];

type Multiply<V> =
    fn(<V as Number>::Sum, &CsrMatrix<V, u32>, &[V], <V as Number>::Sum, &mut [V]) -> Result<(), MatrixError>;

/// One product on the CPU.
pub(crate) struct OnCpu<V: Value> {
    name: &'static str,
    params: String,
    multiply: Multiply<V>,
}

/// The selected ones.
pub(crate) fn contenders<V: RealElement>(selection: &Selection) -> Vec<OnCpu<V>> {
    let all: [Multiply<V>; 2] = [cpu_parallel::<V, u32>, cpu_serial::<V, u32>];
    let selected = NAMES.into_iter().zip(all).filter(|(name, _)| selection.has(name));
    selected.map(|(name, multiply)| OnCpu { name, params: String::new(), multiply }).collect()
}

impl<V: RealElement> Contender<V> for OnCpu<V> {
    fn name(&self) -> &str {
        self.name
    }

    fn params(&self) -> &str {
        &self.params
    }

    fn prepare<'t>(&'t self, task: &'t Task<'_, V>) -> Result<Prepared<'t, V>, Absent> {
        if task.operation == Operation::Transpose {
            return Err(Absent::Skipped("the CPU has no product with the transpose".into()));
        }
        let [alpha, beta] = [task.alpha, task.beta].map(V::Sum::from_f64);
        let facts = Facts {
            moved_bytes: task.csr_bytes() + task.vector_bytes(),
            deterministic: Some(true),
            ..Facts::default()
        };
        let product = move |x: &[V], y: &mut [V]| {
            (self.multiply)(alpha, task.a, x, beta, y).map_err(|error| error.to_string())
        };
        Ok(Prepared { product: Product::OnHost(Box::new(product)), facts, depth: Box::new(any_order_depth) })
    }
}
