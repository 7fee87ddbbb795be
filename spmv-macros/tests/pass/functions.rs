//! What the user writes is in the kernel, and in Rust beside it.

use spmv_runtime::{KernelConfig, spmv_kernel};

#[spmv_kernel(
    algorithm = csr_vector,
    value = f64,
    combine = |a, x| (a - x).abs(),
    reduce = |s, t| if s < t { t } else { s },
    identity = -1e300,
    map_x = |x, col| x * (col % 2) as f64,
    epilogue = |row, sum, y, d, omega| { let half = 0.5 * d; y + omega * (sum - half) },
    dot = |row, result, d, weight| weight * result * d,
    vectors = [d],
    scalars = [omega, weight],
)]
pub struct Farthest;

/// A kernel whose functions, or parts of them, are a macro's arguments.
macro_rules! scaled {
    ($name:ident, $function:expr, $factor:expr, $half:literal) => {
        #[spmv_kernel(
            algorithm = csr_vector,
            map_value = |a| a * $factor,
            map_x = $function,
            epilogue = |row, sum, y| (sum - y * $factor) * $half,
        )]
        pub struct $name;
    };
}

scaled!(Thrice, |x, col| x * 2.0 + col as f32, 1.0 + 2.0, -0.5);

#[spmv_kernel(algorithm = csr_vector, map_value = |a| if a > 0.0 { a } else { 0.0 } - 0.5)]
pub struct Clipped;

fn main() {
    assert_eq!(Thrice::map_value(5.0), 15.0);
    assert_eq!(Thrice::map_x(4.0, 3), 11.0);
    assert_eq!(Thrice::epilogue(0, 7.0, 1.0), -2.0);
    let settings = [
        ("map_value", "|a| a * (1.0 + 2.0)"),
        ("map_x", "|x, col| x * 2.0 + col as f32"),
        ("epilogue", "|row, sum, y| (sum - y * (1.0 + 2.0)) * -0.5"),
    ];
    assert_eq!(Thrice::SOURCE, KernelConfig::from_settings("csr_vector", settings).unwrap().program().source);
    assert_eq!(Clipped::map_value(2.0), 1.5);
    assert_eq!(Clipped::map_value(-2.0), -0.5);
    assert_eq!(Farthest::combine(1.0, 3.0), 2.0);
    assert_eq!(Farthest::reduce(1.0, 3.0), 3.0);
    assert_eq!(Farthest::identity(), -1e300);
    assert_eq!(Farthest::map_x(2.0, 3), 2.0);
    assert_eq!(Farthest::epilogue(0, 3.0, 1.0, 2.0, 10.0), 21.0);
    assert_eq!(Farthest::dot(0, 3.0, 2.0, 0.5), 3.0);
    let settings = [
        ("value", "f64"),
        ("combine", "|a, x| (a - x).abs()"),
        ("reduce", "|s, t| if s < t { t } else { s }"),
        ("identity", "-1e300"),
        ("map_x", "|x, col| x * (col % 2) as f64"),
        ("epilogue", "|row, sum, y, d, omega| { let half = 0.5 * d; y + omega * (sum - half) }"),
        ("dot", "|row, result, d, weight| weight * result * d"),
        ("vectors", "[d]"),
        ("scalars", "[omega, weight]"),
    ];
    let config = KernelConfig::from_settings("csr_vector", settings).expect("it is allowed");
    assert_eq!(Farthest::config(), config);
    assert_eq!(Farthest::SOURCE, config.program().source);
}
