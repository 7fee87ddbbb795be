//! The formats of `sym_csr`'s plan, and what the algorithm takes; where threads of `sym_dia` walk, with stages or without, and that it changes no bit.

use spmv_codegen::{Algorithm, KernelConfig, Operation, StorageFormat, SymCsr, SymDia, ValueType};
use spmv_matrix::{Complex64, CsrMatrix, SymmetricCsr, Symmetry, cpu_serial_symmetric};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, Element, Scalar, Spmv, Vector};

/// A lower triangle whose row `i` has the columns `columns(i)`, with whole numbers that sums hold exactly: those of
/// `number`, from each entry's row and column.
fn triangle<V: Element>(
    symmetry: Symmetry,
    n: usize,
    number: impl Fn(usize, usize) -> V,
    columns: impl Fn(usize) -> Vec<usize>,
) -> SymmetricCsr<V> {
    let (mut row_offsets, mut cols, mut values) = (vec![0u32], vec![], vec![]);
    for row in 0..n {
        for col in columns(row) {
            cols.push(col as u32);
            values.push(number(row, col));
        }
        row_offsets.push(cols.len() as u32);
    }
    SymmetricCsr::new(symmetry, CsrMatrix::new(n, n, row_offsets, cols, values).unwrap()).unwrap()
}

fn real(row: usize, col: usize) -> f64 {
    ((row * 7 + col * 3) % 9) as f64 - 4.0
}

/// With an imaginary part but on the diagonal.
fn complex(row: usize, col: usize) -> Complex64 {
    let im = if row == col { 0.0 } else { ((row + col * 5) % 7) as f64 - 3.0 };
    Complex64::new(real(row, col), im)
}

/// Multiplies on the simulator, compares, and returns whether the plan's format is the wide one.
fn is_wide<V: Element<Sum = V> + Into<Scalar>>(
    a: &SymmetricCsr<V>,
    number: impl Fn(usize, usize) -> V,
) -> bool {
    let device = Device::simulator();
    let x: Vec<V> = (0..a.num_rows()).map(|i| number(i, i % 11)).collect();
    let (alpha, beta) = (number(5, 2), number(2, 7));
    let mut expected = x.clone();
    cpu_serial_symmetric(alpha, a, &x, beta, &mut expected).unwrap();
    let config = KernelConfig::builder(SymCsr::default()).value(V::TYPE).build().unwrap();
    let mut plan = Spmv::with(&device, a, config).unwrap();
    let mut y = Vector::from_slice(&device, &x).unwrap();
    plan.apply(alpha, &Vector::from_slice(&device, &x).unwrap(), beta, &mut y).unwrap();
    assert!(y.to_vec().unwrap() == expected);
    let wide = plan.counts().find(|(name, _)| *name == "wide").unwrap().1;
    assert!(wide <= 1);
    wide == 1
}

#[test]
fn sixteen_bits_serve_as_far_as_they_reach() {
    let far = |row: usize, reach: usize| match row {
        65_550.. => vec![row - 1, row - reach.min(row)],
        _ => vec![],
    };
    for (reach, wide) in [(65_535, false), (65_536, true)] {
        for symmetry in [Symmetry::Symmetric, Symmetry::SkewSymmetric] {
            let a = triangle(symmetry, 65_600, real, |row| far(row, reach));
            assert_eq!(is_wide(&a, real), wide, "{reach}");
        }
        let a = triangle(Symmetry::Hermitian, 65_600, complex, |row| far(row, reach));
        assert_eq!(is_wide(&a, complex), wide, "{reach}");
    }
}

#[test]
fn long_rows_and_columns_are_the_warps() {
    // Row 700 and column 0 are long in one triangle, rows around 300 just are and just are not.
    let columns = |row: usize| match row {
        700 => (0..700).collect(),
        250..260 => (0..row).rev().collect(),
        1.. => vec![0, row / 2],
        0 => vec![],
    };
    assert!(!is_wide(&triangle(Symmetry::SkewSymmetric, 900, real, columns), real));
    assert!(!is_wide(&triangle(Symmetry::Hermitian, 900, complex, columns), complex));
    // All rows of a slice are long, and their places together reach beyond 16 bits.
    let dense = triangle(Symmetry::Symmetric, 2_250, real, |row| {
        if row >= 2_208 { (0..=row).collect() } else { vec![row] }
    });
    assert!(is_wide(&dense, real));
}

#[test]
fn one_triangle_is_what_it_takes() {
    let spec = Algorithm::from(SymCsr::default()).spec();
    assert_eq!(spec.operations, [Operation::Symmetric, Operation::SkewSymmetric, Operation::Hermitian]);
    for (&operation, storage) in spec.operations.iter().zip([
        StorageFormat::Symmetric,
        StorageFormat::SkewSymmetric,
        StorageFormat::Hermitian,
    ]) {
        let builder = KernelConfig::builder(SymCsr::default()).value(ValueType::C32);
        let config = builder.operation(operation).build().unwrap();
        assert_eq!(config.program().storage, storage);
        assert_eq!(storage.of_arrays(Operation::NonTranspose), Some(operation));
    }
    let full =
        KernelConfig::builder(SymCsr::default()).operation(Operation::NonTranspose).build().unwrap_err();
    assert!(full.to_string().contains("symmetric"), "{full}");
    for (value, x) in [(ValueType::F64, ValueType::F64), (ValueType::F32, ValueType::C32)] {
        let builder = KernelConfig::builder(SymCsr::default()).value(value).x(x).y(x);
        let error = builder.operation(Operation::Hermitian).build().unwrap_err();
        assert_eq!(error.key(), "operation");
        assert_eq!(
            error.to_string(),
            format!(
                "operation = hermitian mirrors conjugates, and value = {value} has no imaginary part: use operation = \
                 symmetric, which is the same there, or value = c32, c64"
            )
        );
    }
}

/// Multiplies in blocks of 32 threads that walk, with x so many entries behind whole 16 bytes, compares with the product in which
/// nobody walks, bit for bit, and says the count of this name: how far a step of the walk is, 0 where nobody walked.
fn walked<V: Element<Sum = V> + Into<Scalar>>(
    device: &Device,
    a: &SymmetricCsr<V>,
    (walking, count): (SymDia, &str),
    behind: usize,
    number: impl Fn(usize, usize) -> V,
) -> u64 {
    let n = a.num_rows();
    let x: Vec<V> = (0..behind + n).map(|i| number(i, i % 13)).collect();
    let (alpha, beta) = (number(5, 2), number(2, 7));
    let held_x = Vector::from_slice(device, &x).unwrap();
    let address = held_x.address() + (behind * size_of::<V>()) as u64;
    // SAFETY: `held_x` lives as long, and has as many entries behind the address.
    let device_x: Vector<V> = unsafe { Vector::from_raw(device, address, n) };
    let product = |algorithm: SymDia| {
        let config = KernelConfig::builder(algorithm).value(V::TYPE);
        let config = config.threads_per_block(32).build().unwrap();
        let mut plan = Spmv::with(device, a, config).unwrap();
        let mut y = Vector::from_slice(device, &x[behind..]).unwrap();
        plan.apply(alpha, &device_x, beta, &mut y).unwrap();
        plan.apply(alpha, &device_x, beta, &mut y).unwrap();
        let distance = plan.counts().find(|(name, _)| *name == count).map(|(_, count)| count);
        (y.to_vec().unwrap(), distance)
    };
    let (still, distance) = product(SymDia { walk: 0, ..SymDia::default() });
    assert_eq!(distance, None);
    let (y, distance) = product(walking);
    assert!(y == still, "{n} rows, {walking:?}, x {behind} behind");
    distance.unwrap()
}

#[test]
fn walking_along_the_farthest_diagonal_changes_no_bit() {
    let hashed = |row: usize, col: usize| {
        let mixed = (row as u64 * 0x9e37_79b9 + col as u64 * 0x85eb_ca6b).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed >> 40) as f64 / 8192.0 - 1000.3
    };
    let mixed = |row: usize, col: usize| {
        Complex64::new(hashed(row, col), if row == col { 0.0 } else { hashed(col + 1, row) })
    };
    let devices = [Schedule::Natural, Schedule::Adversarial(3)].map(Device::simulator_with);
    let gpu = Device::cuda(0).ok();
    for device in devices.iter().chain(&gpu) {
        // Points, distances of what is stored below the main diagonal, whether the main one is, and whether that is walked: last
        // steps and stretches that are cut short, a distance as long as half of the rows and as almost all, too short a one, two
        // that lie together, and more than can be.
        for (n, distances, has_main, walks) in [
            (37 * 21, &[1, 37][..], true, true),
            (40 * 9 * 8 + 3, &[1, 9, 360], true, true),
            (700, &[64], true, true),
            (700, &[65], false, true),
            (700, &[3, 350], false, true),
            (300, &[1, 299], true, true),
            (64 * 50, &[1, 64], true, true),
            (500, &[1, 20], true, false),
            (2000, &[1, 98, 99], true, false),
            (3000, &[1, 2, 3, 300], true, false),
            (400, &[], true, false),
        ] {
            let columns = |row: usize| {
                let below = distances.iter().rev().filter_map(|distance| row.checked_sub(*distance));
                // Some are missing, as at the edges of a grid.
                let below = below.filter(|col| !(row + col).is_multiple_of(11));
                below.chain(has_main.then_some(row)).collect::<Vec<_>>()
            };
            for walk in [1, 8] {
                let walk = (SymDia { walk, ..SymDia::default() }, "walked_distance");
                let expected = if walks { *distances.last().unwrap() as u64 } else { 0 };
                for symmetry in [Symmetry::Symmetric, Symmetry::SkewSymmetric] {
                    if symmetry == Symmetry::SkewSymmetric && has_main {
                        continue;
                    }
                    let a = triangle(symmetry, n, hashed, columns);
                    assert_eq!(walked(device, &a, walk, 0, hashed), expected, "{n} {distances:?}");
                    let single = |row, col| hashed(row, col) as f32;
                    let a = triangle(symmetry, n, single, columns);
                    assert_eq!(walked(device, &a, walk, 0, single), expected, "{n} {distances:?}");
                }
                let a = triangle(Symmetry::Hermitian, n, mixed, columns);
                assert_eq!(walked(device, &a, walk, 0, mixed), expected, "{n} {distances:?}");
            }
        }
    }
    // Rows that hold a position twice are not walked.
    let twice = |row: usize| if row >= 40 { vec![row - 40, row - 40, row] } else { vec![row] };
    let a = triangle(Symmetry::Symmetric, 400, hashed, twice);
    assert_eq!(
        walked(&devices[0], &a, (SymDia { walk: 8, ..SymDia::default() }, "walked_distance"), 0, hashed),
        0
    );
}

#[test]
fn walking_with_stages_changes_no_bit() {
    let hashed = |row: usize, col: usize| {
        let mixed = (row as u64 * 0x9e37_79b9 + col as u64 * 0x85eb_ca6b).wrapping_mul(0xff51_afd7_ed55_8ccd);
        (mixed >> 40) as f64 / 8192.0 - 1000.3
    };
    let single = |row, col| hashed(row, col) as f32;
    let mixed = |row: usize, col: usize| {
        Complex64::new(hashed(row, col), if row == col { 0.0 } else { hashed(col + 1, row) })
    };
    let staged = |walk, stage_kib| (SymDia { walk, stage_kib, ..SymDia::default() }, "staged_distance");
    let gpu = Device::cuda(0).ok();
    let devices = [Schedule::Natural, Schedule::Adversarial(3)].map(Device::simulator_with);
    for device in devices.iter().chain(&gpu) {
        // Points, distances of what is stored below the main diagonal, whether the main one is, and how far a step is: tiles and
        // last steps that are cut short, far ones that lie together or alone or are all there are, gaps of the same width,
        // steps that take turns with the stages, distances of odd and even parts, rows too few for a second step, and what takes more room than there is.
        for (n, distances, has_main, step) in [
            (12 * 11 * 9, &[1, 11, 12, 13, 119, 120, 121, 131, 132, 133, 143, 144, 145][..], true, 132),
            (199 * 11 - 5, &[1, 198, 199, 200], true, 199),
            (257 * 6 + 1, &[2, 255, 257, 258], false, 256),
            (1400, &[1, 170, 176], true, 173),
            (12 * 11 * 42, &[1, 11, 12, 13, 119, 120, 121, 131, 132, 133, 143, 144, 145], true, 132),
            (900, &[64, 65, 66], false, 65),
            (150, &[1, 99, 100, 101], true, 100),
            (120, &[1, 100], true, 100),
            (2000, &[40], true, 40),
            (800, &[1, 20, 21], true, 0),
            (3000, &[140, 300, 301], true, 0),
            (20_100, &[1, 9000, 20_000], true, 0),
            (400, &[], true, 0),
        ] {
            let columns = |row: usize| {
                let below = distances.iter().rev().filter_map(|distance| row.checked_sub(*distance));
                // Some are missing, as at the edges of a grid.
                let below = below.filter(|col| !(row + col).is_multiple_of(11));
                below.chain(has_main.then_some(row)).collect::<Vec<_>>()
            };
            let far = distances
                .iter()
                .filter(|distance| 2 * *distance > distances.last().copied().unwrap_or(0))
                .count();
            let a = triangle(Symmetry::Symmetric, n, single, columns);
            for behind in [0, 1, 3] {
                assert_eq!(walked(device, &a, staged(0, 112), behind, single), step, "{n} {distances:?}");
            }
            // A thread keeps what mirrors a farthest diagonal that lies alone.
            let expected = if far > 1 { step } else { 0 };
            assert_eq!(walked(device, &a, staged(1, 112), 2, single), expected, "{n} {distances:?}");
            if !has_main {
                let a = triangle(Symmetry::SkewSymmetric, n, hashed, columns);
                assert_eq!(walked(device, &a, staged(0, 112), 1, hashed), step, "{n} {distances:?}");
            }
            let a = triangle(Symmetry::Symmetric, n, hashed, columns);
            assert_eq!(walked(device, &a, staged(0, 224), 0, hashed), step, "{n} {distances:?}");
            let a = triangle(Symmetry::Hermitian, n, mixed, columns);
            assert_eq!(walked(device, &a, staged(0, 224), 0, mixed), step, "{n} {distances:?}");
        }
    }
    // Rows that hold a position twice are not walked.
    let twice = |row: usize| if row >= 41 { vec![row - 41, row - 40, row - 40, row] } else { vec![row] };
    let a = triangle(Symmetry::Symmetric, 400, hashed, twice);
    assert_eq!(walked(&devices[0], &a, staged(1, 112), 0, hashed), 0);
}
