//! Products against known answers and against each other.

use spmv_codegen::KernelConfig;
use spmv_matrix::generate::{ALL, Generator, Values};
use spmv_matrix::{
    Accumulate, Complex64, CooMatrix, CsrMatrix, MatrixError, Number, Offset, Semiring, Value, ValueType,
    bf16, cpu_parallel, cpu_semiring, cpu_serial, f16, reference, reference_of_complex,
    reference_of_integers, reference_over_operators, reference_over_semiring, underflow, verify,
    verify_of_complex,
};

type Product<V, O> =
    fn(<V as Number>::Sum, &CsrMatrix<V, O>, &[V], <V as Number>::Sum, &mut [V]) -> Result<(), MatrixError>;

fn both<V: Number, O: Offset>() -> [Product<V, O>; 2] {
    [cpu_serial, cpu_parallel]
}

/// [[1, 3, 2], [0, 5, 0]]
fn small<V: Value>() -> CsrMatrix<V> {
    let values = [1.0, 3.0, 2.0, 5.0].map(V::from_f64).to_vec();
    CsrMatrix::new(2, 3, vec![0, 3, 4], vec![0, 1, 2, 1], values).unwrap()
}

fn known_answers<V: Value>() {
    let v = |numbers: &[f64]| numbers.iter().map(|&number| V::from_f64(number)).collect::<Vec<V>>();
    let sum = V::Sum::from_f64;
    let (zero, one) = (sum(0.0), sum(1.0));
    let a = small::<V>();
    let x = v(&[2.0, 1.0, 4.0]);
    for product in both::<V, u32>() {
        let mut y = v(&[f64::NAN, f64::INFINITY]);
        product(one, &a, &x, zero, &mut y).unwrap();
        assert_eq!(y, v(&[13.0, 5.0]));

        let mut y = v(&[1.0, 2.0]);
        product(sum(-1.0), &a, &x, sum(2.0), &mut y).unwrap();
        assert_eq!(y, v(&[-11.0, -1.0]));

        let mut bad = a.clone();
        bad.values_mut()[0] = V::from_f64(f64::NAN);
        let mut y = v(&[1.0, 2.0]);
        product(zero, &bad, &v(&[f64::NAN; 3]), sum(3.0), &mut y).unwrap();
        assert_eq!(y, v(&[3.0, 6.0]), "alpha = 0 leaves beta * y");
        let mut y = v(&[f64::NAN, 2.0]);
        product(zero, &bad, &v(&[f64::NAN; 3]), zero, &mut y).unwrap();
        assert_eq!(y, v(&[0.0, 0.0]), "alpha = beta = 0 is zero");

        product(one, &bad, &x, zero, &mut y).unwrap();
        assert!(y[0].to_f64().is_nan() && y[1].to_f64() == 5.0, "NaN in A stays in its row");
    }
}

#[test]
fn known_answers_over_semirings() {
    let a = CsrMatrix::<f16>::new(
        3,
        3,
        vec![0, 2, 2, 3],
        vec![0, 2, 1],
        [1.0, -3.0, 2.0].map(f16::from_f64).to_vec(),
    );
    let (a, x) = (a.unwrap(), [5.0, 7.0, 2.0].map(f16::from_f64));
    let infinity = f64::INFINITY;
    let expected = [
        (Semiring::PlusTimes, [-1.0, 0.0, 14.0], [3.0, 4.0, 18.0]),
        (Semiring::MinPlus, [-1.0, infinity, 9.0], [-1.0, 4.0, 4.0]),
        (Semiring::MaxPlus, [6.0, -infinity, 9.0], [6.0, 4.0, 9.0]),
        (Semiring::MaxTimes, [5.0, -infinity, 14.0], [5.0, 4.0, 14.0]),
        (Semiring::OrAnd, [1.0, 0.0, 1.0], [1.0, 1.0, 1.0]),
        (Semiring::PlusPair, [2.0, 0.0, 1.0], [6.0, 4.0, 5.0]),
    ];
    assert_eq!(expected.len(), Semiring::ALL.len());
    for (semiring, stored, reduced) in expected {
        let mut y = [f16::NAN; 3];
        cpu_semiring(semiring, &a, &x, Accumulate::Store, &mut y).unwrap();
        assert_eq!(y.map(Value::to_f64), stored, "{semiring}");
        let mut y = [f16::from_f64(4.0); 3];
        cpu_semiring(semiring, &a, &x, Accumulate::Reduce, &mut y).unwrap();
        assert_eq!(y.map(Value::to_f64), reduced, "{semiring}");
        let reference = reference_over_semiring(
            semiring,
            &a.convert::<f32>(),
            &x.map(f32::from),
            Accumulate::Store,
            &[4.0; 3],
        );
        let reference = reference.unwrap();
        assert_eq!((&reference.y[..], &reference.row_nnz[..]), (&stored[..], &[2, 0, 1][..]), "{semiring}");
    }
    let refused =
        cpu_semiring(Semiring::MinPlus, &a, &x[..2], Accumulate::Store, &mut [f16::NAN; 3]).unwrap_err();
    assert!(
        matches!(refused, MatrixError::VectorLength { name: "x", found: 2, expected: 3, .. }),
        "{refused}"
    );
}

#[test]
fn known_answers_f64() {
    known_answers::<f64>();
}

#[test]
fn known_answers_f32() {
    known_answers::<f32>();
}

/// Integers wrap around in the type of sums; a y that is narrower has the last bits.
#[test]
fn known_answers_of_integers() {
    let a = CsrMatrix::<i8>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![127, 127, -128]).unwrap();
    for product in both::<i8, u32>() {
        let mut y = [1i8, 2];
        product(3, &a, &[127, 2], -1, &mut y).unwrap();
        // 3 * (127 * 127 + 127 * 2) - 1 = 49148 and 3 * -256 - 2 = -770.
        assert_eq!(y, [49148i32 as i8, -770i32 as i8]);
    }
    let a = CsrMatrix::<i64>::new(1, 2, vec![0, 2], vec![0, 1], vec![i64::MAX, i64::MAX]).unwrap();
    for product in both::<i64, u32>() {
        let mut y = [i64::MIN];
        product(2, &a, &[1, 1], 1, &mut y).unwrap();
        assert_eq!(y, [i64::MIN.wrapping_sub(4)]);
    }
    let a = CsrMatrix::<u32>::new(1, 1, vec![0, 1], vec![0], vec![u32::MAX]).unwrap();
    for product in both::<u32, u32>() {
        let mut y = [7];
        product(u32::MAX, &a, &[1], 0, &mut y).unwrap();
        assert_eq!(y, [1]);
    }
}

#[test]
fn known_answers_of_halves() {
    known_answers::<f16>();
    known_answers::<bf16>();
}

#[test]
fn matrices_without_entries_scale_y() {
    for (num_rows, num_cols) in [(0, 0), (0, 5), (4, 0), (1, 1), (70_000, 3)] {
        let a =
            CsrMatrix::<f64, u64>::new(num_rows, num_cols, vec![0; num_rows + 1], vec![], vec![]).unwrap();
        let x = vec![f64::NAN; num_cols];
        for product in both() {
            let mut y = vec![1.5; num_rows];
            product(1.0, &a, &x, -2.0, &mut y).unwrap();
            assert!(y.iter().all(|&y| y == -3.0));
            let mut y = vec![f64::NAN; num_rows];
            product(1.0, &a, &x, 0.0, &mut y).unwrap();
            assert!(y.iter().all(|&y| y == 0.0));
        }
    }
}

#[test]
fn lengths_must_fit() {
    let a = small::<f64>();
    for product in both() {
        let error = product(1.0, &a, &[1.0; 2], 0.0, &mut [0.0; 2]).unwrap_err();
        assert_eq!(error.to_string(), "x has 2 entries: a 2 × 3 matrix needs 3");
        let error = product(1.0, &a, &[1.0; 3], 0.0, &mut [0.0; 3]).unwrap_err();
        assert_eq!(error.to_string(), "y has 3 entries: a 2 × 3 matrix needs 2");
    }
    assert!(reference(1.0, &a, &[1.0; 2], 0.0, &[0.0; 2]).is_err());
}

/// Matrices of the structures that products must be right for, with small whole numbers.
fn structures<O: Offset>() -> Vec<(String, CsrMatrix<f64, O>)> {
    let mut all = Vec::new();
    let mut row_lengths =
        |name: &str, lengths: &[usize], num_cols: usize, cols: fn(usize, usize) -> usize| {
            let (mut offsets, mut col_indices) = (vec![O::from_usize(0).unwrap()], Vec::new());
            for (row, &length) in lengths.iter().enumerate() {
                col_indices.extend((0..length).map(|entry| (cols(row, entry) % num_cols) as u32));
                offsets.push(O::from_usize(col_indices.len()).unwrap());
            }
            let values = (0..col_indices.len()).map(|entry| (entry % 7) as f64 - 3.0).collect();
            let matrix = CsrMatrix::new(lengths.len(), num_cols, offsets, col_indices, values).unwrap();
            all.push((name.to_owned(), matrix));
        };
    row_lengths("one row", &[100_000], 100_000, |_, entry| entry);
    row_lengths("one column", &[1; 70_000], 1, |_, _| 0);
    row_lengths(
        "empty first and last rows",
        &[vec![0; 40_000], vec![3; 9], vec![0; 40_000]].concat(),
        99,
        |r, e| r + e,
    );
    row_lengths("unsorted", &[13; 5_000], 977, |row, entry| row * 31 + (13 - entry) * 17);
    row_lengths("duplicates", &[8; 3_000], 50, |row, entry| row + entry / 3);
    row_lengths("full row", &[vec![2; 30_000], vec![60_001], vec![2; 30_000]].concat(), 60_001, |r, e| r + e);
    row_lengths("full column", &[2; 50_000], 50_000, |row, entry| row * entry);
    for around in [1_usize, 31, 32, 33, 15, 16, 17, 255, 256, 257, 8_190, 8_191, 8_192, 8_193, 16_384, 16_386]
    {
        let lengths: Vec<usize> = (0..9).map(|row| [around, around - 1, around + 1, 0][row % 4]).collect();
        row_lengths(&format!("rows of {around}"), &lengths, 40_000, |row, entry| row + 3 * entry);
        row_lengths(&format!("one row of {around}"), &[around], 40_000, |_, entry| entry);
    }
    all
}

fn naive<O: Offset>(alpha: f64, a: &CsrMatrix<f64, O>, x: &[f64], beta: f64, y: &mut [f64]) {
    for (row, y) in y.iter_mut().enumerate() {
        let (cols, values) = a.row(row);
        let sum: f64 = cols.iter().zip(values).map(|(&col, value)| value * x[col as usize]).sum();
        *y = alpha * sum + beta * *y;
    }
}

fn exact_on_structures<O: Offset>() {
    for (name, a) in structures::<O>() {
        let x: Vec<f64> = (0..a.num_cols()).map(|col| (col % 11) as f64 - 5.0).collect();
        let y: Vec<f64> = (0..a.num_rows()).map(|row| (row % 5) as f64).collect();
        for (alpha, beta) in [(1.0, 0.0), (1.0, 1.0), (-2.0, 3.0)] {
            let mut expected = y.clone();
            naive(alpha, &a, &x, beta, &mut expected);
            for product in both() {
                let mut actual = y.clone();
                product(alpha, &a, &x, beta, &mut actual).unwrap();
                assert!(actual == expected, "{name}, alpha = {alpha}, beta = {beta}");
            }
            let reference = reference(alpha, &a, &x, beta, &y).unwrap();
            assert!(reference.y == expected, "{name}");
        }
    }
}

#[test]
fn small_integers_are_exact_on_all_structures() {
    exact_on_structures::<u32>();
    exact_on_structures::<u64>();
}

/// Few enough nonzeros to be quick, many enough to need several blocks.
fn of_class(name: &str) -> Generator {
    let small = |parameter: &str| match parameter {
        "n" => Some(20_000.0),
        "nx" | "ny" if name.ends_with("_5") || name.ends_with("_9") => Some(120.0),
        "nx" | "ny" | "nz" => Some(13.0),
        "rows" | "cols" => Some(if name == "dense" { 400.0 } else { 9_000.0 }),
        "scale" => Some(13.0),
        "dense_length" | "giant" | "longest" => Some(15_000.0),
        "per_row" if name == "rail" => Some(20.0),
        _ => None,
    };
    let generator = Generator::new(name).unwrap();
    let parameters = generator.class().parameters;
    parameters.iter().fold(generator, |generator, parameter| match small(parameter.name) {
        Some(value) => generator.set(parameter.name, value).unwrap(),
        None => generator,
    })
}

#[test]
fn the_number_of_threads_does_not_matter() {
    for class in ALL {
        let a = of_class(class.name).generate::<f32, u32>().unwrap();
        let x: Vec<f32> = (0..a.num_cols()).map(|col| (col as f32 * 0.7).sin()).collect();
        let of_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut y: Vec<f32> = (0..a.num_rows()).map(|row| row as f32).collect();
            pool.install(|| cpu_parallel(0.3, &a, &x, 0.7, &mut y)).unwrap();
            y
        };
        let one = of_threads(1);
        for threads in [2, 3, 8] {
            assert!(of_threads(threads) == one, "{} with {threads} threads", class.name);
        }
    }
}

#[test]
fn products_keep_the_bound() {
    for class in ALL {
        let a = of_class(class.name).seed(3).generate::<f32, u32>().unwrap();
        let x: Vec<f32> = (0..a.num_cols()).map(|col| (col as f32 * 0.7).sin()).collect();
        let y: Vec<f32> = (0..a.num_rows()).map(|row| (row as f32).cos()).collect();
        let (alpha, beta) = (1.1_f32, -0.3_f32);
        let right = reference(f64::from(alpha), &a, &x, f64::from(beta), &y).unwrap();
        let u = f64::from(f32::EPSILON) / 2.0;
        for product in both() {
            let mut y_hat = y.clone();
            product(alpha, &a, &x, beta, &mut y_hat).unwrap();
            let result = verify(&y_hat, &right, |nnz| nnz + 3, u, ValueType::F32, 1e-44);
            assert!(result.passed, "{}: {result:?}", class.name);
        }
        let mut y_hat = y.clone();
        cpu_serial(alpha, &a, &x, beta, &mut y_hat).unwrap();
        let result = verify(&y_hat, &right, |_| 0, u, ValueType::F32, 1e-44);
        assert!(result.passed, "cpu_serial rounds once, {}: {result:?}", class.name);
    }
}

#[test]
fn verify_tells_right_from_wrong() {
    let a = small::<f64>();
    let right = reference(1.0, &a, &[2.0, 1.0, 4.0], 0.0, &[0.0; 2]).unwrap();
    assert_eq!(
        (&right.y[..], &right.magnitude[..], &right.row_nnz[..]),
        (&[13.0, 5.0][..], &[13.0, 5.0][..], &[3, 1][..])
    );
    let check =
        |y_hat: [f64; 2], underflow| verify(&y_hat, &right, |nnz| nnz, 1e-3, ValueType::F64, underflow);
    assert!(check([13.0, 5.0], 0.0).passed);
    assert!(check([13.0 + 0.03, 5.0], 0.0).passed, "within 3 * 1e-3 * 13");
    let wrong = check([13.0, 5.1], 0.0);
    assert!(!wrong.passed && wrong.failed_rows == 1 && wrong.worst_row == Some(1));
    assert!((wrong.max_error_over_bound - 0.1 / 5e-3).abs() < 1e-6, "{wrong:?}");
    assert!(check([13.0, 5.1], 0.2).passed, "the underflow term counts");
    assert!(!check([13.0, 5.1], 0.05).passed, "and is no more than it says");
    let second = check([13.001, 5.1], 0.0);
    assert_eq!((second.worst_row, second.expected, second.actual), (Some(1), 5.0, 5.1));
    for bad in [f64::NAN, f64::INFINITY] {
        let wrong = check([bad, 5.0], 1.0);
        assert!(!wrong.passed && wrong.worst_row == Some(0) && wrong.max_error_over_bound == f64::INFINITY);
    }
    let infinite = reference(1.0, &a, &[f64::INFINITY, 1.0, 4.0], 0.0, &[0.0; 2]).unwrap();
    assert_eq!(infinite.y, [f64::INFINITY, 5.0]);
    assert!(verify(&[f64::INFINITY, 5.0], &infinite, |_| 1, 1e-16, ValueType::F64, 0.0).passed);
    assert!(!verify(&[f64::NAN, 5.0], &infinite, |_| 1, 1e-16, ValueType::F64, 0.0).passed);
    assert!(!verify(&[1e300, 5.0], &infinite, |_| 1, 1e-16, ValueType::F64, 0.0).passed);
}

#[test]
fn sums_that_leave_f64_on_the_way_may_be_finite() {
    let row = |values: &[f64]| {
        let cols = (0..values.len() as u32).collect();
        CsrMatrix::<f64>::new(1, values.len(), vec![0u32, values.len() as u32], cols, values.to_vec())
            .unwrap()
    };
    let of = |alpha: f64, values: &[f64], beta: f64, y: f64| {
        reference(alpha, &row(values), &vec![1.0; values.len()], beta, &[y]).unwrap()
    };
    let right = of(1.0, &[1e308, 1e308, -1e308, -1e308], 0.0, f64::NAN);
    assert_eq!((&right.y[..], &right.magnitude[..]), (&[0.0][..], &[f64::INFINITY][..]));
    let passes = |y: f64| {
        let unit = ValueType::F64.unit_roundoff();
        verify(&[y], &right, |row_nnz| row_nnz, unit, ValueType::F64, 0.0).passed
    };
    // 4 roundings of 4e308, each by 1.1e-16 of it at most.
    assert!(passes(0.0) && passes(1.7e293) && passes(-1.7e293) && !passes(1.8e293) && !passes(5e300));
    // What a kernel has that adds them in their order, or in two halves.
    assert!(passes(f64::INFINITY) && passes(f64::NAN));
    assert_eq!(of(10.0, &[1e308, -3.0], 1.0, -1e308).y, [f64::INFINITY]);
    assert_eq!(of(10.0, &[1e307, 1e307], -1.0, 1e308).y, [1e308]);
    assert_eq!(of(1.0, &[f64::INFINITY, 1e308, -1e308, -1e308], 0.0, 0.0).y, [f64::INFINITY]);
}

#[test]
fn whole_numbers_beyond_f64_are_compared_exactly() {
    let large = (1i64 << 53) + 1;
    let a = CsrMatrix::<i64>::new(2, 1, vec![0u32, 1, 2], vec![0, 0], vec![large, i64::MAX]).unwrap();
    let both = (ValueType::I64, ValueType::I64);
    let of_sums = reference_of_integers(1, &a, &[1], 0, &[0; 2], both).unwrap();
    assert_eq!(of_sums.whole.as_deref(), Some(&[large, i64::MAX][..]));
    let of_least = reference_over_semiring(Semiring::MaxTimes, &a, &[1], Accumulate::Store, &[0; 2]).unwrap();
    for right in [of_sums, of_least.stored_in(ValueType::I64)] {
        let compared = |y: [i64; 2]| verify(&y, &right, |row_nnz| row_nnz, 0.0, ValueType::I64, 0.0);
        assert!(compared([large, i64::MAX]).passed);
        let wrong = compared([large - 1, i64::MAX]);
        assert_eq!((wrong.failed_rows, wrong.worst_row), (1, Some(0)));
        assert_eq!(compared([large, i64::MIN]).worst_row, Some(1));
    }
}

#[test]
fn long_rows_of_pairs_are_counted() {
    let num_cols = (1 << 24) + 3;
    let a = CsrMatrix::<f32>::new(
        1,
        num_cols,
        vec![0u32, num_cols as u32],
        (0..num_cols as u32).collect(),
        vec![2.0; num_cols],
    );
    let (a, x) = (a.unwrap(), vec![0.0; num_cols]);
    let right = reference_over_semiring(Semiring::PlusPair, &a, &x, Accumulate::Reduce, &[2.0]).unwrap();
    assert_eq!((right.y, right.magnitude), (vec![16_777_221.0], vec![16_777_221.0]));
}

#[test]
fn products_and_their_multiples_by_alpha_underflow() {
    let least = f64::from(f32::from_bits(1));
    assert_eq!(underflow(0.5, 100, ValueType::F32, ValueType::F32), 153.0 * least);
    assert_eq!(underflow(-2.0, 10, ValueType::C64, ValueType::C64), f64::from_bits(65));
    assert_eq!(underflow(3.0, 10, ValueType::I64, ValueType::I64), 0.0);
}

#[test]
fn real_coefficients_scale_both_parts() {
    let of = |re: f64, im: f64| Complex64::new(re, im);
    let infinity = f64::INFINITY;
    let a = CooMatrix::new(1, 1, vec![0], vec![0], vec![of(1.0, 2.0)]).unwrap().to_csr::<u32>().unwrap();
    for product in both::<Complex64, u32>() {
        let mut y = [of(-1.0, 5.0)];
        product(of(2.0, 0.0), &a, &[of(infinity, 1.0)], of(3.0, 0.0), &mut y).unwrap();
        assert_eq!(y, [of(infinity, infinity)]);
        let mut y = [of(infinity, 5.0)];
        product(of(2.0, 0.0), &a, &[of(1.0, 0.0)], of(3.0, 0.0), &mut y).unwrap();
        assert_eq!(y, [of(infinity, 19.0)]);
        let mut y = [of(infinity, 5.0)];
        product(of(0.0, 0.0), &a, &[of(1.0, 0.0)], of(3.0, 0.0), &mut y).unwrap();
        assert_eq!(y, [of(infinity, 15.0)]);
        let mut y = [of(7.0, 5.0)];
        product(of(0.0, 2.0), &a, &[of(1.0, 0.0)], of(0.0, 1.0), &mut y).unwrap();
        assert_eq!(y, [of(-4.0 - 5.0, 2.0 + 7.0)]);
    }
}

#[test]
fn the_bound_grows_with_alpha_and_beta() {
    let right = reference(-3.0, &small::<f64>(), &[2.0, -1.0, 4.0], 0.5, &[4.0, -8.0]).unwrap();
    assert_eq!((&right.y[..], &right.magnitude[..]), (&[-19.0, 11.0][..], &[41.0, 19.0][..]));
    let values = vec![Complex64::new(0.0, 2.0), Complex64::new(3.0, 0.0)];
    let a = CooMatrix::new(2, 2, vec![0, 1], vec![0, 1], values).unwrap().to_csr::<u32>().unwrap();
    let y = [Complex64::new(0.0, 8.0), Complex64::new(6.0, 0.0)];
    let (alpha, beta) = (Complex64::new(0.0, -3.0), Complex64::new(0.5, 0.0));
    let [re, im] = reference_of_complex(alpha, &a, &[Complex64::new(3.0, 4.0); 2], beta, &y).unwrap();
    assert_eq!((&re.y[..], &im.y[..]), (&[18.0, 39.0][..], &[28.0, -27.0][..]));
    assert_eq!((&re.magnitude[..], &im.magnitude[..]), (&[34.0, 48.0][..], &[34.0, 48.0][..]));
}

#[test]
fn a_complex_row_is_as_far_off_as_its_worse_part() {
    let a = CooMatrix::new(
        2,
        2,
        vec![0, 1],
        vec![0, 1],
        vec![Complex64::new(0.0, 2.0), Complex64::new(3.0, 0.0)],
    );
    let a = a.unwrap().to_csr::<u32>().unwrap();
    let (x, one, zero) = ([Complex64::new(1.0, 1.0); 2], Complex64::new(1.0, 0.0), Complex64::default());
    let right = reference_of_complex(one, &a, &x, zero, &[zero; 2]).unwrap();
    let compared = |re: f64, im: f64| {
        let y_hat = [Complex64::new(-2.0, 2.0), Complex64::new(re, im)];
        verify_of_complex(&y_hat, &right, |nnz| 2 * nnz, 1e-3, ValueType::C64, 0.0)
    };
    let exact = compared(3.0, 3.0);
    assert!(exact.passed && exact.rows == 2 && exact.max_error_over_bound == 0.0);
    assert!(compared(3.0, 3.001).passed);
    for (re, im, expected, actual) in
        [(3.0, 3.1, 3.0, 3.1), (-3.0, 3.1, 3.0, -3.0), (f64::NAN, 3.0, 3.0, f64::NAN)]
    {
        let wrong = compared(re, im);
        assert_eq!((wrong.passed, wrong.failed_rows, wrong.worst_row), (false, 1, Some(1)));
        assert_eq!(wrong.expected, expected);
        assert!(wrong.actual == actual || (wrong.actual.is_nan() && actual.is_nan()));
    }
}

#[test]
fn bounds_of_long_rows_are_numbers() {
    let row = |num_cols: usize| {
        let cols = (0..num_cols as u32).collect();
        CsrMatrix::<f32>::new(1, num_cols, vec![0u32, num_cols as u32], cols, vec![1.0; num_cols]).unwrap()
    };
    let num_cols = 1 << 24;
    let right = reference(1.0, &row(num_cols), &vec![1.0; num_cols], 0.0, &[0.0]).unwrap();
    let found = |y: f32| {
        let half_an_ulp = 2f64.powi(-24);
        verify(&[y], &right, |row_nnz| row_nnz, half_an_ulp, ValueType::F32, 0.0)
    };
    // (1 + 2⁻²⁴)^(2²⁴) − 1 is e − 1.
    assert!(found(2.7e0 * num_cols as f32).passed && !found(2.72e0 * num_cols as f32).passed);
    let wrong = found(1.5 * num_cols as f32);
    assert!((wrong.max_error_over_bound - 0.5 / 1.718).abs() < 1e-3, "{}", wrong.max_error_over_bound);
}

#[test]
fn reductions_that_round_have_a_bound_and_others_are_exact() {
    let a = CsrMatrix::<f32>::new(1, 3, vec![0u32, 3], vec![0, 1, 2], vec![1.0, -3.0, 2.5]).unwrap();
    let reduced = |reduce: &'static str, identity: &'static str| {
        let settings = [("reduce", reduce), ("identity", identity)];
        let operators = KernelConfig::from_settings("csr_vector", settings).unwrap().operators();
        reference_over_operators(&operators, &a, &[1.0; 3], Accumulate::Store, &[0.0]).unwrap()
    };
    let sum = reduced("|s, t| s + t", "0.0");
    assert_eq!((sum.y, sum.magnitude), (vec![0.5], vec![6.5]));
    let least = reduced("|s, t| s.min(t)", "f32::INFINITY");
    assert_eq!((least.y, least.magnitude), (vec![-3.0], vec![0.0]));
}

#[test]
fn whole_numbers_are_kept_as_their_type_holds_them() {
    let a = CsrMatrix::<i32>::new(1, 130, vec![0u32, 130], (0..130).collect(), vec![-2; 130]).unwrap();
    let over = |semiring| reference_over_semiring(semiring, &a, &[0; 130], Accumulate::Store, &[0]).unwrap();
    let pairs = over(Semiring::PlusPair);
    assert_eq!(pairs.clone().stored_in(ValueType::I8).y, [-126.0]);
    assert_eq!(pairs.clone().stored_in(ValueType::I64), pairs);
    assert_eq!(over(Semiring::MinPlus).stored_in(ValueType::U32).y, [4_294_967_294.0]);
}

#[test]
fn the_reference_survives_cancellation() {
    let a = CooMatrix::new(1, 4, vec![0; 4], vec![0, 1, 2, 3], vec![1e16, 1.0, -1e16, 1e-3]).unwrap();
    let a = a.to_csr::<u32>().unwrap();
    let right = reference(1.0, &a, &[1.0; 4], 0.0, &[0.0]).unwrap();
    assert_eq!(right.y, [1.001]);
    let mut y = [0.0];
    cpu_serial(1.0, &a, &[1.0; 4], 0.0, &mut y).unwrap();
    assert_eq!(y, [1.001]);
}

#[test]
fn the_reference_keeps_what_products_round_off() {
    let e = f64::from_bits(0x3e10_0000_0000_0000); // 2⁻³⁰
    let a = CsrMatrix::<f64>::new(1, 3, vec![0, 3], vec![0, 1, 2], vec![1.0 + e, -1.0, -2.0 * e]).unwrap();
    let right = reference(1.0, &a, &[1.0 + e, 1.0, 1.0], 0.0, &[0.0]).unwrap();
    assert_eq!(right.y, [e * e]);
    let right = reference(3.0, &a, &[1.0 + e, 1.0, 1.0], 0.5, &[1.0]).unwrap();
    assert_eq!(right.y, [0.5 + 3.0 * e * e]);
}

#[test]
fn whole_numbers_are_exact_in_every_class() {
    for class in ALL {
        let a = of_class(class.name).values(Values::Integers).generate::<f64, u64>().unwrap();
        let x: Vec<f64> = (0..a.num_cols()).map(|col| (col % 9) as f64 - 4.0).collect();
        let (mut serial, mut parallel) = (vec![1.0; a.num_rows()], vec![1.0; a.num_rows()]);
        cpu_serial(2.0, &a, &x, -1.0, &mut serial).unwrap();
        cpu_parallel(2.0, &a, &x, -1.0, &mut parallel).unwrap();
        assert!(serial == parallel, "{}", class.name);
    }
}
