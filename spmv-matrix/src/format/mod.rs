//! Ways to store a matrix besides compressed sparse rows.
//!
//! Every layout is a type with its raw arrays, made from a [`CsrMatrix`] and turned back into one through [`Format`];
//! [`FormatKind::ALL`] lists them. What a layout takes is known before it is made ([`Format::predict`]), and one that
//! would be mostly fill is refused with [`MatrixError::Fill`].
//!
//! Indices are `u32`. A slot that holds no entry has the column [`NO_COLUMN`] and the value 0; layouts without a column
//! for each slot (diagonals, blocks) keep a mask that tells entries from fill. Stored zeros are entries. Entries of the
//! same place stay apart: diagonals and blocks are stored again for the second of them. Conversions run on all threads of
//! the current rayon pool, and their result does not depend on how many there are.
//!
//! ```
//! use spmv_matrix::CsrMatrix;
//! use spmv_matrix::format::{EllMatrix, Format, FormatKind};
//!
//! let a = CsrMatrix::new(2, 3, vec![0u32, 1, 3], vec![2, 0, 1], vec![1.0, 2.0, 3.0])?;
//! let footprint = EllMatrix::predict(&a)?;
//! assert_eq!((footprint.nnz, footprint.slots), (3, 64));
//! let ell = EllMatrix::from_csr(&a)?;
//! assert_eq!((ell.width(), ell.stride()), (2, 32));
//! let back: CsrMatrix<f64> = ell.to_csr()?;
//! assert_eq!(back, a);
//! assert_eq!(FormatKind::SellCSigma.name(), "sell_c_sigma");
//! # Ok::<(), spmv_matrix::MatrixError>(())
//! ```

mod bccoo;
mod blocks;
mod bsr;
mod compressed;
mod dia;
mod dok;
mod ell;
mod footprint;
mod hyb;
mod jds;
mod pkt;
mod runs;
mod sell;
mod tjds;

use std::fmt::{self, Debug};

pub use self::bccoo::{BLOCKS_PER_TILE, BccooMatrix, BccooParameters, ESCAPE};
pub use self::bsr::{BsrMatrix, BsrParameters};
pub use self::dia::DiaMatrix;
pub use self::dok::DokMatrix;
pub use self::ell::EllMatrix;
pub use self::footprint::{Fit, Footprint};
pub use self::hyb::HybMatrix;
pub use self::jds::JdsMatrix;
pub use self::pkt::{NO_LOCAL_COLUMN, PktMatrix, PktParameters};
pub(crate) use self::runs::csr_of_rows;
pub use self::sell::{SLICE_ROWS, SellMatrix, SellParameters};
pub use self::tjds::TjdsMatrix;
use crate::product::{check_vector_lengths, stored};
use crate::scalar::sealed::Exact;
use crate::{CooMatrix, CscMatrix, CsrMatrix, Entry, MatrixError, Number, Offset};

/// The column of a slot that holds no entry.
pub const NO_COLUMN: u32 = u32::MAX;

/// A layout of a matrix with values `V`, where positions are counted by `O`.
pub trait Format<V: Entry, O: Offset>: Sized {
    /// What may be chosen; the default serves most matrices.
    type Parameters: Copy + Debug + Default + PartialEq;

    /// Which layout this is.
    const KIND: FormatKind;

    /// Whether a matrix comes back with the entries of each row in the order they had. Otherwise columns ascend, and
    /// entries of the same place keep their order.
    const KEEPS_ORDER: bool;

    /// What the layout takes, without making it.
    ///
    /// # Errors
    ///
    /// [`MatrixError::Parameter`], and [`MatrixError::OutOfMemory`] for what counting takes.
    fn predict_with(a: &CsrMatrix<V, O>, parameters: Self::Parameters) -> Result<Footprint, MatrixError>;

    /// The same matrix in this layout.
    ///
    /// # Errors
    ///
    /// [`MatrixError::Fill`] where it would be mostly fill, [`MatrixError::OffsetOverflow`] where `O` cannot count its
    /// slots, [`MatrixError::Parameter`] and [`MatrixError::OutOfMemory`].
    fn from_csr_with(a: &CsrMatrix<V, O>, parameters: Self::Parameters) -> Result<Self, MatrixError>;

    /// The same matrix in compressed sparse rows: every entry, in the order that [`Format::KEEPS_ORDER`] says.
    ///
    /// # Errors
    ///
    /// [`MatrixError::OutOfMemory`], and [`MatrixError::OffsetOverflow`] where `O` cannot count the entries.
    fn to_csr(&self) -> Result<CsrMatrix<V, O>, MatrixError>;

    /// The number of rows.
    fn num_rows(&self) -> usize;

    /// The number of columns.
    fn num_cols(&self) -> usize;

    /// The number of stored entries, duplicates and stored zeros included, fill excluded.
    fn nnz(&self) -> usize;

    /// Bytes of all arrays together.
    fn bytes(&self) -> u64;

    /// Calls `entry` with row, column and value of every entry, in the order of the layout.
    fn for_each_entry(&self, entry: impl FnMut(usize, usize, V));

    /// What the layout takes with the usual parameters, without making it.
    ///
    /// # Errors
    ///
    /// As [`Format::predict_with`].
    fn predict(a: &CsrMatrix<V, O>) -> Result<Footprint, MatrixError> {
        Self::predict_with(a, Self::Parameters::default())
    }

    /// The same matrix in this layout with the usual parameters.
    ///
    /// # Errors
    ///
    /// As [`Format::from_csr_with`].
    fn from_csr(a: &CsrMatrix<V, O>) -> Result<Self, MatrixError> {
        Self::from_csr_with(a, Self::Parameters::default())
    }

    /// y ← α·A·x + β·y in one thread, entry by entry in the order of the layout.
    ///
    /// `x` has `num_cols` entries and `y` has `num_rows`. Sums are those of [`cpu_serial`](crate::cpu_serial): this checks a
    /// layout, it is not fast. Fill never touches x.
    ///
    /// # Errors
    ///
    /// [`MatrixError::VectorLength`] where `x` or `y` does not fit the matrix.
    fn multiply(&self, alpha: V::Sum, x: &[V], beta: V::Sum, y: &mut [V]) -> Result<(), MatrixError>
    where
        V: Number,
    {
        check_vector_lengths(self.num_rows(), self.num_cols(), x, y)?;
        let mut sums = vec![<V as Exact<V::Sum>>::Total::default(); self.num_rows()];
        if alpha != V::Sum::default() {
            self.for_each_entry(|row, col, value| V::add_product(&mut sums[row], value, x[col]));
        }
        for (y, sum) in y.iter_mut().zip(sums) {
            *y = stored(sum, alpha, beta, *y);
        }
        Ok(())
    }
}

/// Something to be done with any layout: see [`FormatKind::visit`].
pub trait FormatVisitor<V: Entry, O: Offset> {
    /// What comes of it.
    type Output;

    /// Does it with layout `F`.
    fn visit<F: Format<V, O>>(self) -> Self::Output;
}

macro_rules! formats {
    ($($(#[doc = $summary:literal])+ $kind:ident = $name:literal: $matrix:ty,)+) => {
        /// The layouts there are.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FormatKind {
            $($(#[doc = $summary])+ $kind,)+
        }

        impl FormatKind {
            /// All of them.
            pub const ALL: &'static [FormatKind] = &[$(FormatKind::$kind),+];

            /// The name, as in `sell_c_sigma`.
            pub fn name(self) -> &'static str {
                match self {
                    $(FormatKind::$kind => $name,)+
                }
            }

            /// What it is, in a line.
            pub fn summary(self) -> &'static str {
                match self {
                    $(FormatKind::$kind => concat!($($summary),+).trim_ascii(),)+
                }
            }

            /// Does something with the type of the layout.
            pub fn visit<V: Entry, O: Offset, T: FormatVisitor<V, O>>(self, visitor: T) -> T::Output {
                match self {
                    $(FormatKind::$kind => visitor.visit::<$matrix>(),)+
                }
            }
        }
    };
}

formats! {
    /// Entries with their row and column, row by row.
    Coo = "coo": CooMatrix<V>,
    /// Compressed sparse columns.
    Csc = "csc": CscMatrix<V, O>,
    /// Rows padded to the longest, stored by columns.
    Ell = "ell": EllMatrix<V>,
    /// Slices of 32 rows, each padded to its longest, rows sorted by length in windows.
    SellCSigma = "sell_c_sigma": SellMatrix<V, O>,
    /// Rows sorted by length, the k-th entries of all together.
    Jds = "jds": JdsMatrix<V, O>,
    /// Columns sorted by length, the k-th entries of all together.
    Tjds = "tjds": TjdsMatrix<V, O>,
    /// Rows padded to the length of a third of them, what is longer with row and column.
    Hyb = "hyb": HybMatrix<V>,
    /// Diagonals.
    Dia = "dia": DiaMatrix<V>,
    /// Dense blocks, compressed by rows of blocks.
    Bsr = "bsr": BsrMatrix<V, O>,
    /// Square packets on the diagonal with 16-bit columns, the rest in compressed sparse rows.
    Pkt = "pkt": PktMatrix<V, O>,
    /// Dense blocks with a bit for the end of a row and 16 bits for the column.
    Bccoo = "bccoo": BccooMatrix<V, O>,
}

impl FormatKind {
    /// What a matrix takes in this layout with the usual parameters.
    ///
    /// # Errors
    ///
    /// As [`Format::predict`].
    pub fn predict<V: Entry, O: Offset>(self, a: &CsrMatrix<V, O>) -> Result<Footprint, MatrixError> {
        struct Predict<'a, V, O>(&'a CsrMatrix<V, O>);
        impl<V: Entry, O: Offset> FormatVisitor<V, O> for Predict<'_, V, O> {
            type Output = Result<Footprint, MatrixError>;

            fn visit<F: Format<V, O>>(self) -> Self::Output {
                F::predict(self.0)
            }
        }
        self.visit(Predict(a))
    }
}

impl fmt::Display for FormatKind {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.pad(self.name())
    }
}
