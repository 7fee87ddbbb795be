//! Grids: stencils and finite elements.

use super::GenerateError;
use super::class::{Plan, Settings};
use super::rng::Rng;
use crate::{MAX_DIMENSION, MatrixError};

/// A grid of nodes, x fastest, with `unknowns` rows a node. It has at most 2³¹ − 1 rows, so that products
/// of sizes, of neighbours and of unknowns stay below 2⁶³.
struct Grid {
    size: [usize; 3],
    unknowns: usize,
    /// Whether nodes that differ along more than one axis are neighbours.
    corners: bool,
}

impl Plan for Grid {
    fn num_rows(&self) -> usize {
        self.size.iter().product::<usize>() * self.unknowns
    }

    fn expected_nnz(&self) -> u64 {
        let nodes = self.size.iter().product::<usize>() as u64;
        let size = self.size.map(|size| size as u64);
        let pairs = if self.corners {
            // Along each axis, every point but the two at the ends has three neighbours, itself included.
            size.iter().map(|size| 3 * size - 2).product()
        } else {
            nodes + size.iter().map(|size| 2 * (nodes - nodes / size)).sum::<u64>()
        };
        pairs * (self.unknowns * self.unknowns) as u64
    }

    fn row(&self, row: usize, _: &mut Rng, cols: &mut Vec<u32>) {
        let node = row / self.unknowns;
        let [nx, ny, nz] = self.size;
        let (x, y, z) = (node % nx, node / nx % ny, node / nx / ny);
        let near = |at: usize, size: usize| at.saturating_sub(1)..size.min(at + 2);
        for z2 in near(z, nz) {
            for y2 in near(y, ny) {
                for x2 in near(x, nx) {
                    let axes = usize::from(x2 != x) + usize::from(y2 != y) + usize::from(z2 != z);
                    if self.corners || axes < 2 {
                        let first = ((z2 * ny + y2) * nx + x2) * self.unknowns;
                        cols.extend((first..first + self.unknowns).map(|col| col as u32));
                    }
                }
            }
        }
    }
}

fn grid(
    settings: &Settings,
    axes: &[&str],
    corners: bool,
    unknowns: usize,
) -> Result<Box<dyn Plan>, GenerateError> {
    let nodes = settings.product(axes)?;
    if nodes * unknowns > MAX_DIMENSION {
        return Err(MatrixError::TooManyRows((nodes * unknowns) as u64).into());
    }
    let mut size = [1; 3];
    for (size, axis) in size.iter_mut().zip(axes) {
        *size = settings.count(axis);
    }
    Ok(Box::new(Grid { size, unknowns, corners }))
}

pub(super) fn stencil_5(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    grid(settings, &["nx", "ny"], false, 1)
}

pub(super) fn stencil_9(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    grid(settings, &["nx", "ny"], true, 1)
}

pub(super) fn stencil_7(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    grid(settings, &["nx", "ny", "nz"], false, 1)
}

pub(super) fn stencil_27(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    grid(settings, &["nx", "ny", "nz"], true, 1)
}

pub(super) fn fem(settings: &Settings) -> Result<Box<dyn Plan>, GenerateError> {
    grid(settings, &["nx", "ny", "nz"], true, settings.count("unknowns"))
}
