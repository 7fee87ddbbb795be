//! Where the entries of a matrix are.

use spmv_runtime::matrix::{CsrMatrix, Entry, Offset};

use super::axis::{Axis, tick_text};
use super::chart::{Chart, Frame, Sample};
use super::palette::{hex, viridis};
use super::{Picture, PlotError, file_name};

/// The most cells in each direction.
const CELLS: usize = 512;

const ABOUT: &str = "A cell's colour says how many entries it has, on a logarithmic scale; white cells have none. \
    Row 0 is at the top, column 0 at the left.";

/// Draws where a matrix has entries: at most 512 × 512 cells, the number of entries in each as its colour.
///
/// # Errors
/// [`PlotError::Nothing`] where the matrix has no rows or no columns.
pub fn density<V: Entry, O: Offset>(name: &str, matrix: &CsrMatrix<V, O>) -> Result<Picture, PlotError> {
    let title = format!("Entries of {name}");
    let (num_rows, num_cols) = (matrix.num_rows(), matrix.num_cols());
    if num_rows == 0 || num_cols == 0 {
        let why = format!("the matrix has {num_rows} rows and {num_cols} columns");
        return Err(PlotError::Nothing { picture: title, why });
    }
    let (height, width) = (num_rows.min(CELLS), num_cols.min(CELLS));
    let counts = counts(matrix, height, width);
    let most = counts.iter().copied().max().unwrap_or(0);
    let mut pixels = Vec::with_capacity(3 * counts.len());
    counts.iter().for_each(|count| pixels.extend(colour(*count, most)));
    let png = png(&pixels, width, height)
        .map_err(|error| PlotError::Pixels { picture: title.clone(), reason: error.to_string() })?;
    let legend: Vec<_> = samples(most)
        .into_iter()
        .map(|count| (Sample::Area(hex(colour(count, most))), tick_text(count as f64)))
        .collect();
    let (rows_a_cell, cols_a_cell) = (num_rows as f64 / height as f64, num_cols as f64 / width as f64);
    let mut chart = Chart::new(Frame {
        title: &title,
        subtitle: &format!(
            "{num_rows} rows, {num_cols} columns, {} entries; entries in cells of {} x {}",
            matrix.nnz(),
            tick_text(rows_a_cell),
            tick_text(cols_a_cell)
        ),
        x: Axis::linear("column", 0.0, num_cols as f64),
        y: Axis::linear("row", 0.0, num_rows as f64).turned_over(),
        legend: &legend,
        area: area(num_rows, num_cols),
    });
    chart.image(&png);
    let name = file_name(&format!("density-{name}"));
    Ok(Picture { name, title, about: ABOUT.to_owned(), svg: chart.finish() })
}

/// Entries of each cell, row by row.
fn counts<V: Entry, O: Offset>(matrix: &CsrMatrix<V, O>, height: usize, width: usize) -> Vec<u64> {
    let (num_rows, num_cols) = (matrix.num_rows(), matrix.num_cols());
    let mut counts = vec![0; height * width];
    for row in 0..num_rows {
        let cells = &mut counts[row * height / num_rows * width..][..width];
        for col in matrix.row(row).0 {
            cells[*col as usize * width / num_cols] += 1;
        }
    }
    counts
}

/// White for none; then from light to dark.
fn colour(count: u64, most: u64) -> [u8; 3] {
    if count == 0 {
        return [255; 3];
    }
    let place = if most > 1 { (count as f64).ln() / (most as f64).ln() } else { 1.0 };
    viridis(0.85 * (1.0 - place))
}

/// Numbers of entries that the legend shows.
fn samples(most: u64) -> Vec<u64> {
    let mut samples = vec![0];
    let mut decade = 1;
    while decade < most {
        samples.push(decade);
        decade = decade.saturating_mul(10);
    }
    if most > 0 {
        samples.push(most);
    }
    samples
}

/// In the matrix's proportions, and still a picture where they are extreme.
fn area(num_rows: usize, num_cols: usize) -> (f64, f64) {
    const SIDE: f64 = 512.0;
    let ratio = (num_rows as f64 / num_cols as f64).clamp(0.25, 4.0);
    if ratio > 1.0 { (SIDE / ratio, SIDE) } else { (SIDE, SIDE * ratio) }
}

fn png(pixels: &[u8], width: usize, height: usize) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header()?.write_image_data(pixels)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_in_its_cell() {
        let matrix =
            CsrMatrix::<f64, u32>::new(3, 4, vec![0, 2, 2, 4], vec![0, 3, 1, 2], vec![1.0; 4]).unwrap();
        assert_eq!(counts(&matrix, 3, 4), [1, 0, 0, 1, 0, 0, 0, 0, 0, 1, 1, 0]);
        assert_eq!(counts(&matrix, 2, 2), [1, 1, 1, 1]);
        let picture = density("../A b.mtx", &matrix).unwrap();
        assert_eq!(picture.name, "density-..-a-b.mtx");
        assert!(picture.svg.contains("3 rows, 4 columns, 4 entries"));
        assert_eq!(picture, density("../A b.mtx", &matrix).unwrap());
    }

    #[test]
    fn few_and_many() {
        assert_eq!((colour(0, 9), colour(9, 9), colour(1, 1)), ([255; 3], viridis(0.0), viridis(0.0)));
        assert_eq!((samples(0), samples(1), samples(250)), (vec![0], vec![0, 1], vec![0, 1, 10, 100, 250]));
        let empty = CsrMatrix::<f32, u32>::new(0, 4, vec![0], vec![], vec![]).unwrap();
        assert!(density("none", &empty).unwrap_err().to_string().contains("0 rows and 4 columns"));
        let blank = CsrMatrix::<f32, u32>::new(2, 2, vec![0, 0, 0], vec![], vec![]).unwrap();
        assert!(density("blank", &blank).unwrap().svg.contains("0 entries"));
    }
}
