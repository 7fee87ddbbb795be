//! G. Mazzucchi, *Parallelization Strategies for SpMV*: a thread or a warp a row, chosen by density.

use super::shapes::{CAGE14, like, made};
use super::{
    Axis, Contender, Experiment, F32_AND_F64, Matrices, Metric, NON_TRANSPOSE, Paper, Published, Shape,
    contender,
};

const PAPER: Paper = Paper {
    number: "000",
    authors: "G. Mazzucchi",
    title: "Parallelization Strategies for SpMV",
    venue: "GPU Computing, University of Trento",
    year: 2025,
    gpu: "NVIDIA L40S or GeForce GT 730M (the paper names both)",
};

const THREAD: &str = "Thread/Row";
const WARP: &str = "Warp/Row";
const NAIVE: &str = "Naive CPU";

const CONTENDERS: &[Contender] = &[
    contender(NAIVE, "cpu:serial", &[]),
    contender("OpenMP", "cpu:parallel", &[]),
    contender(THREAD, "ours:csr_scalar", &[("unroll", "1")]),
    contender(WARP, "ours:csr_vector", &[("threads_per_vector", "32")]),
];

pub(super) const ALL: &[Experiment] = &[
    Experiment {
        name: "000-table1",
        paper: &PAPER,
        title: "Serial and parallel CPU, a thread a row and a warp a row on ten matrices",
        shows: &[
            "a thread a row is preferable for very sparse matrices, a warp a row for moderately dense ones",
            "for the parallel CPU no clear relation to the kind of matrix emerges",
        ],
        matrices: Matrices::Shapes(MATRICES),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: CONTENDERS,
        axis: Axis::Matrix,
        metrics: &[Metric::Milliseconds, Metric::Gflops, Metric::Bandwidth],
        published: PUBLISHED,
        speed_ups: None,
    },
    Experiment {
        name: "000-density",
        paper: &PAPER,
        title: "A thread or a warp a row, chosen by density: 16 M nonzeros in ever longer rows",
        shows: &["the kernel can be chosen at run time by density, improving performance in all cases"],
        matrices: Matrices::Shapes(DENSITIES),
        values: F32_AND_F64,
        operations: NON_TRANSPOSE,
        contenders: CONTENDERS,
        axis: Axis::NonzerosPerRow,
        metrics: &[Metric::Milliseconds],
        published: &[],
        speed_ups: None,
    },
];

const MATRICES: &[Shape] = &[
    like("pkustk14", "like_pkustk14", "fem", &[("nx", 42.0), ("ny", 42.0), ("nz", 43.0), ("unknowns", 2.0)]),
    like("wiki-Talk", "like_wiki-Talk", "rmat", &[("scale", 21.0), ("per_row", 2.45)]),
    CAGE14,
    like(
        "rajat31",
        "like_rajat31",
        "circuit",
        &[("n", 4_690_002.0), ("per_row", 4.0), ("dense_rows", 10.0), ("dense_length", 1.5e5)],
    ),
    like(
        "bcsstk13",
        "like_bcsstk13",
        "banded",
        &[("n", 2003.0), ("lower", 50.0), ("upper", 50.0), ("fill", 0.21)],
    ),
    like(
        "af23560",
        "like_af23560",
        "banded",
        &[("n", 23_560.0), ("lower", 300.0), ("upper", 300.0), ("fill", 0.033)],
    ),
    like("neos3", "like_neos3", "uniform", &[("rows", 512_209.0), ("cols", 518_832.0), ("per_row", 4.0)]),
    like(
        "ins2",
        "like_ins2",
        "circuit",
        &[("n", 309_412.0), ("per_row", 4.0), ("dense_rows", 1.0), ("dense_length", 3e5)],
    ),
    like("helm2d03", "like_helm2d03", "gaussian", &[("n", 392_257.0), ("per_row", 4.0), ("sigma", 600.0)]),
    like("great-britain_osm", "like_great-britain_osm", "road", &[("n", 7_733_822.0)]),
];

const DENSITIES: &[Shape] = &[
    made("density_1", "gaussian", &[("n", 16e6), ("per_row", 1.0), ("sigma", 1e3)]),
    made("density_2", "gaussian", &[("n", 8e6), ("per_row", 2.0), ("sigma", 1e3)]),
    made("density_4", "gaussian", &[("n", 4e6), ("per_row", 4.0), ("sigma", 1e3)]),
    made("density_8", "gaussian", &[("n", 2e6), ("per_row", 8.0), ("sigma", 1e3)]),
    made("density_16", "gaussian", &[("n", 1e6), ("per_row", 16.0), ("sigma", 1e3)]),
    made("density_32", "gaussian", &[("n", 5e5), ("per_row", 32.0), ("sigma", 1e3)]),
    made("density_64", "gaussian", &[("n", 2.5e5), ("per_row", 64.0), ("sigma", 1e3)]),
    made("density_128", "gaussian", &[("n", 1.25e5), ("per_row", 128.0), ("sigma", 1e3)]),
    made("density_256", "gaussian", &[("n", 6.25e4), ("per_row", 256.0), ("sigma", 1e3)]),
];

const fn ms(matrix: &'static str, contender: &'static str, figure: f64) -> Published {
    Published {
        matrix: Some(matrix),
        contender,
        value: None,
        metric: Metric::Milliseconds,
        figure,
        place: "Table I",
    }
}

const PUBLISHED: &[Published] = &[
    ms("pkustk14", NAIVE, 80.83),
    ms("pkustk14", THREAD, 76.38),
    ms("pkustk14", WARP, 13.21),
    ms("wiki-Talk", NAIVE, 123.19),
    ms("wiki-Talk", THREAD, 47.39),
    ms("wiki-Talk", WARP, 62.10),
    ms("cage14", NAIVE, 137.78),
    ms("cage14", THREAD, 73.73),
    ms("cage14", WARP, 62.51),
    ms("rajat31", NAIVE, 105.57),
    ms("rajat31", THREAD, 29.70),
    ms("rajat31", WARP, 130.73),
    ms("bcsstk13", NAIVE, 0.45),
    ms("bcsstk13", THREAD, 0.67),
    ms("bcsstk13", WARP, 0.10),
    ms("af23560", NAIVE, 1.82),
    ms("af23560", THREAD, 1.32),
    ms("af23560", WARP, 0.78),
    ms("neos3", NAIVE, 15.34),
    ms("neos3", THREAD, 3.19),
    ms("neos3", WARP, 12.22),
    ms("ins2", NAIVE, 12.74),
    ms("ins2", THREAD, 74.56),
    ms("ins2", WARP, 11.46),
    ms("helm2d03", NAIVE, 16.74),
    ms("helm2d03", THREAD, 84.53),
    ms("helm2d03", WARP, 10.49),
    ms("great-britain_osm", NAIVE, 263.01),
    ms("great-britain_osm", THREAD, 28.53),
    ms("great-britain_osm", WARP, 186.68),
];
