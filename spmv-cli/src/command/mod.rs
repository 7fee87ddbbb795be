//! The commands, one a module.

pub mod algorithms;
pub mod bench;
pub mod cache;
pub mod compile;
pub mod completions;
pub mod demo;
pub mod doctor;
pub mod generate;
pub mod inspect;
pub mod man;
pub mod matrix;
pub mod run;
