//! The product by a kernel, on a GPU or the simulator.

use std::time::{Duration, Instant};

use spmv_runtime::codegen::{Coefficient, ValueType};
use spmv_runtime::cudarc::driver::{CudaEvent, DriverError, sys::CUevent_flags};
use spmv_runtime::matrix::{Complex32, Complex64, bf16, f16};
use spmv_runtime::ptx_sim::Counters;
use spmv_runtime::{Device, Error, Factor, Spmv, Vector};

use crate::failure::Failure;
use crate::operands::{Operands, entries, numbers, parts};
use crate::product::Product;
use crate::progress::Progress;
use crate::quantity;

/// A plan with its operands on the device.
pub struct OnDevice {
    plan: Spmv,
    alpha: Placed,
    beta: Placed,
    x: DeviceVector,
    y: DeviceVector,
    /// What times a GPU: events before and after a batch. The simulator has none.
    events: Option<[CudaEvent; 2]>,
}

impl OnDevice {
    /// Copies x and y to the plan's device.
    pub fn new(plan: Spmv, operands: &Operands) -> Result<OnDevice, Failure> {
        let (device, types, scaling) =
            (plan.device().clone(), plan.config().types(), plan.config().scaling());
        Ok(OnDevice {
            alpha: Placed::new(&device, scaling.alpha, types.accumulator, operands.alpha)?,
            beta: Placed::new(&device, scaling.beta, types.accumulator, operands.beta)?,
            x: DeviceVector::from_slice(&device, types.x, &operands.x)?,
            y: DeviceVector::from_slice(&device, types.y, &operands.y)?,
            events: events(&device)?,
            plan,
        })
    }

    pub fn plan(&self) -> &Spmv {
        &self.plan
    }

    fn apply(&mut self) -> Result<(), Error> {
        self.x.multiplied(&mut self.plan, self.alpha.factor(), self.beta.factor(), &mut self.y)
    }

    fn record(&self, which: usize) -> Result<(), Failure> {
        match (&self.events, self.plan.device().as_cuda()) {
            (Some(events), Some((_, stream))) => {
                events[which].record(stream).map_err(|error| driver_error("cuEventRecord", error))
            }
            _ => Ok(()),
        }
    }
}

impl Product for OnDevice {
    fn product(&mut self, operands: &Operands) -> Result<(Vec<f64>, f64), Failure> {
        let _progress = self.plan.device().is_simulator().then(|| Progress::start("simulating"));
        self.y.copy_from_slice(&operands.y)?;
        let started = Instant::now();
        self.apply()?;
        self.plan.device().synchronize()?;
        let took = quantity::in_ms(started.elapsed());
        Ok((self.y.to_vec()?, took))
    }

    fn batch(&mut self, products: u32) -> Result<Duration, Failure> {
        let started = Instant::now();
        self.record(0)?;
        for _ in 0..products {
            self.apply()?;
        }
        self.record(1)?;
        // Waiting here first tells a kernel's fault apart from a failure of the events.
        self.plan.device().synchronize()?;
        let Some([before, after]) = &self.events else { return Ok(started.elapsed()) };
        let ms = before.elapsed_ms(after).map_err(|error| driver_error("cuEventElapsedTime", error))?;
        Ok(Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3))
    }

    fn bytes(&self) -> u64 {
        let matrix = self.plan.matrix();
        let types = self.plan.config().types();
        let y_passes = if self.beta.number == 0.0 { 1 } else { 2 };
        let (x_length, y_length) = self.plan.vector_lengths();
        matrix.bytes() + (x_length * types.x.size() + y_passes * y_length * types.y.size()) as u64
    }

    fn take_counters(&mut self) -> Option<Counters> {
        self.plan.device().take_counters()
    }
}

fn events(device: &Device) -> Result<Option<[CudaEvent; 2]>, Failure> {
    let Some((context, _)) = device.as_cuda() else { return Ok(None) };
    let event = || {
        context
            .new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
            .map_err(|error| driver_error("cuEventCreate", error))
    };
    Ok(Some([event()?, event()?]))
}

fn driver_error(call: &'static str, error: DriverError) -> Failure {
    let text = |text: Result<&std::ffi::CStr, DriverError>| {
        text.map_or_else(
            |_| format!("CUDA error {}", error.0 as u32),
            |text| text.to_string_lossy().into_owned(),
        )
    };
    Error::Driver { call, name: text(error.error_name()), message: text(error.error_string()) }.into()
}

/// A vector whose type is known at run time.
enum DeviceVector {
    F16(Vector<f16>),
    Bf16(Vector<bf16>),
    F32(Vector<f32>),
    F64(Vector<f64>),
    I8(Vector<i8>),
    I32(Vector<i32>),
    I64(Vector<i64>),
    U32(Vector<u32>),
    Bool(Vector<bool>),
    C32(Vector<Complex32>),
    C64(Vector<Complex64>),
}

/// Does the same with the vector whatever its type is.
macro_rules! of_any_type {
    ($any:expr, $vector:ident => $result:expr) => {
        match $any {
            DeviceVector::F16($vector) => $result,
            DeviceVector::Bf16($vector) => $result,
            DeviceVector::F32($vector) => $result,
            DeviceVector::F64($vector) => $result,
            DeviceVector::I8($vector) => $result,
            DeviceVector::I32($vector) => $result,
            DeviceVector::I64($vector) => $result,
            DeviceVector::U32($vector) => $result,
            DeviceVector::Bool($vector) => $result,
            DeviceVector::C32($vector) => $result,
            DeviceVector::C64($vector) => $result,
        }
    };
}

impl DeviceVector {
    fn from_slice(device: &Device, value: ValueType, numbers: &[f64]) -> Result<DeviceVector, Error> {
        Ok(match value {
            ValueType::F16 => DeviceVector::F16(Vector::from_slice(device, &entries(numbers))?),
            ValueType::Bf16 => DeviceVector::Bf16(Vector::from_slice(device, &entries(numbers))?),
            ValueType::F32 => DeviceVector::F32(Vector::from_slice(device, &entries(numbers))?),
            ValueType::I8 => DeviceVector::I8(Vector::from_slice(device, &entries(numbers))?),
            ValueType::I32 => DeviceVector::I32(Vector::from_slice(device, &entries(numbers))?),
            ValueType::I64 => DeviceVector::I64(Vector::from_slice(device, &entries(numbers))?),
            ValueType::U32 => DeviceVector::U32(Vector::from_slice(device, &entries(numbers))?),
            ValueType::Bool => DeviceVector::Bool(Vector::from_slice(device, &entries(numbers))?),
            ValueType::C32 => DeviceVector::C32(Vector::from_slice(device, &entries(numbers))?),
            ValueType::C64 => DeviceVector::C64(Vector::from_slice(device, &entries(numbers))?),
            _ => DeviceVector::F64(Vector::from_slice(device, numbers)?),
        })
    }

    /// y ← α·A·x + β·y, where x is this vector.
    fn multiplied(
        &self,
        plan: &mut Spmv,
        alpha: Factor<'_>,
        beta: Factor<'_>,
        y: &mut DeviceVector,
    ) -> Result<(), Error> {
        of_any_type!(self, x => of_any_type!(y, y => plan.apply(alpha, x, beta, y)))
    }

    fn copy_from_slice(&mut self, numbers: &[f64]) -> Result<(), Error> {
        of_any_type!(self, vector => vector.copy_from_slice(&entries(numbers)))
    }

    fn to_vec(&self) -> Result<Vec<f64>, Error> {
        of_any_type!(self, vector => Ok(numbers(&vector.to_vec()?)))
    }
}

/// alpha or beta, where the kernel takes it from.
struct Placed {
    number: f64,
    /// Where the kernel reads it from device memory.
    there: Option<DeviceVector>,
}

impl Placed {
    fn new(
        device: &Device,
        coefficient: Coefficient,
        accumulator: ValueType,
        number: f64,
    ) -> Result<Placed, Error> {
        let place = || DeviceVector::from_slice(device, accumulator, &[number, 0.0][..parts(accumulator)]);
        let there = (coefficient == Coefficient::OnDevice).then(place).transpose()?;
        Ok(Placed { number, there })
    }

    fn factor(&self) -> Factor<'_> {
        match &self.there {
            Some(vector) => of_any_type!(vector, vector => vector.into()),
            None => self.number.into(),
        }
    }
}
