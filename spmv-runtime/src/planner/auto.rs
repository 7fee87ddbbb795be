//! Plans for a matrix whose kernel nobody names.

use std::sync::Arc;

use spmv_codegen::{Algorithm, Coefficient, ConfigError, Features, KernelConfig, Operand, Operation, Types};

use super::{Candidate, Constraints, candidates, l2_bytes};
use crate::device::Device;
use crate::error::Error;
use crate::matrix_source::{DeviceMatrix, MatrixSource};
use crate::spmv::Spmv;

impl Spmv {
    /// A plan for y ← α·A·x + β·y with the kernel that is expected to be the fastest for `a`: looks at the structure on the
    /// device, predicts ([`planner`](crate::planner)), and makes the plan. x, y and the accumulator have the type of the
    /// values (sums of f16 and bf16 are in f32, of i8 in i32). Nothing is measured: the same matrix always gets the same kernel
    /// on devices of the same kind.
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
    /// the next. Truth values are refused: what they are combined by (`semiring = or_and`, or types of numbers for y and sums) is
    /// said in a configuration, for [`Spmv::with`].
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
        let (matrix, found) = ranked(device, a, operation, constraints, candidates)?;
        let (mut without_plan, mut refused) = (None, None);
        for candidate in found {
            match Self::with_operation(device, &matrix, operation, candidate.config) {
                Ok(plan) => match refusal(&plan, constraints) {
                    None => return Ok(plan),
                    Some(reason) => {
                        refused = Some(format!("{}: {reason}", candidate.config.algorithm().name()));
                    }
                },
                Err(error) if error.is_of_one_kernel() => without_plan = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(without_plan.unwrap_or(Error::Constraints { operation, refused }))
    }
}

/// Why a plan that was made is not for choosing: its products take more than two vectors and two numbers, or it does not keep the
/// constraints, as what it takes and whether it holds fill is known in full only then.
pub fn refusal(plan: &Spmv, constraints: &Constraints) -> Option<String> {
    let scaling = plan.config().scaling();
    let is_bound = |operand: &Operand| !matches!(operand, Operand::Buffer(_));
    if [scaling.alpha, scaling.beta].contains(&Coefficient::OnDevice)
        || plan.program().operands.iter().any(is_bound)
    {
        return Some("its products take factors on the device, or vectors and scalars of functions".into());
    }
    broken(plan, constraints)
}

/// Which constraint a plan does not keep.
pub fn broken(plan: &Spmv, constraints: &Constraints) -> Option<String> {
    let (takes, most) = (plan.workspace_bytes(), constraints.max_extra_bytes.unwrap_or(u64::MAX));
    if takes > most {
        return Some(format!("it takes {takes} bytes beside the matrix, and {most} are allowed"));
    }
    if constraints.deterministic && !plan.program().guarantees.bit_reproducible {
        return Some("its sums have no fixed order".into());
    }
    let algorithm = plan.config().algorithm();
    if constraints.values_change
        && (matches!(algorithm, Algorithm::RowPatterns(_)) || algorithm.encoding().unwrap_or(0) != 0)
    {
        return Some("it is for the values that the matrix has, and they change".into());
    }
    let multiplies_fill = plan.program().guarantees.fill_touches_x && !constraints.fill_touches_x;
    let fill = plan.fill().unwrap_or(u64::MAX);
    (multiplies_fill && fill > 0).then(|| format!("it would multiply {fill} slots of fill with x"))
}

/// What lists candidates for features.
type Lists = fn(&Features, Types, Operation, u64, &Constraints) -> Result<Vec<Candidate>, ConfigError>;

/// The types of a product where nobody says: vectors and sums as the values, sums of f16 and bf16 in f32, of i8 in i32.
pub(crate) fn usual_types(a: &impl MatrixSource) -> Result<Types, ConfigError> {
    let builder = KernelConfig::named("csr_vector")?.value(a.value_type()).offset(a.offset_type());
    Ok(builder.index(a.index_type()).build()?.types())
}

/// The matrix on the device, and the configurations for it, the best first.
pub(crate) fn ranked(
    device: &Device,
    a: &impl MatrixSource,
    operation: Operation,
    constraints: &Constraints,
    lists: Lists,
) -> Result<(Arc<DeviceMatrix>, Vec<Candidate>), Error> {
    let types = usual_types(a)?;
    let of_arrays = a.storage().of_arrays(operation).ok_or(Error::Operation {
        algorithm: "every algorithm",
        operation,
        storage: a.storage(),
        algorithms: Vec::new(),
    })?;
    let matrix = a.to_device(device, types)?;
    let features = match of_arrays {
        Operation::Transpose => matrix.features_of_transpose_by(device)?,
        of_triangle if of_triangle.is_of_triangle() => match matrix.features_of_both_triangles_by(device) {
            // What needs both will be refused, too.
            Err(Error::OutOfMemory { .. } | Error::Misfit { .. } | Error::Config(_)) => {
                matrix.features_by(device)?
            }
            found => found?,
        },
        _ => matrix.features_by(device)?,
    };
    let found = lists(&features, types, of_arrays, l2_bytes(device), constraints)?;
    Ok((matrix, found))
}
