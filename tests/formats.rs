//! Layouts that are made on the device are those that are made on the host, slot by slot.

mod prepared;
mod structures;

use prepared::{Prepared, prepare};
use spmv_codegen::{
    Algorithm, Bsr, Csc, Dia, Ell, Hyb, Jds, JdsT, KernelConfig, SellCSigma, Slots, ValueType,
};
use spmv_matrix::format::{
    BsrMatrix, BsrParameters, DiaMatrix, EllMatrix, Format, HybMatrix, JdsMatrix, SellMatrix, SellParameters,
    TjdsMatrix,
};
use spmv_matrix::{CscMatrix, CsrMatrix, MatrixError};
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
        assert!(bits(&device.doubles("slot_values")) == bits(host.values()), "{what}: values");
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

#[test]
fn bsr() {
    for (block_rows, block_cols) in [(2, 0), (3, 0), (4, 2), (2, 3), (6, 1), (8, 0)] {
        let cols = if block_cols == 0 { block_rows } else { block_cols };
        let parameters = BsrParameters { block_rows: block_rows as usize, block_cols: cols as usize };
        check::<BsrMatrix<f64, u32>>(Bsr { block_rows, block_cols }, parameters, |device, host, what| {
            assert_eq!(device.counts[1], host.num_blocks() as u64, "{what}: blocks");
            assert!(device.words("block_offsets") == host.block_offsets(), "{what}: block offsets");
            assert!(device.words("block_cols") == host.block_cols(), "{what}: block columns");
            assert!(bits(&device.doubles("block_values")) == bits(host.values()), "{what}: values");
        });
    }
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
fn jds_t() {
    check::<TjdsMatrix<f64, u32>>(JdsT::default(), (), |device, host, what| {
        assert!(device.words("permutation") == host.permutation(), "{what}: permutation");
        assert!(device.words("diagonal_offsets") == host.diagonal_offsets(), "{what}: diagonal offsets");
        compare_slots(device, host.row_indices(), host.values(), what);
    });
}
