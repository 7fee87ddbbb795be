//! Matrices of the papers, as generators imitate them: rows, nonzeros, the longest rows, and roughly where columns lie.
//!
//! Where a paper counts the stored half of a symmetric file, so does the imitation; a file is read with both halves.

use super::Shape;
use crate::suite::Spec;

/// A matrix of the SuiteSparse collection; what is generated is called `like_` and its name.
pub(super) const fn like(
    file: &'static str,
    name: &'static str,
    class: &'static str,
    parameters: &'static [(&'static str, f64)],
) -> Shape {
    Shape { file: Some(file), ..made(name, class, parameters) }
}

/// A matrix that no file holds.
pub(super) const fn made(
    name: &'static str,
    class: &'static str,
    parameters: &'static [(&'static str, f64)],
) -> Shape {
    Shape { file: None, x: None, best: None, spec: Spec { name, class, parameters, seed: 1 } }
}

impl Shape {
    pub(super) const fn at(self, x: f64) -> Shape {
        Shape { x: Some(x), ..self }
    }

    pub(super) const fn best(self, label: &'static str) -> Shape {
        Shape { best: Some(label), ..self }
    }
}

/// DNA electrophoresis, of Mazzucchi's and of Hiranandani's experiments.
pub(super) const CAGE14: Shape =
    like("cage14", "like_cage14", "gaussian", &[("n", 1_505_785.0), ("per_row", 18.0), ("sigma", 2e4)]);

/// A crankshaft's finite elements, of Messa's and of Hiranandani's experiments.
pub(super) const F1: Shape = like("F1", "like_F1", "chemistry", &[("n", 343_791.0), ("per_row", 35.0)]);

/// 1 million rows, 22 million nonzeros around the diagonal.
pub(super) const GAUSSIANS: &[Shape] = &[
    made("gaussian_22m_25", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 25.0)]).at(25.0),
    made("gaussian_22m_1e2", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 1e2)]).at(1e2),
    made("gaussian_22m_4e2", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 4e2)]).at(4e2),
    made("gaussian_22m_1e3", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 1e3)]).at(1e3),
    made("gaussian_22m_4e3", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 4e3)]).at(4e3),
    made("gaussian_22m_1e4", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 1e4)]).at(1e4),
    made("gaussian_22m_4e4", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 4e4)]).at(4e4),
    made("gaussian_22m_1e5", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 1e5)]).at(1e5),
    made("gaussian_22m_4e5", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 4e5)]).at(4e5),
    made("gaussian_22m_1e6", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 1e6)]).at(1e6),
];
