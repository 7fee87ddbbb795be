//! The product by a kernel, on a GPU or the simulator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spmv_runtime::codegen::{KernelConfig, ValueType};
use spmv_runtime::cudarc::driver::{CudaEvent, DriverError, sys::CUevent_flags};
use spmv_runtime::ptx_sim::Counters;
use spmv_runtime::{Device, DeviceMatrix, Error, Spmv, Vector};

use crate::failure::Failure;
use crate::operands::Operands;
use crate::product::Product;
use crate::progress::Progress;
use crate::quantity;

/// A plan with its operands on the device.
pub struct OnDevice {
    plan: Spmv,
    alpha: f64,
    beta: f64,
    x: DeviceVector,
    y: DeviceVector,
    /// What times a GPU: events before and after a batch. The simulator has none.
    events: Option<[CudaEvent; 2]>,
}

impl OnDevice {
    /// Makes the plan and copies x and y.
    pub fn new(
        device: &Device,
        matrix: &Arc<DeviceMatrix>,
        config: KernelConfig,
        operands: &Operands,
    ) -> Result<OnDevice, Failure> {
        let plan = Spmv::with(device, matrix, config)?;
        let types = config.types();
        Ok(OnDevice {
            alpha: operands.alpha,
            beta: operands.beta,
            x: DeviceVector::from_slice(device, types.x, &operands.x)?,
            y: DeviceVector::from_slice(device, types.y, &operands.y)?,
            events: events(device)?,
            plan,
        })
    }

    pub fn plan(&self) -> &Spmv {
        &self.plan
    }

    fn apply(&mut self) -> Result<(), Error> {
        use DeviceVector::{F32, F64};
        let (plan, alpha, beta) = (&mut self.plan, self.alpha, self.beta);
        match (&self.x, &mut self.y) {
            (F32(x), F32(y)) => plan.apply(alpha, x, beta, y),
            (F32(x), F64(y)) => plan.apply(alpha, x, beta, y),
            (F64(x), F32(y)) => plan.apply(alpha, x, beta, y),
            (F64(x), F64(y)) => plan.apply(alpha, x, beta, y),
        }
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
        let y_passes = if self.beta == 0.0 { 1 } else { 2 };
        let (x_length, y_length) = self.plan.vector_lengths();
        matrix_bytes(matrix) + (x_length * types.x.size() + y_passes * y_length * types.y.size()) as u64
    }

    fn take_counters(&mut self) -> Option<Counters> {
        self.plan.device().take_counters()
    }
}

/// Bytes of the matrix as it is stored on the device.
pub fn matrix_bytes(matrix: &DeviceMatrix) -> u64 {
    DeviceMatrix::predict_bytes(matrix.num_rows(), matrix.nnz(), matrix.value_type(), matrix.offset_type())
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
    F32(Vector<f32>),
    F64(Vector<f64>),
}

impl DeviceVector {
    fn from_slice(device: &Device, value: ValueType, numbers: &[f64]) -> Result<DeviceVector, Error> {
        Ok(match value {
            ValueType::F32 => DeviceVector::F32(Vector::from_slice(device, &narrow(numbers))?),
            _ => DeviceVector::F64(Vector::from_slice(device, numbers)?),
        })
    }

    fn copy_from_slice(&mut self, numbers: &[f64]) -> Result<(), Error> {
        match self {
            DeviceVector::F32(vector) => vector.copy_from_slice(&narrow(numbers)),
            DeviceVector::F64(vector) => vector.copy_from_slice(numbers),
        }
    }

    fn to_vec(&self) -> Result<Vec<f64>, Error> {
        Ok(match self {
            DeviceVector::F32(vector) => vector.to_vec()?.into_iter().map(f64::from).collect(),
            DeviceVector::F64(vector) => vector.to_vec()?,
        })
    }
}

fn narrow(numbers: &[f64]) -> Vec<f32> {
    numbers.iter().map(|&number| number as f32).collect()
}
