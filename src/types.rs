//! The shared vocabulary: value and index types, storage formats, operations.

use std::fmt;
use std::str::FromStr;

use crate::error::UnknownName;

/// The type of a matrix value, a vector entry or an accumulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ValueType {
    /// IEEE 754 binary16. Entries only: sums are in a wider type.
    F16,
    /// bfloat16, the upper half of a binary32. Entries only: sums are in a wider type.
    Bf16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// 8-bit signed. Entries only: sums are in a wider type.
    I8,
    /// 32-bit signed. Sums of integers wrap around, as they do in memory of their size.
    I32,
    /// 64-bit signed.
    I64,
    /// 32-bit unsigned.
    U32,
    /// A truth value in a byte, 0 or 1.
    Bool,
    /// A complex number of two f32, the real part first: what NumPy calls complex64.
    C32,
    /// A complex number of two f64, the real part first: what NumPy calls complex128.
    C64,
}

/// What kind of numbers a type holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueKind {
    /// Real numbers, rounded.
    Float,
    /// Whole numbers; beyond the largest they begin anew at the smallest.
    Integer,
    /// Truth values.
    Bool,
    /// Complex numbers of two floats.
    Complex,
}

/// The type of a row offset ([`IndexType::OFFSETS`]) or a column index ([`IndexType::INDICES`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum IndexType {
    /// 16-bit unsigned.
    U16,
    /// 32-bit unsigned.
    U32,
    /// 64-bit unsigned.
    U64,
}

/// How a kernel expects the matrix to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum StorageFormat {
    /// Compressed sparse rows: `row_offsets`, `col_indices`, `values`.
    Csr,
    /// Compressed sparse columns: the arrays are those of the transpose in compressed sparse rows.
    Csc,
    /// The lower triangle of a symmetric matrix, diagonal included, in compressed sparse rows.
    Symmetric,
    /// The lower triangle of a skew-symmetric matrix in compressed sparse rows.
    SkewSymmetric,
    /// The lower triangle of a Hermitian matrix, diagonal included, in compressed sparse rows.
    Hermitian,
}

impl StorageFormat {
    /// What an algorithm computes from the arrays where the product is that with op(A); `None` where there is no such
    /// product. A symmetric matrix is its own transpose; of a skew-symmetric one the transpose is −A, of a Hermitian one
    /// its conjugate.
    pub const fn of_arrays(self, operation: Operation) -> Option<Operation> {
        use Operation::{NonTranspose, Transpose};
        match (self, operation) {
            (StorageFormat::Csr, NonTranspose | Transpose) => Some(operation),
            (StorageFormat::Csc, NonTranspose) => Some(Transpose),
            (StorageFormat::Csc, Transpose) => Some(NonTranspose),
            (StorageFormat::Symmetric, NonTranspose | Transpose) => Some(Operation::Symmetric),
            (StorageFormat::SkewSymmetric, NonTranspose) => Some(Operation::SkewSymmetric),
            (StorageFormat::Hermitian, NonTranspose) => Some(Operation::Hermitian),
            _ => None,
        }
    }
}

/// op(A) in y ← α·op(A)·x + β·y, where A is what the arrays hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Operation {
    /// op(A) = A.
    NonTranspose,
    /// op(A) = Aᵀ.
    Transpose,
    /// The arrays hold the lower triangle L of A, diagonal D included: op(L) = L + Lᵀ − D.
    Symmetric,
    /// The arrays hold the lower triangle L of A, whose diagonal is zero: op(L) = L − Lᵀ.
    SkewSymmetric,
    /// The arrays hold the lower triangle L of A, diagonal D included: op(L) = L + Lᴴ − D. Kernels use the diagonal as it
    /// is stored, its imaginary parts too.
    Hermitian,
}

impl Operation {
    /// Whether the arrays hold one triangle of a matrix.
    pub const fn is_of_triangle(self) -> bool {
        matches!(self, Operation::Symmetric | Operation::SkewSymmetric | Operation::Hermitian)
    }

    /// Entries of x and of y for a matrix of this size: the columns and the rows of op(A).
    pub const fn vector_lengths(self, num_rows: usize, num_cols: usize) -> (usize, usize) {
        match self {
            Operation::Transpose => (num_rows, num_cols),
            _ => (num_cols, num_rows),
        }
    }
}

/// Gives an enum its names: `ALL`, `name()`, `Display` and `FromStr`.
macro_rules! named {
    ($type:ident, $what:literal, { $($variant:ident = $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every variant, in the order in which they are declared.
            pub const ALL: &'static [$type] = &[$($type::$variant),+];

            /// The name used in configurations, on the command line and in the docs.
            pub const fn name(self) -> &'static str {
                match self { $($type::$variant => $name),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                Self::ALL.iter().copied().find(|v| v.name() == name).ok_or_else(|| UnknownName {
                    what: $what,
                    name: name.to_owned(),
                    allowed: Self::ALL.iter().map(|v| v.name()).collect(),
                })
            }
        }
    };
}

pub(crate) use named;

named!(ValueType, "value type", {
    F16 = "f16",
    Bf16 = "bf16",
    F32 = "f32",
    F64 = "f64",
    I8 = "i8",
    I32 = "i32",
    I64 = "i64",
    U32 = "u32",
    Bool = "bool",
    C32 = "c32",
    C64 = "c64",
});
named!(ValueKind, "kind of values", {
    Float = "real",
    Integer = "integer",
    Bool = "truth",
    Complex = "complex",
});
named!(IndexType, "index type", { U16 = "u16", U32 = "u32", U64 = "u64" });
named!(StorageFormat, "storage format", {
    Csr = "csr",
    Csc = "csc",
    Symmetric = "symmetric",
    SkewSymmetric = "skew_symmetric",
    Hermitian = "hermitian",
});
named!(Operation, "operation", {
    NonTranspose = "non_transpose",
    Transpose = "transpose",
    Symmetric = "symmetric",
    SkewSymmetric = "skew_symmetric",
    Hermitian = "hermitian",
});

impl ValueType {
    /// Size in bytes.
    pub const fn size(self) -> usize {
        match self {
            ValueType::I8 | ValueType::Bool => 1,
            ValueType::F16 | ValueType::Bf16 => 2,
            ValueType::F32 | ValueType::I32 | ValueType::U32 => 4,
            ValueType::F64 | ValueType::I64 | ValueType::C32 => 8,
            ValueType::C64 => 16,
        }
    }

    /// What kind of numbers it holds.
    pub const fn kind(self) -> ValueKind {
        match self {
            ValueType::F16 | ValueType::Bf16 | ValueType::F32 | ValueType::F64 => ValueKind::Float,
            ValueType::I8 | ValueType::I32 | ValueType::I64 | ValueType::U32 => ValueKind::Integer,
            ValueType::Bool => ValueKind::Bool,
            ValueType::C32 | ValueType::C64 => ValueKind::Complex,
        }
    }

    /// The type of a part of a complex number; the type itself where it is none.
    pub const fn part(self) -> ValueType {
        match self {
            ValueType::C32 => ValueType::F32,
            ValueType::C64 => ValueType::F64,
            _ => self,
        }
    }

    /// The type's name in CUDA C++, in the generated prelude where the language has none.
    pub const fn cuda(self) -> &'static str {
        match self {
            ValueType::F16 => "F16",
            ValueType::Bf16 => "Bf16",
            ValueType::F32 => "float",
            ValueType::F64 => "double",
            ValueType::I8 => "int8_t",
            ValueType::I32 => "int32_t",
            ValueType::I64 => "int64_t",
            ValueType::U32 => "uint32_t",
            ValueType::Bool => "bool",
            ValueType::C32 => "Complex32",
            ValueType::C64 => "Complex64",
        }
    }

    /// What CUDA C++ sums it in. Signed numbers that overflow are undefined there, unsigned ones wrap around, and the bits
    /// of sums and products are the same.
    pub(crate) const fn cuda_sum(self) -> &'static str {
        match self {
            ValueType::I32 => "uint32_t",
            ValueType::I64 => "uint64_t",
            _ => self.cuda(),
        }
    }

    /// Bytes of the word in which pieces of a sum of this type meet: `PieceWord` in `prelude/spanning_row.cuh`.
    pub(crate) const fn piece_word_bytes(self) -> u32 {
        match self {
            ValueType::F64 | ValueType::I32 | ValueType::U32 | ValueType::C32 | ValueType::C64 => 8,
            _ => 4,
        }
    }

    /// What no number of the type is greater than, in CUDA C++.
    pub(crate) const fn cuda_greatest(self) -> &'static str {
        match self {
            ValueType::F64 => "1.0 / 0.0",
            ValueType::I8 => "0x7f",
            ValueType::I32 => "0x7fffffffu",
            ValueType::I64 => "0x7fffffffffffffffull",
            ValueType::U32 => "0xffffffffu",
            ValueType::Bool => "true",
            _ => "1.0f / 0.0f",
        }
    }

    /// What no number of the type is less than, in CUDA C++.
    pub(crate) const fn cuda_least(self) -> &'static str {
        match self {
            ValueType::F64 => "-1.0 / 0.0",
            ValueType::I8 => "-0x80",
            ValueType::I32 => "0x80000000u",
            ValueType::I64 => "0x8000000000000000ull",
            ValueType::U32 => "0u",
            ValueType::Bool => "false",
            _ => "-1.0f / 0.0f",
        }
    }

    /// The narrowest type that can hold sums of entries of this type: the type itself, f32 for halves, i32 for bytes.
    pub const fn narrowest_accumulator(self) -> ValueType {
        match self {
            ValueType::F16 | ValueType::Bf16 => ValueType::F32,
            ValueType::I8 => ValueType::I32,
            _ => self,
        }
    }

    /// Whether every number of `other` is a number of this type.
    pub const fn holds(self, other: ValueType) -> bool {
        use ValueType::{Bf16, Bool, C32, C64, F16, F32, F64, I8, I32, I64, U32};
        matches!(
            (self, other),
            (_, Bool)
                | (F16, F16 | I8)
                | (Bf16, Bf16)
                | (F32, F16 | Bf16 | F32 | I8)
                | (F64, F16 | Bf16 | F32 | F64 | I8 | I32 | U32)
                | (I8, I8)
                | (U32, U32)
                | (I32, I8 | I32)
                | (I64, I8 | I32 | I64 | U32)
                | (C32, C32 | F16 | Bf16 | F32 | I8)
                | (C64, C32 | C64 | F16 | Bf16 | F32 | F64 | I8 | I32 | U32)
        )
    }

    /// The narrowest type that sums may be in for entries of these types and results of `y`; `None` where there is none.
    pub fn narrowest_sum(entries: &[ValueType], y: ValueType) -> Option<ValueType> {
        let sums = Self::sums().filter(|sum| sum.kind() == y.kind() && sum.holds(y));
        sums.filter(|sum| entries.iter().all(|&entry| sum.holds(entry))).min_by_key(|sum| sum.size())
    }

    /// The types that sums may be in.
    pub fn sums() -> impl Iterator<Item = ValueType> {
        Self::ALL.iter().copied().filter(|value| value.narrowest_accumulator() == *value)
    }

    /// Binary digits, the leading one counted; of each part of a complex number.
    pub const fn digits(self) -> u32 {
        match self.part() {
            ValueType::F16 => 11,
            ValueType::Bf16 => 8,
            ValueType::F32 => f32::MANTISSA_DIGITS,
            ValueType::I8 => i8::BITS - 1,
            ValueType::I32 => i32::BITS - 1,
            ValueType::I64 => i64::BITS - 1,
            ValueType::U32 => u32::BITS,
            ValueType::Bool => 1,
            _ => f64::MANTISSA_DIGITS,
        }
    }

    /// Unit roundoff u: the largest relative error of rounding to nearest, of each part of a complex number; 0 for integers
    /// and truth values, which are exact.
    pub const fn unit_roundoff(self) -> f64 {
        match self.part() {
            ValueType::F16 => 1.0 / 2048.0,
            ValueType::Bf16 => 1.0 / 256.0,
            ValueType::F32 => f32::EPSILON as f64 / 2.0,
            ValueType::F64 => f64::EPSILON / 2.0,
            _ => 0.0,
        }
    }

    /// The smallest positive subnormal, the absolute error of an underflow; 0 where nothing underflows.
    pub const fn smallest_subnormal(self) -> f64 {
        match self.part() {
            ValueType::F16 => 1.0 / (1 << 24) as f64,
            ValueType::Bf16 => f32::from_bits(1 << 16) as f64,
            ValueType::F32 => f32::from_bits(1) as f64,
            ValueType::F64 => f64::from_bits(1),
            _ => 0.0,
        }
    }

    /// The largest finite number. What rounds to more is infinite.
    pub const fn largest(self) -> f64 {
        match self.part() {
            ValueType::F16 => 65504.0,
            ValueType::Bf16 => f32::from_bits(0x7f7f_0000) as f64,
            ValueType::F32 => f32::MAX as f64,
            ValueType::I8 => i8::MAX as f64,
            ValueType::I32 => i32::MAX as f64,
            ValueType::I64 => i64::MAX as f64,
            ValueType::U32 => u32::MAX as f64,
            ValueType::Bool => 1.0,
            _ => f64::MAX,
        }
    }
}

impl IndexType {
    /// What row offsets may be.
    pub const OFFSETS: &'static [IndexType] = &[IndexType::U32, IndexType::U64];

    /// What column indices may be: a matrix has fewer than 2³¹ columns, so no index needs 64 bits.
    pub const INDICES: &'static [IndexType] = &[IndexType::U16, IndexType::U32];

    /// Columns that 16-bit indices tell apart.
    pub const MAX_NARROW_COLUMNS: u64 = 1 << 16;

    /// Size in bytes.
    pub const fn size(self) -> usize {
        match self {
            IndexType::U16 => 2,
            IndexType::U32 => 4,
            IndexType::U64 => 8,
        }
    }

    /// The type's name in the generated prelude.
    pub const fn cuda(self) -> &'static str {
        match self {
            IndexType::U16 => "uint16_t",
            IndexType::U32 => "uint32_t",
            IndexType::U64 => "uint64_t",
        }
    }
}
