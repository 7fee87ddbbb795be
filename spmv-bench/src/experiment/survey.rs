//! P. Hiranandani, *Sparse Matrix Vector Multiplication on GPUs*: five CSR kernels on 15 matrices.

use spmv_runtime::ValueType;

use super::shapes::{CAGE14, F1, like};
use super::{
    Axis, Contender, Experiment, F32_AND_F64, Matrices, Metric, NON_TRANSPOSE, Paper, Published, Shape,
    contender,
};

const PAPER: Paper = Paper {
    number: "003",
    authors: "P. Hiranandani",
    title: "Sparse Matrix Vector Multiplication on GPUs: Implementation and analysis of five algorithms",
    venue: "New York University",
    year: 2018,
    gpu: "NVIDIA GeForce GTX TITAN X (Maxwell)",
};

const SCALAR: &str = "CSR Scalar";
const VECTOR: &str = "CSR Vector";
const ADAPTIVE: &str = "CSR Adaptive";
const PCSR: &str = "PCSR";
const LIGHT: &str = "LightSpMV";

const CONTENDERS: &[Contender] = &[
    contender(SCALAR, "ours:csr_scalar", &[("unroll", "1")]),
    contender(VECTOR, "ours:csr_vector", &[("threads_per_vector", "32")]),
    contender(ADAPTIVE, "ours:csr_adaptive", &[]),
    contender(PCSR, "ours:pcsr", &[]),
    contender(LIGHT, "ours:light_vector", &[]),
];

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        name: "003-survey",
        paper: &PAPER,
        title: "Five CSR kernels on 15 matrices by nonzeros a row, with the survey's five metrics (figures 3 to 13)",
        shows: &[
            "LightSpMV is the fastest on 9 of 15 matrices, PCSR on 3, CSR Scalar on 2; the latter two on short rows",
            "CSR Scalar falls with longer rows, CSR Vector rises",
            "CSR Adaptive's bandwidth is the most even and never above 133 GB/s (f32) or 153 GB/s (f64)",
            "CSR Vector's occupancy is above 0.9, its warps inefficient on short rows",
        ],
        matrices: Matrices::Shapes(MATRICES),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: CONTENDERS,
        axis: Axis::NonzerosPerRow,
        metrics: &[
            Metric::Gflops,
            Metric::Bandwidth,
            Metric::Occupancy,
            Metric::WarpExecutionEfficiency,
            Metric::GlobalLoadEfficiency,
        ],
        published: &[
            mean(SCALAR, ValueType::F32, 14.3),
            mean(SCALAR, ValueType::F64, 9.15),
            mean(VECTOR, ValueType::F32, 18.8),
            mean(VECTOR, ValueType::F64, 11.0),
            mean(ADAPTIVE, ValueType::F32, 20.9),
            mean(ADAPTIVE, ValueType::F64, 15.6),
            mean(PCSR, ValueType::F32, 24.4),
            mean(PCSR, ValueType::F64, 12.08),
            mean(LIGHT, ValueType::F32, 34.9),
            mean(LIGHT, ValueType::F64, 25.8),
            Published {
                matrix: Some("consph"),
                place: "VI.B, of figure 8",
                ..mean(LIGHT, ValueType::F32, 50.0)
            },
            rail(ADAPTIVE, ValueType::F32, 31.698621),
            rail(ADAPTIVE, ValueType::F64, 21.828796),
        ],
        speed_ups: None,
    },
    Experiment {
        name: "003-table3",
        paper: &PAPER,
        title: "A warp or a whole block for each long row: Italian Railways",
        shows: &[
            "long rows need a block each: one warp a row reached 2.08 GFLOP/s (f32), a block a row 31.70",
        ],
        matrices: Matrices::Shapes(&[RAIL]),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: &[contender(WARP, "ours:csr_vector", &[("threads_per_vector", "32")]), CONTENDERS[2]],
        axis: Axis::Matrix,
        metrics: &[Metric::Gflops],
        published: &[
            rail(WARP, ValueType::F32, 2.076331),
            rail(WARP, ValueType::F64, 1.337608),
            rail(ADAPTIVE, ValueType::F32, 31.698621),
            rail(ADAPTIVE, ValueType::F64, 21.828796),
        ],
        speed_ups: None,
    },
];

const WARP: &str = "a warp a long row";

const fn mean(contender: &'static str, value: ValueType, figure: f64) -> Published {
    Published { matrix: None, contender, value: Some(value), metric: Metric::Gflops, figure, place: "VI.B" }
}

const fn rail(contender: &'static str, value: ValueType, figure: f64) -> Published {
    Published { matrix: Some("rail4284"), place: "Table III", ..mean(contender, value, figure) }
}

const RAIL: Shape = like(
    "rail4284",
    "like_rail4284",
    "rail",
    &[("rows", 4284.0), ("cols", 1_092_610.0), ("per_row", 2634.0)],
);

/// Table I, with the collection's names.
const MATRICES: &[Shape] = &[
    like("webbase-1M", "like_webbase-1M", "rmat", &[("scale", 20.0), ("per_row", 3.2)]),
    like("Hamrle3", "like_Hamrle3", "circuit", &[("n", 1_447_360.0), ("per_row", 4.0), ("dense_rows", 0.0)]),
    like("mc2depi", "like_mc2depi", "uniform", &[("rows", 525_825.0), ("cols", 525_825.0), ("per_row", 4.0)]),
    like(
        "Freescale1",
        "like_Freescale1",
        "circuit",
        &[("n", 3_428_755.0), ("per_row", 5.0), ("dense_rows", 10.0), ("dense_length", 1.5e5)],
    ),
    like(
        "mac_econ_fwd500",
        "like_mac_econ_fwd500",
        "gaussian",
        &[("n", 206_500.0), ("per_row", 6.0), ("sigma", 500.0)],
    ),
    like("torso2", "like_torso2", "stencil_9", &[("nx", 341.0), ("ny", 340.0)]),
    CAGE14,
    like(
        "pwtk",
        "like_pwtk",
        "banded",
        &[("n", 217_918.0), ("lower", 90.0), ("upper", 90.0), ("fill", 0.146)],
    ),
    like(
        "cant",
        "like_cant",
        "banded",
        &[("n", 62_451.0), ("lower", 50.0), ("upper", 50.0), ("fill", 0.317)],
    ),
    like("Ga41As41H72", "like_Ga41As41H72", "chemistry", &[("n", 268_096.0), ("per_row", 31.0)]),
    like(
        "consph",
        "like_consph",
        "banded",
        &[("n", 83_334.0), ("lower", 300.0), ("upper", 300.0), ("fill", 0.06)],
    ),
    F1,
    like("Si41Ge41H72", "like_Si41Ge41H72", "chemistry", &[("n", 185_639.0), ("per_row", 37.0)]),
    like("pdb1HYS", "like_pdb1HYS", "chemistry", &[("n", 36_417.0), ("per_row", 56.0)]),
    RAIL,
];
