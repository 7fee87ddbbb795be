//! Which kernel a matrix gets where nobody says.

use spmv_runtime::codegen::{Algorithm, CsrScalar, CsrVector, HolaT, Operation, SymCsr};

/// A kernel and why.
#[derive(Debug)]
pub struct Choice {
    pub algorithm: Algorithm,
    pub reason: String,
}

/// A rule of thumb by the mean number of nonzeros a row: short rows get a thread each, longer ones a group of
/// threads of LightSpMV's width. Transposed products are added up block by block whatever the rows are.
pub fn choose(operation: Operation, row_nnz_mean: f64) -> Choice {
    if operation == Operation::Transpose {
        let reason = "it computes transposed products, with equal shares for rows of any length".to_owned();
        return Choice { algorithm: HolaT::default().into(), reason };
    }
    if operation.is_of_triangle() {
        let reason = "one triangle of the matrix is stored".to_owned();
        return Choice { algorithm: SymCsr::default().into(), reason };
    }
    if row_nnz_mean < 4.0 {
        let reason = format!("{row_nnz_mean:.1} nonzeros a row on average are fewer than 4: a thread a row");
        return Choice { algorithm: CsrScalar::default().into(), reason };
    }
    let threads_per_vector = lightspmv_width(row_nnz_mean);
    let reason = format!(
        "{row_nnz_mean:.1} nonzeros a row on average: {threads_per_vector} threads a row (LightSpMV's rule)"
    );
    Choice { algorithm: CsrVector { threads_per_vector, ..CsrVector::default() }.into(), reason }
}

/// Threads a row by the mean row length: Liu and Schmidt, *LightSpMV: Faster CSR-based Sparse Matrix-Vector
/// Multiplication on CUDA-enabled GPUs* (ASAP 2015).
fn lightspmv_width(row_nnz_mean: f64) -> u32 {
    match row_nnz_mean {
        mean if mean <= 2.0 => 2,
        mean if mean <= 4.0 => 4,
        mean if mean <= 64.0 => 8,
        _ => 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_mean_row_length() {
        let chosen = |mean| choose(Operation::NonTranspose, mean).algorithm;
        let vector =
            |threads_per_vector| Algorithm::from(CsrVector { threads_per_vector, ..CsrVector::default() });
        assert_eq!(chosen(0.0), CsrScalar::default().into());
        assert_eq!(chosen(3.99), CsrScalar::default().into());
        assert_eq!(chosen(4.0), vector(4));
        assert_eq!(chosen(4.01), vector(8));
        assert_eq!(chosen(64.0), vector(8));
        assert_eq!(chosen(64.1), vector(32));
        assert_eq!(choose(Operation::SkewSymmetric, 3.0).algorithm, SymCsr::default().into());
        assert_eq!(choose(Operation::Transpose, 3.0).algorithm, HolaT::default().into());
        assert_eq!([0.0, 2.0, 2.1].map(lightspmv_width), [2, 2, 4]);
    }
}
