//! The classes there are, as data.

use super::rng::Rng;
use super::{GenerateError, band, graph, random, rows, stencil};
use crate::MAX_DIMENSION;

/// A class of matrices.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClassSpec {
    /// Its name on the command line and in [`Generator::new`](super::Generator::new).
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What may be set.
    pub parameters: &'static [ParameterSpec],
    pub(super) plan: fn(&Settings) -> Result<Box<dyn Plan>, GenerateError>,
}

/// A parameter of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ParameterSpec {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// What it is where it is not set.
    pub default: f64,
    /// The least value allowed.
    pub min: f64,
    /// The greatest value allowed.
    pub max: f64,
    /// Whether it must be whole.
    pub integer: bool,
}

/// A matrix that is going to be made row by row.
pub(super) trait Plan: Sync {
    fn num_rows(&self) -> usize;

    fn num_cols(&self) -> usize {
        self.num_rows()
    }

    /// About how many nonzeros there will be.
    fn expected_nnz(&self) -> u64;

    /// Appends the columns of a row, ascending and distinct. They depend on nothing but the plan, the row
    /// and the row's random numbers.
    fn row(&self, row: usize, rng: &mut Rng, cols: &mut Vec<u32>);
}

/// The parameters of a class as they are set.
pub(super) struct Settings<'a> {
    pub class: &'static ClassSpec,
    pub values: &'a [f64],
}

impl Settings<'_> {
    pub fn real(&self, name: &str) -> f64 {
        let index = self.class.parameters.iter().position(|parameter| parameter.name == name);
        self.values[index.expect("a class asks for its own parameters")]
    }

    pub fn count(&self, name: &str) -> usize {
        self.real(name) as usize
    }

    /// The product of counts, or an error where it is no number of rows.
    pub fn product(&self, names: &[&str]) -> Result<usize, GenerateError> {
        let product = names.iter().map(|name| self.real(name)).product::<f64>();
        if product > MAX_DIMENSION as f64 {
            return Err(crate::MatrixError::TooManyRows(product as u64).into());
        }
        Ok(product as usize)
    }

    pub fn conflict(&self, what: String) -> GenerateError {
        GenerateError::Conflict { class: self.class.name, what }
    }
}

const MAX: f64 = MAX_DIMENSION as f64;

const fn count(name: &'static str, summary: &'static str, default: f64, min: f64) -> ParameterSpec {
    ParameterSpec { name, summary, default, min, max: MAX, integer: true }
}

const fn real(name: &'static str, summary: &'static str, default: f64, min: f64, max: f64) -> ParameterSpec {
    ParameterSpec { name, summary, default, min, max, integer: false }
}

const N: ParameterSpec = count("n", "rows and columns", 1e6, 0.0);
const NX: ParameterSpec = count("nx", "points along x", 1000.0, 1.0);
const NY: ParameterSpec = count("ny", "points along y", 1000.0, 1.0);
const BOX: [ParameterSpec; 3] = [
    count("nx", "points along x", 100.0, 1.0),
    count("ny", "points along y", 100.0, 1.0),
    count("nz", "points along z", 100.0, 1.0),
];

/// The class of that name.
///
/// # Errors
///
/// [`GenerateError::UnknownClass`].
pub fn class(name: &str) -> Result<&'static ClassSpec, GenerateError> {
    ALL.iter().find(|class| class.name == name).ok_or_else(|| GenerateError::UnknownClass {
        name: name.to_owned(),
        allowed: ALL.iter().map(|class| class.name).collect(),
    })
}

/// Every class.
pub static ALL: &[ClassSpec] = &[
    ClassSpec {
        name: "diagonal",
        summary: "one entry a row, on the diagonal",
        parameters: &[N],
        plan: band::diagonal,
    },
    ClassSpec {
        name: "tridiagonal",
        summary: "the diagonal and one beside it on each side",
        parameters: &[N],
        plan: band::tridiagonal,
    },
    ClassSpec {
        name: "banded",
        summary: "a band around the diagonal, full or random",
        parameters: &[
            N,
            count("lower", "diagonals below the main one", 8.0, 0.0),
            count("upper", "diagonals above the main one", 8.0, 0.0),
            real("fill", "part of the band that has entries; the diagonal always has", 1.0, 0.0, 1.0),
        ],
        plan: band::banded,
    },
    ClassSpec {
        name: "dense",
        summary: "every entry stored",
        parameters: &[count("rows", "rows", 2000.0, 0.0), count("cols", "columns", 2000.0, 0.0)],
        plan: band::dense,
    },
    ClassSpec {
        name: "stencil_5",
        summary: "5-point stencil on a grid of two dimensions",
        parameters: &[NX, NY],
        plan: stencil::stencil_5,
    },
    ClassSpec {
        name: "stencil_9",
        summary: "9-point stencil on a grid of two dimensions",
        parameters: &[NX, NY],
        plan: stencil::stencil_9,
    },
    ClassSpec {
        name: "stencil_7",
        summary: "7-point stencil on a grid of three dimensions",
        parameters: &BOX,
        plan: stencil::stencil_7,
    },
    ClassSpec {
        name: "stencil_27",
        summary: "27-point stencil on a grid of three dimensions",
        parameters: &BOX,
        plan: stencil::stencil_27,
    },
    ClassSpec {
        name: "fem",
        summary: "finite elements: dense blocks of unknowns, 27 neighbouring nodes",
        parameters: &[
            count("nx", "nodes along x", 50.0, 1.0),
            count("ny", "nodes along y", 50.0, 1.0),
            count("nz", "nodes along z", 50.0, 1.0),
            ParameterSpec { max: 64.0, ..count("unknowns", "unknowns a node", 3.0, 1.0) },
        ],
        plan: stencil::fem,
    },
    ClassSpec {
        name: "gaussian",
        summary: "columns normally distributed around the diagonal",
        parameters: &[
            N,
            count("per_row", "entries a row", 8.0, 0.0),
            real("sigma", "standard deviation of column − row", 1e4, 0.5, 1e9),
        ],
        plan: random::gaussian,
    },
    ClassSpec {
        name: "uniform",
        summary: "columns anywhere, the same number in each row",
        parameters: &[
            count("rows", "rows", 1e6, 0.0),
            count("cols", "columns", 1e6, 0.0),
            count("per_row", "entries a row", 8.0, 0.0),
        ],
        plan: random::uniform,
    },
    ClassSpec {
        name: "power_law",
        summary: "row lengths by a power law, columns anywhere",
        parameters: &[
            N,
            count("shortest", "entries of the shortest rows", 1.0, 1.0),
            count("longest", "entries of the longest row, at most", 1e5, 1.0),
            real("exponent", "exponent of the power law", 2.1, 1.1, 10.0),
        ],
        plan: random::power_law,
    },
    ClassSpec {
        name: "rmat",
        summary: "recursive graph (R-MAT): power laws in rows and columns; repeated edges count once",
        parameters: &[
            ParameterSpec { max: 30.0, ..count("scale", "2 to that power is the number of rows", 20.0, 1.0) },
            real("per_row", "edges a row on average, before repeated ones are dropped", 16.0, 0.0, 1e6),
            real("a", "part of the edges in the upper left quarter", 0.57, 0.0, 1.0),
            real("b", "part of the edges in the upper right quarter", 0.19, 0.0, 1.0),
            real("c", "part of the edges in the lower left quarter", 0.19, 0.0, 1.0),
        ],
        plan: graph::rmat,
    },
    ClassSpec {
        name: "road",
        summary: "road network: 1.7 entries a row on average, near the diagonal",
        parameters: &[N],
        plan: graph::road,
    },
    ClassSpec {
        name: "circuit",
        summary: "circuit: a diagonal, few entries near and far, some dense rows",
        parameters: &[
            N,
            count("per_row", "entries of an ordinary row on average", 5.0, 1.0),
            count("dense_rows", "dense rows", 10.0, 0.0),
            count("dense_length", "entries of a dense row", 1e5, 0.0),
        ],
        plan: rows::circuit,
    },
    ClassSpec {
        name: "giant_row",
        summary: "traffic trace: one giant row, its column everywhere, few entries elsewhere",
        parameters: &[
            N,
            count("per_row", "entries of the other rows that are not empty, on average", 1.0, 1.0),
            count("giant", "entries of the giant row", 4e5, 0.0),
            real("empty", "part of the other rows that are empty", 0.0, 0.0, 1.0),
        ],
        plan: rows::giant_row,
    },
    ClassSpec {
        name: "rail",
        summary: "set covering: few long rows of very different length",
        parameters: &[
            count("rows", "rows", 4000.0, 0.0),
            count("cols", "columns", 1e6, 0.0),
            count("per_row", "entries a row on average", 2500.0, 0.0),
        ],
        plan: rows::rail,
    },
    ClassSpec {
        name: "tall",
        summary: "tall and rectangular, with stretches of empty rows",
        parameters: &[
            count("rows", "rows", 4e6, 0.0),
            count("cols", "columns", 5e5, 0.0),
            count("per_row", "entries of a row that is not empty, on average", 4.0, 1.0),
            count("stretch", "rows of a stretch", 1000.0, 1.0),
            real("empty", "part of the stretches that are empty", 0.5, 0.0, 1.0),
        ],
        plan: rows::tall,
    },
    ClassSpec {
        name: "chemistry",
        summary: "quantum chemistry: hundreds of entries a row, clustered, of varying number",
        parameters: &[
            count("n", "rows and columns", 1e5, 0.0),
            count("per_row", "entries a row, about", 150.0, 1.0),
        ],
        plan: rows::chemistry,
    },
];
