//! The product on a CUDA device.

use std::time::{Duration, Instant};

use spmv_runtime::codegen::{KernelConfig, ValueType};
use spmv_runtime::cudarc::driver::{CudaEvent, DriverError, sys::CUevent_flags};
use spmv_runtime::{Device, DeviceMatrix, Error, Spmv, Vector};
use std::sync::Arc;

use crate::failure::Failure;
use crate::operands::Operands;
use crate::quantity;

/// A batch is as long as this at least: thousands of times what an event resolves.
pub const BATCH: Duration = Duration::from_millis(5);

/// A plan with its operands on the device, and the events that time it.
pub struct OnCuda {
    plan: Spmv,
    alpha: f64,
    beta: f64,
    x: DeviceVector,
    y: DeviceVector,
    started: CudaEvent,
    stopped: CudaEvent,
}

impl OnCuda {
    /// Makes the plan and copies x and y.
    pub fn new(
        device: &Device,
        matrix: &Arc<DeviceMatrix>,
        config: KernelConfig,
        operands: &Operands,
    ) -> Result<OnCuda, Failure> {
        let plan = Spmv::with(device, matrix, config)?;
        let types = config.types();
        Ok(OnCuda {
            alpha: operands.alpha,
            beta: operands.beta,
            x: DeviceVector::from_slice(device, types.x, &operands.x)?,
            y: DeviceVector::from_slice(device, types.y, &operands.y)?,
            started: event(device)?,
            stopped: event(device)?,
            plan,
        })
    }

    pub fn plan(&self) -> &Spmv {
        &self.plan
    }

    /// One product from the operands' y, and how many milliseconds passed until it was finished.
    pub fn product(&mut self, operands: &Operands) -> Result<(Vec<f64>, f64), Failure> {
        self.y.copy_from_slice(&operands.y)?;
        let started = Instant::now();
        self.apply()?;
        self.plan.device().synchronize()?;
        let took = quantity::in_ms(started.elapsed());
        Ok((self.y.to_vec()?, took))
    }

    /// So many products one after the other, and how long the device was at it.
    pub fn batch(&mut self, products: u32) -> Result<Duration, Failure> {
        self.record(&self.started)?;
        for _ in 0..products {
            self.apply()?;
        }
        self.record(&self.stopped)?;
        // Waiting here first tells a kernel's fault apart from a failure of the events.
        self.plan.device().synchronize()?;
        let ms = self
            .started
            .elapsed_ms(&self.stopped)
            .map_err(|error| driver_error("cuEventElapsedTime", error))?;
        Ok(Duration::from_secs_f64(f64::from(ms.max(0.0)) / 1e3))
    }

    /// Bytes that must move for one product.
    pub fn bytes(&self) -> u64 {
        let matrix = self.plan.matrix();
        let types = self.plan.config().types();
        let y_passes = if self.beta == 0.0 { 1 } else { 2 };
        matrix_bytes(matrix)
            + (matrix.num_cols() * types.x.size() + y_passes * matrix.num_rows() * types.y.size()) as u64
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

    fn record(&self, event: &CudaEvent) -> Result<(), Failure> {
        let (_, stream) = self.plan.device().as_cuda().expect("the device was opened as a CUDA device");
        event.record(stream).map_err(|error| driver_error("cuEventRecord", error))
    }
}

/// Bytes of the matrix as it is stored on the device.
pub fn matrix_bytes(matrix: &DeviceMatrix) -> u64 {
    DeviceMatrix::predict_bytes(matrix.num_rows(), matrix.nnz(), matrix.value_type(), matrix.offset_type())
}

fn event(device: &Device) -> Result<CudaEvent, Failure> {
    let (context, _) = device.as_cuda().expect("the device was opened as a CUDA device");
    context
        .new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))
        .map_err(|error| driver_error("cuEventCreate", error))
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
