//! Nothing that the attribute adds warns, whatever is denied.
#![deny(warnings, missing_docs, unused, unreachable_pub, unnameable_types, clippy::pedantic)]

use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector)]
struct OnlyConfig;

#[spmv_kernel(algorithm = light_vector, rows_per_fetch = 4)]
struct OnlySource;

#[spmv_kernel(algorithm = csr_scalar)]
#[deprecated]
pub struct Old;

#[spmv_kernel(algorithm = csr_scalar)]
#[cfg_attr(all(), deprecated)]
pub struct OldHere;

#[spmv_kernel(algorithm = csr_scalar)]
#[cfg(any())]
pub struct NotThere;

pub mod documented {
    //! Public kernels.

    use spmv_runtime::spmv_kernel;

    #[spmv_kernel(algorithm = csr_scalar)]
    pub struct Undocumented;

    /// A kernel.
    #[spmv_kernel(algorithm = csr_scalar)]
    #[derive(Clone, Copy, Debug, Default)]
    pub struct Documented;

    #[derive(Clone, Copy, Debug)]
    #[spmv_kernel(algorithm = csr_scalar)]
    pub struct Derived;
}

fn main() {
    assert_eq!(OnlyConfig::config().algorithm().name(), "csr_vector");
    assert!(OnlySource::SOURCE.contains("kRowsPerFetch = 4"));
    let _ = (documented::Undocumented, documented::Documented, documented::Derived);
}
