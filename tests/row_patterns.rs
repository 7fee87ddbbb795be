//! What `row_patterns` stores is the matrix, bit by bit; matrices with too many different rows are refused.

mod prepared;

use prepared::Prepared;
use spmv_codegen::{KernelConfig, RowPatterns, ValueType};
use spmv_matrix::CsrMatrix;
use spmv_matrix::generate::{Generator, Values};
use spmv_runtime::{Device, Error, MatrixSource, Spmv, Vector};

fn config() -> KernelConfig {
    KernelConfig::builder(RowPatterns::default()).value(ValueType::F64).build().unwrap()
}

fn prepare(a: &CsrMatrix<f64>) -> Prepared {
    prepared::prepare(&config().program(), &prepared::module(&config()), a)
}

fn constant_stencil() -> CsrMatrix<f64> {
    let stencil = Generator::new("stencil_7").unwrap().set("nx", 9.0).unwrap().set("ny", 8.0).unwrap();
    stencil.set("nz", 7.0).unwrap().values(Values::Ones).generate().unwrap()
}

/// A row of its own for each of these values, on the diagonal.
fn diagonal(values: Vec<f64>) -> CsrMatrix<f64> {
    let rows = values.len();
    CsrMatrix::new(rows, rows, (0..=rows as u32).collect(), (0..rows as u32).collect(), values).unwrap()
}

/// Entries of every row as the layout has them: column and bits of the value.
fn unpacked(stored: &Prepared, rows: usize) -> Vec<Vec<(u32, u64)>> {
    let (offsets, entries) = (stored.words("pattern_offsets"), stored.bytes("entries"));
    let word = |place: usize| <[u8; 8]>::try_from(&entries[place..place + 8]).unwrap();
    let entry = |row: usize, entry: u32| {
        let place = 16 * entry as usize;
        let distance = i32::from_le_bytes(entries[place..place + 4].try_into().unwrap());
        ((row as i64 + i64::from(distance)) as u32, u64::from_le_bytes(word(place + 8)))
    };
    let row = |row: usize| {
        let pattern = usize::from(stored.bytes("row_patterns")[row]);
        (offsets[pattern]..offsets[pattern + 1]).map(|at| entry(row, at)).collect()
    };
    (0..rows).map(row).collect()
}

fn rows_of(a: &CsrMatrix<f64>) -> Vec<Vec<(u32, u64)>> {
    let bits = |value: &f64| value.to_bits();
    (0..a.num_rows())
        .map(|row| a.row(row).0.iter().copied().zip(a.row(row).1.iter().map(bits)).collect())
        .collect()
}

#[test]
fn a_stencil_is_its_kinds_of_rows() {
    let a = constant_stencil();
    let stored = prepare(&a);
    // Inside or at either border, in each of three dimensions.
    assert_eq!(stored.words("pattern_offsets")[..28].windows(2).filter(|pair| pair[0] < pair[1]).count(), 27);
    assert_eq!(unpacked(&stored, a.num_rows()), rows_of(&a));
    let device = Device::simulator();
    let plan = Spmv::with(&device, &a, config()).unwrap();
    let kept = (257 * 4 + stored.bytes("entries").len() + a.num_rows()) as u64;
    assert!((kept..kept + 3 * 256).contains(&plan.workspace_bytes()), "{} of {kept}", plan.workspace_bytes());
}

#[test]
fn rows_differ_where_bits_of_values_do() {
    let nan = f64::from_bits(0x7ff8_0000_0000_0001);
    let values = vec![0.0, -0.0, f64::NAN, nan, 1.0, 0.0, nan, f64::INFINITY, -0.0];
    let a = diagonal(values);
    let stored = prepare(&a);
    assert_eq!(stored.bytes("row_patterns")[..9], [0, 1, 2, 3, 4, 0, 3, 5, 1]);
    assert_eq!(unpacked(&stored, a.num_rows()), rows_of(&a));
}

#[test]
fn rows_differ_where_columns_come_in_another_order() {
    let a = CsrMatrix::new(4, 4, vec![0, 2, 4, 6, 6], vec![0, 1, 2, 1, 2, 3], vec![1.0; 6]).unwrap();
    let stored = prepare(&a);
    assert_eq!(stored.bytes("row_patterns")[..4], [0, 1, 0, 2]);
    assert_eq!(unpacked(&stored, 4), rows_of(&a));
}

#[test]
fn more_rows_than_a_byte_can_name_are_refused() {
    let device = Device::simulator();
    let a = diagonal((0..1000).map(|row| f64::from(row % 256)).collect());
    let mut plan = Spmv::with(&device, &a, config()).unwrap();
    let x: Vec<f64> = (0..1000).map(f64::from).collect();
    let x = Vector::from_slice(&device, &x).unwrap();
    let mut y = Vector::<f64>::zeros(&device, 1000).unwrap();
    plan.apply(1.0, &x, 0.0, &mut y).unwrap();
    let expected: Vec<f64> = (0..1000).map(|row| f64::from(row % 256) * f64::from(row)).collect();
    assert_eq!(y.to_vec().unwrap(), expected);
    let a = diagonal((0..1000).map(|row| f64::from(row % 257)).collect());
    let refused = Spmv::with(&device, &a, config()).unwrap_err();
    assert!(matches!(refused, Error::Misfit { algorithm: "row_patterns", number: 1.., .. }), "{refused}");
    assert!(refused.to_string().ends_with("at the same distance from the diagonal"), "{refused}");
}

#[test]
fn values_that_fit_no_more_leave_the_plan_as_it_was() {
    let device = Device::simulator();
    let matrix = diagonal(vec![2.0; 300]).to_device(&device, config().types()).unwrap();
    let mut plan = Spmv::with(&device, &matrix, config()).unwrap();
    assert!(plan.copies_values());
    let others: Vec<f64> = (0..300).map(f64::from).collect();
    matrix.update_values(&others).unwrap();
    assert!(matches!(plan.refresh(), Err(Error::Misfit { .. })));
    matrix.update_values(&[3.0; 300]).unwrap();
    plan.refresh().unwrap();
    let mut y = Vector::<f64>::zeros(&device, 300).unwrap();
    plan.apply(1.0, &Vector::from_slice(&device, &[1.0; 300]).unwrap(), 0.0, &mut y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; 300]);
}
