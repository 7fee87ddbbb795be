//! Matrices of the usual classes, made from a seed.
//!
//! The same class, parameters and seed give the same matrix on every machine, with any number of threads
//! and in every version of this library that keeps the class: random numbers come from [SplitMix64] streams
//! of this library's own, one for each row, and no function is used whose rounding a system may choose.
//!
//! ```
//! use spmv_matrix::generate::Generator;
//!
//! let a = Generator::new("stencil_5")?.set("nx", 30.0)?.set("ny", 20.0)?.seed(7).generate::<f64, u32>()?;
//! assert_eq!((a.num_rows(), a.nnz()), (600, 2900));
//! # Ok::<(), spmv_matrix::generate::GenerateError>(())
//! ```
//!
//! [SplitMix64]: https://doi.org/10.1145/2714064.2660195

mod band;
mod class;
mod graph;
mod numeric;
mod random;
mod rng;
mod rows;
mod stencil;

use std::collections::HashSet;
use std::str::FromStr;

pub use self::class::{ALL, ClassSpec, ParameterSpec, class};
use self::class::{Plan, Settings};
use self::rng::Rng;
use crate::assemble::zeroed;
use crate::csr::{check_dimensions, check_offset_type};
use crate::{CsrMatrix, MatrixError, Offset, Value, ValueType, parallel};

/// Why a matrix cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// There is no such class.
    #[error("there is no class {name:?}; there are {}", allowed.join(", "))]
    UnknownClass {
        /// The name that was given.
        name: String,
        /// The names there are.
        allowed: Vec<&'static str>,
    },

    /// The class has no such parameter.
    #[error("{class} has no parameter {name:?}; it has {}", allowed.join(", "))]
    UnknownParameter {
        /// The class.
        class: &'static str,
        /// The name that was given.
        name: String,
        /// The names there are.
        allowed: Vec<&'static str>,
    },

    /// A parameter is out of its range.
    #[error("{class}: {name} = {value}; allowed are {} from {min} to {max}", if *.integer { "whole numbers" } else { "numbers" })]
    OutOfRange {
        /// The class.
        class: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was given.
        value: String,
        /// The least value.
        min: f64,
        /// The greatest value.
        max: f64,
        /// Whether it must be whole.
        integer: bool,
    },

    /// The parameters do not go together.
    #[error("{class}: {what}")]
    Conflict {
        /// The class.
        class: &'static str,
        /// What is wrong and what is allowed.
        what: String,
    },

    /// A text does not say how a matrix is made.
    #[error("{text:?}: {what}; a matrix is written CLASS or CLASS:KEY=VALUE,..., each key once")]
    Text {
        /// The text.
        text: String,
        /// What is wrong.
        what: String,
    },

    /// There is no such way to choose values.
    #[error("there are no values {0:?}; there are {names}", names = Values::NAMES.map(|(name, _)| name).join(", "))]
    UnknownValues(String),

    /// The type of the entries does not hold one of them.
    #[error("laplacian values need {value} on the diagonal, which {of} does not hold; a wider type does")]
    ValueTooLarge {
        /// The entry.
        value: u64,
        /// The type.
        of: ValueType,
    },

    /// The matrix would be larger than [`Generator::max_bytes`] allows.
    #[error("the matrix would take about {bytes} bytes; at most {max_bytes} are allowed")]
    TooLarge {
        /// Bytes that making it takes.
        bytes: u64,
        /// The limit.
        max_bytes: u64,
    },

    /// The matrix would have too many rows, columns or nonzeros, or there is no memory for it.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
}

/// What the entries of a generated matrix are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// Uniform in (−1, 1), never zero; hardly any f64 is an f32. In a type without fractions, those of `Integers`.
    #[default]
    Random,
    /// As `Random`, the same numbers in f32 and f64.
    Single,
    /// All 1.
    Ones,
    /// Whole numbers from −4 to 4, never zero: sums that are exact whatever their order. In an unsigned type, from 1 to 4.
    Integers,
    /// −1 beside the diagonal, and on it as many as the row with most of these has: that of Poisson's equation on a grid, and
    /// positive definite wherever the structure is symmetric, has a whole diagonal and a shorter row in each of its parts. In
    /// an unsigned type 1 beside the diagonal.
    Laplacian,
}

impl Values {
    /// Every way to choose values, and its name.
    pub const NAMES: [(&'static str, Values); 5] = [
        ("random", Values::Random),
        ("single", Values::Single),
        ("ones", Values::Ones),
        ("integers", Values::Integers),
        ("laplacian", Values::Laplacian),
    ];
}

impl std::fmt::Display for Values {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = Values::NAMES.iter().find(|(_, values)| values == self).map_or("", |(name, _)| name);
        f.pad(name)
    }
}

impl std::str::FromStr for Values {
    type Err = GenerateError;

    fn from_str(name: &str) -> Result<Self, GenerateError> {
        let found = Values::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, values)| *values).ok_or_else(|| GenerateError::UnknownValues(name.to_owned()))
    }
}

/// How large a matrix is going to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Size {
    /// Rows.
    pub num_rows: usize,
    /// Columns.
    pub num_cols: usize,
    /// Nonzeros; an estimate where the class is random.
    pub nnz: u64,
    /// Bytes of memory that making the matrix takes, the matrix included.
    pub bytes: u64,
}

/// A class with its parameters, a seed, and what the values are.
#[derive(Clone, Debug)]
pub struct Generator {
    class: &'static ClassSpec,
    settings: Vec<f64>,
    seed: u64,
    values: Values,
    max_bytes: Option<u64>,
}

/// `CLASS` or `CLASS:KEY=VALUE,...`: keys are the class's parameters and `seed`.
impl FromStr for Generator {
    type Err = GenerateError;

    fn from_str(text: &str) -> Result<Generator, GenerateError> {
        let wrong = |what: String| GenerateError::Text { text: text.to_owned(), what };
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let mut known = HashSet::new();
        let mut generator = Generator::new(name.trim())?;
        for setting in settings.split(',').filter(|setting| !setting.trim().is_empty()) {
            let parts = setting.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
            let (key, value) = parts.ok_or_else(|| wrong(format!("{setting:?} is no KEY=VALUE")))?;
            if !known.insert(key) {
                return Err(wrong(format!("{key} is set twice")));
            }
            generator = match key {
                "seed" => {
                    let seed = value.parse();
                    generator.seed(seed.map_err(|_| wrong(format!("seed = {value} is no whole number")))?)
                }
                key => generator.set_text(key, value)?,
            };
        }
        Ok(generator)
    }
}

impl Generator {
    /// A class by its name, with default parameters, seed 0 and random values.
    ///
    /// # Errors
    ///
    /// [`GenerateError::UnknownClass`].
    pub fn new(name: &str) -> Result<Self, GenerateError> {
        let class = class(name)?;
        let settings = class.parameters.iter().map(|parameter| parameter.default).collect();
        Ok(Self { class, settings, seed: 0, values: Values::Random, max_bytes: None })
    }

    /// The class.
    pub fn class(&self) -> &'static ClassSpec {
        self.class
    }

    /// Sets a parameter.
    ///
    /// # Errors
    ///
    /// [`GenerateError::UnknownParameter`] and [`GenerateError::OutOfRange`].
    pub fn set(self, name: &str, value: f64) -> Result<Self, GenerateError> {
        self.set_checked(name, Some(value), || value.to_string())
    }

    /// Sets a parameter to what a text says, as `1000`, `1e6` or `0.57`.
    ///
    /// # Errors
    ///
    /// As [`Self::set`]; a text that is no number is out of range.
    pub fn set_text(self, name: &str, text: &str) -> Result<Self, GenerateError> {
        self.set_checked(name, text.trim().parse().ok(), || text.to_owned())
    }

    fn set_checked(
        mut self,
        name: &str,
        value: Option<f64>,
        text: impl Fn() -> String,
    ) -> Result<Self, GenerateError> {
        let parameters = self.class.parameters;
        let Some(index) = parameters.iter().position(|parameter| parameter.name == name) else {
            return Err(GenerateError::UnknownParameter {
                class: self.class.name,
                name: name.to_owned(),
                allowed: parameters.iter().map(|parameter| parameter.name).collect(),
            });
        };
        let ParameterSpec { name, min, max, integer, .. } = parameters[index];
        let allowed = |value: &f64| (min..=max).contains(value) && (!integer || value.fract() == 0.0);
        match value.filter(allowed) {
            Some(value) => self.settings[index] = value,
            None => {
                let class = self.class.name;
                return Err(GenerateError::OutOfRange { class, name, value: text(), min, max, integer });
            }
        }
        Ok(self)
    }

    /// Sets the seed.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets what the values are.
    pub fn values(self, values: Values) -> Self {
        Self { values, ..self }
    }

    /// Refuses a matrix that would take more memory than that.
    pub fn max_bytes(self, bytes: u64) -> Self {
        Self { max_bytes: Some(bytes), ..self }
    }

    /// How large the matrix is going to be, without making it.
    ///
    /// # Errors
    ///
    /// Parameters that do not go together, or give too many rows, columns or nonzeros.
    pub fn size<V: Value, O: Offset>(&self) -> Result<Size, GenerateError> {
        Ok(self.plan::<V, O>()?.1)
    }

    fn plan<V: Value, O: Offset>(&self) -> Result<(Box<dyn Plan>, Size), GenerateError> {
        let plan = (self.class.plan)(&Settings { class: self.class, values: &self.settings })?;
        let (num_rows, num_cols) = (plan.num_rows(), plan.num_cols());
        check_dimensions(num_rows, num_cols)?;
        let nnz = plan.expected_nnz().min(num_rows as u64 * num_cols as u64);
        check_offset_type::<O>(nnz)?;
        // Columns are there twice while they are put together, row lengths as well.
        let bytes = nnz
            .saturating_mul(8 + size_of::<V>() as u64)
            .saturating_add((num_rows as u64 + 1).saturating_mul(4 + size_of::<O>() as u64));
        Ok((plan, Size { num_rows, num_cols, nnz, bytes }))
    }

    /// Makes the matrix, in parallel. Columns are ascending and distinct in each row.
    ///
    /// # Errors
    ///
    /// As [`Self::size`], and where there is no memory.
    pub fn generate<V: Value, O: Offset>(&self) -> Result<CsrMatrix<V, O>, GenerateError> {
        let (plan, Size { num_rows, num_cols, bytes, .. }) = self.plan::<V, O>()?;
        if let Some(max_bytes) = self.max_bytes.filter(|&max_bytes| bytes > max_bytes) {
            return Err(GenerateError::TooLarge { bytes, max_bytes });
        }
        let rows_per_block = (num_rows / 1024).clamp(1, 4096);
        let blocks = parallel::map(parallel::blocks(num_rows, rows_per_block), |rows| {
            Block::of(plan.as_ref(), self.seed, rows)
        });

        let nnz: usize = blocks.iter().map(|block| block.cols.len()).sum();
        let diagonal = match self.values {
            Values::Laplacian => parallel::map(blocks.iter(), Block::most_beside_diagonal).into_iter().max(),
            _ => None,
        };
        if let Some(diagonal) =
            diagonal.filter(|&diagonal| V::from_f64(diagonal.into()).to_f64() != diagonal.into())
        {
            return Err(GenerateError::ValueTooLarge { value: diagonal.into(), of: V::TYPE });
        }
        check_offset_type::<O>(nnz as u64)?;
        let mut row_offsets: Vec<O> = zeroed(num_rows + 1, "row_offsets")?;
        let mut col_indices: Vec<u32> = zeroed(nnz, "col_indices")?;
        let mut values: Vec<V> = zeroed(nnz, "values")?;
        let mut tasks = Vec::with_capacity(blocks.len());
        let (mut offsets, mut cols, mut vals) =
            (&mut row_offsets[1..], &mut col_indices[..], &mut values[..]);
        let mut start = 0;
        for block in blocks {
            let (rows, len) = (block.lens.len(), block.cols.len());
            let offsets = offsets.split_off_mut(..rows).expect("rows of the block");
            let cols = cols.split_off_mut(..len).expect("columns of the block");
            let vals = vals.split_off_mut(..len).expect("values of the block");
            tasks.push((block, start, offsets, cols, vals));
            start += len;
        }
        parallel::for_each(tasks.into_iter(), |(block, start, offsets, cols, vals)| {
            cols.copy_from_slice(&block.cols);
            let mut end = 0;
            for (index, (offset, &len)) in offsets.iter_mut().zip(&block.lens).enumerate() {
                let row = end..end + len as usize;
                end = row.end;
                *offset = O::of(start + end);
                let (number, vals) = (block.first_row + index, &mut vals[row.clone()]);
                match diagonal {
                    Some(diagonal) => fill_laplacian(vals, &block.cols[row], diagonal, number),
                    None => fill_values(vals, self.values, self.seed, number),
                }
            }
        });
        Ok(CsrMatrix::from_checked(num_cols, row_offsets, col_indices, values))
    }
}

/// The columns of some rows.
struct Block {
    first_row: usize,
    lens: Vec<u32>,
    cols: Vec<u32>,
}

impl Block {
    fn of(plan: &dyn Plan, seed: u64, rows: std::ops::Range<usize>) -> Self {
        let mut block =
            Block { first_row: rows.start, lens: Vec::with_capacity(rows.len()), cols: Vec::new() };
        for row in rows {
            let start = block.cols.len();
            plan.row(row, &mut Rng::new(seed, rng::Stream::Columns, row as u64), &mut block.cols);
            debug_assert!(block.cols[start..].is_sorted_by(|a, b| a < b), "row {row}");
            block.lens.push((block.cols.len() - start) as u32);
        }
        block
    }

    /// Entries beside the diagonal in the row that has most of them.
    fn most_beside_diagonal(&self) -> u32 {
        let mut start = 0;
        let beside = self.lens.iter().enumerate().map(|(index, &len)| {
            let cols = &self.cols[start..start + len as usize];
            start += len as usize;
            len - u32::from(cols.binary_search(&((self.first_row + index) as u32)).is_ok())
        });
        beside.max().unwrap_or(0)
    }
}

fn fill_laplacian<V: Value>(out: &mut [V], cols: &[u32], diagonal: u32, row: usize) {
    let beside = V::from_f64(if V::SIGNED { -1.0 } else { 1.0 });
    for (value, &col) in out.iter_mut().zip(cols) {
        *value = if col as usize == row { V::from_f64(diagonal.into()) } else { beside };
    }
}

fn fill_values<V: Value>(out: &mut [V], values: Values, seed: u64, row: usize) {
    if values == Values::Ones {
        out.fill(V::from_f64(1.0));
        return;
    }
    let mut rng = Rng::new(seed, rng::Stream::Values, row as u64);
    for value in out {
        let number = match values {
            Values::Random if V::FRACTIONS => rng.wide_unit(),
            Values::Single if V::FRACTIONS => rng.signed_unit(),
            _ => rng.small_integer(),
        };
        *value = V::from_f64(if V::SIGNED { number } else { number.abs() });
    }
}
