//! What products that are scattered share, transposed ones from rows and plain ones from columns: y becomes β·y in a
//! pass of its own, and products are added to it by atomics.

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

/// y ← β·y for a y of so many entries, by a kernel named `kernel`. Those without products have no other pass.
pub(crate) fn scale_pass(config: &KernelConfig, kernel: &str, length: Variable) -> Pass {
    let args = vec![Arg::Size(length.into(), IndexType::U32), Arg::Y, Arg::Beta(config.types().accumulator)];
    Pass::of_threads(kernel, length, config.threads_per_block(), args)
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
