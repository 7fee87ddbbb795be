//! Answers requests, one line of JSON each, so that a script can measure spmv-matrix, sprs and faer in turn
//! with what it runs itself. `compare.py` says what is asked.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::Instant;

use faer::sparse::{SparseRowMatRef, SymbolicSparseRowMatRef};
use faer::{ColMut, ColRef, Par};
use serde_json::{Value as Json, json};
use spmv_matrix::generate::Generator;
use spmv_matrix::{CsrMatrix, Statistics, cpu_parallel, matrix_market};

type Answer = Result<Json, Box<dyn std::error::Error>>;

fn main() -> io::Result<()> {
    let mut loaded = None;
    for line in io::stdin().lock().lines() {
        let answer = serde_json::from_str(&line?)
            .map_err(Into::into)
            .and_then(|request| answer(&request, &mut loaded))
            .unwrap_or_else(|error| json!({ "error": error.to_string() }));
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}

fn answer(request: &Json, loaded: &mut Option<Loaded>) -> Answer {
    let text = |key: &str| request[key].as_str().ok_or(format!("{key} is missing"));
    let number = |key: &str| request[key].as_u64().ok_or(format!("{key} is missing"));
    let is_loaded = || "nothing is loaded";
    match text("do")? {
        "read" => read(text("path")?, number("threads")? as usize),
        "make" => {
            let matrix = generator(request)?.generate::<f64, u32>()?;
            let start = Instant::now();
            matrix_market::write_file(text("path")?, &matrix)?;
            Ok(json!({ "seconds": start.elapsed().as_secs_f64(), "nnz": matrix.nnz() }))
        }
        "load" => {
            let matrix = match request["path"].as_str() {
                Some(path) => matrix_market::read_file(path)?,
                None => generator(request)?.generate()?,
            };
            let statistics = Statistics::of(&matrix);
            *loaded = Some(Loaded::new(matrix));
            Ok(json!({
                "rows": statistics.num_rows,
                "cols": statistics.num_cols,
                "nnz": statistics.nnz,
                "row_nnz_max": statistics.row_nnz_max,
            }))
        }
        "export" => loaded.as_ref().ok_or_else(is_loaded)?.export(Path::new(text("folder")?)),
        "product" => {
            let loaded = loaded.as_mut().ok_or_else(is_loaded)?;
            let (threads, times) = (number("threads")? as usize, number("times")?);
            match text("value")? {
                "f64" => loaded.f64.product(text("of")?, threads, times),
                "f32" => loaded.f32.product(text("of")?, threads, times),
                other => Err(format!("no value type {other}").into()),
            }
        }
        other => Err(format!("cannot do {other}").into()),
    }
}

fn generator(request: &Json) -> Result<Generator, Box<dyn std::error::Error>> {
    let mut generator = Generator::new(request["class"].as_str().ok_or("class is missing")?)?;
    for (name, value) in request["set"].as_object().into_iter().flatten() {
        generator = generator.set(name, value.as_f64().ok_or("a parameter is a number")?)?;
    }
    Ok(generator)
}

fn read(path: &str, threads: usize) -> Answer {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let start = Instant::now();
    let matrix = pool.install(|| matrix_market::read_file::<f64, u32>(path))?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(json!({ "seconds": seconds, "nnz": matrix.nnz() }))
}

/// One matrix in both types.
struct Loaded {
    f64: Operands<f64>,
    f32: Operands<f32>,
}

struct Operands<V> {
    matrix: CsrMatrix<V>,
    x: Vec<V>,
    y: Vec<V>,
}

impl Loaded {
    fn new(matrix: CsrMatrix<f64>) -> Self {
        let x: Vec<f64> = (0..matrix.num_cols()).map(|col| ((col % 1000) as f64 - 500.0) / 512.0).collect();
        let single = matrix.convert::<f32>();
        let y = vec![0.0; matrix.num_rows()];
        Self {
            f32: Operands { matrix: single, x: x.iter().map(|&x| x as f32).collect(), y: vec![0.0; y.len()] },
            f64: Operands { matrix, x, y },
        }
    }

    /// Writes the arrays as they are in memory.
    fn export(&self, folder: &Path) -> Answer {
        fn bytes<T: Copy, const N: usize>(array: &[T], to_bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
            array.iter().flat_map(|&item| to_bytes(item)).collect()
        }
        let matrix = &self.f64.matrix;
        fs::create_dir_all(folder)?;
        fs::write(folder.join("row_offsets.u32"), bytes(matrix.row_offsets(), u32::to_le_bytes))?;
        fs::write(folder.join("col_indices.u32"), bytes(matrix.col_indices(), u32::to_le_bytes))?;
        fs::write(folder.join("values.f64"), bytes(matrix.values(), f64::to_le_bytes))?;
        fs::write(folder.join("x.f64"), bytes(&self.f64.x, f64::to_le_bytes))?;
        Ok(json!({}))
    }
}

macro_rules! operands {
    ($value:ty) => {
        impl Operands<$value> {
            fn product(&mut self, of: &str, threads: usize, times: u64) -> Answer {
                let Self { matrix, x, y } = self;
                let (num_rows, num_cols) = (matrix.num_rows(), matrix.num_cols());
                let (offsets, cols, values) = (matrix.row_offsets(), matrix.col_indices(), matrix.values());
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
                let mut seconds = Vec::new();
                let mut measure = |product: &mut (dyn FnMut() + Send)| {
                    for _ in 0..times {
                        let start = Instant::now();
                        product();
                        seconds.push(start.elapsed().as_secs_f64());
                    }
                };
                match of {
                    "spmv" => pool.install(|| {
                        measure(&mut || cpu_parallel(1.0, matrix, x, 0.0, y).expect("lengths fit"))
                    }),
                    "sprs" => {
                        let view = sprs::CsMatViewI::new((num_rows, num_cols), offsets, cols, values);
                        measure(&mut || {
                            y.fill(0.0);
                            sprs::prod::mul_acc_mat_vec_csr(view, x.as_slice(), y.as_mut_slice());
                        });
                    }
                    "faer" => {
                        let structure = SymbolicSparseRowMatRef::new_checked(num_rows, num_cols, offsets, None, cols);
                        let view = SparseRowMatRef::new(structure, values);
                        pool.install(|| {
                            measure(&mut || {
                                faer::sparse::linalg::matmul::sparse_dense_matmul(
                                    ColMut::from_slice_mut(y).as_mat_mut(),
                                    faer::Accum::Replace,
                                    view,
                                    ColRef::from_slice(x).as_mat(),
                                    1.0,
                                    Par::rayon(threads),
                                );
                            });
                        });
                    }
                    other => return Err(format!("no product of {other}").into()),
                }
                let sum: f64 = y.iter().map(|&y| f64::from(y)).sum();
                Ok(json!({ "seconds": seconds, "sum": sum }))
            }
        }
    };
}

operands!(f64);
operands!(f32);
