//! Kernels that nobody named: the device counts a structure's features as the host does, and whatever is chosen is right
//! and keeps its constraints.

use std::collections::BTreeSet;
use std::sync::Arc;

use spmv_runtime::codegen::{
    Algorithm, Features, IndexType, KernelConfig, Operation, SampledValues, ValueType,
};
use spmv_runtime::matrix::generate::{Generator, Values};
use spmv_runtime::matrix::{
    Complex32, Complex64, CooMatrix, CscMatrix, CsrMatrix, SymmetricCsr, Symmetry, cpu_serial, f16, features,
    features_of_transpose,
};
use spmv_runtime::{Constraints, Device, DeviceMatrix, Element, Error, Spmv, Vector, planner};

/// The GPU where there is one, else the simulator.
fn device() -> Device {
    Device::open().unwrap()
}

/// A generated matrix with small whole numbers, which every order of summation adds up exactly.
fn generated(class: &str, parameters: &[(&str, f64)]) -> CsrMatrix<f64> {
    let generator = Generator::new(class).unwrap().seed(5);
    let set = |generator: Generator, (name, value): &(&str, f64)| generator.set(name, *value).unwrap();
    let a: CsrMatrix<f64> = parameters.iter().fold(generator, set).generate().unwrap();
    a.map_values(|value| (value * 8.0).round())
}

/// Structures that differ in everything that features count.
fn structures() -> Vec<CsrMatrix<f64>> {
    let mut unsorted = generated("rmat", &[("scale", 10.0), ("per_row", 9.0)]);
    let (row_offsets, mut cols, values) = std::mem::replace(&mut unsorted, no_entries(1, 1)).into_parts();
    for row in row_offsets.windows(2) {
        cols[row[0] as usize..row[1] as usize].reverse();
    }
    vec![
        CsrMatrix::new(1024, 1024, row_offsets, cols, values).unwrap(),
        generated("stencil_5", &[("nx", 70.0), ("ny", 41.0)]),
        generated("stencil_7", &[("nx", 17.0), ("ny", 16.0), ("nz", 15.0)]).map_values(|_| -1.0),
        generated("tridiagonal", &[("n", 30_001.0)]),
        generated("gaussian", &[("n", 4000.0), ("per_row", 22.0), ("sigma", 1e3)]),
        generated("giant_row", &[("n", 20_000.0), ("giant", 9000.0), ("empty", 0.4)]),
        generated("rail", &[("rows", 20.0), ("cols", 30_000.0), ("per_row", 1500.0)]),
        generated("tall", &[("rows", 9000.0), ("cols", 400.0), ("per_row", 6.0), ("stretch", 100.0)]),
        no_entries(0, 0),
        no_entries(5, 0),
        no_entries(0, 7),
        no_entries(33, 40),
        CsrMatrix::new(1, 1, vec![0, 1], vec![0], vec![3.0]).unwrap(),
        stretches_of_diagonals(),
        long_rows(),
        generated("fem", &[("nx", 5.0), ("ny", 6.0), ("nz", 4.0), ("unknowns", 6.0)]),
        long_band(),
        long_rows_on_a_diagonal(),
    ]
}

/// Rows of one entry, then rows that hold their diagonal entry 300 times: few diagonals, and more entries than are compared.
fn long_rows_on_a_diagonal() -> CsrMatrix<f64> {
    let times = |row: u32| if row < 24 { 1 } else { 300 };
    let entries: Vec<u32> = (0..600).flat_map(|row| std::iter::repeat_n(row, times(row))).collect();
    let row_offsets = (0..600).scan(0, |end, row| {
        *end += times(row) as u32;
        Some(*end)
    });
    let row_offsets = std::iter::once(0).chain(row_offsets).collect();
    let values = (0..entries.len()).map(|place| f64::from(place as u32)).collect();
    CsrMatrix::new(600, 600, row_offsets, entries, values).unwrap()
}

/// Rows of which 12 are in a group and 24 are too many.
fn long_band() -> CsrMatrix<f64> {
    generated("banded", &[("n", 2500.0), ("lower", 60.0), ("upper", 59.0), ("fill", 1.0)])
}

/// Rows of 8 entries, but for one of 7, of which some continue the diagonal of the entry of the same rank in the row before and
/// others do not; one that follows eight entries behind another by a column, and continues nothing; and one of its own diagonal
/// that is the last of 128 rows.
fn stretches_of_diagonals() -> CsrMatrix<f64> {
    let (mut row_offsets, mut cols) = (vec![0], Vec::new());
    for row in 0..400u32 {
        let far = row + if row / 5 % 2 == 0 { 20 } else { 30 };
        cols.extend((row >= 64).then_some(row + 437));
        cols.extend(row..row + 6);
        match row {
            0..62 => cols.extend([row + 10, far]),
            62 => cols.extend([row + 10, 500]),
            63 => cols.push(row + 10),
            383 => cols.push(880),
            _ => cols.push(far),
        }
        row_offsets.push(cols.len() as u32);
    }
    let values = vec![1.0; cols.len()];
    CsrMatrix::new(400, 900, row_offsets, cols, values).unwrap()
}

/// Rows of 20 entries, but for one without any; behind it is an entry in the second column, which continues nothing.
fn long_rows() -> CsrMatrix<f64> {
    let row = |row: u32| -> Vec<u32> {
        match row {
            33 => vec![],
            34 => std::iter::once(1).chain(35..54).collect(),
            _ => (row..row + 20).collect(),
        }
    };
    let mut row_offsets = vec![0];
    let cols: Vec<u32> = (0..200)
        .flat_map(|number| {
            let cols = row(number);
            row_offsets.push(row_offsets[number as usize] + cols.len() as u32);
            cols
        })
        .collect();
    let values = vec![1.0; cols.len()];
    CsrMatrix::new(200, 220, row_offsets, cols, values).unwrap()
}

fn structures_from(num_rows: usize, num_cols: usize, entries: &[(u32, u32, f64)]) -> CsrMatrix<f64> {
    let of = |which: fn(&(u32, u32, f64)) -> u32| entries.iter().map(which).collect();
    let values = entries.iter().map(|entry| entry.2).collect();
    CooMatrix::new(num_rows, num_cols, of(|entry| entry.0), of(|entry| entry.1), values)
        .unwrap()
        .to_csr()
        .unwrap()
}

fn no_entries(num_rows: usize, num_cols: usize) -> CsrMatrix<f64> {
    CsrMatrix::new(num_rows, num_cols, vec![0; num_rows + 1], vec![], vec![]).unwrap()
}

/// Samples that several blocks share, more and fewer than are few, and as many as there are at most; a column that half of the rows
/// have; groups of rows with as many entries as two shapes or four go side by side for.
#[test]
fn the_device_counts_as_the_host_does_where_there_is_much() {
    let device = device();
    for (class, parameters, samples) in [
        ("giant_row", &[("n", 1.0e6), ("giant", 4e5), ("empty", 0.3)][..], 17),
        ("tall", &[("rows", 8e5), ("cols", 5e4), ("per_row", 7.0), ("stretch", 100.0)], 43),
        ("gaussian", &[("n", 1e5), ("per_row", 45.0), ("sigma", 1e3)], 64),
    ] {
        let a = generated(class, parameters);
        assert_eq!(Features::samples(a.nnz() as u64).count, samples, "{class}: {}", a.nnz());
        let there = DeviceMatrix::upload(&device, &a, IndexType::U32).unwrap();
        assert_eq!(there.features().unwrap(), features(&a), "{class}");
    }
}

#[test]
fn the_device_counts_as_the_host_does() {
    let device = device();
    for a in structures() {
        let host = features(&a);
        for offset in [IndexType::U32, IndexType::U64] {
            let there = DeviceMatrix::upload(&device, &a, offset).unwrap();
            assert_eq!(there.features().unwrap(), host, "{offset}");
            assert_eq!(there.features_of_transpose().unwrap(), features_of_transpose(&a), "{offset}");
        }
    }
}

/// Values of every size, whose bits count: signs of zero too.
#[test]
fn the_device_looks_at_values_as_the_host_does() {
    fn look<V: Element>(device: &Device, a: CsrMatrix<V>) -> SampledValues {
        let host = features(&a);
        let there = DeviceMatrix::upload(device, &a, IndexType::U32).unwrap();
        assert_eq!(there.features().unwrap(), host, "{}", V::TYPE);
        host.values
    }
    let device = device();
    let stencil = Generator::new("stencil_5").unwrap().set("nx", 90.0).unwrap().set("ny", 41.0).unwrap();
    let a: CsrMatrix<f64> = stencil.generate().unwrap();
    let random = look(&device, a.clone());
    assert_eq!((random.count, random.different), (2048, 2048));
    assert!(random.wide > 2000, "{random:?}");
    let narrow = look(&device, a.map_values(|value| f64::from(value as f32)));
    assert!(narrow.are_narrow() && !narrow.are_few(), "{narrow:?}");
    assert_eq!(look(&device, a.map_values(|value| 0.0f64.copysign(value))).different, 2);
    assert!(look(&device, a.map_values(|_| f64::NAN)).wide == 2048);
    // Whole numbers, of which -0 is none.
    let whole = a.map_values(|value| (value * 127.0).trunc() + 0.0);
    assert!(look(&device, whole.clone()).are_whole() && look(&device, whole.convert::<f32>()).are_whole());
    assert_eq!(look(&device, a.map_values(|_| -0.0f64)).uneven, 2048);
    for beyond in [128.0, -128.0, 0.5, f64::INFINITY] {
        assert_eq!(look(&device, a.map_values(|_| beyond)).uneven, 2048, "{beyond}");
        assert_eq!(look(&device, a.map_values(|_| beyond as f32)).uneven, 2048, "{beyond}");
    }
    let uneven = random.uneven;
    assert!(uneven > 2000 && !random.are_whole(), "{random:?}");
    assert!(!look(&device, a.convert::<f32>()).are_few());
    assert!(look(&device, a.convert::<f16>()).different > 1000);
    assert!(look(&device, a.map_values(|value| (value * 4.0) as i8)).are_few());
    assert!(look(&device, a.map_values(|value| Complex32::new(value as f32, 1.0))).different > 2000);
    let wider = look(&device, a.map_values(|value| Complex64::new(value, 1.0)));
    assert_eq!(wider, SampledValues::default());
}

#[test]
fn features_of_the_transpose_are_nearly_those_of_a_transpose() {
    for a in structures() {
        let (found, exact) = (features_of_transpose(&a), features(&a.transpose().unwrap()));
        assert_eq!((found.num_rows, found.num_cols, found.nnz), (exact.num_rows, exact.num_cols, exact.nnz));
        assert_eq!((found.longest_row, found.row_lengths), (exact.longest_row, exact.row_lengths));
        assert_eq!(found.warp_steps, exact.warp_steps);
        for kind in [0, 1] {
            assert!(found.sectors_per_entry(kind) <= 1.0);
        }
    }
    // Of a structure that is symmetric they are its own, but for blocks that are no squares.
    let stencil = generated("stencil_5", &[("nx", 70.0), ("ny", 41.0)]);
    let (mut found, exact) = (features_of_transpose(&stencil), features(&stencil.transpose().unwrap()));
    for (index, (rows, cols)) in Features::BLOCK_SHAPES.into_iter().enumerate() {
        if rows == cols {
            assert_eq!(found.blocks[index], exact.blocks[index]);
        }
    }
    found.blocks = exact.blocks;
    // Of columns as long as rows it is known how many there are, and that they have all entries or nearly.
    assert_eq!(found.degrees.cols, exact.degrees.cols);
    found.degrees = exact.degrees;
    // Samples of the values are other ones.
    found.values.uneven = exact.values.uneven;
    assert_eq!(found, exact);
}

#[test]
fn features_are_what_they_say() {
    let a = generated("tridiagonal", &[("n", 1000.0)]);
    let found = features(&a);
    assert_eq!((found.num_rows, found.num_cols, found.nnz), (1000, 1000, 2998));
    assert_eq!((found.longest_row, found.num_diagonals), (3, Some(3)));
    assert_eq!(found.row_lengths[2], 1000);
    // Warps of 32 rows: 31 full ones and one of 8; with 32 threads a row, a step a row.
    assert_eq!((found.warp_steps[0], found.warp_steps[5]), (32 * 3, 1000));
    // 125 sectors of 8 columns, all in one stretch.
    assert!((found.sectors_per_entry(0) * 2998.0 - 125.0).abs() < 3.0);
    // Of an entry more than a sample has, there are two samples, and they overlap.
    let longer = features(&generated("diagonal", &[("n", f64::from((1 << 16) + 1))]));
    assert!([0, 1].iter().all(|kind| (longer.sectors_per_entry(*kind) - 0.125).abs() < 0.006));
    // 998 columns of 3 entries and two of 2, none of which is hot.
    assert_eq!(found.degrees.cols[..3], [0, 0, 1000]);
    assert_eq!((found.degrees.entries[2], found.degrees.hot_share(999)), (2998, 0.0));
    // 16 columns of 1,000 entries: half of them have half of the entries.
    let tall: Vec<_> = (0..1000).flat_map(|row| (0..16).map(move |col| (row, col, 1.0))).collect();
    let tall = structures_from(1000, 16, &tall);
    let found = features(&tall);
    assert_eq!((found.degrees.cols[10], found.degrees.entries[10]), (16, 16_000));
    assert_eq!([0, 8, 16, 17].map(|cols| found.degrees.hot_share(cols)), [0.0, 0.5, 1.0, 1.0]);
    // With more columns than places some share one.
    let places = 1u32 << Features::LOG_DEGREE_PLACES;
    assert_eq!(Features::degree_place(places.into(), places - 1), places - 1);
    assert!((0..100).all(|col| Features::degree_place(u64::from(places) + 1, col * 99_991) < places));
    // 32, 16, 4 rows and one at a time read one place of x after the other, 8 of which are in a sector.
    let diagonal = features(&generated("diagonal", &[("n", 960.0)]));
    let gathers =
        [Some(1), Some(2), Some(8), Some(32), None].map(|threads| diagonal.sectors_per_gather(threads));
    assert_eq!(gathers, [0.125, 0.125, 0.25, 1.0, 0.125]);
    let band = features(&long_band());
    assert!(band.num_diagonals == Some(120) && band.grouped > 40 * 12 * 120);
    let giant = features(&generated("giant_row", &[("n", 20_000.0), ("giant", 9000.0), ("empty", 0.4)]));
    assert_eq!(giant.num_diagonals, None);
    assert!(giant.longest_row >= 9000 && giant.row_lengths[0] > 7000);
}

/// Multiplies on the simulator with the plan and compares with the product on the CPU.
fn check(plan: &mut Spmv, a: &CsrMatrix<f64>) {
    let x: Vec<f64> = (0..a.num_cols()).map(|i| (i % 13) as f64 - 6.0).collect();
    let mut expected: Vec<f64> = (0..a.num_rows()).map(|i| (i % 5) as f64).collect();
    let device = plan.device().clone();
    let mut y = Vector::from_slice(&device, &expected).unwrap();
    cpu_serial(2.0, a, &x, -1.0, &mut expected).unwrap();
    plan.apply(2.0, &Vector::from_slice(&device, &x).unwrap(), -1.0, &mut y).unwrap();
    assert!(y.to_vec().unwrap() == expected, "{}", plan.config());
}

#[test]
fn what_is_chosen_is_right() {
    let device = device();
    for a in structures() {
        check(&mut Spmv::auto(&device, &a).unwrap(), &a);
        let there = Arc::new(DeviceMatrix::upload(&device, &a, IndexType::U64).unwrap());
        check(&mut Spmv::auto(&device, &there).unwrap(), &a);
        let csc = CscMatrix::from_csr(&a).unwrap();
        check(&mut Spmv::auto(&device, &csc).unwrap(), &a);
        let constraints = Constraints::default();
        let mut transposed = Spmv::auto_with(&device, &a, Operation::Transpose, &constraints).unwrap();
        check(&mut transposed, &a.transpose().unwrap());
    }
}

#[test]
fn rows_that_repeat_are_stored_once() {
    let device = device();
    let constant = generated("stencil_7", &[("nx", 17.0), ("ny", 16.0), ("nz", 15.0)]).map_values(|_| -1.0);
    let varying = generated("stencil_7", &[("nx", 17.0), ("ny", 16.0), ("nz", 15.0)]);
    let types = KernelConfig::named("csr_scalar").unwrap().value(ValueType::F64).build().unwrap().types();
    let chosen = |a: &CsrMatrix<f64>, l2_bytes: u64, constraints: &Constraints| {
        let found = planner::candidates(&features(a), types, Operation::NonTranspose, l2_bytes, constraints);
        found.unwrap()[0].config
    };
    let any = Constraints::default();
    let config = chosen(&constant, 1000, &any);
    assert_eq!(config.algorithm().name(), "row_patterns");
    let mut plan = Spmv::with(&device, &constant, config).unwrap();
    check(&mut plan, &constant);
    assert_ne!(chosen(&varying, 1000, &any).algorithm().name(), "row_patterns");
    // Within L2 its bytes count for little.
    assert_ne!(chosen(&constant, 1 << 30, &any).algorithm().name(), "row_patterns");
    let mut little = Constraints::default();
    little.max_extra_bytes = Some(plan.workspace_bytes());
    assert_eq!(chosen(&constant, 1000, &little).algorithm().name(), "row_patterns");
    let mut changing = Constraints::default();
    changing.values_change = true;
    assert_eq!(chosen(&constant, 1000, &changing), chosen(&varying, 1000, &changing));
}

#[test]
fn values_are_encoded_where_they_can_be_and_stay() {
    let device = device();
    let encoding = |values, factor: f64, constraints: &Constraints| {
        let generator = Generator::new("gaussian").unwrap().values(values);
        let generator = generator.set("n", 1000.0).unwrap().set("per_row", 22.0).unwrap();
        let a = generator.set("sigma", 100.0).unwrap().generate::<f64, u32>().unwrap();
        let a = a.map_values(|value| value * factor);
        let types = KernelConfig::named("csr_vector").unwrap().value(ValueType::F64).build().unwrap().types();
        let on_device = DeviceMatrix::upload(&device, &a, IndexType::U32).unwrap();
        let found = on_device.features().unwrap();
        let candidates = planner::candidates(&found, types, Operation::NonTranspose, 0, constraints).unwrap();
        let layouts: Vec<_> = candidates
            .iter()
            .filter_map(|candidate| match candidate.config.algorithm() {
                Algorithm::Special(layout) => Some((candidate.config, layout.encoding)),
                _ => None,
            })
            .collect();
        // Sums of halves are exact.
        if [Values::Integers, Values::Ones].contains(&values) && (factor * 2.0).fract() == 0.0 {
            check(&mut Spmv::with(&device, &a, layouts[0].0).unwrap(), &a);
        }
        layouts.into_iter().map(|(_, encoding)| encoding).collect::<BTreeSet<_>>()
    };
    let mut changing = Constraints::default();
    changing.values_change = true;
    for (values, factor, expected) in [
        (Values::Random, 1.0, &[0][..]),
        (Values::Single, 1.0, &[1]),
        (Values::Integers, 1.0, &[1, 3]),
        (Values::Integers, 0.5, &[1, 2]),
        (Values::Integers, 0.1, &[2]),
        (Values::Ones, 1.0, &[1, 3]),
    ] {
        // Where lanes share rows, values that are narrow as well are stored as such.
        assert!(encoding(values, factor, &Constraints::default()).iter().eq(expected), "{values} {factor}");
        assert!(encoding(values, factor, &changing).iter().eq(&[0]), "{values} {factor}");
    }
}

#[test]
fn one_triangle_is_chosen_for() {
    let device = device();
    for a in [
        generated("stencil_5", &[("nx", 30.0), ("ny", 20.0)]),
        generated("tridiagonal", &[("n", 700.0)]),
        // Diagonals that a fifth fills.
        generated("banded", &[("n", 700.0), ("lower", 40.0), ("upper", 40.0), ("fill", 0.2)]),
        generated("rmat", &[("scale", 9.0), ("per_row", 9.0)]),
        generated("giant_row", &[("n", 900.0), ("giant", 700.0), ("per_row", 6.0)]),
    ] {
        let triangle = SymmetricCsr::from_lower_of(Symmetry::Symmetric, &a).unwrap();
        let whole = triangle.to_csr().unwrap();
        let there = Arc::new(DeviceMatrix::upload_symmetric(&device, &triangle, IndexType::U32).unwrap());
        assert_eq!(there.features_of_both_triangles().unwrap(), features(&whole));
        // It is what the whole matrix gets.
        let mut plan = Spmv::auto(&device, &there).unwrap();
        let of_whole = Spmv::auto(&device, &whole).unwrap();
        let settings =
            |plan: &Spmv| plan.config().to_builder().operation(Operation::NonTranspose).build().unwrap();
        assert_eq!(settings(&plan), settings(&of_whole));
        check(&mut plan, &whole);
        // Where there is no memory for both triangles, none that reads them.
        let mut constraints = Constraints::default();
        let most = whole.bytes() as u64 - 1;
        constraints.max_extra_bytes = Some(most);
        let mut plan = Spmv::auto_with(&device, &there, Operation::NonTranspose, &constraints).unwrap();
        let of_triangle = ["sym_csr", "sym_dia"].contains(&plan.config().algorithm().name());
        let program = plan.program();
        let mut kept = program.buffers.iter().filter(|buffer| !buffer.scratch);
        let has_layout = program.slots.is_some() && kept.all(|kept| !kept.name.starts_with("expanded_"));
        assert!(of_triangle || has_layout, "{}", plan.config());
        assert!(plan.workspace_bytes() <= most, "{}", plan.config());
        check(&mut plan, &whole);
    }
}

#[test]
fn constraints_are_kept() {
    let device = device();
    for a in structures() {
        for operation in [Operation::NonTranspose, Operation::Transpose] {
            let mut constraints = Constraints::default();
            constraints.deterministic = true;
            let plan = Spmv::auto_with(&device, &a, operation, &constraints).unwrap();
            assert!(plan.program().guarantees.bit_reproducible, "{}", plan.config());
            let mut constraints = Constraints::default();
            constraints.max_extra_bytes = Some(4096);
            let plan = Spmv::auto_with(&device, &a, operation, &constraints).unwrap();
            assert!(plan.workspace_bytes() <= 4096, "{}", plan.config());
            assert!(!plan.program().guarantees.fill_touches_x, "{}", plan.config());
        }
    }
}

#[test]
fn few_products_do_not_pay_for_much_preparation() {
    let a = generated("stencil_5", &[("nx", 200.0), ("ny", 200.0)]);
    let device = device();
    let mut constraints = Constraints::default();
    constraints.products = 1;
    let plan = Spmv::auto_with(&device, &a, Operation::NonTranspose, &constraints).unwrap();
    assert!(plan.program().prepare.is_empty(), "{}", plan.config());
}

#[test]
fn constraints_that_nothing_keeps_are_told() {
    let a = generated("giant_row", &[("n", 20_000.0), ("giant", 9000.0), ("empty", 0.4)]);
    let mut constraints = Constraints::default();
    constraints.deterministic = true;
    constraints.max_extra_bytes = Some(0);
    let error = Spmv::auto_with(&device(), &a, Operation::Transpose, &constraints).unwrap_err();
    assert!(matches!(error, Error::Constraints { .. }), "{error}");
    assert!(error.to_string().contains("allow more extra bytes"), "{error}");
    // In any order atomics add to y, and need nothing.
    constraints.deterministic = false;
    let plan = Spmv::auto_with(&device(), &a, Operation::Transpose, &constraints).unwrap();
    assert_eq!(plan.config().algorithm().name(), "naive_t");
}
