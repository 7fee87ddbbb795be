//! Calls that are not allowed, each with the error that it gives: of which kind, what was wrong, and what is allowed.

use std::fmt::{Debug, Display};
use std::sync::Arc;

use spmv_runtime::cache::{CacheLocation, DiskCache};
use spmv_runtime::matrix::format::{
    BccooMatrix, BccooParameters, BsrMatrix, BsrParameters, DiaMatrix, DokMatrix, EllMatrix, Format,
    PktMatrix, PktParameters, SellMatrix, SellParameters,
};
use spmv_runtime::matrix::generate::Generator;
use spmv_runtime::matrix::{
    Complex32, CooMatrix, CscMatrix, CsrMatrix, SymmetricCsr, Symmetry, cpu_parallel, cpu_serial,
    matrix_market, scipy,
};
use spmv_runtime::planner::Model;
use spmv_runtime::tuning::Choice;
use spmv_runtime::{
    Budget, Coefficient, Compiler, ConfigError, Constraints, CsrVector, Device, DeviceMatrix, IndexType,
    KernelConfig, MatrixSource, Operation, Semiring, Special, Spmv, StorageFormat, Types, ValueType, Vector,
};

/// A call, what it told and what it should.
struct Call {
    call: &'static str,
    told: (String, String),
    kind: &'static str,
    message: &'static str,
}

/// Each call with the variant of its error and its message, or how that begins: `…` stands for lists that grow, and for what
/// the compiler or the system says.
macro_rules! calls {
    ($($call:expr => $kind:literal, $message:literal;)*) => {
        [$(Call { call: stringify!($call), told: told($call), kind: $kind, message: $message }),*]
    };
}

/// The names of an error's variant and of the one inside it, and its message.
fn told<T>(result: Result<T, impl Debug + Display>) -> (String, String) {
    match result {
        Ok(_) => ("accepted".into(), String::new()),
        Err(error) => {
            let debug = format!("{error:?}");
            let names = debug.split(['(', ' ']).map_while(|part| {
                let is_name = part.starts_with(char::is_uppercase) && part.chars().all(char::is_alphanumeric);
                is_name.then(|| part.to_owned())
            });
            (names.collect::<Vec<_>>().join("/"), without_version(&error.to_string()))
        }
    }
}

/// A message with V for the version of NVRTC that there is.
fn without_version(message: &str) -> String {
    match message.split_once("NVRTC ") {
        Some(("", rest)) => format!("NVRTC V {}", rest.split_once(' ').map_or("", |(_, rest)| rest)),
        _ => message.to_owned(),
    }
}

fn check(what: &str, calls: &[Call]) {
    println!("{} bad calls of {what}, each a typed error", calls.len());
    let wrong: Vec<_> = calls
        .iter()
        .filter(|call| {
            let (kind, message) = &call.told;
            let as_said = match call.message.strip_suffix('…') {
                Some(beginning) => message.starts_with(beginning),
                None => message == call.message,
            };
            kind != call.kind || !as_said
        })
        .map(|call| {
            format!(
                "{}\n  {}: {}\n  not {}: {}",
                call.call, call.told.0, call.told.1, call.kind, call.message
            )
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A configuration from an algorithm and settings in text.
fn set(algorithm: &str, settings: &[(&str, &str)]) -> Result<KernelConfig, ConfigError> {
    KernelConfig::from_settings(algorithm, settings.iter().copied())
}

fn named(algorithm: &str) -> KernelConfig {
    set(algorithm, &[]).expect("an algorithm's defaults")
}

fn with_epilogue(epilogue: &str) -> KernelConfig {
    set("csr_vector", &[("epilogue", epilogue), ("vectors", "[b]"), ("scalars", "[c]")]).expect("it is right")
}

/// 2 rows, 3 columns, 4 entries.
fn matrix() -> CsrMatrix<f32> {
    CsrMatrix::new(2, 3, vec![0, 3, 4], vec![0, 1, 2, 1], vec![1.0, 3.0, 2.0, 5.0]).expect("a matrix")
}

fn square(values: [f64; 3]) -> CsrMatrix<f64> {
    CsrMatrix::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], values.to_vec()).expect("a matrix")
}

/// One full row, and many empty ones.
fn giant(num_rows: usize, num_cols: usize) -> CsrMatrix<f32> {
    let offsets = std::iter::once(0).chain(std::iter::repeat_n(num_cols as u32, num_rows)).collect();
    CsrMatrix::new(num_rows, num_cols, offsets, (0..num_cols as u32).collect(), vec![1.0; num_cols])
        .expect("a matrix")
}

#[test]
fn configurations() {
    check(
        "configurations",
        &calls! {
            KernelConfig::named("csr_vectr") => "Algorithm/UnknownName", "unknown algorithm `csr_vectr`; allowed: csr_scalar, csr_vector, …";
            KernelConfig::named("") => "Algorithm/UnknownName", "unknown algorithm ``; allowed: csr_scalar, csr_vector, …";
            set("csr_vector", &[("min_blocks", "2")]) => "Key", "csr_vector has no setting `min_blocks`; allowed: threads_per_vector, …";
            set("csr_vector", &[("threads_per_vector", "7")]) => "Value", "`threads_per_vector` cannot be `7`; allowed: 2, 4, 8, 16, 32";
            set("csr_vector", &[("threads_per_vector", "-8")]) => "Value", "`threads_per_vector` cannot be `-8`; allowed: 2, 4, 8, 16, 32";
            set("csr_vector", &[("threads_per_block", "96")]) => "Value", "`threads_per_block` cannot be `96`; allowed: 32, 64, 128, 256, 512, 1024";
            set("csr_vector", &[("value", "f128")]) => "Value", "`value` cannot be `f128`; allowed: f16, bf16, f32, f64, i8, i32, i64, u32, bool, c32, c64";
            set("csr_vector", &[("value", "")]) => "Value", "`value` cannot be ``; allowed: f16, bf16, f32, f64, i8, i32, i64, u32, bool, c32, c64";
            set("csr_vector", &[("accumulator", "f16")]) => "Value", "`accumulator` cannot be `f16`; allowed: f32, f64, i32, i64, u32, bool, c32, c64";
            set("csr_vector", &[("offset", "i32")]) => "Value", "`offset` cannot be `i32`; allowed: u32, u64";
            set("csr_vector", &[("index", "u64")]) => "Value", "`index` cannot be `u64`: a matrix has fewer than 2^31 columns, so no index needs 64 bits; allowed: u16, u32";
            set("csr_vector", &[("offset", "u16")]) => "Value", "`offset` cannot be `u16`; allowed: u32, u64";
            set("dia", &[("index", "u16")]) => "Combination", "dia keeps columns in a form of its own, which index = u16 makes no smaller; use index = u32, or one of csr_scalar, …";
            set("csr_vector", &[("operation", "inverse")]) => "Value", "`operation` cannot be `inverse`; allowed: non_transpose, transpose, symmetric, skew_symmetric, hermitian";
            set("csr_vector", &[("semiring", "min_times")]) => "Value", "`semiring` cannot be `min_times`; allowed: plus_times, min_plus, max_plus, max_times, or_and, plus_pair";
            set("csr_vector", &[("alpha", "2")]) => "Value", "`alpha` cannot be `2`; allowed: any, device, 1, -1";
            set("csr_vector", &[("alpha", "0")]) => "Value", "`alpha` cannot be `0`; allowed: any, device, 1, -1";
            set("csr_vector", &[("beta", "0.5")]) => "Value", "`beta` cannot be `0.5`; allowed: any, device, 0, 1, -1";
            KernelConfig::builder(CsrVector::default()).threads_per_block(0).build() => "Value", "`threads_per_block` cannot be `0`; allowed: 32, 64, 128, 256, 512, 1024";
            KernelConfig::builder(CsrVector { threads_per_vector: 3, ..CsrVector::default() }).build() => "Value", "`threads_per_vector` cannot be `3`; allowed: 2, 4, 8, 16, 32";
            KernelConfig::builder(Special { lanes_per_row: 64, ..Special::default() }).build() => "Value", "`lanes_per_row` cannot be `64`; allowed: 1, 2, 4, 8, 16, 32";
            KernelConfig::builder(Special { block: 6, rows_per_lane: 4, ..Special::default() }).build() => "Combination", "a lane has at most 72 values in a step";
            set("special", &[("value", "i32")]) => "Combination", "special encodes floating-point values, and value = i32 is none; use sell_c_sigma or another algorithm; allowed: f16, bf16, f32, f64";
            KernelConfig::builder(CsrVector::default()).index(IndexType::U64).build() => "Value", "`index` cannot be `u64`: a matrix has fewer than 2^31 columns, so no index needs 64 bits; allowed: u16, u32";
            KernelConfig::builder(CsrVector::default()).alpha(Coefficient::Zero).build() => "Value", "`alpha` cannot be `0`; allowed: any, device, 1, -1";
            KernelConfig::builder(CsrVector::default()).accumulator(ValueType::I8).build() => "Value", "`accumulator` cannot be `i8`; allowed: f32, f64, i32, i64, u32, bool, c32, c64";
            set("hola_t", &[("operation", "symmetric")]) => "Operation", "hola_t computes transpose, not symmetric, which is computed by csr_scalar, csr_vector, …";
            set("naive_t", &[("operation", "none")]) => "Value", "`operation` cannot be `none`; allowed: non_transpose, transpose, symmetric, skew_symmetric, hermitian";
            set("sym_csr", &[("operation", "hermitian")]) => "Combination", "operation = hermitian mirrors conjugates, and value = f32 has no imaginary part: use operation = symmetric, which is the same there, or value = c32, c64";
            set("hola", &[("semiring", "or_and")]) => "Semiring", "hola computes over plus_times, not or_and, over which csr_scalar, csr_vector, …";
            set("csr_vector", &[("semiring", "min_plus"), ("alpha", "any")]) => "Combination", "alpha = any would scale a product over min_plus, which is stored or reduced with y; allowed: 1";
            set("csr_vector", &[("semiring", "min_plus"), ("beta", "-1")]) => "Combination", "beta = -1 would scale a product over min_plus, which is stored or reduced with y; allowed: any, device, 0, 1";
            set("csr_vector", &[("value", "f64"), ("accumulator", "f32")]) => "Combination", "accumulator = f32 is narrower than value = f64; allowed: f64";
            set("csr_vector", &[("value", "i32"), ("accumulator", "f64")]) => "Combination", "y = i32 is integer and sums in f64 are real; allowed: f16, bf16, f32, f64";
            set("csr_vector", &[("value", "c32"), ("y", "f32"), ("accumulator", "f32")]) => "Combination", "accumulator = f32 cannot sum value = c32: it has no imaginary part; allowed: c32, c64";
            set("csr_vector", &[("value", "bool")]) => "Combination", "accumulator = bool: truth values are combined by or_and, not by plus_times; use semiring = or_and, or y and accumulator of a type of numbers";
            set("csr_vector", &[("value", "u32"), ("alpha", "-1")]) => "Combination", "alpha = -1 is no u32, which sums are in; allowed: any, device, 1";
            set("csr_vector", &[("value", "c32"), ("semiring", "min_plus")]) => "Combination", "accumulator = c32: complex numbers are combined by plus_times, not by min_plus; use types that are not complex";
            set("dia", &[("value", "i32")]) => "Combination", "dia marks fill by bits that no value has, and value = i32 has a use for all; use ell, sell_c_sigma or an algorithm without a layout";
            "f80".parse::<ValueType>() => "UnknownName", "unknown value type `f80`; allowed: f16, bf16, f32, f64, i8, i32, i64, u32, bool, c32, c64";
            "u8".parse::<IndexType>() => "UnknownName", "unknown index type `u8`; allowed: u16, u32, u64";
            "inverse".parse::<Operation>() => "UnknownName", "unknown operation `inverse`; allowed: non_transpose, transpose, symmetric, skew_symmetric, hermitian";
            "csr5".parse::<StorageFormat>() => "UnknownName", "unknown storage format `csr5`; allowed: csr, csc, symmetric, skew_symmetric, hermitian";
            "plus".parse::<Semiring>() => "UnknownName", "unknown semiring `plus`; allowed: plus_times, min_plus, max_plus, max_times, or_and, plus_pair";
        },
    );
}

#[test]
fn functions_of_the_user() {
    let words = format!("|a| a{}", " + a".repeat(200));
    let nested = format!("|a| {}a{}", "(".repeat(60), ")".repeat(60));
    check(
        "functions of the user",
        &calls! {
            set("csr_vector", &[("map_value", "")]) => "Function", "`map_value`: expected an expression, found nothing, at `the end`";
            set("csr_vector", &[("map_value", "a * a")]) => "Function", "`map_value`: it is written `|a| …`: 1 parameters, not 0, at `a * a`";
            set("csr_vector", &[("map_value", "|a, b| a * b")]) => "Function", "`map_value`: it is written `|a| …`: 1 parameters, not 2, at `b`";
            set("csr_vector", &[("map_value", "|a| a.gamma()")]) => "Function", "`map_value`: there is no method `gamma` in a function; allowed: abs, sqrt, …";
            set("csr_vector", &[("map_value", "|a| b")]) => "Function", "`map_value`: there is no `b` here; known are a, at `b`";
            set("csr_vector", &[("map_value", "|a| a > 0.0")]) => "Function", "`map_value`: this is bool, and the function gives f32, at `a > 0.0`";
            set("csr_vector", &[("map_value", "|a| if a > 0.0 { a }")]) => "Function", "`map_value`: an `if` has an `else`: a function gives a number in any case, at `if a > 0.0 { a }`";
            set("csr_vector", &[("map_value", &words)]) => "Function", "`map_value`: a function has at most 250 words, at `+`";
            set("csr_vector", &[("map_value", &nested)]) => "Function", "`map_value`: a function is nested at most 50 deep, at `(`";
            set("csr_vector", &[("map_x", "|x, col| x + col")]) => "Function", "`map_x`: `+` needs two of one type, `as` converts: the left is f32 and this is u32, at `col`";
            set("csr_vector", &[("map_value", "|a| -a"), ("value", "i32")]) => "Combination", "accumulator = i32: functions compute in f32 or f64; allowed: f32, f64";
            set("hola", &[("map_value", "|a| -a")]) => "Combination", "hola sums products by additions alone and takes no map_value; these take it: csr_scalar, csr_vector, …";
            set("csr_vector", &[("reduce", "|s, t| s.max(t)")]) => "Combination", "reduce needs `identity`, the result of an empty row: `identity = 0.0`";
            set("csr_vector", &[("identity", "0.0")]) => "Combination", "identity is what `reduce` leaves as it is; write `reduce = |s, t| …`";
            set("csr_vector", &[("reduce", "|s, t| s - t"), ("identity", "0.0")]) => "Function", "`reduce`: it must be associative, and 1, 1 and 1 give -1 from the left and 1 from the right, at `|s, t| s - t`";
            set("csr_vector", &[("reduce", "|s, t| s.max(t)"), ("identity", "50.0")]) => "Function", "`reduce`: it must leave a number as it is where the other is the identity, and gives 50 of 50 and 1, at `|s, t| s.max(t)`";
            set("naive_t", &[("epilogue", "|row, sum, y| sum")]) => "Combination", "naive_t adds to y more than once a row and takes no epilogue; these store each row once: csr_scalar, csr_vector, …";
            set("csr_vector", &[("epilogue", "|row, sum, y| sum"), ("alpha", "any")]) => "Combination", "alpha = any has no part in what epilogue stores, which can say it itself; allowed: 1";
            set("csr_vector", &[("epilogue", "|row, sum, y| sum"), ("beta", "1")]) => "Combination", "beta = 1 has no part in what epilogue stores, which can say it itself; allowed: 0";
            set("csr_vector", &[("epilogue", "|row, sum, y, b| b")]) => "Function", "`epilogue`: say what `b` is: `vectors = [b]` or `scalars = [b]`, at `b`";
            set("csr_vector", &[("epilogue", "|row, sum, y| y"), ("vectors", "[b]")]) => "Combination", "`b` is no parameter of epilogue or dot; write it behind the first ones: `|row, sum, y, b| …`";
            set("csr_vector", &[("epilogue", "|row, sum, y, b| b"), ("vectors", "[b]"), ("scalars", "[b]")]) => "Function", "`epilogue`: `b` is among `vectors` and among `scalars`; leave it in one, at `b`";
            set("csr_vector", &[("epilogue", "|row, sum, y, b| b"), ("vectors", "[b, b]")]) => "Function", "`vectors`: `b` stands twice, at `b`";
        },
    );
}

#[test]
fn matrices_on_the_host() {
    let (a, two, three) = (matrix(), [1.0f32; 2], [1.0f32; 3]);
    let (rows, cols) = (vec![0, 1], vec![0, 5]);
    let imaginary = vec![Complex32::new(0.0, 1.0)];
    let turned = CsrMatrix::<Complex32>::new(1, 1, vec![0, 1], vec![0], imaginary).expect("a matrix");
    let hidden = giant(1 << 20, 64);
    check(
        "matrices",
        &calls! {
            CsrMatrix::<f32>::new(2, 3, vec![0, 4], vec![0; 4], vec![0.0; 4]) => "OffsetsLength", "row_offsets has 2 entries: 3 are needed, one more than there are rows";
            CsrMatrix::<f32>::new(2, 3, vec![1, 3, 4], vec![0; 4], vec![0.0; 4]) => "OffsetsStart", "row_offsets starts at 1: it must start at 0";
            CsrMatrix::<f32>::new(2, 3, vec![0, 5, 4], vec![0; 4], vec![0.0; 4]) => "OffsetsDecrease", "row_offsets[2] is 4, less than 5 before it: offsets never decrease";
            CsrMatrix::<f32, u64>::new(2, 3, vec![0, 3, (1 << 32) + 3], vec![0; 4], vec![0.0; 4]) => "RowTooLong", "row 1 has 4294967296 entries: at most 4294966272 are allowed";
            CsrMatrix::<f32>::new(2, 3, vec![0, 3, 5], vec![0; 4], vec![0.0; 4]) => "OffsetsEnd", "row_offsets ends at 5: it must end at the number of nonzeros, 4";
            CsrMatrix::<f32>::new(2, 3, vec![0, 3, 4], vec![0; 4], vec![0.0; 3]) => "Length", "values has 3 entries: 4 are needed, as many as in col_indices";
            CsrMatrix::<f32>::new(2, 3, vec![0, 3, 4], vec![0, 1, 3, 1], vec![0.0; 4]) => "ColumnOutOfRange", "col_indices[2] is 3: with 3 columns it must be below 3";
            CsrMatrix::<f32>::new(1 << 31, 3, vec![0], vec![], vec![]) => "TooManyRows", "2147483648 rows are too many: at most 2147483647 are allowed";
            CsrMatrix::<f32>::new(0, 1 << 31, vec![0], vec![], vec![]) => "TooManyColumns", "2147483648 columns are too many: at most 2147483647 are allowed";
            CsrMatrix::<f32>::new(usize::MAX, 0, vec![], vec![], vec![]) => "TooManyRows", "18446744073709551615 rows are too many: at most 2147483647 are allowed";
            CooMatrix::new(2, 2, rows.clone(), cols.clone(), vec![1.0f32; 2]) => "ColumnOutOfRange", "col_indices[1] is 5: with 2 columns it must be below 2";
            CooMatrix::new(2, 2, cols, rows.clone(), vec![1.0f32; 2]) => "RowOutOfRange", "row_indices[1] is 5: with 2 rows it must be below 2";
            CooMatrix::new(2, 2, rows.clone(), vec![0], vec![1.0f32; 2]) => "Length", "col_indices has 1 entries: 2 are needed, as many as in values";
            CscMatrix::<f32>::new(3, 2, vec![0, 3], vec![0; 3], vec![0.0; 3]) => "Columns/OffsetsLength", "in compressed sparse columns, where rows are columns and columns are rows: row_offsets has 2 entries: 3 are needed, one more than there are rows";
            SymmetricCsr::new(Symmetry::Symmetric, matrix()) => "NotSquare", "2 × 3: only a square matrix can be symmetric, skew-symmetric or hermitian";
            SymmetricCsr::new(Symmetry::SkewSymmetric, square([1.0, 2.0, 0.0])) => "SkewDiagonal", "1 at row 0, column 0: the diagonal of a skew-symmetric matrix is zero";
            SymmetricCsr::new(Symmetry::Hermitian, square([1.0, 2.0, 3.0])) => "RealHermitian", "a hermitian matrix of f64, which has no imaginary part, is symmetric; use Symmetry::Symmetric";
            SymmetricCsr::new(Symmetry::Hermitian, turned) => "HermitianDiagonal", "0+1i at row 0, column 0: the diagonal of a hermitian matrix is real, each entry its own conjugate";
            SymmetricCsr::from_csr(Symmetry::Symmetric, &square([1.0, 2.0, 3.0])) => "NotSymmetric", "not symmetric: nothing is stored at row 0, column 1, and 2 at row 1, column 0";
            SymmetricCsr::new(Symmetry::Symmetric, square([1.0, 2.0, 3.0]).transpose().expect("as large")) => "AboveDiagonal", "col_indices[1] is 1, in row 0: above the diagonal; the lower triangle has columns up to the row's own";
            DokMatrix::<f32>::new(1 << 31, 1) => "TooManyRows", "2147483648 rows are too many: at most 2147483647 are allowed";
            DokMatrix::<f32>::new(2, 2).and_then(|mut a| a.set(2, 0, 1.0)) => "NoPlace", "there is no row 2 and column 0 in a matrix of 2 × 2; they count from 0";
            DokMatrix::<f32>::new(2, 2).and_then(|mut a| a.add(0, 9, 1.0)) => "NoPlace", "there is no row 0 and column 9 in a matrix of 2 × 2; they count from 0";
            cpu_serial(1.0, &a, &two, 0.0, &mut [0.0; 2]) => "VectorLength", "x has 2 entries: a 2 × 3 matrix needs 3";
            cpu_parallel(1.0, &a, &three, 0.0, &mut [0.0; 3]) => "VectorLength", "y has 3 entries: a 2 × 3 matrix needs 2";
            EllMatrix::from_csr(&a).and_then(|ell| Format::<f32, u32>::multiply(&ell, 1.0, &two, 0.0, &mut [0.0; 2])) => "VectorLength", "x has 2 entries: a 2 × 3 matrix needs 3";
            EllMatrix::from_csr(&hidden) => "Fill", "ell would store 67108864 slots for 64 entries and take 536870912 bytes, against 4194820 in compressed sparse rows; more than 8 slots an entry are allowed for up to 67108864 bytes of fill only; what suits this matrix: coo, csc, sell_c_sigma, jds, tjds, hyb, bsr, pkt, bccoo";
            DiaMatrix::from_csr(&hidden) => "Fill", "dia would store 67108864 slots for 64 entries and take 276824576 bytes, against 4194820 in compressed sparse rows; more than 8 slots an entry are allowed for up to 67108864 bytes of fill only; what suits this matrix: coo, csc, sell_c_sigma, jds, tjds, hyb, bsr, pkt, bccoo";
            BsrMatrix::from_csr_with(&a, BsrParameters { block_rows: 0, block_cols: 1 }) => "Parameter", "block_rows = 0 is not allowed; allowed are 1 to 8";
            BccooMatrix::from_csr_with(&a, BccooParameters { block_rows: 9, block_cols: 9 }) => "Parameter", "block_rows = 9 is not allowed; allowed are 1 to 4";
            SellMatrix::from_csr_with(&a, SellParameters { sigma: 0 }) => "Parameter", "sigma = 0 is not allowed; allowed are 1 and the multiples of 32";
            PktMatrix::from_csr_with(&a, PktParameters { rows_per_packet: 0 }) => "Parameter", "rows_per_packet = 0 is not allowed; allowed are the multiples of 32 from 32 to 4096";
            Generator::new("bandd") => "UnknownClass", "there is no class \"bandd\"; there are diagonal, tridiagonal, …";
            Generator::new("banded").and_then(|class| class.set("width", 3.0)) => "UnknownParameter", "banded has no parameter \"width\"; it has n, lower, upper, fill";
            Generator::new("banded").and_then(|class| class.set("n", -1.0)) => "OutOfRange", "banded: n = -1; allowed are whole numbers from 0 to 2147483647";
            Generator::new("banded").and_then(|class| class.set_text("n", "many")) => "OutOfRange", "banded: n = many; allowed are whole numbers from 0 to 2147483647";
            Generator::new("banded").and_then(|class| class.set("n", f64::NAN)) => "OutOfRange", "banded: n = NaN; allowed are whole numbers from 0 to 2147483647";
            Generator::new("dense").and_then(|class| class.max_bytes(8).generate::<f32, u32>()) => "TooLarge", "the matrix would take about 48016008 bytes; at most 8 are allowed";
            matrix_market::read_bytes::<f32, u32>(b"1 1 1\n") => "Invalid/Fault", "line 1, column 1: `1`: not a Matrix Market file; it would start with %%MatrixMarket";
            matrix_market::read_file::<f32, u32>("/nonexistent/A.mtx") => "Io", "/nonexistent/A.mtx: could not be read: …";
            scipy::read_bytes::<f32, u32>(b"1 1 1\n") => "Archive", "no .npz file, or a damaged one: …";
        },
    );
}

/// A source that gives what it has, whatever is asked for, and says that it is stored so.
struct Given(Arc<DeviceMatrix>, StorageFormat);

impl MatrixSource for Given {
    fn to_device(&self, _: &Device, _: Types) -> Result<Arc<DeviceMatrix>, spmv_runtime::Error> {
        Ok(self.0.clone())
    }

    fn storage(&self) -> StorageFormat {
        self.1
    }

    fn value_type(&self) -> ValueType {
        self.0.value_type()
    }

    fn offset_type(&self) -> IndexType {
        self.0.offset_type()
    }
}

#[test]
fn plans() {
    let (device, other) = (Device::simulator(), Device::simulator());
    let a = matrix();
    let csc = CscMatrix::from_csr(&a).expect("as large");
    let skew = SymmetricCsr::new(Symmetry::SkewSymmetric, square([0.0, 2.0, 0.0])).expect("it is");
    let plan = |config: KernelConfig| Spmv::with(&device, &a, config);
    // SAFETY: none of these texts gets as far as running.
    let edited = |source| unsafe { Spmv::with_source(&device, &a, named("csr_vector"), source) };
    let given = |storage| {
        let matrix = DeviceMatrix::upload(&device, &a, IndexType::U32).expect("room");
        Given(Arc::new(matrix), storage)
    };
    let mut nothing_extra = Constraints::default();
    (nothing_extra.deterministic, nothing_extra.max_extra_bytes) = (true, Some(0));
    check(
        "plans",
        &calls! {
            plan(set("csr_vector", &[("value", "f64")]).expect("it is right")) => "ValueType", "value holds f32 and the kernel was generated for f64; set `value` in the configuration, or convert";
            Spmv::with(&device, &csc, named("csr_vector")) => "Operation", "this configuration of csr_vector does not compute the non_transpose product of a matrix in csc; set `operation = transpose` in it";
            Spmv::with(&device, &skew, set("hola_t", &[("value", "f64")]).expect("it is right")) => "Storage", "hola_t is not for a matrix in skew_symmetric storage, of which one triangle is stored; for it: csr_scalar, csr_vector, …";
            Spmv::with(&device, &skew, set("csr_vector", &[("operation", "transpose")]).expect("it is right")) => "Operation", "no algorithm computes the transpose product of a matrix in skew_symmetric; allowed: non_transpose, with -alpha for the transpose";
            plan(named("sym_csr")) => "Storage", "sym_csr is not for a matrix in csr storage, of which both triangles are stored; for it: csr_scalar, csr_vector, …";
            Spmv::with_operation(&device, &skew, Operation::Transpose, named("sym_csr")) => "Operation", "no algorithm computes the transpose product of a matrix in skew_symmetric; allowed: non_transpose, with -alpha for the transpose";
            Spmv::with_operation(&device, &a, Operation::Symmetric, named("csr_vector")) => "Operation", "no algorithm computes the symmetric product of a matrix in csr; allowed: non_transpose, transpose";
            Spmv::with_operation(&device, &a, Operation::Transpose, named("csr_vector")) => "Operation", "this configuration of csr_vector does not compute the transpose product of a matrix in csr; set `operation = transpose` in it";
            Spmv::pair(&device, &a, named("csr_vector"), named("csr_vector")) => "Operation", "this configuration of csr_vector does not compute the transpose product of a matrix in csr; set `operation = transpose` in it";
            Spmv::pair(&device, &a, named("hola_t"), named("hola_t")) => "Operation", "hola_t does not compute the non_transpose product of a matrix in csr; these do: csr_scalar, csr_vector, …";
            Spmv::with(&device, &Arc::new(DeviceMatrix::upload(&other, &a, IndexType::U32).expect("room")), named("csr_vector")) => "OtherDevice", "the matrix lives on another device than the plan; upload it to that one, or share clones of one `Device`";
            Spmv::with(&device, &Arc::new(DeviceMatrix::upload(&device, &a, IndexType::U64).expect("room")), named("csr_vector")) => "OffsetType", "the matrix on the device has u64 offsets and the kernel was generated for u32; set `offset` in the configuration";
            Spmv::with(&device, &Arc::new(DeviceMatrix::upload(&device, &a, IndexType::U32).expect("room")), set("csr_vector", &[("index", "u16")]).expect("it is right")) => "IndexType", "the matrix on the device has u32 column indices and the kernel was generated for u16; set `index` in the configuration";
            Spmv::with(&device, &given(StorageFormat::Csr), set("csr_vector", &[("index", "u16")]).expect("it is right")) => "IndexType", "the matrix on the device has u32 column indices and the kernel was generated for u16; set `index` in the configuration";
            Spmv::with(&device, &given(StorageFormat::Csr), set("csr_vector", &[("value", "f64")]).expect("it is right")) => "ValueType", "value holds f32 and the kernel was generated for f64; set `value` in the configuration, or convert";
            Spmv::with(&device, &given(StorageFormat::Symmetric), named("sym_csr")) => "Storage", "sym_csr is not for a matrix in csr storage, of which both triangles are stored; for it: csr_scalar, csr_vector, …";
            Spmv::with(&device, &giant(3, 65_537), set("csr_vector", &[("index", "u16")]).expect("it is right")) => "IndexRange", "the matrix has 65537 columns and 16-bit indices serve up to 65536 here; set `index = u32`";
            DeviceMatrix::upload(&device, &a, IndexType::U16) => "Config/Value", "`offset` cannot be `u16`; allowed: u32, u64";
            Spmv::with(&device, &giant(1 << 20, 64), named("ell")) => "Fill", "ell would store 67108864 slots or more for 64 nonzeros: 536870912 bytes, and the matrix takes 4194820 in CSR; a layout of more than 8 slots a nonzero may hold 67108864 bytes of fill; these store none, or little: sell_c_sigma, hyb, jds, csr5, merge_path";
            Spmv::with(&device, &a, set("special", &[("block", "2")]).expect("it is right")) => "Misfit", "1 or more parts of the matrix are not what special is set for, rows of blocks whose entries are whole blocks, in the same order in each row";
            edited("no CUDA") => "Compile/CompileError", "NVRTC V could not compile for compute_90: NVRTC_ERROR_COMPILATION…";
            edited("extern \"C\" __global__ void other() {}") => "MissingKernel", "the compiled text has no kernel `spmv_csr_vector`; it must have one of this name, `extern \"C\" __global__`";
            edited("\0") => "Compile/CompileError", "NVRTC V could not compile for compute_90: the source holds a NUL byte…";
            Spmv::auto_with(&device, &skew, Operation::Transpose, &Constraints::default()) => "Operation", "no algorithm computes the transpose product of a matrix in skew_symmetric; allowed: non_transpose, with -alpha for the transpose";
            Spmv::tune_with(&device, &skew, Operation::Transpose, &Constraints::default(), Budget::default()) => "Operation", "no algorithm computes the transpose product of a matrix in skew_symmetric; allowed: non_transpose, with -alpha for the transpose";
            Spmv::tune_in_background(&device, &skew, Operation::Transpose, &Constraints::default(), Budget::default()) => "Operation", "no algorithm computes the transpose product of a matrix in skew_symmetric; allowed: non_transpose, with -alpha for the transpose";
            Spmv::auto_with(&device, &a, Operation::Symmetric, &Constraints::default()) => "Operation", "no algorithm computes the symmetric product of a matrix in csr; allowed: non_transpose, transpose";
            Spmv::auto_with(&device, &a, Operation::Transpose, &nothing_extra) => "Constraints", "no kernel for the transpose product keeps the constraints; allow more extra bytes or sums in any order, whichever they limit";
            Spmv::tune_with(&device, &a, Operation::Transpose, &nothing_extra, Budget::Products(0)) => "Constraints", "no kernel for the transpose product keeps the constraints; allow more extra bytes or sums in any order, whichever they limit";
            Spmv::tune_among(&device, &a, Operation::NonTranspose, &Constraints::default(), vec![], Budget::default()) => "Constraints", "no kernel for the non_transpose product keeps the constraints: there are no candidates";
            Compiler::shared().compile(&named("csr_vector"), "sm_42") => "Nvrtc/Arch", "NVRTC V does not compile for sm_42; allowed: sm_75, …";
            Compiler::shared().compile(&named("csr_vector"), "") => "Nvrtc/Arch", "NVRTC V does not compile for ; allowed: sm_75, …";
        },
    );
}

#[test]
fn products() {
    let (device, other) = (Device::simulator(), Device::simulator());
    let a = matrix();
    let plan = |config: KernelConfig| Spmv::with(&device, &a, config);
    let vector = |len: usize| Vector::from_slice(&device, &vec![1.0f32; len]).expect("there is room");
    let (two, three) = (vector(2), vector(3));
    let wide = Vector::<f64>::zeros(&device, 3).expect("there is room");
    let elsewhere = Vector::<f32>::zeros(&other, 3).expect("there is room");
    let imaginary = Complex32::new(1.0, 2.0);
    let product = |config: KernelConfig, alpha: f64, beta: f64| {
        plan(config).and_then(|mut plan| plan.apply(alpha, &three, beta, &mut vector(2)))
    };
    let integers = |alpha: f64| {
        let ones = |len| Vector::from_slice(&device, &vec![1u32; len]).expect("there is room");
        let config = set("csr_scalar", &[("value", "u32")])?;
        Spmv::with(&device, &a.map_values(|value| value as u32), config)?.apply(
            alpha,
            &ones(3),
            0.0,
            &mut ones(2),
        )
    };
    let epilogue = || plan(with_epilogue("|row, sum, y, b, c| c * (b - sum)")).expect("it is right");
    check(
        "products",
        &calls! {
            plan(named("csr_vector")).and_then(|mut plan| plan.apply(1.0, &two, 0.0, &mut vector(2))) => "Length", "x has 2 entries and must have 3";
            plan(named("csr_vector")).and_then(|mut plan| plan.apply(1.0, &three, 0.0, &mut vector(3))) => "Length", "y has 3 entries and must have 2";
            plan(named("naive_t")).and_then(|mut plan| plan.apply(1.0, &three, 0.0, &mut vector(2))) => "Length", "x has 3 entries and must have 2";
            plan(named("csr_vector")).and_then(|mut plan| plan.apply(1.0, &wide, 0.0, &mut vector(2))) => "ValueType", "x holds f64 and the kernel was generated for f32; set `x` in the configuration, or convert";
            plan(named("csr_vector")).and_then(|mut plan| plan.apply(1.0, &elsewhere, 0.0, &mut vector(2))) => "OtherDevice", "a vector lives on another device than the plan; upload it to that one, or share clones of one `Device`";
            plan(named("csr_vector")).and_then(|mut plan| plan.apply(imaginary, &three, 0.0, &mut vector(2))) => "ScalarType", "alpha = 1+2i is no number of type f32, which sums are in; allowed: real numbers";
            product(named("csr_vector").to_builder().beta(Coefficient::Zero).build().expect("right"), 1.0, 0.5) => "Scaling", "the kernel was generated for beta = 0 and the product asks for 0.5; set `beta = any` in the configuration";
            product(named("csr_vector").to_builder().alpha(Coefficient::MinusOne).build().expect("right"), 1.0, 0.0) => "Scaling", "the kernel was generated for alpha = -1 and the product asks for 1; set `alpha = any` in the configuration";
            product(set("csr_vector", &[("semiring", "min_plus")]).expect("right"), 2.0, 0.0) => "SemiringScaling", "alpha = 2 would scale a product over min_plus, which is stored or reduced with y; allowed: 1";
            product(set("csr_vector", &[("semiring", "min_plus")]).expect("right"), 1.0, 2.0) => "SemiringScaling", "beta = 2 would scale a product over min_plus, which is stored or reduced with y; allowed: 0, 1";
            integers(0.5) => "ScalarType", "alpha = 0.5 is no number of type u32, which sums are in; allowed: whole numbers from 0 to 4294967295";
            integers(-1.0) => "ScalarType", "alpha = -1 is no number of type u32, which sums are in; allowed: whole numbers from 0 to 4294967295";
            integers(f64::NAN) => "ScalarType", "alpha = NaN is no number of type u32, which sums are in; allowed: whole numbers from 0 to 4294967295";
            integers(1e300) => "ScalarType", "alpha = 1e300 is no number of type u32, which sums are in; allowed: whole numbers from 0 to 4294967295";
            epilogue().apply(2.0, &three, 0.0, &mut vector(2)) => "EpilogueScaling", "alpha = 2 has no part in what is stored with an epilogue or a dot; an epilogue can say it itself; allowed: 1";
            epilogue().apply(1.0, &three, 1.0, &mut vector(2)) => "EpilogueScaling", "beta = 1 has no part in what is stored with an epilogue or a dot; an epilogue can say it itself; allowed: 0";
            epilogue().apply(1.0, &three, 0.0, &mut vector(2)) => "UnboundOperand", "the kernel takes the vector `b` and none was bound; call `set_vector(\"b\", …)` before the product";
            epilogue().set_vector("b", &two).and_then(|()| plan(named("csr_vector"))?.set_vector("b", &two)) => "UnknownOperand", "the kernel takes no vector `b`; it takes none";
            epilogue().set_vector("d", &two) => "UnknownOperand", "the kernel takes no vector `d`; it takes b";
            epilogue().set_vector("c", &two) => "UnknownOperand", "the kernel takes no vector `c`; it takes b";
            epilogue().set_vector("b", &three) => "OperandLength", "the vector `b` has 3 entries and must have 2, one a row";
            epilogue().set_vector("b", &wide) => "OperandType", "the vector `b` holds f64 and must hold f32, as y does";
            epilogue().set_vector("b", &elsewhere) => "OtherDevice", "a vector that the kernel takes lives on another device than the plan; upload it to that one, or share clones of one `Device`";
            epilogue().set_scalar("b", 1.0) => "UnknownOperand", "the kernel takes no scalar `b`; it takes c";
            epilogue().set_scalar("d", 1.0) => "UnknownOperand", "the kernel takes no scalar `d`; it takes c";
            epilogue().set_scalar("c", imaginary) => "OperandScalar", "the scalar `c` takes a number of type f32, and 1+2i is none";
            plan(named("csr_scalar")).and_then(|mut plan| plan.set_scalar("c", 1.0)) => "UnknownOperand", "the kernel takes no scalar `c`; it takes none";
            {
                let (mut plan, mut y) = (epilogue(), vector(2));
                plan.set_vector("b", &y).and_then(|()| plan.set_scalar("c", 1.0)).expect("both fit");
                plan.apply(1.0, &three, 0.0, &mut y)
            } => "OperandIsResult", "y shares memory with the vector `b` that the kernel takes; an epilogue's parameter `y` is what it held before";
            {
                let mut plan = epilogue();
                plan.set_vector("b", &two).expect("it fits");
                plan.apply(1.0, &three, 0.0, &mut vector(2))
            } => "UnboundOperand", "the kernel takes the scalar `c` and none was bound; call `set_scalar(\"c\", …)` before the product";
            {
                let matrix = Arc::new(DeviceMatrix::upload(&device, &a, IndexType::U32).expect("there is room"));
                let mut plan = Spmv::with(&device, &matrix, named("ell")).expect("it is right");
                matrix.update_values(&[2.0f32; 4]).expect("they fit");
                plan.apply(1.0, &three, 0.0, &mut vector(2))
            } => "StaleValues", "the values of the matrix were replaced, and ell keeps copies of them; `refresh` the plan first, or where its layout cannot have the new ones make another, by `Constraints::values_change`";
        },
    );
}

#[test]
fn devices_and_vectors() {
    let (device, other) = (Device::simulator(), Device::simulator());
    let a = matrix();
    let on_device = DeviceMatrix::upload(&device, &a, IndexType::U32).expect("there is room");
    let zeros = |len| Vector::<f32>::zeros(&device, len).expect("there is room");
    let elsewhere = Vector::<f32>::zeros(&other, 4).expect("there is room");
    let transposed = a.transpose().expect("as large");
    let plan = Spmv::with(&device, &a, named("csr_vector")).expect("it is right");
    let pass = named("csr_scalar").program().multiply.remove(0);
    check(
        "devices and vectors",
        &calls! {
            device.new_stream() => "NoDevice", "no CUDA device: this device is not a CUDA device; streams belong to CUDA devices; use the device's own";
            Vector::<f32>::zeros(&device, 1 << 60) => "OutOfMemory", "a vector needs 4611686018427387904 bytes of device memory and 17179869096 are free";
            Vector::<f64>::zeros(&device, usize::MAX) => "OutOfMemory", "a vector needs 18446744073709551615 bytes of device memory and 17179869096 are free";
            zeros(4).copy_to_slice(&mut [0.0; 3]) => "Length", "the slice has 3 entries and must have 4";
            zeros(4).copy_from_slice(&[0.0; 5]) => "Length", "the slice has 5 entries and must have 4";
            zeros(4).copy_from(&zeros(3)) => "Length", "a vector has 3 entries and must have 4";
            zeros(4).axpy(1.0, &elsewhere) => "OtherDevice", "a vector lives on another device than the vector it is combined with; upload it to that one, or share clones of one `Device`";
            zeros(4).multiply(&zeros(0)) => "Length", "a vector has 0 entries and must have 4";
            zeros(4).dot(&elsewhere) => "OtherDevice", "a vector lives on another device than the vector it is combined with; upload it to that one, or share clones of one `Device`";
            on_device.update_values(&[0.0f32; 3]) => "Length", "the slice of values has 3 entries and must have 4";
            on_device.update_values(&[0.0f64; 4]) => "NewValueType", "the matrix on the device holds f32 and the new values are f64; convert them";
            on_device.update_values_from(&elsewhere) => "OtherDevice", "the vector of values lives on another device than the matrix; upload it to that one, or share clones of one `Device`";
            on_device.update_values_from(&zeros(5)) => "Length", "the vector of values has 5 entries and must have 4";
            on_device.update_values_from(&Vector::<f64>::zeros(&device, 4).expect("there is room")) => "NewValueType", "the matrix on the device holds f32 and the new values are f64; convert them";
            on_device.update_from(&transposed) => "Structure", "the matrix on the device has 2 rows, 3 columns and 4 entries, and values come with another structure (3 x 2, 4 entries); upload that matrix";
            plan.kernel().resident_blocks(&pass) => "MissingKernel", "the compiled text has no kernel `spmv_csr_scalar`; it must have one of this name, `extern \"C\" __global__`";
        },
    );
}

#[test]
fn caches_choices_and_models() {
    let folder = |path: &str| match DiskCache::open(&CacheLocation::folder(path)).status() {
        status if status.folder.is_some() => Ok(()),
        status => Err(status.problem.expect("what is wrong")),
    };
    let variable = |value: &'static str| {
        let variables = move |name: &str| match name {
            "SPMV_CACHE_MAX_BYTES" => Some(value.into()),
            "SPMV_CACHE_DIR" => Some("off".into()),
            _ => None,
        };
        DiskCache::open(&CacheLocation::from_variables(variables)).status().problem.map_or(Ok(()), Err)
    };
    check(
        "caches, choices and models",
        &calls! {
            folder("/dev/null") => "NotAFolder", "the cache folder \"/dev/null\" is not a folder; remove what is there or set SPMV_CACHE_DIR";
            folder("/proc/spmv") => "Io", "cannot make the cache folder \"/proc/spmv\": No such file or directory (os error 2); kernels are compiled again in the next process. Make the folder usable, or set SPMV_CACHE_DIR to another one or to \"off\"";
            folder("") => "Io", "cannot open the cache folder \"\": No such file or directory (os error 2); kernels are compiled again in the next process. Make the folder usable, or set SPMV_CACHE_DIR to another one or to \"off\"";
            variable("lots") => "MaxBytes", "SPMV_CACHE_MAX_BYTES is \"lots\", which is not a number of bytes (allowed: 268435456, 512M, 2G, …); using 268435456";
            Choice::import("") => "Names", "line 1: expected the names …";
            Choice::import(&(Choice::export(&[]) + "few\tvalues\n")) => "Values", "line 2: expected 22 values with tabs between them, and there are 2";
            "".parse::<Model>() => "Names", "line 1: expected the names …";
        },
    );
}

#[test]
fn a_product_that_fails_in_its_course_leaves_nothing_for_the_next() {
    let device = Device::simulator();
    let num_rows = 1000;
    let (offsets, cols) = ((0..=num_rows as u32).collect(), vec![0; num_rows]);
    let a = CsrMatrix::<f64>::new(num_rows, 1, offsets, cols, vec![2.0; num_rows]).unwrap();
    let with_dot =
        KernelConfig::from_settings("csr_scalar", [("value", "f64"), ("dot", "|row, result| result")]);
    let mut plan = Spmv::with(&device, &a, with_dot.unwrap()).unwrap();
    let x = Vector::from_slice(&device, &[3.0]).unwrap();
    let mut y = Vector::<f64>::zeros(&device, num_rows).unwrap();
    for _ in 0..2 {
        // SAFETY: the simulator refuses what is outside of its memory. That is the last entry alone: blocks before it are done.
        let mut beyond = unsafe { Vector::<f64>::from_raw(&device, y.address() + 8, num_rows) };
        let error = plan.apply(1.0, &x, 0.0, &mut beyond).unwrap_err();
        assert!(matches!(error, spmv_runtime::Error::SimulatedFault(_)), "{error:?}");
        plan.apply(1.0, &x, 0.0, &mut y).unwrap();
        assert_eq!(y.to_vec().unwrap(), vec![6.0; num_rows]);
        assert_eq!(plan.dot().unwrap().to_vec().unwrap(), [6000.0]);
    }
}
