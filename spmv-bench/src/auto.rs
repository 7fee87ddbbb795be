//! The planner, as whoever names no kernel meets it.

use std::time::Instant;

use spmv_runtime::planner::Constraints;
use spmv_runtime::{MatrixSource, RealElement, Spmv, codegen};

use crate::contender::{Absent, Contender, Facts, Prepared, Task};
use crate::ours::{facts, params, prepared};
use crate::request::Operation;

/// The contender's name, which is its side too: it is one of the generated kernels and stands for none of them.
pub(crate) const NAME: &str = "auto";

/// What [`Spmv::auto_with`] plans for the matrix. What it costs is looking at the structure, choosing and preparing;
/// the kernel was compiled before.
pub(crate) struct Auto;

impl<V: RealElement> Contender<V> for Auto {
    fn name(&self) -> &str {
        NAME
    }

    fn params(&self) -> &str {
        ""
    }

    fn prepare<'t>(&'t self, task: &'t Task<'_, V>) -> Result<Prepared<'t, V>, Absent> {
        let Some(on) = &task.device else {
            return Err(Absent::Skipped("there is no device to run kernels".into()));
        };
        let operation = match task.operation {
            Operation::NonTranspose | Operation::Symmetric => codegen::Operation::NonTranspose,
            Operation::Transpose => codegen::Operation::Transpose,
        };
        let device = &on.device;
        let plan = |matrix| Spmv::auto_with(device, matrix, operation, &Constraints::default());
        let (matrix, convert_ms) = match task.operation {
            Operation::Symmetric => {
                let (matrix, ms) = task.triangle(device)?;
                Spmv::auto_with(device, &matrix, operation, &Constraints::default())?;
                (matrix, Some(ms))
            }
            Operation::NonTranspose | Operation::Transpose => {
                let types = plan(&on.matrix)?.config().types();
                // A matrix of its own: nothing is known of its structure, while the kernel is compiled.
                (task.a.to_device(device, types)?, None)
            }
        };
        device.synchronize()?;
        let started = Instant::now();
        let plan = plan(&matrix)?;
        device.synchronize()?;
        let took = started.elapsed();
        let on_gpu = on.instruments.is_some();
        let chosen = format!("algorithm={};{}", plan.config().algorithm().name(), params(plan.config()));
        let facts = Facts {
            prepare_ms: on_gpu.then_some(took.as_secs_f64() * 1e3),
            convert_ms: convert_ms.filter(|_| on_gpu),
            params: chosen,
            ..facts(&plan, on, task)?
        };
        Ok(prepared(plan, facts, task))
    }
}
