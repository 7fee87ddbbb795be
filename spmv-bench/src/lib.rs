//! Measures sparse matrix–vector products side by side, records the figures, compares and draws them.
//!
//! A [`record::Record`] is what everything else reads and writes: a head that says where, when and with what the
//! figures were measured, and a row for each matrix, value type, operation and contender.

mod auto;
pub mod bench;
mod check;
pub mod compare;
mod contender;
mod cpu;
mod cusparse;
pub mod experiment;
pub mod fit;
mod geomean;
mod instruments;
mod join;
mod layout;
mod machine;
pub mod memory;
mod ours;
pub mod plot;
pub mod problem;
pub mod quartiles;
pub mod record;
pub mod report;
pub mod request;
pub mod suite;
pub mod table;
mod timing;

pub use self::geomean::geomean;
pub use self::join::{JoinError, join};
pub use self::machine::cpu_threads;
