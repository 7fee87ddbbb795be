//! Parameters of an algorithm: declared once, read by the builder, the macro, the command line and the docs.

/// One tuning parameter of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterSpec {
    /// Name, the same in Rust, in the macro and on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub doc: &'static str,
    /// The value taken where none is given.
    pub default: u32,
    /// Every value that is allowed.
    pub allowed: &'static [u32],
}

impl ParameterSpec {
    /// The name of the constant in generated CUDA: `threads_per_vector` becomes `kThreadsPerVector`.
    pub fn cuda_constant(&self) -> String {
        cuda_constant(self.name)
    }
}

/// `threads_per_vector` → `kThreadsPerVector`.
pub(crate) fn cuda_constant(name: &str) -> String {
    let mut constant = String::from("k");
    for word in name.split('_') {
        let (first, rest) = word.split_at(1);
        constant.push_str(&first.to_ascii_uppercase());
        constant.push_str(rest);
    }
    constant
}

/// Declares an algorithm's parameter struct: fields with documentation, default and allowed values; and which operations
/// it computes, the usual one first, where that is not the product with A itself, and the others from a copy.
macro_rules! parameters {
    (
        $(#[doc = $struct_doc:literal])+
        pub struct $name:ident {
            $(#[doc = $doc:literal] $field:ident = $default:literal, one of $allowed:expr;)*
        }
    ) => {
        $crate::parameter::parameters! {
            $(#[doc = $struct_doc])+
            pub struct $name computes [NonTranspose, Transpose, Symmetric, SkewSymmetric, Hermitian] {
                $(#[doc = $doc] $field = $default, one of $allowed;)*
            }
        }
    };
    (
        $(#[doc = $struct_doc:literal])+
        pub struct $name:ident computes [$($operation:ident),+] {
            $(#[doc = $doc:literal] $field:ident = $default:literal, one of $allowed:expr;)*
        }
    ) => {
        $(#[doc = $struct_doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            $(#[doc = $doc] pub $field: u32,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self::DEFAULT
            }
        }

        impl $name {
            pub(crate) const DEFAULT: Self = $name { $($field: $default,)* };

            pub(crate) const PARAMETERS: &'static [$crate::parameter::ParameterSpec] = &[
                $($crate::parameter::ParameterSpec {
                    name: stringify!($field),
                    doc: $doc.trim_ascii(),
                    default: $default,
                    allowed: &$allowed,
                },)*
            ];

            pub(crate) const OPERATIONS: &'static [$crate::types::Operation] =
                &[$($crate::types::Operation::$operation,)+];

            pub(crate) fn values(&self) -> Vec<u32> {
                vec![$(self.$field,)*]
            }

            pub(crate) fn slot(&mut self, name: &str) -> Option<&mut u32> {
                match name {
                    $(stringify!($field) => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use parameters;
