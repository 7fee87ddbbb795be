//! Measures sparse matrix–vector products side by side, records the figures, compares and draws them.
//!
//! A [`record::Record`] is what everything else reads and writes: a head that says where, when and with what the
//! figures were measured, and a row for each matrix, value type, operation and contender.

pub mod bench;
mod check;
mod contender;
mod cpu;
mod cusparse;
pub mod experiment;
mod instruments;
mod layout;
mod machine;
mod ours;
pub mod quartiles;
pub mod record;
pub mod request;
pub mod suite;
mod timing;
