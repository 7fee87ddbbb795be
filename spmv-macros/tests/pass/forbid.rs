//! What crates forbid the attribute does not allow.
#![forbid(warnings, unused, deprecated, dead_code, unused_variables, unused_parens, unused_braces)]

use spmv_runtime::spmv_kernel;

#[spmv_kernel(algorithm = csr_vector)]
struct OnlyConfig;

#[spmv_kernel(
    algorithm = csr_vector,
    combine = |a, x| { x },
    map_x = |x, col| { let half = 0.5; ((1.0)) },
    epilogue = |row, sum, y, b, c| (if { (b > c) } { (sum) } else { 0.0 }),
    dot = |row, result, weight| 1.0,
    vectors = [b],
    scalars = [c, weight],
)]
struct NothingIsUsed;

fn main() {
    assert_eq!(OnlyConfig::config().algorithm().name(), "csr_vector");
    assert!(NothingIsUsed::SOURCE.contains("half"));
}
