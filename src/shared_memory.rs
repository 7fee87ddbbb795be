//! Shared memory that kernels declare, which a block has without opting in to more.

use crate::config::{ConfigError, KernelConfig};

const BYTES_PER_BLOCK: u32 = 48 << 10;

/// Refuses a configuration one of whose kernels declares more `bytes` than a block has; how many follows from this parameter,
/// the block size and the type of sums.
pub(crate) fn check(config: &KernelConfig, key: &'static str, bytes: u32) -> Result<(), ConfigError> {
    if bytes <= BYTES_PER_BLOCK {
        return Ok(());
    }
    let settings = config.settings();
    let value = settings.iter().find(|(name, _)| *name == key).map_or("", |(_, value)| value);
    Err(ConfigError::Combination {
        key,
        reason: format!(
            "{key} = {value}, threads_per_block = {} and sums in {} take {bytes} bytes of shared memory, and a block has \
             {BYTES_PER_BLOCK}; lower one of them",
            config.threads_per_block(),
            config.types().accumulator
        ),
    })
}
