//! Whether cuSPARSE is there. Nothing needs it; comparisons use it.

use std::ffi::c_int;

use libloading::Library;

/// The name of the library since CUDA 12, and that of the one before.
const NAMES: [&str; 2] = ["libcusparse.so.13", "libcusparse.so.12"];

/// The name that the dynamic loader knows, and the version.
pub fn find() -> Result<(&'static str, String), String> {
    let mut problem = String::new();
    for name in NAMES {
        match version(name) {
            Ok(version) => return Ok((name, version)),
            Err(error) if problem.is_empty() => problem = error.to_string(),
            Err(_) => {}
        }
    }
    Err(problem)
}

fn version(name: &str) -> Result<String, libloading::Error> {
    type GetProperty = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;
    // SAFETY: loading runs the initialisers of a CUDA library that the machine offers by name; the symbol has
    // the type of cuSPARSE's documented interface, and writes one integer through a valid pointer.
    unsafe {
        let library = Library::new(name)?;
        let get_property = library.get::<GetProperty>(b"cusparseGetProperty\0")?;
        // MAJOR_VERSION, MINOR_VERSION and PATCH_LEVEL of library_types.h.
        let numbers = [0, 1, 2].map(|property| {
            let mut number = 0;
            get_property(property, &mut number);
            number.to_string()
        });
        // CUDA's libraries do not take being unloaded well.
        std::mem::forget(library);
        Ok(numbers.join("."))
    }
}
