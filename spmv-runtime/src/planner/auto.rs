//! Plans for a matrix whose kernel nobody names.

use std::sync::Arc;

use spmv_codegen::{KernelConfig, Operation};

use super::{Candidate, Constraints, candidates};
use crate::device::Device;
use crate::error::Error;
use crate::matrix_source::{DeviceMatrix, MatrixSource};
use crate::spmv::Spmv;

impl Spmv {
    /// A plan for y ← α·A·x + β·y with the kernel that is expected to be the fastest for `a`: looks at the structure on the
    /// device, predicts ([`planner`](crate::planner)), and makes the plan. x, y and the accumulator have the type of the
    /// values (sums of f16 and bf16 are in f32). Nothing is measured: the same matrix always gets the same kernel on
    /// devices of the same kind.
    ///
    /// ```no_run
    /// use spmv_runtime::{Device, Spmv, Vector, matrix::CooMatrix};
    ///
    /// let a = CooMatrix::new(2, 3, vec![0, 0, 0, 1], vec![0, 1, 2, 1], vec![1.0f32, 3.0, 2.0, 5.0])?.to_csr::<u32>()?;
    /// let device = Device::open()?;
    /// let mut spmv = Spmv::auto(&device, &a)?;
    /// let mut y = Vector::<f32>::zeros(&device, 2)?;
    /// spmv.apply(1.0, &Vector::from_slice(&device, &[2.0f32, 1.0, 4.0])?, 0.0, &mut y)?;
    /// assert_eq!(y.to_vec()?, [13.0, 5.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Spmv::with`], except that a kernel which cannot have its memory or whose layout is refused gives way to
    /// the next.
    pub fn auto(device: &Device, a: &impl MatrixSource) -> Result<Spmv, Error> {
        Self::auto_with(device, a, Operation::NonTranspose, &Constraints::default())
    }

    /// As [`auto`](Self::auto), for op(A) and within constraints.
    ///
    /// # Errors
    /// As [`auto`](Self::auto); [`Error::Constraints`] where no kernel keeps them.
    pub fn auto_with(
        device: &Device,
        a: &impl MatrixSource,
        operation: Operation,
        constraints: &Constraints,
    ) -> Result<Spmv, Error> {
        let (matrix, candidates) = ranked(device, a, operation, constraints)?;
        let most = constraints.max_extra_bytes.unwrap_or(u64::MAX);
        let mut refused = None;
        for candidate in candidates {
            match Self::with_operation(device, &matrix, operation, candidate.config) {
                Ok(plan) if plan.workspace_bytes() <= most => return Ok(plan),
                Ok(_) => {}
                Err(error @ (Error::Fill { .. } | Error::Misfit { .. } | Error::OutOfMemory { .. })) => {
                    refused = Some(error)
                }
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or(Error::Constraints { operation }))
    }
}

/// The matrix on the device, and the configurations for it, the best first.
fn ranked(
    device: &Device,
    a: &impl MatrixSource,
    operation: Operation,
    constraints: &Constraints,
) -> Result<(Arc<DeviceMatrix>, Vec<Candidate>), Error> {
    let (value, offset) = (a.value_type(), a.offset_type());
    let types = KernelConfig::named("csr_vector")?.value(value).offset(offset).build()?.types();
    let of_arrays = a.storage().of_arrays(operation).ok_or(Error::Operation {
        algorithm: "every algorithm",
        operation,
        storage: a.storage(),
        algorithms: Vec::new(),
    })?;
    let matrix = a.to_device(device, types)?;
    let features = matrix.features()?;
    let candidates = candidates(&features, types, of_arrays, device.properties().l2_bytes, constraints)?;
    Ok((matrix, candidates))
}
