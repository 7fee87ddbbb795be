//! The conversion to CSR5 loses nothing: from what its passes leave in the buffers alone, on the simulator, the matrix
//! comes back.

mod prepared;
mod structures;

use prepared::{Prepared, prepare};
use spmv_codegen::{Csr5, IndexType, KernelConfig, ValueType};
use structures::Numbers;

trait Tiles {
    fn stores_empty_rows(&self, sigma: usize, tile: usize, num_rows: usize) -> bool;
    fn entries(&self, sigma: usize, nnz: usize) -> Vec<(u32, u32, u64)>;
}

impl Tiles for Prepared {
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
        let config =
            KernelConfig::builder(Csr5 { sigma, encoding: 0 }).value(ValueType::F64).build().unwrap();
        assert_eq!(config.types().offset, IndexType::U32);
        let module = prepared::module(&config);
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
