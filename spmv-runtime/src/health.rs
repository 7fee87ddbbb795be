//! What was launched last on a CUDA device, and whether a fault has lost it to this process.
//!
//! A GPU says that a kernel faulted when somebody asks next, and from then on answers every call with the same error. So it is
//! remembered what ran, to say it then, and that the device is lost, to say that afterwards.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cudarc::driver::result::DriverError;
use cudarc::driver::sys;

use crate::cuda::check;
use crate::error::Error;

/// Devices by ordinal: whoever opens one again shares what is known of it. CUDA promises nothing of another context after a
/// fault either.
static DEVICES: Mutex<Vec<(usize, Arc<Health>)>> = Mutex::new(Vec::new());

/// Streams whose last kernel is remembered.
const MAX_STREAMS: usize = 32;

#[derive(Debug)]
pub(crate) struct Health {
    /// The last kernel of each stream, in the order in which they were launched.
    launched: Mutex<Vec<(usize, Arc<str>)>>,
    lost: OnceLock<Lost>,
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
        let launched = Mutex::new(Vec::with_capacity(MAX_STREAMS));
        let health = Arc::new(Health { launched, lost: OnceLock::new() });
        devices.push((ordinal, health.clone()));
        health
    }

    /// Remembers a launch. Allocates nothing.
    pub(crate) fn launched(&self, stream: sys::CUstream, kernel: &Arc<str>) {
        let stream = stream as usize;
        let mut launched = lock(&self.launched);
        match launched.iter().position(|(of, _)| *of == stream) {
            Some(place) => drop(launched.remove(place)),
            None if launched.len() == MAX_STREAMS => drop(launched.remove(0)),
            None => {}
        }
        launched.push((stream, kernel.clone()));
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

    /// Sorts the driver's errors. One that loses the device is remembered, and told with the last kernel of the stream, or
    /// of the device where the call has no stream, or the stream had no kernel.
    pub(crate) fn check<T>(
        &self,
        call: &'static str,
        stream: Option<sys::CUstream>,
        result: Result<T, DriverError>,
    ) -> Result<T, Error> {
        check(call, result).map_err(|error| match error {
            Error::Fault { call, name, message, .. } => {
                let launched = lock(&self.launched);
                let of_stream =
                    launched.iter().find(|(of, _)| stream.is_some_and(|stream| stream as usize == *of));
                let kernel = of_stream.or(launched.last()).map(|(_, kernel)| kernel.clone());
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
