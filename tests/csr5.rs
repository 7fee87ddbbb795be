//! The conversion to CSR5 loses nothing: from what its passes leave in the buffers alone, on the simulator, the matrix
//! comes back.

mod structures;

use std::collections::BTreeMap;

use ptx_sim::{Arg, Launch, Module, Simulator};
use spmv_codegen::{Csr5, Expr, IndexType, KernelConfig, Program, ValueType, Variable};
use spmv_matrix::CsrMatrix;
use spmv_runtime::Compiler;
use spmv_runtime::cache::{CacheLocation, DiskCache};
use structures::Numbers;

/// What the `prepare` passes of a program make of a matrix: every buffer by its name, and the counts.
struct Prepared {
    buffers: BTreeMap<&'static str, Vec<u8>>,
    counts: Vec<u64>,
}

fn prepare(program: &Program, module: &Module, a: &CsrMatrix<f64>) -> Prepared {
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
    let size = |expr: &Expr, counts: &[u64]| {
        expr.eval(&|variable| match variable {
            Variable::NumRows => a.num_rows() as u64,
            Variable::Nnz => a.nnz() as u64,
            Variable::Count(index) => counts[usize::from(index)],
            other => panic!("the conversion does not depend on {}", other.name()),
        })
    };
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
            Arg::U64(match arg {
                spmv_codegen::Arg::Size(expr, _) => size(expr, &counts),
                spmv_codegen::Arg::RowOffsets => row_offsets,
                spmv_codegen::Arg::ColIndices => col_indices,
                spmv_codegen::Arg::Values => values,
                spmv_codegen::Arg::Buffer(buffer) => addresses[*buffer].expect("it is known by now").0,
                other => panic!("the conversion does not take {other:?}"),
            })
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
        // Pieces of rows are written by products alone.
        let is_of_products = ["tails", "heads", "meetings"].contains(&buffer.name);
        if !is_of_products && bytes > 0 {
            simulator.read(address, &mut content).unwrap();
        }
        (buffer.name, content)
    };
    Prepared { buffers: program.buffers.iter().zip(&addresses).map(read).collect(), counts }
}

impl Prepared {
    fn words(&self, name: &str) -> Vec<u32> {
        let words = self.buffers[name].chunks_exact(4);
        words.map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    fn doubles(&self, name: &str) -> Vec<f64> {
        let doubles = self.buffers[name].chunks_exact(8);
        doubles.map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect()
    }

    /// Whether a tile stores the empty rows from its first row to that of the next tile, and those at the ends: not
    /// where they are many.
    fn stores_empty_rows(&self, sigma: usize, tile: usize, num_rows: usize) -> bool {
        let first_rows: Vec<_> = self.words("tile_rows").iter().map(|row| row & 0x7fff_ffff).collect();
        let first = if tile == 0 { 0 } else { first_rows[tile] };
        let end = first_rows.get(tile + 1).map_or(num_rows as u32, |row| *row);
        !first_rows.is_empty() && (end - first) as usize <= 4 * 32 * sigma
    }

    /// The matrix of `num_rows` rows and `nnz` entries that the tiles hold: row, column and value of every entry.
    fn entries(&self, sigma: usize, nnz: usize) -> Vec<(u32, u32, u64)> {
        let (tile_rows, descriptors) = (self.words("tile_rows"), self.words("descriptors"));
        let (empty_bases, empty_offsets) = (self.words("empty_bases"), self.words("empty_offsets"));
        let (cols, values) = (self.words("tile_cols"), self.doubles("tile_values"));
        let words_a_lane = if sigma <= 16 { 1 } else { 2 };
        let mut entries = Vec::new();
        for (tile, marked_row) in tile_rows.iter().enumerate() {
            let first_row = marked_row & 0x7fff_ffff;
            let (mut begun, mut row) = (0, first_row);
            for (lane, step) in (0..32).flat_map(|lane| (0..sigma).map(move |step| (lane, step))) {
                let at = (tile * 32 + lane) * words_a_lane;
                let high = if words_a_lane == 2 { descriptors[at + 1] } else { 0 };
                let descriptor = u64::from(high) << 32 | u64::from(descriptors[at]);
                if step == 0 {
                    assert_eq!(descriptor >> sigma & 1023, begun, "y_offset of tile {tile}, lane {lane}");
                }
                if descriptor >> step & 1 == 1 {
                    row = if *marked_row != first_row {
                        first_row + empty_offsets[empty_bases[tile] as usize + begun as usize]
                    } else if (lane, step) == (0, 0) {
                        first_row
                    } else {
                        row + 1
                    };
                    begun += 1;
                }
                let place = tile * 32 * sigma + step / 4 * 128 + lane * 4 + step % 4;
                entries.push((row, cols[place], values[place].to_bits()));
            }
        }
        entries.truncate(nnz);
        entries
    }
}

#[test]
fn converting_back_gives_the_input() {
    for sigma in [4, 8, 12, 16, 24, 32] {
        let config = KernelConfig::builder(Csr5 { sigma }).value(ValueType::F64).build().unwrap();
        assert_eq!(config.types().offset, IndexType::U32);
        let compiler = Compiler::new(DiskCache::open(&CacheLocation::off()));
        let (artifact, _) = compiler.compile(&config, "sm_90").unwrap();
        let module = Module::load(&artifact.ptx).unwrap();
        let program = config.program();
        for structure in structures::all() {
            let a = structure.matrix(Numbers::Random);
            let prepared = prepare(&program, &module, &a);
            let expected: Vec<_> = (0..a.num_rows())
                .flat_map(|row| a.row_range(row).map(move |j| (row, j)))
                .map(|(row, j)| (row as u32, a.col_indices()[j], a.values()[j].to_bits()))
                .collect();
            let what = format!("sigma {sigma}, {}", structure.name);
            assert!(prepared.entries(sigma as usize, a.nnz()) == expected, "{what}: entries differ");
            let empty: Vec<_> = (0..a.num_rows()).filter(|row| a.row_range(*row).is_empty()).collect();
            assert_eq!(prepared.counts[0], empty.len() as u64, "{what}");
            let unstored = empty.into_iter().filter(|row| {
                let owner = a.row_range(*row).start.saturating_sub(1) / (32 * sigma as usize);
                !prepared.stores_empty_rows(sigma as usize, owner, a.num_rows())
            });
            let expected: Vec<_> = unstored.map(|row| row as u32).collect();
            let mut listed = prepared.words("empty_rows");
            listed.truncate(prepared.counts[2] as usize);
            listed.sort_unstable();
            assert_eq!(listed, expected, "{what}: empty rows that no tile stores");
        }
    }
}
