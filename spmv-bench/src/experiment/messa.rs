//! A. Messa, *Deliverable report*: thread, warp, bins and a hybrid of thread, warp and block, beside cuSPARSE.

use super::shapes::{F1, like};
use super::{
    Axis, CUSPARSE, Experiment, F32_AND_F64, Matrices, Metric, NON_TRANSPOSE, Paper, Shape, contender,
};

const PAPER: Paper = Paper {
    number: "001",
    authors: "A. Messa",
    title: "Deliverable report (sparse matrix-vector multiplication on GPUs)",
    venue: "GPU Computing, University of Trento",
    year: 2025,
    gpu: "NVIDIA A30",
};

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        name: "001-fig3",
        paper: &PAPER,
        title: "What unrolling and launch bounds gain a thread a row",
        shows: &[
            "unrolling by four with launch bounds gains a thread a row on every matrix but ecology1 (3 nonzeros a row)",
        ],
        matrices: Matrices::Shapes(MATRICES),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: &[
            contender("plain", "ours:csr_scalar", &[("unroll", "1"), ("min_blocks", "0")]),
            contender("unroll 4", "ours:csr_scalar", &[("unroll", "4"), ("min_blocks", "0")]),
            contender(
                "unroll 4, bounds",
                "ours:csr_scalar",
                &[("unroll", "4"), ("min_blocks", "8"), ("threads_per_block", "256")],
            ),
        ],
        axis: Axis::Matrix,
        metrics: &[Metric::Bandwidth],
        published: &[],
        speed_ups: None,
    },
    Experiment {
        name: "001-fig4",
        paper: &PAPER,
        title: "Thread, warp, bins and hybrid beside cuSPARSE on six matrices",
        shows: &[
            "ecology1 (3 nonzeros a row): OneThreadPerRow and Hybrid surpass cuSPARSE",
            "crankseg_1 (101 a row, at most 262): OneWarpPerRow and Hybrid outperform cuSPARSE",
            "CoalescedBins gains over OneWarpPerRow on very short rows (ecology1, sx-stackoverflow)",
            "no single kernel is the best everywhere",
        ],
        matrices: Matrices::Shapes(MATRICES),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: &[
            contender("OneThreadPerRow", "ours:csr_scalar", &[("unroll", "4")]),
            contender("OneWarpPerRow", "ours:csr_vector", &[("threads_per_vector", "32")]),
            contender("CoalescedBins", "ours:coalesced_bins", &[]),
            contender("Hybrid", "ours:hybrid", &[]),
            CUSPARSE,
        ],
        axis: Axis::Matrix,
        metrics: &[Metric::Bandwidth, Metric::Milliseconds],
        published: &[],
        speed_ups: None,
    },
];

/// Table III.
const MATRICES: &[Shape] = &[
    like("crankseg_1", "like_crankseg_1", "chemistry", &[("n", 52_804.0), ("per_row", 97.0)]),
    like("ecology1", "like_ecology1", "tridiagonal", &[("n", 1e6)]),
    F1,
    like(
        "inline_1",
        "like_inline_1",
        "banded",
        &[("n", 503_712.0), ("lower", 300.0), ("upper", 300.0), ("fill", 0.06)],
    ),
    like(
        "mawi_201512012345",
        "like_mawi_201512012345",
        "giant_row",
        &[("n", 18_571_154.0), ("giant", 7_397_164.0), ("empty", 0.374)],
    ),
    like("sx-stackoverflow", "like_sx-stackoverflow", "rmat", &[("scale", 21.0), ("per_row", 17.9)]),
];
