//! `spmv gen`: the CUDA text of a kernel, or how it is run.

use std::io::{self, Write};

use serde::Serialize;
use spmv_runtime::codegen::{Arg, Buffer, Pass, Program};

use crate::failure::Failure;
use crate::kernel::{SettingFacts, config_text};
use crate::report::{OutputArgs, Report, fact};
use crate::settings::KernelArgs;

/// Print the CUDA text of a kernel; needs neither a GPU nor NVRTC
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Generate {
    #[command(flatten)]
    kernel: KernelArgs,
    /// Print how the kernel is run instead: passes, buffers, guarantees
    #[arg(long)]
    passes: bool,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Examples:
  spmv gen --algorithm csr_vector
  spmv gen --algorithm light_vector --set threads_per_vector=32 --value f64 > kernel.cu
  spmv gen --algorithm csr_scalar --set alpha=1 --set beta=0 --passes

The same settings always give the same bytes.

JSON (--json), one object:
  algorithm, config, settings, source, storage, prepare and multiply (each pass: kernel, grid,
  threads_per_block, shared_bytes, args), buffers (name, bytes, zeroed,
  scratch), counts (name, buffer, after: numbers that preparing finds out), slots
  (number, bytes: what a layout of the kernel's own stores, fill counted; or null), guarantees
  (bit_reproducible, fill_touches_x, splits_rows, summation_depth, operation)";

/// A program as data.
#[derive(Debug, Serialize)]
struct ProgramReport {
    algorithm: &'static str,
    config: String,
    settings: SettingFacts,
    source: String,
    storage: &'static str,
    prepare: Vec<PassFacts>,
    multiply: Vec<PassFacts>,
    buffers: Vec<BufferFacts>,
    counts: Vec<CountFacts>,
    slots: Option<SlotFacts>,
    guarantees: GuaranteeFacts,
    #[serde(skip)]
    passes: bool,
}

#[derive(Debug, Serialize)]
struct PassFacts {
    kernel: String,
    /// Blocks, as an expression.
    grid: String,
    threads_per_block: u32,
    shared_bytes: u32,
    args: Vec<String>,
}

#[derive(Debug, Serialize)]
struct BufferFacts {
    name: &'static str,
    /// As an expression.
    bytes: String,
    zeroed: bool,
    /// Freed once the plan is made.
    scratch: bool,
}

/// A number that preparing finds out.
#[derive(Debug, Serialize)]
struct CountFacts {
    name: &'static str,
    buffer: &'static str,
    after: String,
}

/// The slots of a layout.
#[derive(Debug, Serialize)]
struct SlotFacts {
    /// As an expression.
    number: String,
    /// Of a slot.
    bytes: u32,
}

/// What holds of every result of an algorithm.
#[derive(Debug, Serialize)]
pub struct GuaranteeFacts {
    pub bit_reproducible: bool,
    pub fill_touches_x: bool,
    pub splits_rows: bool,
    /// As an expression of `row_nnz`.
    pub summation_depth: String,
    pub operation: &'static str,
}

impl GuaranteeFacts {
    pub fn of(program: &Program) -> GuaranteeFacts {
        let guarantees = &program.guarantees;
        GuaranteeFacts {
            bit_reproducible: guarantees.bit_reproducible,
            fill_touches_x: guarantees.fill_touches_x,
            splits_rows: guarantees.splits_rows,
            summation_depth: guarantees.summation_depth.to_string(),
            operation: guarantees.operation.name(),
        }
    }

    pub fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let bits = match self.bit_reproducible {
            true => "the same bits in every run, on every device of one architecture",
            false => "bits may differ from run to run, within the bound",
        };
        let fill = match self.fill_touches_x {
            true => "padding multiplies x",
            false => "nothing but stored entries touches x",
        };
        let giants = match self.splits_rows {
            true => "several groups or blocks share a long row",
            false => "one group or block works on each row, however long",
        };
        fact(out, "guarantees", bits)?;
        fact(out, "", fill)?;
        fact(out, "", giants)?;
        fact(out, "", format_args!("a row of row_nnz entries is summed in depth {}", self.summation_depth))
    }
}

impl Generate {
    pub fn run(self) -> Result<(), Failure> {
        let config = self.kernel.config()?;
        let program = config.program();
        self.output.print(&ProgramReport {
            algorithm: config.algorithm().name(),
            config: config_text(&config),
            settings: SettingFacts(config.settings()),
            storage: program.storage.name(),
            prepare: passes(&program.prepare, &program.buffers),
            multiply: passes(&program.multiply, &program.buffers),
            buffers: program
                .buffers
                .iter()
                .map(|buffer| BufferFacts {
                    name: buffer.name,
                    bytes: buffer.bytes.to_string(),
                    zeroed: buffer.zeroed,
                    scratch: buffer.scratch,
                })
                .collect(),
            counts: program
                .counts
                .iter()
                .map(|count| CountFacts {
                    name: count.name,
                    buffer: program.buffers[count.buffer].name,
                    after: program.prepare[count.after].kernel.clone(),
                })
                .collect(),
            slots: program
                .slots
                .as_ref()
                .map(|slots| SlotFacts { number: slots.number.to_string(), bytes: slots.bytes }),
            guarantees: GuaranteeFacts::of(&program),
            source: program.source,
            passes: self.passes,
        })
    }
}

fn passes(passes: &[Pass], buffers: &[Buffer]) -> Vec<PassFacts> {
    let facts = |pass: &Pass| PassFacts {
        kernel: pass.kernel.clone(),
        grid: pass.grid.to_string(),
        threads_per_block: pass.threads_per_block,
        shared_bytes: pass.shared_bytes,
        args: pass.args.iter().map(|arg| argument(arg, buffers)).collect(),
    };
    passes.iter().map(facts).collect()
}

fn argument(arg: &Arg, buffers: &[Buffer]) -> String {
    match arg {
        Arg::Size(expr, index) => format!("{expr}: {index}"),
        Arg::RowOffsets => "row_offsets".to_owned(),
        Arg::ColIndices => "col_indices".to_owned(),
        Arg::Values => "values".to_owned(),
        Arg::X => "x".to_owned(),
        Arg::Y => "y".to_owned(),
        Arg::Alpha(value) => format!("alpha: {value}"),
        Arg::Beta(value) => format!("beta: {value}"),
        Arg::Inbox => "what the host is told".to_owned(),
        Arg::AlphaOnDevice(value) => format!("alpha: pointer to {value}"),
        Arg::BetaOnDevice(value) => format!("beta: pointer to {value}"),
        Arg::Buffer(index) => buffers.get(*index).map_or("buffer", |buffer| buffer.name).to_owned(),
        other => format!("{other:?}"),
    }
}

impl Report for ProgramReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.passes {
            return out.write_all(self.source.as_bytes());
        }
        fact(out, "kernel", &self.config)?;
        fact(out, "storage", self.storage)?;
        for (when, passes) in [("once", &self.prepare), ("every product", &self.multiply)] {
            for pass in passes {
                fact(out, when, format_args!("{}({})", pass.kernel, pass.args.join(", ")))?;
                let PassFacts { grid, threads_per_block, shared_bytes, .. } = pass;
                fact(
                    out,
                    "",
                    format_args!(
                        "{grid} blocks of {threads_per_block} threads, {shared_bytes} B dynamic shared memory"
                    ),
                )?;
            }
        }
        if self.buffers.is_empty() {
            fact(out, "buffers", "none")?;
        }
        for buffer in &self.buffers {
            let zeroed = if buffer.zeroed { ", zero at first" } else { "" };
            let scratch = if buffer.scratch { ", freed when prepared" } else { "" };
            fact(out, "buffer", format_args!("{}: {} B{zeroed}{scratch}", buffer.name, buffer.bytes))?;
        }
        for (index, count) in self.counts.iter().enumerate() {
            let CountFacts { name, buffer, after } = count;
            fact(out, "count", format_args!("count_{index} is {name}, left in {buffer} by {after}"))?;
        }
        if let Some(SlotFacts { number, bytes }) = &self.slots {
            fact(out, "slots", format_args!("{number}, of {bytes} B"))?;
        }
        self.guarantees.text(out)
    }
}
