//! One cuSPARSE library, loaded by name or path beside others of its kind.

use std::error::Error as _;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};

use libloading::os::unix::{Library as UnixLibrary, RTLD_LOCAL, RTLD_NOW};

/// Names that the dynamic loader may know, from the newest.
const NAMES: [&str; 2] = ["libcusparse.so.13", "libcusparse.so.12"];

/// What cuSPARSE links kernels with; one that lies beside a library of a folder must be loaded before it.
const LINKER: &str = "libnvJitLink.so";

/// Handles and descriptors.
pub(super) type Handle = *mut c_void;

type Status = c_int;

/// `cusparseStatus_t`.
const SUCCESS: Status = 0;
const ALLOC_FAILED: Status = 2;
const NOT_SUPPORTED: Status = 10;
const INSUFFICIENT_RESOURCES: Status = 11;

/// A call that did not succeed.
#[derive(Clone, Debug)]
pub(super) enum CallError {
    /// cuSPARSE does not do that.
    NotSupported(String),
    /// It found no memory, or too little of something else.
    NoRoom(String),
    Failed(String),
}

impl CallError {
    pub(super) fn into_text(self) -> String {
        match self {
            CallError::NotSupported(text) | CallError::NoRoom(text) | CallError::Failed(text) => text,
        }
    }
}

/// `cusparseCreateCsr` and `cusparseCreateCsc`: descriptor, rows, cols, nnz, offsets, indices, values, types of offsets
/// and indices, base, type of values.
type CreateCompressed = unsafe extern "C" fn(
    *mut Handle,
    i64,
    i64,
    i64,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
) -> Status;

/// Descriptor, rows, cols, nnz, rows and columns of entries, values, type of indices, base, type of values.
type CreateCoo = unsafe extern "C" fn(
    *mut Handle,
    i64,
    i64,
    i64,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    c_int,
    c_int,
    c_int,
) -> Status;

/// Descriptor, rows, cols, nnz, entries with padding, rows a slice, offsets, columns, values, types of offsets and
/// columns, base, type of values.
type CreateSlicedEll = unsafe extern "C" fn(
    *mut Handle,
    i64,
    i64,
    i64,
    i64,
    i64,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
) -> Status;

/// Descriptor, block rows, block columns, blocks, rows and columns of a block, offsets, columns, values, types of
/// offsets and columns, base, type of values, order in a block.
type CreateBsr = unsafe extern "C" fn(
    *mut Handle,
    i64,
    i64,
    i64,
    i64,
    i64,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
) -> Status;

type CreateVector = unsafe extern "C" fn(*mut Handle, i64, *mut c_void, c_int) -> Status;

/// Handle, operation, alpha, matrix, x, beta, y, compute type, algorithm, and a buffer or where its size goes.
type Multiply<Last> = unsafe extern "C" fn(
    Handle,
    c_int,
    *const c_void,
    Handle,
    Handle,
    *const c_void,
    Handle,
    c_int,
    c_int,
    Last,
) -> Status;

type Destroy = unsafe extern "C" fn(Handle) -> Status;

/// The functions of `cusparseSpMVOp`, with an algorithm to name (12.8 on) or without.
pub(super) struct Op {
    pub(super) sizes: OpSizes,
    pub(super) destroy_descr: Destroy,
    /// Handle, descriptor, plan, code of an epilogue, its size.
    pub(super) create_plan: unsafe extern "C" fn(Handle, Handle, *mut Handle, *const c_void, usize) -> Status,
    pub(super) destroy_plan: Destroy,
    /// Handle, plan, alpha, beta, x, y, z.
    pub(super) multiply:
        unsafe extern "C" fn(Handle, Handle, *const c_void, *const c_void, Handle, Handle, Handle) -> Status,
}

/// Handle, operation, matrix, x, y, z, compute type, algorithm where there is one, buffer or its size; the descriptor
/// comes second where it is made.
pub(super) enum OpSizes {
    WithAlgorithm {
        buffer_size: unsafe extern "C" fn(
            Handle,
            c_int,
            Handle,
            Handle,
            Handle,
            Handle,
            c_int,
            c_int,
            *mut usize,
        ) -> Status,
        create_descr: unsafe extern "C" fn(
            Handle,
            *mut Handle,
            c_int,
            Handle,
            Handle,
            Handle,
            Handle,
            c_int,
            c_int,
            *mut c_void,
        ) -> Status,
    },
    Without {
        buffer_size:
            unsafe extern "C" fn(Handle, c_int, Handle, Handle, Handle, Handle, c_int, *mut usize) -> Status,
        create_descr: unsafe extern "C" fn(
            Handle,
            *mut Handle,
            c_int,
            Handle,
            Handle,
            Handle,
            Handle,
            c_int,
            *mut c_void,
        ) -> Status,
    },
}

/// A library with the functions that products need. Those that some versions lack are absent there.
pub(super) struct Library {
    pub(super) version: [u32; 3],
    pub(super) create: unsafe extern "C" fn(*mut Handle) -> Status,
    pub(super) destroy: Destroy,
    pub(super) set_stream: unsafe extern "C" fn(Handle, *mut c_void) -> Status,
    pub(super) create_csr: CreateCompressed,
    pub(super) create_csc: CreateCompressed,
    pub(super) create_coo: CreateCoo,
    pub(super) create_sliced_ell: Option<CreateSlicedEll>,
    pub(super) create_bsr: Option<CreateBsr>,
    pub(super) destroy_matrix: Destroy,
    pub(super) create_vector: CreateVector,
    pub(super) destroy_vector: Destroy,
    pub(super) buffer_size: Multiply<*mut usize>,
    pub(super) preprocess: Option<Multiply<*mut c_void>>,
    pub(super) multiply: Multiply<*mut c_void>,
    pub(super) op: Result<Op, String>,
    error_name: unsafe extern "C" fn(Status) -> *const c_char,
}

/// Loads what `--cusparse` names, files or folders, else what the dynamic loader finds; and says what was not there.
pub(super) fn load_all(named: &[PathBuf]) -> (Vec<Library>, Vec<String>) {
    let (mut libraries, mut notes) = (Vec::new(), Vec::new());
    if named.is_empty() {
        let found = NAMES.iter().map(|name| Library::load(Path::new(name)));
        let mut problems = Vec::new();
        for result in found {
            match result {
                Ok(library) => {
                    libraries.push(library);
                    return (libraries, notes);
                }
                Err(problem) => problems.push(problem),
            }
        }
        notes.push(format!("cuSPARSE is left out: {}", problems.join("; ")));
    }
    let mut files = Vec::new();
    for path in named {
        match resolve(path) {
            Ok(file) => files.push(file),
            Err(problem) => notes.push(format!("cuSPARSE is left out: {problem}")),
        }
    }
    for file in &files {
        load_linker_beside(file);
    }
    // A bare name would lead to a library of that name which is loaded already, so those come first.
    files.sort_by_key(|file| file.is_absolute());
    for file in files {
        match Library::load(&file) {
            Ok(library) => libraries.push(library),
            Err(problem) => notes.push(format!("cuSPARSE is left out: {problem}")),
        }
    }
    (libraries, notes)
}

/// A library of a folder needs the linker of its own version, not the one that the dynamic loader knows.
fn load_linker_beside(file: &Path) {
    let Some(folder) = file.parent().filter(|folder| folder.is_absolute()) else { return };
    let linkers = [13, 12].map(|major| folder.join(format!("{LINKER}.{major}")));
    for linker in linkers.iter().filter(|linker| linker.is_file()) {
        match open(linker) {
            Ok(linker) => std::mem::forget(linker),
            Err(error) => tracing::debug!(%error, "not loaded before cuSPARSE"),
        }
    }
}

/// The file that a path means: itself, or the library in a folder. A name without a folder is the loader's.
fn resolve(path: &Path) -> Result<PathBuf, String> {
    if !path.is_dir() {
        let bare = path.components().count() == 1 && !path.exists();
        return match bare {
            true => Ok(path.to_owned()),
            false => path.canonicalize().map_err(|error| format!("{}: {error}", path.display())),
        };
    }
    let names = NAMES.iter().copied().chain(["libcusparse.so"]);
    let file = names.map(|name| path.join(name)).find(|file| file.is_file());
    let file = file.ok_or_else(|| format!("{}: no {} there", path.display(), NAMES.join(" or ")))?;
    file.canonicalize().map_err(|error| format!("{}: {error}", file.display()))
}

fn open(path: &Path) -> Result<UnixLibrary, String> {
    // SAFETY: loading runs the initialisers of a CUDA library that the machine or the user offers by name.
    let opened = unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    // What the dynamic loader said is the cause of what libloading says.
    opened.map_err(|error| {
        error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
    })
}

impl Library {
    fn load(path: &Path) -> Result<Library, String> {
        let library = open(path)?;
        // SAFETY: the symbols have the types of cuSPARSE's header, of the version that was asked before where they
        // changed from version to version.
        let loaded = unsafe { Self::symbols(&library) };
        // The functions stay in use, and CUDA's libraries do not take being unloaded well.
        std::mem::forget(library);
        loaded.map_err(|error| format!("{}: {error}", path.display()))
    }

    /// # Safety
    /// The library is cuSPARSE 12 or newer.
    unsafe fn symbols(library: &UnixLibrary) -> Result<Library, libloading::Error> {
        type GetProperty = unsafe extern "C" fn(c_int, *mut c_int) -> Status;
        /// Every use names the type of the function that the symbol is.
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the caller of `symbols` says which library it is.
                unsafe { *library.get(concat!($name, "\0").as_bytes())? }
            };
        }
        macro_rules! optional {
            ($name:literal) => {
                // SAFETY: as above.
                unsafe { library.get(concat!($name, "\0").as_bytes()) }.ok().map(|symbol| *symbol)
            };
        }
        let get_property: GetProperty = symbol!("cusparseGetProperty");
        // MAJOR_VERSION, MINOR_VERSION and PATCH_LEVEL of library_types.h.
        let version = [0, 1, 2].map(|property| {
            let mut number = 0;
            // SAFETY: one integer is written through a valid pointer.
            unsafe { get_property(property, &mut number) };
            u32::try_from(number).unwrap_or(0)
        });
        let op = || -> Result<Result<Op, String>, libloading::Error> {
            let sizes = if version >= [12, 8, 0] {
                OpSizes::WithAlgorithm {
                    buffer_size: symbol!("cusparseSpMVOp_bufferSize"),
                    create_descr: symbol!("cusparseSpMVOp_createDescr"),
                }
            } else if version >= [12, 7, 10] {
                OpSizes::Without {
                    buffer_size: symbol!("cusparseSpMVOp_bufferSize"),
                    create_descr: symbol!("cusparseSpMVOp_createDescr"),
                }
            } else {
                return Ok(Err("SpMVOp is used from cuSPARSE 12.7.10 on".to_owned()));
            };
            Ok(Ok(Op {
                sizes,
                destroy_descr: symbol!("cusparseSpMVOp_destroyDescr"),
                create_plan: symbol!("cusparseSpMVOp_createPlan"),
                destroy_plan: symbol!("cusparseSpMVOp_destroyPlan"),
                multiply: symbol!("cusparseSpMVOp"),
            }))
        };
        Ok(Library {
            version,
            create: symbol!("cusparseCreate"),
            destroy: symbol!("cusparseDestroy"),
            set_stream: symbol!("cusparseSetStream"),
            create_csr: symbol!("cusparseCreateCsr"),
            create_csc: symbol!("cusparseCreateCsc"),
            create_coo: symbol!("cusparseCreateCoo"),
            create_sliced_ell: optional!("cusparseCreateSlicedEll"),
            create_bsr: optional!("cusparseCreateBsr"),
            destroy_matrix: symbol!("cusparseDestroySpMat"),
            create_vector: symbol!("cusparseCreateDnVec"),
            destroy_vector: symbol!("cusparseDestroyDnVec"),
            buffer_size: symbol!("cusparseSpMV_bufferSize"),
            preprocess: optional!("cusparseSpMV_preprocess"),
            multiply: symbol!("cusparseSpMV"),
            op: op().unwrap_or_else(|error| Err(error.to_string())),
            error_name: symbol!("cusparseGetErrorName"),
        })
    }

    /// `12.6.3`.
    pub(super) fn version_text(&self) -> String {
        self.version.map(|number| number.to_string()).join(".")
    }

    /// An error where a call did not succeed.
    pub(super) fn check(&self, call: &str, status: Status) -> Result<(), CallError> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: the function returns a static C string for every status.
        let name = unsafe {
            let name = (self.error_name)(status);
            if name.is_null() { "".into() } else { CStr::from_ptr(name).to_string_lossy() }
        };
        let text = format!("{call} of cuSPARSE {}: {name} ({status})", self.version_text());
        Err(match status {
            NOT_SUPPORTED => CallError::NotSupported(text),
            ALLOC_FAILED | INSUFFICIENT_RESOURCES => CallError::NoRoom(text),
            _ => CallError::Failed(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_noted() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("libcusparse.so.12");
        let (libraries, notes) = load_all(&[gone.clone(), folder.path().to_owned()]);
        assert!(libraries.is_empty());
        assert!(notes[0].contains(&*gone.display().to_string()), "{notes:?}");
        assert!(notes[1].contains("no libcusparse.so.13 or libcusparse.so.12 there"), "{notes:?}");
        std::fs::write(&gone, "no library").unwrap();
        let (_, notes) = load_all(std::slice::from_ref(&gone));
        assert!(notes[0].starts_with("cuSPARSE is left out: "), "{notes:?}");
        assert_eq!(resolve(folder.path()).unwrap(), gone.canonicalize().unwrap());
        assert_eq!(resolve(Path::new("libcusparse.so.12")).unwrap(), Path::new("libcusparse.so.12"));
    }
}
