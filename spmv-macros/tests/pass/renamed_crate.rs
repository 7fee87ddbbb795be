//! The runtime under another path, named by `crate`.

mod gpu {
    pub mod spmv {
        pub use ::spmv_runtime::*;
    }
}

mod kernels {
    #[super::gpu::spmv::spmv_kernel(crate = super::gpu::spmv, algorithm = csr_scalar,)]
    pub struct Relative;

    #[::spmv_runtime::spmv_kernel(algorithm = csr_scalar, crate = crate::gpu::spmv)]
    pub struct Absolute;
}

fn main() {
    #[gpu::spmv::spmv_kernel(algorithm = csr_scalar, crate = ::spmv_runtime)]
    struct Local;

    assert_eq!(kernels::Relative::config(), kernels::Absolute::config());
    assert_eq!(Local::SOURCE, kernels::Absolute::SOURCE);
}
