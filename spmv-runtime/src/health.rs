//! What was launched last on a CUDA device, and whether a fault has lost it to this process.
//!
//! A GPU says that a kernel faulted when somebody asks next, and from then on answers every call with the same error. So it is
//! remembered what ran, to say it then, and that the device is lost, to say that afterwards.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::result::DriverError;
use cudarc::driver::sys;

use crate::backend::Function;
use crate::cuda::check;
use crate::error::Error;

/// Devices by ordinal: whoever opens one again shares what is known of it. CUDA promises nothing of another context after a
/// fault either.
static DEVICES: Mutex<Vec<(usize, Arc<Health>)>> = Mutex::new(Vec::new());

/// Places for streams, which share one where there are more.
const PLACES: usize = 32;

#[derive(Debug)]
pub(crate) struct Health {
    launched: [LastLaunch; PLACES],
    /// The function that was launched last, on any stream.
    last: AtomicU64,
    /// The names of functions.
    kernels: Mutex<HashMap<u64, Arc<str>>>,
    lost: OnceLock<Lost>,
}

/// A stream and what was launched on it last, in a line of their own: a launch costs two stores here. Streams that share a
/// place may leave the function of the one with the stream of the other, which then names a kernel that ran a moment before.
#[derive(Debug, Default)]
#[repr(align(64))]
struct LastLaunch {
    stream: AtomicU64,
    function: AtomicU64,
}

/// The fault that was seen first.
#[derive(Debug)]
struct Lost {
    name: String,
    kernel: Option<Arc<str>>,
}

impl Health {
    pub(crate) fn of(ordinal: usize) -> Arc<Health> {
        let mut devices = lock(&DEVICES);
        if let Some((_, health)) = devices.iter().find(|(known, _)| *known == ordinal) {
            return health.clone();
        }
        let health = Arc::new(Health {
            launched: Default::default(),
            last: AtomicU64::default(),
            kernels: Mutex::default(),
            lost: OnceLock::new(),
        });
        devices.push((ordinal, health.clone()));
        health
    }

    /// Remembers a function's name.
    pub(crate) fn loaded(&self, function: Function, kernel: &str) {
        lock(&self.kernels).insert(function.handle, kernel.into());
    }

    /// Remembers a launch.
    pub(crate) fn launched(&self, stream: sys::CUstream, function: Function) {
        let place = self.place(stream);
        place.stream.store(stream as u64, Relaxed);
        place.function.store(function.handle, Relaxed);
        self.last.store(function.handle, Relaxed);
    }

    fn place(&self, stream: sys::CUstream) -> &LastLaunch {
        // Fibonacci hashing: handles are addresses, whose low bits are alike.
        let hash = (stream as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.launched[hash as usize % PLACES]
    }

    /// The last kernel of the stream, or of the device where there is no stream, or it had no kernel.
    fn last_kernel(&self, stream: Option<sys::CUstream>) -> Option<Arc<str>> {
        let of_stream = stream.and_then(|stream| {
            let place = self.place(stream);
            (place.stream.load(Relaxed) == stream as u64).then(|| place.function.load(Relaxed))
        });
        let function = of_stream.filter(|function| *function != 0).unwrap_or_else(|| self.last.load(Relaxed));
        lock(&self.kernels).get(&function).cloned()
    }

    /// # Errors
    /// [`Error::DeviceLost`] where a fault was seen.
    pub(crate) fn usable(&self) -> Result<(), Error> {
        match self.lost.get() {
            None => Ok(()),
            Some(Lost { name, kernel }) => {
                Err(Error::DeviceLost { name: name.clone(), kernel: kernel.clone() })
            }
        }
    }

    /// Sorts the driver's errors. One that loses the device is remembered, and told with the last kernel.
    pub(crate) fn check<T>(
        &self,
        call: &'static str,
        stream: Option<sys::CUstream>,
        result: Result<T, DriverError>,
    ) -> Result<T, Error> {
        check(call, result).map_err(|error| match error {
            Error::Fault { call, name, message, .. } => {
                let kernel = self.last_kernel(stream);
                self.lost.get_or_init(|| Lost { name: name.clone(), kernel: kernel.clone() });
                Error::Fault { call, name, message, kernel }
            }
            other => other,
        })
    }
}

/// What is behind these locks is whole whenever one is let go.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
