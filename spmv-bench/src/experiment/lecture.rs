//! *Parallel Sparse Methods*, a lecture: which storage format suits which structure.

use super::shapes::made;
use super::{Axis, Experiment, F32_AND_F64, Matrices, Metric, NON_TRANSPOSE, Paper, Shape, contender};

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
        "roughly triangular: JDS, which is taken with its transposition",
        "banded: ELL, as rows differ little",
        "strictly diagonal: DIA",
        "blocks: blocked CSR",
    ],
    matrices: Matrices::Shapes(MATRICES),
    values: F32_AND_F64,
    operations: NON_TRANSPOSE,
    contenders: &[
        contender("CSR", "ours:csr_scalar", &[("unroll", "1")]),
        contender("ELL", "ours:ell", &[]),
        contender("COO", "ours:coo", &[]),
        contender("ELL+COO", "ours:hyb", &[]),
        contender("JDS", "ours:jds", &[("transposed", "0")]),
        contender("JDS_T", "ours:jds", &[("transposed", "1")]),
        contender("TJDS", "ours:tjds", &[]),
        contender("DIA", "ours:dia", &[]),
        contender("BSR", "ours:bsr", &[]),
        contender("PKT", "ours:pkt", &[]),
        contender("CSC", "ours:csc", &[]),
        contender("SELL", "ours:sell_c_sigma", &[]),
        contender("BCCOO", "ours:bccoo", &[]),
        contender("cuSPARSE COO", "cusparse:coo_alg1", &[]),
        contender("cuSPARSE SELL", "cusparse:sell", &[]),
        contender("cuSPARSE BSR", "cusparse:bsr", &[]),
    ],
    axis: Axis::Matrix,
    metrics: &[Metric::Milliseconds, Metric::OfTheRoof],
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
    made("triangular", "banded", &[("n", 3e4), ("lower", 3e4), ("upper", 0.0), ("fill", 0.03)]).best("JDS_T"),
    made("banded", "banded", &[("n", 1e6), ("lower", 8.0), ("upper", 8.0)]).best("ELL"),
    made("diagonals", "stencil_7", &[("nx", 160.0), ("ny", 160.0), ("nz", 160.0)]).best("DIA"),
    made("blocks", "fem", &[("nx", 50.0), ("ny", 50.0), ("nz", 50.0), ("unknowns", 3.0)]).best("BSR"),
];
