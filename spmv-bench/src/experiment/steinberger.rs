//! M. Steinberger, R. Zayer and H.-P. Seidel, *Globally homogeneous, locally adaptive sparse matrix-vector
//! multiplication on the GPU*: Hola beside its peers, on a whole collection and on matrices made for one question each.

use spmv_runtime::ValueType;

use super::shapes::{GAUSSIANS, like, made};
use super::{
    Axis, CUSPARSE, Contender, Experiment, F32_AND_F64, Matrices, Metric, NON_TRANSPOSE, Paper, Published,
    PublishedSpeedUp, Shape, SpeedUps, TRANSPOSE, contender,
};

const PAPER: Paper = Paper {
    number: "004",
    authors: "M. Steinberger, R. Zayer and H.-P. Seidel",
    title: "Globally homogeneous, locally adaptive sparse matrix-vector multiplication on the GPU",
    venue: "International Conference on Supercomputing",
    year: 2017,
    gpu: "NVIDIA TITAN X (Pascal)",
};

const NAIVE: Contender = contender("naive", "ours:csr_scalar", &[("unroll", "1")]);
const MERGE: Contender = contender("merge-based", "ours:merge_path", &[]);
const CSR5: Contender = contender("CSR5", "ours:csr5", &[]);
const YASPMV: Contender = contender("yaSpMV", "ours:bccoo", &[]);
const HOLA: Contender = contender("Hola", "ours:hola", &[]);
const NAIVE_T: Contender = contender("naive", "ours:naive_t", &[]);
const HOLA_T: Contender = contender("Hola", "ours:hola_t", &[]);

const PEERS: &[Contender] = &[CUSPARSE, NAIVE, MERGE, CSR5, YASPMV, HOLA];
const PEERS_T: &[Contender] = &[CUSPARSE, NAIVE_T, HOLA_T];

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        name: "004-table2",
        paper: &PAPER,
        title: "Hola's speed-ups over its peers, small and large matrices",
        shows: &[
            "small matrices: cuSPARSE and the naive kernel start faster, Hola is about as fast as cuSPARSE on average",
            "large matrices: 1.13 (f32) and 1.19 (f64) over merge-based, ahead on 93 % and 98 %",
            "yaSpMV is ahead of Hola in f32, after up to 150,000 products' time of preprocessing",
        ],
        matrices: Matrices::Suites(&["quick", "standard"]),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: PEERS,
        axis: Axis::Matrix,
        metrics: &[Metric::Gflops],
        published: &[],
        speed_ups: Some(SpeedUps { of: HOLA.label, place: "Table 2", published: TABLE_2 }),
    },
    Experiment {
        name: "004-fig7",
        paper: &PAPER,
        title: "22 M nonzeros normally distributed around the diagonal of 1 M rows, wider and wider",
        shows: &[
            "Hola is the fastest at every width",
            "merge-based falls below cuSPARSE above a width of 40,000",
            "all fall where the entries of different rows have nothing in common",
        ],
        matrices: Matrices::Shapes(GAUSSIANS),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: PEERS,
        axis: Axis::Parameter("sigma"),
        metrics: &[Metric::Gflops],
        published: &[],
        speed_ups: None,
    },
    Experiment {
        name: "004-fig9",
        paper: &PAPER,
        title: "Additional memory for each nonzero",
        shows: &["Hola needs about 0.002 bytes a nonzero, merge-based a multiple of it, CSR5 far more"],
        matrices: Matrices::Suites(&["standard"]),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: &[MERGE, CSR5, HOLA],
        axis: Axis::Matrix,
        metrics: &[Metric::ExtraBytesPerNonzero],
        published: &[Published {
            matrix: None,
            contender: HOLA.label,
            value: None,
            metric: Metric::ExtraBytesPerNonzero,
            figure: 0.002,
            place: "4.3",
        }],
        speed_ups: None,
    },
    Experiment {
        name: "004-fig10",
        paper: &PAPER,
        title: "Matrices with many empty rows, in stretches and scattered",
        shows: &[
            "Hola is the fastest on all but two matrices with many empty rows (cnr-2000 is one), more so where they \
             are clustered (rel, relat)",
        ],
        matrices: Matrices::Shapes(EMPTY_ROWS),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: PEERS,
        axis: Axis::Matrix,
        metrics: &[Metric::Gflops],
        published: &[],
        speed_ups: None,
    },
    Experiment {
        name: "004-table3",
        paper: &PAPER,
        title: "Speed-ups of Hola's transpose over its peers, small and large matrices",
        shows: &[
            "small matrices: as fast as the naive transpose; large ones: 1.15 (f32) and 1.37 (f64) over it",
            "on single matrices the naive transpose is 100 times faster (Rucci1), or Hola's more than 200 times",
        ],
        matrices: Matrices::Suites(&["quick", "standard"]),
        values: F32_AND_F64,
        operations: TRANSPOSE,
        contenders: PEERS_T,
        axis: Axis::Matrix,
        metrics: &[Metric::Gflops],
        published: &[],
        speed_ups: Some(SpeedUps { of: HOLA_T.label, place: "Table 3", published: TABLE_3 }),
    },
    Experiment {
        name: "004-fig13",
        paper: &PAPER,
        title: "The transpose of the matrices of 004-fig7",
        shows: &[
            "Hola's transpose is the fastest at every width, slower than its plain product, with steady times",
        ],
        matrices: Matrices::Shapes(GAUSSIANS),
        values: F32_AND_F64,
        operations: TRANSPOSE,
        contenders: PEERS_T,
        axis: Axis::Parameter("sigma"),
        metrics: &[Metric::Gflops],
        published: &[],
        speed_ups: None,
    },
];

/// Matrices of figure 10 that the text names, then half of 4 M rows empty, in stretches of ever more rows.
const EMPTY_ROWS: &[Shape] = &[
    like("cnr-2000", "like_cnr-2000", "rmat", &[("scale", 18.0), ("per_row", 14.0)]),
    like("in-2004", "like_in-2004", "rmat", &[("scale", 20.0), ("per_row", 18.0)]),
    like("web-Google", "like_web-Google", "rmat", &[("scale", 20.0), ("per_row", 5.2)]),
    like(
        "rel9",
        "like_rel9",
        "tall",
        &[("rows", 9_888_048.0), ("cols", 274_669.0), ("per_row", 4.0), ("stretch", 2e4), ("empty", 0.4)],
    ),
    like(
        "relat9",
        "like_relat9",
        "tall",
        &[("rows", 12_360_060.0), ("cols", 549_336.0), ("per_row", 5.0), ("stretch", 2e4), ("empty", 0.37)],
    ),
    made("empty_stretch_1", "tall", &[("rows", 4e6), ("cols", 5e5), ("per_row", 8.0), ("stretch", 1.0)]),
    made("empty_stretch_32", "tall", &[("rows", 4e6), ("cols", 5e5), ("per_row", 8.0), ("stretch", 32.0)]),
    made(
        "empty_stretch_1000",
        "tall",
        &[("rows", 4e6), ("cols", 5e5), ("per_row", 8.0), ("stretch", 1000.0)],
    ),
    made("empty_stretch_50000", "tall", &[("rows", 4e6), ("cols", 5e5), ("per_row", 8.0), ("stretch", 5e4)]),
];

const fn row(
    large: bool,
    value: ValueType,
    peer: Contender,
    [min, max, mean, peer_better]: [Option<f64>; 4],
) -> PublishedSpeedUp {
    PublishedSpeedUp { large, value, peer: peer.label, min, max, mean, peer_better }
}

const fn full(
    large: bool,
    value: ValueType,
    peer: Contender,
    [min, max, mean, peer_better]: [f64; 4],
) -> PublishedSpeedUp {
    row(large, value, peer, [Some(min), Some(max), Some(mean), Some(peer_better)])
}

const TABLE_2: &[PublishedSpeedUp] = &[
    full(false, ValueType::F32, CUSPARSE, [0.20, 119.36, 1.01, 60.0]),
    full(false, ValueType::F32, NAIVE, [0.14, 138.61, 0.98, 55.0]),
    full(false, ValueType::F32, MERGE, [0.27, 1.42, 1.17, 6.0]),
    full(false, ValueType::F32, CSR5, [1.04, 13.72, 5.83, 0.0]),
    full(false, ValueType::F32, YASPMV, [0.20, 1.28, 0.88, 80.0]),
    full(true, ValueType::F32, CUSPARSE, [0.26, 432.74, 1.55, 6.0]),
    full(true, ValueType::F32, NAIVE, [0.20, 413.87, 2.30, 8.0]),
    full(true, ValueType::F32, MERGE, [0.21, 1.47, 1.13, 7.0]),
    full(true, ValueType::F32, CSR5, [0.34, 8.29, 1.90, 1.0]),
    full(true, ValueType::F32, YASPMV, [0.18, 1.51, 0.87, 52.0]),
    full(false, ValueType::F64, CUSPARSE, [0.33, 124.91, 1.06, 55.0]),
    full(false, ValueType::F64, NAIVE, [0.15, 169.86, 1.03, 53.0]),
    full(false, ValueType::F64, MERGE, [0.30, 1.77, 1.21, 3.0]),
    full(false, ValueType::F64, CSR5, [0.86, 13.35, 4.77, 0.0]),
    full(true, ValueType::F64, CUSPARSE, [0.36, 320.09, 1.36, 18.0]),
    full(true, ValueType::F64, NAIVE, [0.32, 309.32, 2.34, 6.0]),
    full(true, ValueType::F64, MERGE, [0.30, 1.80, 1.19, 2.0]),
    full(true, ValueType::F64, CSR5, [0.34, 5.21, 1.43, 7.0]),
];

/// Its last column counts matrices on which each was the best of three, not those ahead of Hola.
const TABLE_3: &[PublishedSpeedUp] = &[
    row(false, ValueType::F32, CUSPARSE, [Some(1.73), Some(168.0), Some(12.61), None]),
    row(false, ValueType::F32, NAIVE_T, [Some(0.03), Some(73.9), Some(0.98), None]),
    row(true, ValueType::F32, CUSPARSE, [Some(0.56), Some(324.0), Some(6.40), None]),
    row(true, ValueType::F32, NAIVE_T, [Some(0.01), Some(217.0), Some(1.15), None]),
    row(false, ValueType::F64, CUSPARSE, [Some(1.84), Some(159.0), Some(13.1), None]),
    row(false, ValueType::F64, NAIVE_T, [Some(0.04), Some(108.0), Some(1.10), None]),
    row(true, ValueType::F64, CUSPARSE, [Some(0.75), Some(226.70), Some(6.55), None]),
    row(true, ValueType::F64, NAIVE_T, [Some(0.01), Some(181.18), Some(1.37), None]),
];
