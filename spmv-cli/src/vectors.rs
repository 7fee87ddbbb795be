//! Vectors as Matrix Market files: a matrix of one column or one row, dense or sparse.

use std::fmt::Write;
use std::path::Path;

use spmv_runtime::codegen::{Semiring, ValueKind, ValueType};
use spmv_runtime::matrix::{Complex32, Complex64, CsrMatrix, Entry, Value, bf16, f16};

use crate::failure::{Failure, Kind};
use crate::files;
use crate::operands::{LARGEST_WHOLE, number_of, numbers, parts};
use crate::reading;

/// Reads the vector `name` of so many entries, each in this type: rounded where the type rounds, else refused where it
/// is none of the type. `over` is what a product computes in place of sums, where nobody knows what an entry is that is not
/// stored, or stored twice.
pub fn read(
    path: &Path,
    name: &str,
    length: usize,
    value: ValueType,
    over: Option<&str>,
) -> Result<Vec<f64>, Failure> {
    let wanted = Wanted { name, length, value, over };
    let is_complex = value.kind() == ValueKind::Complex;
    if !is_complex && reading::is_complex(reading::header(path)?.as_ref()) {
        let message =
            format!("the entries are complex, and {value}, the type of {name}, has no imaginary part");
        return Err(Failure::new(Kind::Input, message)
            .in_file(path)
            .help("--value c64 makes all types complex, --set x=c64 --set y=c64 those of the vectors"));
    }
    match value {
        ValueType::C32 => dense(&reading::read::<Complex32, u64>(path)?.0, path, wanted),
        ValueType::F32 => dense(&reading::read::<f32, u64>(path)?.0, path, wanted),
        ValueType::F16 => dense(&reading::read::<f16, u64>(path)?.0, path, wanted),
        ValueType::Bf16 => dense(&reading::read::<bf16, u64>(path)?.0, path, wanted),
        _ if is_complex => dense(&reading::read::<Complex64, u64>(path)?.0, path, wanted),
        _ if value.kind() == ValueKind::Float => dense(&reading::read::<f64, u64>(path)?.0, path, wanted),
        _ => {
            if let Some(header) = reading::header(path)?.filter(|header| !header.whole) {
                let message = format!(
                    "the entries are {}, and {value}, the type of {name}, has whole numbers alone",
                    header.field
                );
                return Err(Failure::new(Kind::Input, message).in_file(path));
            }
            dense(&reading::read::<i64, u64>(path)?.0, path, wanted)
        }
    }
}

/// What is asked for, as [`read`] has it.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    name: &'a str,
    length: usize,
    value: ValueType,
    over: Option<&'a str>,
}

fn dense<V: Entry>(a: &CsrMatrix<V, u64>, path: &Path, wanted: Wanted<'_>) -> Result<Vec<f64>, Failure> {
    let Wanted { name, length, value, over } = wanted;
    let (rows, cols) = (a.num_rows(), a.num_cols());
    if (rows, cols) != (length, 1) && (rows, cols) != (1, length) {
        let message =
            format!("a vector for {name} is {length} x 1 or 1 x {length}, and this is {rows} x {cols}");
        return Err(Failure::new(Kind::Input, message).in_file(path));
    }
    if let Some(over) = over {
        let mut times = vec![0_u8; length];
        for row in 0..rows {
            a.row(row).0.iter().for_each(|&col| {
                let place = &mut times[row + col as usize];
                *place = place.saturating_add(1);
            });
        }
        // Only of truth values is what is not stored what it is of numbers, nothing.
        let may_miss = over == Semiring::OrAnd.name();
        if let Some(place) = times.iter().position(|&times| times > 1 || times == 0 && !may_miss) {
            let stored =
                if times[place] == 0 { "is not stored, and is no 0" } else { "is stored several times" };
            let message = format!("entry {} of {name} {stored} where a product is over {over}", place + 1);
            let help = "store every entry once, as `array` files do";
            return Err(Failure::new(Kind::Input, message).help(help).in_file(path));
        }
    }
    let width = parts(value);
    let mut entries = vec![0.0; length * width];
    let mut is_stored = vec![false; length];
    for row in 0..rows {
        let (row_cols, values) = a.row(row);
        for (&col, entry) in row_cols.iter().zip(values) {
            let place = row + col as usize;
            for (part, number) in numbers(std::slice::from_ref(entry)).into_iter().enumerate() {
                let sum = &mut entries[place * width + part];
                // Entries of one place add up, as those of a matrix do; to 0 nothing is added, which would lose the sign of -0.
                *sum = if is_stored[place] { *sum + number } else { number };
            }
            is_stored[place] = true;
        }
    }
    // As in a matrix: a path that is not known yet is infinitely long.
    let has_infinity = matches!(value.kind(), ValueKind::Float | ValueKind::Complex);
    for (place, number) in entries.iter_mut().enumerate() {
        if has_infinity && !number.is_finite() {
            continue;
        }
        *number = number_of(value, *number).ok_or_else(|| {
            let message =
                format!("entry {} of {name} is {number}, no number of type {value}", place / width + 1);
            Failure::new(Kind::Input, message).in_file(path)
        })?;
    }
    Ok(entries)
}

/// Writes a vector of this type as a dense matrix of one column, with the shortest numbers that read back as the same. Whole
/// numbers that f64 does not tell apart are refused: these may not be what was computed.
pub fn write(path: &Path, entries: &[f64], value: ValueType) -> Result<(), Failure> {
    let is_whole = !matches!(value.kind(), ValueKind::Float | ValueKind::Complex);
    let is_beyond = |entry: &f64| is_whole && entry.abs() > LARGEST_WHOLE as f64;
    if let Some(place) = entries.iter().position(is_beyond) {
        let message =
            format!("entry {} of the product is beyond {LARGEST_WHOLE} and not known exactly", place + 1);
        return Err(Failure::new(Kind::Usage, message).help("the library has it: `Vector::<i64>::to_vec`"));
    }
    let (field, width) = match value.kind() {
        ValueKind::Complex => ("complex", 2),
        ValueKind::Float => ("real", 1),
        _ => ("integer", 1),
    };
    let mut text = format!("%%MatrixMarket matrix array {field} general\n{} 1\n", entries.len() / width);
    for entry in entries.chunks(width) {
        for (part, number) in entry.iter().enumerate() {
            let before = if part == 0 { "" } else { " " };
            // Into a String nothing fails.
            let _ = match value.part() {
                ValueType::F64 => write!(text, "{before}{number:?}"),
                ValueType::F32 => write!(text, "{before}{:?}", *number as f32),
                ValueType::F16 => write!(text, "{before}{:?}", <f16 as Value>::from_f64(*number)),
                ValueType::Bf16 => write!(text, "{before}{:?}", <bf16 as Value>::from_f64(*number)),
                _ => write!(text, "{before}{number}"),
            };
        }
        text.push('\n');
    }
    files::write(path, text.as_bytes()).map_err(|error| Failure::unwritable(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn vectors_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.mtx");
        let third = f64::from(1.0f32 / 3.0);
        let half = <f16 as Value>::from_f64(0.1).to_f64();
        for (entries, value) in [
            (vec![1.0, -2.5e-300, 1e300, 0.0], ValueType::F64),
            (vec![third, f64::from(-1e-40f32), f64::from(3e38f32)], ValueType::F32),
            (vec![half, -65504.0], ValueType::F16),
            (vec![third, 2.0, -0.5, 0.0], ValueType::C32),
            (vec![-7.0, 2_147_483_647.0], ValueType::I32),
            (vec![1.0, 0.0], ValueType::Bool),
            (vec![], ValueType::F64),
        ] {
            write(&path, &entries, value).unwrap();
            assert_eq!(
                read(&path, "x", entries.len() / parts(value), value, None).unwrap(),
                entries,
                "{value}"
            );
        }
    }

    #[test]
    fn rows_columns_and_sparse_ones_are_vectors() {
        let head = "%%MatrixMarket matrix";
        let dense_row = file(&format!("{head} array real general\n1 3\n1\n2\n3\n"));
        assert_eq!(read(dense_row.path(), "x", 3, ValueType::F32, None).unwrap(), [1.0, 2.0, 3.0]);
        let sparse = file(&format!("{head} coordinate real general\n4 1 3\n3 1 0.5\n1 1 1\n3 1 0.25\n"));
        assert_eq!(read(sparse.path(), "x", 4, ValueType::F64, None).unwrap(), [1.0, 0.0, 0.75, 0.0]);
        // Rounded once: in f64 this is halfway between two numbers of f32, and the even one is below.
        let above = file(&format!("{head} array real general\n1 1\n1.00000005960464477540000000001\n"));
        assert_eq!(
            read(above.path(), "x", 1, ValueType::F32, None).unwrap(),
            [f64::from(1.0 + f32::EPSILON)]
        );
        let above = file(&format!("{head} array real general\n1 1\n1.00048828125000000000000000001\n"));
        assert_eq!(read(above.path(), "x", 1, ValueType::F16, None).unwrap(), [1.0009765625]);
        let above = file(&format!("{head} array real general\n1 1\n1.00390625000000000000000000001\n"));
        assert_eq!(read(above.path(), "x", 1, ValueType::Bf16, None).unwrap(), [1.0078125]);
    }

    #[test]
    fn the_sign_of_zero_stays() {
        let head = "%%MatrixMarket matrix";
        let bits = |text: &str, value| {
            let file = file(&format!("{head} {text}"));
            read(file.path(), "x", 2, value, None).unwrap().into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        let [plus, minus] = [0.0f64, -0.0].map(f64::to_bits);
        for value in [ValueType::F64, ValueType::F32, ValueType::F16] {
            assert_eq!(bits("array real general\n2 1\n-0.0\n0.0\n", value), [minus, plus]);
            assert_eq!(bits("coordinate real general\n2 1 2\n1 1 -0\n1 1 -0\n", value), [minus, plus]);
            assert_eq!(bits("coordinate real general\n2 1 2\n1 1 -0\n1 1 0\n", value), [plus, plus]);
        }
        let complex = bits("array complex general\n2 1\n-0 0\n0 -0\n", ValueType::C64);
        assert_eq!(complex, [minus, plus, plus, minus]);
    }

    #[test]
    fn semirings_want_every_entry_once() {
        let head = "%%MatrixMarket matrix coordinate real general";
        let said = |text: &str| {
            let file = file(&format!("{head}\n{text}"));
            read(file.path(), "x", 3, ValueType::F32, Some("min_plus")).map_err(|error| error.to_string())
        };
        let missing = "entry 2 of x is not stored, and is no 0 where a product is over min_plus";
        assert!(said("3 1 2\n3 1 0.5\n1 1 1\n").unwrap_err().ends_with(missing));
        let twice = "entry 1 of x is stored several times where a product is over min_plus";
        assert!(said("3 1 4\n3 1 0.5\n1 1 1\n2 1 4\n1 1 1\n").unwrap_err().ends_with(twice));
        let text = file(&format!("{head}\n3 1 1\n2 1 1\n"));
        assert_eq!(read(text.path(), "x", 3, ValueType::F32, Some("or_and")).unwrap(), [0.0, 1.0, 0.0]);
        assert_eq!(said("1 3 3\n1 3 0.5\n1 1 1\n1 2 inf\n").unwrap(), [1.0, f64::INFINITY, 0.5]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let head = "%%MatrixMarket matrix array";
        let refused = |text: &str, length, value| {
            let file = file(&format!("{head} {text}"));
            read(file.path(), "y", length, value, None).unwrap_err().to_string()
        };
        let error = refused("real general\n2 2\n1\n2\n3\n4\n", 4, ValueType::F32);
        assert!(error.ends_with("a vector for y is 4 x 1 or 1 x 4, and this is 2 x 2"), "{error}");
        let error = refused("real general\n2 1\n1\n1e5\n", 2, ValueType::F16);
        assert!(error.ends_with(": line 4, column 1: `1e5`: outside the range of f16"), "{error}");
        let error = refused("real general\n2 1\n1\n1e40\n", 2, ValueType::F32);
        assert!(error.contains("1e40") && error.contains("f32"), "{error}");
        let error = refused("integer general\n1 1\n300\n", 1, ValueType::I8);
        assert!(error.ends_with("entry 1 of y is 300, no number of type i8"), "{error}");
        let error = refused("real general\n1 1\n0.5\n", 1, ValueType::I32);
        let wanted = "the entries are real, and i32, the type of y, has whole numbers alone";
        assert!(error.ends_with(wanted), "{error}");
        // Rounded to f64 it would be another.
        let error = refused("integer general\n1 1\n9007199254740993\n", 1, ValueType::I64);
        assert!(error.contains("no number of type i64"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("y.mtx");
        let error = write(&path, &[1.0, -9_007_199_254_740_992.0], ValueType::I64).unwrap_err();
        assert!(error.to_string().starts_with("entry 2 of the product is beyond"), "{error}");
        assert!(!path.exists());
    }
}
