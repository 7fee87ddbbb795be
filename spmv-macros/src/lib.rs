//! Declares kernels for sparse matrix–vector products y ← α·op(A)·x + β·y.
//!
//! [`#[spmv_kernel]`](macro@spmv_kernel) turns a line into CUDA C++ while Rust compiles: the text is a constant of
//! the program, the types of the product are known to the compiler, and a configuration that is not allowed is an
//! error at the word that is wrong. `spmv-runtime` exports the attribute beside what its output needs; that is the
//! one dependency to add.
//!
//! ```
//! use spmv_runtime::spmv_kernel;
//!
//! /// Eight lanes a row.
//! #[spmv_kernel(algorithm = csr_vector, threads_per_vector = 8, value = f32)]
//! pub struct Wide;
//!
//! assert!(Wide::SOURCE.contains("kThreadsPerVector = 8"));
//! assert_eq!(Wide::config().program().source, Wide::SOURCE);
//! ```

mod check;
mod expand;
mod parse;

use proc_macro2::TokenStream;

/// Generates the kernel of one configuration for a unit struct.
///
/// The arguments are `name = value`, separated by commas, in any order. `algorithm` is needed; everything else has
/// a default. Values are names, integers or closures, without quotes and without suffixes.
///
/// | argument | values |
/// |---|---|
/// | `algorithm` | one of `spmv_codegen::Algorithm::ALL`; `spmv algorithms` prints them |
/// | a parameter of the algorithm | as its entry there says |
/// | a common setting | one of `spmv_codegen::COMMON_KEYS`: types, operation, block size, what is known of `alpha` and `beta`, and how the matrix is loaded |
/// | `combine = \|a, x\| …`, `reduce = \|s, t\| …`, `map_value = \|a\| …`, `map_x = \|x, col\| …`, `epilogue = \|row, sum, y, …\| …`, `dot = \|row, result, …\| …` | a closure with these parameters, by any names, of the part of Rust that `spmv_codegen::function` tells of; sums are in `f32` or `f64` |
/// | `identity` | a number of the same part of Rust |
/// | `vectors`, `scalars` | names of parameters of `epilogue` and `dot`, `[d, b]` |
/// | `crate` | the path of `spmv-runtime`, where it is not `::spmv_runtime` |
///
/// The struct stays as it is written, and its documentation gets a section with every setting. It has
///
/// - `SOURCE: &'static str`, the CUDA text, byte for byte what `config().program().source` is at run time;
/// - `config() -> KernelConfig`, the configuration;
/// - `plan(device: &Device, a: &impl MatrixSource) -> Result<Plan<Self>, Error>`, which compiles the kernel or takes
///   it from the cache, and plans products with one matrix;
/// - an implementation of `DeclaredKernel`, with the Rust types of values, x, y and accumulator.
///
/// # Errors
///
/// Each is reported where it was made, all of them at once, with what is allowed:
///
/// ```compile_fail
/// use spmv_runtime::spmv_kernel;
///
/// #[spmv_kernel(algorithm = csr_vectr, threads_per_vector = 5)]
/// pub struct Wide;
/// ```
///
/// ```text
/// error: unknown algorithm `csr_vectr`; allowed: csr_scalar, csr_vector, light_vector, …; did you mean `csr_vector`?
///  |
///  | #[spmv_kernel(algorithm = csr_vectr, threads_per_vector = 5)]
///  |                           ^^^^^^^^^
///
/// error: `threads_per_vector` cannot be `5`; allowed: 2, 4, 8, 16, 32
///  |
///  | #[spmv_kernel(algorithm = csr_vectr, threads_per_vector = 5)]
///  |                                                           ^
/// ```
///
/// # Examples
///
/// A product whose vectors and scalars have the declared types; here rows of `f32` are summed in `f64`, and β = 0
/// is known, so that y is stored without being read.
///
/// ```no_run
/// use spmv_runtime::{Device, Error, MatrixSource, Vector, spmv_kernel};
///
/// #[spmv_kernel(algorithm = light_vector, value = f32, accumulator = f64, beta = 0)]
/// struct Product;
///
/// fn product(device: &Device, a: &impl MatrixSource, x: &[f32], num_rows: usize) -> Result<Vec<f32>, Error> {
///     let x = Vector::from_slice(device, x)?;
///     let mut y = Vector::<f32>::zeros(device, num_rows)?;
///     Product::plan(device, a)?.apply(2.0, &x, 0.0, &mut y)?;
///     y.to_vec()
/// }
/// ```
///
/// Closures become part of the kernel, and functions of the struct's that do the same on the CPU, except that whole numbers, rows
/// and columns, wrap around in a kernel, where Rust with debug assertions panics. Here a row of
/// x ← x + ω·(b − A·x)/d is stored by the product itself:
///
/// ```
/// use spmv_runtime::spmv_kernel;
///
/// #[spmv_kernel(
///     algorithm = csr_vector,
///     epilogue = |row, sum, y, x, b, d, omega| x + omega * ((b - sum) / d),
///     vectors = [x, b, d],
///     scalars = [omega],
/// )]
/// struct Jacobi;
///
/// assert_eq!(Jacobi::epilogue(0, 3.0, 0.0, 1.0, 7.0, 2.0, 0.5), 2.0);
/// ```
///
/// A crate that exports the runtime under another name:
///
/// ```
/// mod gpu {
///     pub use spmv_runtime as spmv;
/// }
///
/// #[gpu::spmv::spmv_kernel(algorithm = csr_scalar, crate = crate::gpu::spmv)]
/// struct Scalar;
///
/// # fn main() {
/// assert_eq!(Scalar::config().algorithm().name(), "csr_scalar");
/// # }
/// ```
#[proc_macro_attribute]
pub fn spmv_kernel(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    kernel(arguments.into(), item.into()).into()
}

/// The item, its `impl`s, and every error. What has errors is expanded all the same, so that nothing else in the
/// user's crate fails because of them.
fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let (settings, mut errors) = parse::settings(arguments);
    let (checked, refused) = check::check(&settings);
    errors.extend(refused);
    let (declaration, refused) = parse::declaration(item.clone());
    errors.extend(refused);
    let expansion = declaration.map_or(item, |declaration| expand::expand(declaration, &checked));
    errors.iter().map(syn::Error::to_compile_error).chain([expansion]).collect()
}

#[cfg(test)]
mod tests;
