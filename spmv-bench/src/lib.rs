//! Measures sparse matrix–vector products side by side, records the figures, compares and draws them.
//!
//! A [`record::Record`] is what everything else reads and writes: a head that says where, when and with what the
//! figures were measured, and a row for each matrix, value type, operation and contender.

pub mod experiment;
pub mod record;
pub mod suite;
