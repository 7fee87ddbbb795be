//! α and β of a product: numbers, or where they lie on a device.

use spmv_codegen::{Coefficient, ValueType};

use crate::device::Device;
use crate::error::Error;
use crate::scalar::{Element, Scalar};
use crate::vector::{Vector, check_length};

/// α or β of a product: a number, which goes with the launch, or a reference to a vector of one entry, which kernels read
/// when they run. Which of the two it is, the plan's configuration says: `alpha = device` and `beta = device` are vectors of
/// the type of sums.
///
/// ```no_run
/// use spmv_runtime::{Device, KernelConfig, Spmv, Vector, matrix::CooMatrix};
///
/// let a = CooMatrix::new(2, 2, vec![0, 0, 1], vec![0, 1, 1], vec![4.0f32, 1.0, 2.0])?.to_csr::<u32>()?;
/// let device = Device::open()?;
/// let config = KernelConfig::from_settings("csr_vector", [("alpha", "device"), ("beta", "0")])?;
/// let mut plan = Spmv::with(&device, &a, config)?;
/// let x = Vector::from_slice(&device, &[1.0f32, 2.0])?;
/// let mut alpha = Vector::from_slice(&device, &[0.5f32])?;
/// let mut y = Vector::<f32>::zeros(&device, 2)?;
/// plan.apply(&alpha, &x, 0.0, &mut y)?;
/// assert_eq!(y.to_vec()?, [3.0, 2.0]);
/// alpha.scale(2.0)?;
/// plan.apply(&alpha, &x, 0.0, &mut y)?;
/// assert_eq!(y.to_vec()?, [6.0, 4.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a>(Place<'a>);

#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    Number(Scalar),
    OnDevice { device: &'a Device, address: u64, len: usize, value: ValueType },
}

impl<N: Into<Scalar>> From<N> for Factor<'_> {
    fn from(number: N) -> Self {
        Factor(Place::Number(number.into()))
    }
}

impl<'a, T: Element> From<&'a Vector<T>> for Factor<'a> {
    fn from(vector: &'a Vector<T>) -> Self {
        let (device, address, len) = (vector.device(), vector.address(), vector.len());
        Factor(Place::OnDevice { device, address, len, value: T::TYPE })
    }
}

/// A factor as it goes into a kernel's arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Passed {
    Number(Scalar),
    Address(u64),
}

impl Default for Passed {
    fn default() -> Passed {
        Passed::Number(Scalar::F64(0.0))
    }
}

impl From<Scalar> for Passed {
    fn from(number: Scalar) -> Passed {
        Passed::Number(number)
    }
}

impl Passed {
    /// The number where the host has it.
    pub(crate) fn number(self) -> Option<Scalar> {
        match self {
            Passed::Number(number) => Some(number),
            Passed::Address(_) => None,
        }
    }
}

impl Factor<'_> {
    /// Checks that it is what a kernel takes for `what`, α or β: the number that it was generated for, one that the type of
    /// sums holds, or an entry of that type on its device.
    pub(crate) fn checked(
        self,
        what: &'static str,
        coefficient: Coefficient,
        accumulator: ValueType,
        on: &Device,
    ) -> Result<Passed, Error> {
        match (self.0, coefficient) {
            (Place::Number(number), Coefficient::OnDevice) => {
                Err(Error::ScalingIsOnDevice { what, got: number, accumulator })
            }
            (Place::Number(number), _) => {
                if !number.fits(accumulator) {
                    return Err(Error::ScalarType { what, got: number, accumulator });
                }
                Ok(Passed::Number(number))
            }
            (Place::OnDevice { device, address, len, value }, Coefficient::OnDevice) => {
                if value != accumulator {
                    return Err(Error::ScalingVectorType { what, expected: accumulator, got: value });
                }
                check_length(what, 1, len)?;
                if !device.is(on) {
                    return Err(Error::OtherDevice { what, with: "the plan" });
                }
                Ok(Passed::Address(address))
            }
            (Place::OnDevice { .. }, known) => Err(Error::ScalingIsNumber { what, configured: known.name() }),
        }
    }
}
