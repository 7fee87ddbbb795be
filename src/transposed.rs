//! What transposed products share: y becomes β·y in a pass of its own, and products are added to it by atomics.

use crate::config::{ConfigError, KernelConfig};
use crate::expr::{Expr, Variable};
use crate::program::{Arg, Pass};
use crate::source::csr_product_args;
use crate::types::IndexType;

/// Atomics add in y's own type, so sums may not be wider.
pub(crate) fn check_types(config: &KernelConfig) -> Result<(), ConfigError> {
    let types = config.types();
    if types.y == types.accumulator {
        return Ok(());
    }
    Err(ConfigError::Combination {
        key: "y",
        reason: format!(
            "{} adds products in y's own type, which is {} where sums are {}: too coarse; use y of the type of sums",
            config.algorithm().name(),
            types.y,
            types.accumulator
        ),
    })
}

/// y ← β·y, by a kernel named `kernel`. Empty columns have no other pass.
pub(crate) fn scale_pass(config: &KernelConfig, kernel: &str) -> Pass {
    Pass {
        kernel: kernel.into(),
        grid: Expr::from(Variable::NumCols).div_ceil(config.threads_per_block()),
        threads_per_block: config.threads_per_block(),
        shared_bytes: 0,
        args: vec![
            Arg::Size(Variable::NumCols.into(), IndexType::U32),
            Arg::Y,
            Arg::Beta(config.types().accumulator),
        ],
    }
}

/// The arguments that a transposed product from CSR begins with: β is done with.
pub(crate) fn product_args(config: &KernelConfig) -> Vec<Arg> {
    let mut args = csr_product_args(config);
    args.retain(|arg| !matches!(arg, Arg::Beta(_)));
    args
}

/// Roundings that a term passes through where all of a row of op(A) are added one by one: the product, α, β·y and
/// every sum.
pub(crate) fn chain_depth() -> Expr {
    Expr::from(Variable::RowNnz) + 4
}
