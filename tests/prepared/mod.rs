//! What a program's `prepare` passes leave in its buffers, on the simulator.

#![allow(dead_code, reason = "each program that includes this uses its part")]

use std::collections::BTreeMap;

use ptx_sim::{Arg, Launch, Module, Simulator};
use spmv_codegen::{Expr, KernelConfig, Program, Variable};
use spmv_matrix::CsrMatrix;
use spmv_runtime::Compiler;
use spmv_runtime::cache::{CacheLocation, DiskCache};

/// The module of a configuration.
pub fn module(config: &KernelConfig) -> Module {
    let compiler = Compiler::new(DiskCache::open(&CacheLocation::off()));
    let (artifact, _) = compiler.compile(config, "sm_90").unwrap();
    Module::load(&artifact.images[0].ptx).unwrap()
}

/// What the `prepare` passes of a program make of a matrix: every buffer by its name, and the counts.
pub struct Prepared {
    buffers: BTreeMap<&'static str, Vec<u8>>,
    pub counts: Vec<u64>,
}

/// Runs the `prepare` passes of a program, compiled to the module, on the simulator.
pub fn prepare(program: &Program, module: &Module, a: &CsrMatrix<f64>) -> Prepared {
    let mut simulator = Simulator::new();
    let mut upload = |bytes: Vec<u8>| {
        let address = simulator.allocate(bytes.len() as u64).unwrap();
        simulator.write(address, &bytes).unwrap();
        address
    };
    let row_offsets = upload(a.row_offsets().iter().flat_map(|offset| offset.to_le_bytes()).collect());
    let col_indices = upload(a.col_indices().iter().flat_map(|col| col.to_le_bytes()).collect());
    let values = upload(a.values().iter().flat_map(|value| value.to_le_bytes()).collect());
    let mut counts = Vec::new();
    let mut addresses: Vec<Option<(u64, usize)>> = vec![None; program.buffers.len()];
    let size = |expr: &Expr, counts: &[u64]| expr.eval(&|variable| known(variable, a, counts));
    for (index, pass) in program.prepare.iter().enumerate() {
        for (address, buffer) in addresses.iter_mut().zip(&program.buffers) {
            if address.is_none() && buffer.bytes.counts_needed() <= counts.len() {
                let bytes = size(&buffer.bytes, &counts);
                let allocated = simulator.allocate(bytes).unwrap();
                if buffer.zeroed {
                    simulator.write(allocated, &vec![0; bytes as usize]).unwrap();
                }
                *address = Some((allocated, bytes as usize));
            }
        }
        let args = pass.args.iter().map(|arg| {
            // The simulator takes as many of the bytes as the parameter has.
            let word = match arg {
                spmv_codegen::Arg::Size(expr, _) => size(expr, &counts),
                spmv_codegen::Arg::RowOffsets => row_offsets,
                spmv_codegen::Arg::ColIndices => col_indices,
                spmv_codegen::Arg::Values => values,
                spmv_codegen::Arg::Buffer(buffer) => addresses[*buffer].expect("it is known by now").0,
                other => panic!("the conversion does not take {other:?}"),
            };
            Arg::Bytes(word.to_le_bytes().to_vec())
        });
        let args = args.collect();
        let grid = size(&pass.grid, &counts) as u32;
        if grid > 0 {
            let launch = Launch { args, ..Launch::new(grid, pass.threads_per_block) };
            simulator.launch(module, &pass.kernel, &launch).unwrap();
        }
        for count in program.counts.iter().filter(|count| count.after == index) {
            let mut bytes = [0; 8];
            let (address, _) = addresses[count.buffer].expect("it is known by now");
            simulator.read(address + u64::from(count.entry) * 8, &mut bytes).unwrap();
            counts.push(u64::from_le_bytes(bytes));
        }
    }
    let read = |(buffer, place): (&spmv_codegen::Buffer, &Option<(u64, usize)>)| {
        let (address, bytes) = place.expect("every buffer is known after the last pass");
        let mut content = vec![0; bytes];
        if bytes > 0 {
            simulator.read(address, &mut content).unwrap();
        }
        (buffer.name, content)
    };
    Prepared { buffers: program.buffers.iter().zip(&addresses).map(read).collect(), counts }
}

fn known(variable: Variable, a: &CsrMatrix<f64>, counts: &[u64]) -> u64 {
    match variable {
        Variable::NumRows => a.num_rows() as u64,
        Variable::NumCols => a.num_cols() as u64,
        Variable::Nnz => a.nnz() as u64,
        Variable::Count(index) => counts[usize::from(index)],
        other => panic!("a conversion does not depend on {}", other.name()),
    }
}

impl Prepared {
    /// A buffer as it is.
    pub fn bytes(&self, name: &str) -> &[u8] {
        &self.buffers[name]
    }

    /// A buffer of 16-bit integers.
    pub fn half_words(&self, name: &str) -> Vec<u16> {
        let words = self.buffers[name].chunks_exact(2);
        words.map(|bytes| u16::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    /// A buffer of 32-bit integers.
    pub fn words(&self, name: &str) -> Vec<u32> {
        let words = self.buffers[name].chunks_exact(4);
        words.map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    /// A buffer of f64.
    pub fn doubles(&self, name: &str) -> Vec<f64> {
        let doubles = self.buffers[name].chunks_exact(8);
        doubles.map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    /// What an expression of the program refers to.
    pub fn variable(&self, variable: Variable, a: &CsrMatrix<f64>) -> u64 {
        known(variable, a, &self.counts)
    }

    /// A buffer of 64-bit integers.
    pub fn long_words(&self, name: &str) -> Vec<u64> {
        let words = self.buffers[name].chunks_exact(8);
        words.map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
    }
}
