//! x
pub mod types;
pub mod error;
pub use types::*;
pub use error::*;
