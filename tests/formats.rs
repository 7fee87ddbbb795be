//! Layouts that are made on the device are those that are made on the host, slot by slot.

mod prepared;
mod structures;

use prepared::{Prepared, prepare};
use spmv_codegen::{
    Algorithm, Bccoo, Bsr, Csc, Dia, Ell, Hyb, Jds, KernelConfig, Pkt, SellCSigma, Slots, Tjds, ValueType,
};
use spmv_matrix::format::{
    BccooMatrix, BccooParameters, BsrMatrix, BsrParameters, DiaMatrix, EllMatrix, Format, HybMatrix,
    JdsMatrix, PktMatrix, PktParameters, SellMatrix, SellParameters, TjdsMatrix,
};
use spmv_matrix::{CscMatrix, CsrMatrix, MatrixError};
use spmv_runtime::{Device, Spmv, Vector};
use structures::Numbers;

/// Prepares every structure that the host does not refuse, and compares.
fn check<F: Format<f64, u32>>(
    algorithm: impl Into<Algorithm>,
    parameters: F::Parameters,
    compare: impl Fn(&Prepared, &F, &str),
) {
    let config = KernelConfig::builder(algorithm).value(ValueType::F64).build().unwrap();
    let (program, module) = (config.program(), prepared::module(&config));
    let mut refused = Vec::new();
    for structure in structures::all() {
        let a: CsrMatrix<f64> = structure.matrix(Numbers::Random);
        match F::from_csr_with(&a, parameters) {
            Ok(host) => {
                let device = prepare(&program, &module, &a);
                if let Some(slots) = &program.slots {
                    let number = slots.number.eval(&|variable| device.variable(variable, &a));
                    let expected = F::predict_with(&a, parameters).unwrap().slots;
                    assert_eq!(number, expected, "{}: slots", structure.name);
                    assert!(!Slots::are_refused(number, a.nnz() as u64, 12), "{}", structure.name);
                }
                compare(&device, &host, structure.name);
            }
            Err(MatrixError::Fill { slots, nnz, .. }) => {
                assert!(Slots::are_refused(slots, nnz, 12), "{}", structure.name);
                refused.push(structure.name);
            }
            Err(error) => panic!("{}: {error}", structure.name),
        }
    }
    assert!(refused.len() < 5, "{refused:?}");
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn compare_slots(device: &Prepared, cols: &[u32], values: &[f64], what: &str) {
    assert!(device.words("slot_cols") == cols, "{what}: columns");
    assert!(bits(&device.doubles("slot_values")) == bits(values), "{what}: values");
}

#[test]
fn ell() {
    check::<EllMatrix<f64>>(Ell::default(), (), |device, host, what| {
        assert_eq!(device.counts, [host.width() as u64], "{what}: width");
        compare_slots(device, host.col_indices(), host.values(), what);
    });
}

#[test]
fn sell_c_sigma() {
    for sigma in [1, 256, 4096] {
        let parameters = SellParameters { sigma: sigma as usize };
        check::<SellMatrix<f64, u32>>(SellCSigma { sigma }, parameters, |device, host, what| {
            if sigma > 1 {
                assert!(device.words("permutation") == host.permutation(), "{what}: permutation");
            }
            let offsets: Vec<u64> = host.slice_offsets().iter().map(|offset| (*offset).into()).collect();
            assert!(device.long_words("slice_offsets") == offsets, "{what}: slice offsets");
            compare_slots(device, host.col_indices(), host.values(), what);
        });
    }
}

#[test]
fn dia() {
    check::<DiaMatrix<f64>>(Dia::default(), (), |device, host, what| {
        let offsets: Vec<u64> = host.offsets().iter().map(|offset| *offset as u64).collect();
        assert!(device.long_words("offsets") == offsets, "{what}: offsets");
        // On the device a slot is the bits of its value inverted, and fill is zero.
        let holds = |slot: usize| host.mask()[slot / 32] >> (slot % 32) & 1 == 1;
        let slot = |(slot, bits): (usize, u64)| if holds(slot) { !bits } else { 0 };
        let slots: Vec<u64> = bits(host.values()).into_iter().enumerate().map(slot).collect();
        assert!(device.long_words("slot_values") == slots, "{what}: slots");
    });
}

#[test]
fn hyb() {
    check::<HybMatrix<f64>>(Hyb::default(), (), |device, host, what| {
        let (ell, coo) = (host.ell(), host.coo());
        assert_eq!(device.counts[..2], [ell.width() as u64, coo.nnz() as u64], "{what}: width and rest");
        compare_slots(device, ell.col_indices(), ell.values(), what);
        // The last tile is filled up.
        let nnz = coo.nnz();
        assert!(device.words("row_indices")[..nnz] == *coo.row_indices(), "{what}: rows of the rest");
        assert!(device.words("tail_cols")[..nnz] == *coo.col_indices(), "{what}: columns of the rest");
        assert!(
            bits(&device.doubles("tail_values")[..nnz]) == bits(coo.values()),
            "{what}: values of the rest"
        );
    });
}

#[test]
fn jds() {
    check::<JdsMatrix<f64, u32>>(Jds::default(), (), |device, host, what| {
        assert!(device.words("permutation") == host.permutation(), "{what}: permutation");
        assert!(device.words("diagonal_offsets") == host.diagonal_offsets(), "{what}: diagonal offsets");
        compare_slots(device, host.col_indices(), host.values(), what);
    });
}

/// The rows of the host's diagonals, one after the other.
#[test]
fn sorted_rows() {
    check::<JdsMatrix<f64, u32>>(Jds { transposed: 0 }, (), |device, host, what| {
        let permutation = device.words("permutation");
        assert!(permutation == host.permutation(), "{what}: permutation");
        let diagonals = host.diagonal_offsets();
        let length =
            |place: u32| diagonals.windows(2).take_while(|pair| place < pair[1] - pair[0]).count() as u32;
        let (mut offsets, mut cols, mut values) = (vec![0], Vec::new(), Vec::new());
        for place in 0..permutation.len() as u32 {
            offsets.push(offsets[place as usize] + length(place));
            let slots = (0..length(place)).map(|k| (diagonals[k as usize] + place) as usize);
            cols.extend(slots.clone().map(|slot| host.col_indices()[slot]));
            values.extend(slots.map(|slot| host.values()[slot]));
        }
        assert!(device.words("sorted_offsets") == offsets, "{what}: offsets");
        compare_slots(device, &cols, &values, what);
    });
}

#[test]
fn bsr() {
    for (block_rows, block_cols) in [(2, 0), (3, 0), (4, 2), (2, 3), (6, 1), (8, 0)] {
        let cols = if block_cols == 0 { block_rows } else { block_cols };
        let parameters = BsrParameters { block_rows: block_rows as usize, block_cols: cols as usize };
        check::<BsrMatrix<f64, u32>>(Bsr { block_rows, block_cols }, parameters, |device, host, what| {
            assert_eq!(device.counts[1], host.num_blocks() as u64, "{what}: blocks");
            assert!(device.words("block_offsets") == host.block_offsets(), "{what}: block offsets");
            assert!(device.words("block_cols") == host.block_cols(), "{what}: block columns");
            let values = if cols % 2 == 1 { by_rows(host, cols as usize) } else { host.values().to_vec() };
            assert!(bits(&device.doubles("block_values")) == bits(&values), "{what}: values");
        });
    }
}

/// The values of blocks by rows of the matrix, as the device has them where blocks have an odd number of columns.
fn by_rows(host: &BsrMatrix<f64, u32>, block_cols: usize) -> Vec<f64> {
    let places = host.values().len().checked_div(host.num_blocks()).unwrap_or(0);
    let rows_of_blocks = host.block_offsets().windows(2);
    let starts = rows_of_blocks.flat_map(|ends| {
        let blocks = ends[0] as usize..ends[1] as usize;
        (0..places)
            .step_by(block_cols)
            .flat_map(move |row| blocks.clone().map(move |block| block * places + row))
    });
    starts.flat_map(|start| host.values()[start..start + block_cols].to_vec()).collect()
}

#[test]
fn csc() {
    check::<CscMatrix<f64, u32>>(Csc::default(), (), |device, host, what| {
        let columns = host.transpose();
        assert!(device.words("transposed_offsets") == columns.row_offsets(), "{what}: column offsets");
        assert!(device.words("transposed_indices") == columns.col_indices(), "{what}: rows");
        assert!(bits(&device.doubles("transposed_values")) == bits(columns.values()), "{what}: values");
    });
}

#[test]
fn tjds() {
    check::<TjdsMatrix<f64, u32>>(Tjds::default(), (), |device, host, what| {
        assert!(device.words("permutation") == host.permutation(), "{what}: permutation");
        assert!(device.words("diagonal_offsets") == host.diagonal_offsets(), "{what}: diagonal offsets");
        compare_slots(device, host.row_indices(), host.values(), what);
    });
}

/// Blocks whose differences of columns are just small enough, and just not; the last tile is not full.
fn far_columns() -> CsrMatrix<f64> {
    let steps = [3, 32_767, 1, 32_768, 2, 65_535, 65_536, 1, 131_068, 131_072, 4, 5];
    let row = |row: u32| {
        let mut col = row % 5;
        let entries = (0..3 + row % 10).map(move |k| {
            let entry = (col, f64::from((row + k) % 7) - 3.0);
            col += steps[((row + k) % 12) as usize];
            entry
        });
        entries.collect::<Vec<_>>()
    };
    // From a column back to 0 is as far as it may be, and farther.
    let back = [32_767, 32_768, 0].map(|col| vec![(0, 1.0), (col, 2.0)]);
    structures::from_rows(600_003, back.into_iter().chain((0..301).map(row)))
}

fn check_bccoo(device: &Prepared, host: &BccooMatrix<f64>, what: &str) {
    let blocks = host.num_blocks();
    let [filled_rows, escapes] = [host.block_rows().len(), host.escaped_cols().len()];
    assert_eq!(device.counts, [blocks, filled_rows, escapes].map(|count| count as u64), "{what}");
    // The last tile is filled up.
    let flags = device.words("bit_flags");
    assert!(flags.starts_with(host.bit_flags()), "{what}: flags");
    assert!(flags[host.bit_flags().len()..].iter().all(|word| *word == u32::MAX), "{what}: fill");
    let deltas = device.half_words("col_deltas").into_iter().map(|delta| delta as i16);
    assert!(deltas.take(blocks).eq(host.col_deltas().iter().copied()), "{what}: differences");
    for (name, expected) in [
        ("block_rows", host.block_rows()),
        ("tile_rows", host.tile_rows()),
        ("tile_cols", host.tile_cols()),
        ("escape_offsets", host.escape_offsets()),
        ("escaped_cols", host.escaped_cols()),
    ] {
        assert!(device.words(name) == expected, "{what}: {name}");
    }
    // The lanes' first blocks lie side by side, then their second ones.
    let (rows, cols) = host.block_shape();
    let places = rows * cols;
    let mut expected = vec![0.0; blocks.next_multiple_of(256) * places];
    for (block, values) in host.values().chunks(places).enumerate() {
        let place = block / 256 * 256 + block % 8 * 32 + block % 256 / 8;
        expected[place * places..][..places].copy_from_slice(values);
    }
    assert!(bits(&device.doubles("block_values")) == bits(&expected), "{what}: values");
}

#[test]
fn bccoo() {
    let far = far_columns();
    let x: Vec<f64> = (0..far.num_cols()).map(|col| (col % 5) as f64 - 2.0).collect();
    let mut expected = vec![0.0; far.num_rows()];
    spmv_matrix::cpu_serial(1.0, &far, &x, 0.0, &mut expected).unwrap();
    for (block_rows, block_cols) in [(1, 1), (2, 2), (1, 4), (4, 1), (4, 4)] {
        let parameters = BccooParameters { block_rows: block_rows as usize, block_cols: block_cols as usize };
        let shape = Bccoo { block_rows, block_cols };
        check::<BccooMatrix<f64>>(shape, parameters, |device, host, what| {
            check_bccoo(device, host, &format!("{what} in {block_rows} x {block_cols}"));
        });
        let config = KernelConfig::builder(shape).value(ValueType::F64).build().unwrap();
        let host = BccooMatrix::from_csr_with(&far, parameters).unwrap();
        assert!(host.escaped_cols().len() > 50, "{}", host.escaped_cols().len());
        check_bccoo(&prepare(&config.program(), &prepared::module(&config), &far), &host, "far columns");
        let device = Device::simulator();
        let x = Vector::from_slice(&device, &x).unwrap();
        let mut y = Vector::<f64>::zeros(&device, far.num_rows()).unwrap();
        Spmv::with(&device, &far, config).unwrap().apply(1.0, &x, 0.0, &mut y).unwrap();
        assert!(y.to_vec().unwrap() == expected, "far columns in {block_rows} x {block_cols}");
    }
}

#[test]
fn pkt() {
    for rows_per_packet in [256, 1024, 4096] {
        let parameters = PktParameters { rows_per_packet: rows_per_packet as usize };
        check::<PktMatrix<f64>>(Pkt { rows_per_packet }, parameters, |device, host, what| {
            let what = format!("{what} in packets of {rows_per_packet}");
            let remainder = host.remainder();
            let counts = [host.values().len(), remainder.nnz()].map(|count| count as u64);
            assert_eq!(device.counts, counts, "{what}: slots and entries outside");
            let offsets: Vec<u64> = host.packet_offsets().iter().map(|offset| (*offset).into()).collect();
            assert!(device.long_words("packet_offsets") == offsets, "{what}: packet offsets");
            assert!(device.half_words("local_cols") == host.local_cols(), "{what}: columns");
            assert!(bits(&device.doubles("slot_values")) == bits(host.values()), "{what}: values");
            assert!(device.words("remainder_offsets") == remainder.row_offsets(), "{what}: remainder");
            assert!(device.words("remainder_cols") == remainder.col_indices(), "{what}: its columns");
            assert!(
                bits(&device.doubles("remainder_values")) == bits(remainder.values()),
                "{what}: its values"
            );
        });
    }
}
