//! The suites as data.

use super::Spec;

/// Sizes are those of real matrices of the classes; an L2 cache of 50 MB holds none but the last three.
pub(super) const STANDARD: &[Spec] = &[
    spec("stencil_5", "stencil_5", &[("nx", 4096.0), ("ny", 4096.0)], 1),
    spec("tridiagonal", "tridiagonal", &[("n", 16e6)], 2),
    spec("stencil_7", "stencil_7", &[("nx", 200.0), ("ny", 200.0), ("nz", 200.0)], 3),
    spec("stencil_27", "stencil_27", &[("nx", 128.0), ("ny", 128.0), ("nz", 128.0)], 4),
    spec("fem_3", "fem", &[("nx", 90.0), ("ny", 90.0), ("nz", 91.0), ("unknowns", 3.0)], 5),
    spec("gaussian_1e2", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 1e2)], 6),
    spec("gaussian_1e4", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 1e4)], 7),
    spec("gaussian_1e6", "gaussian", &[("n", 1e6), ("per_row", 22.0), ("sigma", 1e6)], 8),
    spec("rmat_2m", "rmat", &[("scale", 21.0), ("per_row", 17.1)], 9),
    spec("rmat_8m", "rmat", &[("scale", 23.0), ("per_row", 4.75)], 10),
    spec("uniform_8", "uniform", &[("rows", 4e6), ("cols", 4e6), ("per_row", 8.0)], 11),
    spec("road", "road", &[("n", 7.7e6)], 12),
    spec(
        "circuit",
        "circuit",
        &[("n", 3.8e6), ("per_row", 5.0), ("dense_rows", 10.0), ("dense_length", 1e5)],
        13,
    ),
    spec("giant_row", "giant_row", &[("n", 18.75e6), ("giant", 7.4e6), ("empty", 0.488)], 14),
    spec("rail", "rail", &[("rows", 4284.0), ("cols", 1.1e6), ("per_row", 2633.0)], 15),
    spec("tall", "tall", &[("rows", 8e6), ("cols", 1e6), ("per_row", 7.0), ("stretch", 1000.0)], 16),
    spec("chemistry", "chemistry", &[("n", 2e5), ("per_row", 150.0)], 17),
    spec("dense_rows", "uniform", &[("rows", 2e4), ("cols", 2e4), ("per_row", 1900.0)], 18),
    spec("small_stencil_27", "stencil_27", &[("nx", 34.0), ("ny", 34.0), ("nz", 34.0)], 19),
    spec("small_gaussian", "gaussian", &[("n", 6.25e4), ("per_row", 8.0), ("sigma", 1e3)], 20),
    spec("small_rmat", "rmat", &[("scale", 17.0), ("per_row", 16.0)], 21),
];

pub(super) const QUICK: &[Spec] = &[
    spec("quick_stencil_5", "stencil_5", &[("nx", 200.0), ("ny", 200.0)], 1),
    spec("quick_tridiagonal", "tridiagonal", &[("n", 8e4)], 2),
    spec("quick_stencil_7", "stencil_7", &[("nx", 34.0), ("ny", 34.0), ("nz", 34.0)], 3),
    spec("quick_stencil_27", "stencil_27", &[("nx", 22.0), ("ny", 22.0), ("nz", 22.0)], 4),
    spec("quick_fem_3", "fem", &[("nx", 11.0), ("ny", 10.0), ("nz", 10.0), ("unknowns", 3.0)], 5),
    spec("quick_gaussian_1e2", "gaussian", &[("n", 12e3), ("per_row", 22.0), ("sigma", 1e2)], 6),
    spec("quick_gaussian_1e3", "gaussian", &[("n", 12e3), ("per_row", 22.0), ("sigma", 1e3)], 7),
    spec("quick_gaussian_1e4", "gaussian", &[("n", 12e3), ("per_row", 22.0), ("sigma", 1e4)], 8),
    spec("quick_rmat_8k", "rmat", &[("scale", 13.0), ("per_row", 20.0)], 9),
    spec("quick_rmat_32k", "rmat", &[("scale", 15.0), ("per_row", 5.0)], 10),
    spec("quick_uniform_8", "uniform", &[("rows", 32e3), ("cols", 32e3), ("per_row", 8.0)], 11),
    spec("quick_road", "road", &[("n", 12e4)], 12),
    spec(
        "quick_circuit",
        "circuit",
        &[("n", 4e4), ("per_row", 5.0), ("dense_rows", 10.0), ("dense_length", 2e3)],
        13,
    ),
    spec("quick_giant_row", "giant_row", &[("n", 15e4), ("giant", 6e4), ("empty", 0.484)], 14),
    spec("quick_rail", "rail", &[("rows", 100.0), ("cols", 5e4), ("per_row", 2500.0)], 15),
    spec("quick_tall", "tall", &[("rows", 6e4), ("cols", 8e3), ("per_row", 7.0), ("stretch", 1000.0)], 16),
    spec("quick_chemistry", "chemistry", &[("n", 1.7e3), ("per_row", 150.0)], 17),
    spec("quick_dense_rows", "uniform", &[("rows", 140.0), ("cols", 2e4), ("per_row", 1900.0)], 18),
    spec("quick_small_stencil_27", "stencil_27", &[("nx", 8.0), ("ny", 8.0), ("nz", 8.0)], 19),
    spec("quick_small_gaussian", "gaussian", &[("n", 2e3), ("per_row", 8.0), ("sigma", 50.0)], 20),
    spec("quick_small_rmat", "rmat", &[("scale", 10.0), ("per_row", 16.0)], 21),
];

/// The classes of the standard suite in other shapes, then classes that it has not.
pub(super) const HELD_OUT: &[Spec] = &[
    spec("held_stencil_5", "stencil_5", &[("nx", 9000.0), ("ny", 900.0)], 101),
    spec("held_tridiagonal", "tridiagonal", &[("n", 9e6)], 102),
    spec("held_stencil_7", "stencil_7", &[("nx", 400.0), ("ny", 150.0), ("nz", 80.0)], 103),
    spec("held_stencil_27", "stencil_27", &[("nx", 300.0), ("ny", 70.0), ("nz", 60.0)], 104),
    spec("held_fem_2", "fem", &[("nx", 80.0), ("ny", 75.0), ("nz", 70.0), ("unknowns", 2.0)], 105),
    spec("held_fem_6", "fem", &[("nx", 40.0), ("ny", 35.0), ("nz", 30.0), ("unknowns", 6.0)], 106),
    spec("held_gaussian_1e3", "gaussian", &[("n", 2.5e6), ("per_row", 12.0), ("sigma", 1e3)], 107),
    spec("held_gaussian_1e5", "gaussian", &[("n", 6e5), ("per_row", 45.0), ("sigma", 1e5)], 108),
    spec(
        "held_rmat_mild",
        "rmat",
        &[("scale", 20.0), ("per_row", 32.0), ("a", 0.45), ("b", 0.22), ("c", 0.22)],
        109,
    ),
    spec(
        "held_rmat_sparse",
        "rmat",
        &[("scale", 22.0), ("per_row", 6.0), ("a", 0.6), ("b", 0.15), ("c", 0.2)],
        110,
    ),
    spec("held_uniform_20", "uniform", &[("rows", 1.3e6), ("cols", 1.3e6), ("per_row", 20.0)], 111),
    spec("held_road", "road", &[("n", 4.1e6)], 112),
    spec(
        "held_circuit",
        "circuit",
        &[("n", 1.6e6), ("per_row", 8.0), ("dense_rows", 40.0), ("dense_length", 3e4)],
        113,
    ),
    spec(
        "held_giant_row",
        "giant_row",
        &[("n", 9e6), ("per_row", 2.0), ("giant", 2.5e6), ("empty", 0.3)],
        114,
    ),
    spec("held_rail", "rail", &[("rows", 2500.0), ("cols", 9e5), ("per_row", 3400.0)], 115),
    spec(
        "held_tall",
        "tall",
        &[("rows", 5e6), ("cols", 2.5e5), ("per_row", 5.0), ("stretch", 64.0), ("empty", 0.3)],
        116,
    ),
    spec("held_chemistry", "chemistry", &[("n", 9e4), ("per_row", 240.0)], 117),
    spec("held_diagonal", "diagonal", &[("n", 2e7)], 118),
    spec("held_stencil_9", "stencil_9", &[("nx", 2500.0), ("ny", 2000.0)], 119),
    spec("held_banded", "banded", &[("n", 1e6), ("lower", 60.0), ("upper", 20.0), ("fill", 0.35)], 120),
    spec(
        "held_power_law",
        "power_law",
        &[("n", 3e6), ("shortest", 2.0), ("longest", 2e5), ("exponent", 2.3)],
        121,
    ),
    spec("held_dense", "dense", &[("rows", 6000.0), ("cols", 5000.0)], 122),
    spec("held_wide", "uniform", &[("rows", 1.5e5), ("cols", 9e6), ("per_row", 150.0)], 123),
    spec("held_small_road", "road", &[("n", 9e5)], 124),
    spec("held_small_fem", "fem", &[("nx", 18.0), ("ny", 16.0), ("nz", 14.0), ("unknowns", 3.0)], 125),
];

const fn spec(
    name: &'static str,
    class: &'static str,
    parameters: &'static [(&'static str, f64)],
    seed: u64,
) -> Spec {
    Spec { name, class, parameters, seed }
}
