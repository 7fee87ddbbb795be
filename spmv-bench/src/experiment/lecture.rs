//! *Parallel Sparse Methods*, a lecture: which storage format suits which structure.

use super::shapes::made;
use super::{Axis, Experiment, F32_AND_F64, Matrices, Metric, PLAIN, Paper, Shape, contender};

const PAPER: Paper = Paper {
    number: "002",
    authors: "University of Illinois at Urbana-Champaign",
    title: "ECE408 Applied Parallel Programming, lecture 17: Parallel Sparse Methods",
    venue: "lecture",
    year: 2025,
    gpu: "none: the lecture measures nothing",
};

pub(super) const ALL: &[Experiment] = &[Experiment {
    name: "002-formats",
    paper: &PAPER,
    title: "Which storage format suits which structure",
    shows: &[
        "roughly random: probably best with ELL, as padding is spread evenly",
        "high variance of rows: ELL and COO together, the outliers in COO",
        "very sparse: COO",
        "roughly triangular: JDS",
        "banded: ELL, as rows differ little",
    ],
    matrices: Matrices::Shapes(MATRICES),
    values: F32_AND_F64,
    operations: PLAIN,
    contenders: &[
        contender("CSR", "ours:csr_scalar", &[("unroll", "1")]),
        contender("ELL", "ours:ell", &[]),
        contender("COO", "ours:coo", &[]),
        contender("ELL+COO", "ours:hyb", &[]),
        contender("JDS", "ours:jds", &[]),
        contender("JDS_T", "ours:jds_t", &[]),
    ],
    axis: Axis::Matrix,
    metrics: &[Metric::Milliseconds],
    published: &[],
    speed_ups: None,
}];

/// R-MAT whose quarters are alike has edges anywhere, a Poisson number in each row.
const MATRICES: &[Shape] = &[
    made(
        "roughly_random",
        "rmat",
        &[("scale", 20.0), ("per_row", 16.0), ("a", 0.25), ("b", 0.25), ("c", 0.25)],
    )
    .best("ELL"),
    made("high_variance", "power_law", &[("n", 1e6), ("shortest", 6.0), ("longest", 1e4), ("exponent", 2.5)])
        .best("ELL+COO"),
    made("very_sparse", "rmat", &[("scale", 24.0), ("per_row", 0.25), ("a", 0.25), ("b", 0.25), ("c", 0.25)])
        .best("COO"),
    made("triangular", "banded", &[("n", 3e4), ("lower", 3e4), ("upper", 0.0), ("fill", 0.03)]).best("JDS"),
    made("banded", "banded", &[("n", 1e6), ("lower", 8.0), ("upper", 8.0)]).best("ELL"),
];
