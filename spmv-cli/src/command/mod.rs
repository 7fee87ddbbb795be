//! The commands, one a module.

pub mod algorithms;
pub mod bench;
pub mod cache;
pub mod compare;
pub mod compile;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod explain;
pub mod fit;
pub mod generate;
pub mod inspect;
pub mod man;
pub mod matrix;
pub mod plot;
pub mod results;
pub mod run;
pub mod tune;
