//! The record of a benchmark: a CSV file whose first line, a comment, says where and when it was measured.

use std::io::{Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::request::Operation;

/// Where, when and with what the figures of a [`Record`] were measured. The first line of the file: `# ` and this
/// as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    /// Coordinated universal time, RFC 3339.
    pub date: String,
    /// The commit that was measured, with `-dirty` behind it where its sources had been changed.
    pub commit: String,
    /// The GPU's name; `simulator` or `cpu` where there was none.
    pub gpu: String,
    /// Its architecture, such as `sm_90`.
    pub arch: String,
    /// Version of the NVIDIA driver.
    pub driver: String,
    /// CUDA version of the driver.
    pub cuda: String,
    /// Version of NVRTC.
    pub nvrtc: String,
    /// Versions of cuSPARSE that took part.
    pub cusparse: Vec<String>,
    /// The host's processor.
    pub cpu: String,
    /// Threads that CPU contenders used.
    pub cpu_threads: usize,
    /// Bytes of the GPU's L2 cache.
    pub l2_bytes: u64,
    /// The copy roof: GB/s that a 16-byte copy kernel moves, reads and writes counted, measured in the same run.
    pub copy_gb_per_s: f64,
    /// Milliseconds that a launch of an empty kernel takes when launches follow one another.
    pub launch_ms: f64,
    /// What was asked for, as on the command line.
    pub command: String,
    /// Seconds that the whole run took.
    pub wall_s: f64,
    /// What the run had to say: contenders that were left out and why.
    pub notes: Vec<String>,
}

impl Head {
    /// The first digits of the commit, with what stands behind all of them.
    pub fn short_commit(&self, digits: usize) -> String {
        let (hash, state) = self.commit.split_at(self.commit.find('-').unwrap_or(self.commit.len()));
        hash.chars().take(digits).chain(state.chars()).collect()
    }
}

/// One contender on one matrix. Times are medians in milliseconds; what was not measured is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// The matrix's name.
    pub matrix: String,
    /// The generator's class, or `file`.
    pub class: String,
    /// Rows of A.
    pub rows: u64,
    /// Columns of A.
    pub cols: u64,
    /// Stored entries of A.
    pub nnz: u64,
    /// Type of the values: `f32`, `f64`, …
    pub value: String,
    /// `non_transpose` or `transpose`.
    pub operation: String,
    /// Who: `cusparse:csr_alg2`, `ours:csr_vector`, `cpu:parallel`.
    pub contender: String,
    /// Parameters, `key=value` with `;` between them.
    pub params: String,
    /// Products with the caches flushed before each.
    pub cold_ms: Option<f64>,
    /// Products that follow one another.
    pub warm_ms: Option<f64>,
    /// Distance of the quartiles of the cold samples (of the warm ones where there are none) over their median.
    pub spread: Option<f64>,
    /// Samples that the medians were taken of.
    pub samples: Option<u32>,
    /// Once for a structure: analysis, preprocess, prepare passes.
    pub prepare_ms: Option<f64>,
    /// Into the contender's own storage format.
    pub convert_ms: Option<f64>,
    /// Source into machine code.
    pub compile_ms: Option<f64>,
    /// Machine code into the device.
    pub load_ms: Option<f64>,
    /// Device memory beside the matrix as CSR, x and y.
    pub extra_bytes: Option<u64>,
    /// Bytes that must move: the matrix as the contender stores it, x once, y once.
    pub moved_bytes: Option<u64>,
    /// `moved_bytes` at the copy roof over `cold_ms` (over `warm_ms` where cold was not measured).
    pub roof_fraction: Option<f64>,
    /// The largest error over its bound; above 1 the result is wrong.
    pub err_over_bound: Option<f64>,
    /// Whether the same bits are promised (ours) or seen in repeated products (others).
    pub deterministic: Option<bool>,
    /// Whether the matrix is kept out of whatever is fitted to records.
    pub held_out: bool,
    /// Threads resident on a multiprocessor over the most there can be, by the driver's calculator.
    pub occupancy: Option<f64>,
    /// Registers of a thread in the kernel that multiplies.
    pub registers: Option<u32>,
    /// Active threads over the warp size, instruction by instruction, counted by the simulator.
    pub warp_execution_efficiency: Option<f64>,
    /// Bytes asked for over bytes moved by global loads, counted by the simulator.
    pub global_load_efficiency: Option<f64>,
    /// Products until preparation and conversion are paid for by being faster than the best peer; empty where
    /// they never are.
    pub break_even: Option<f64>,
    /// `ok`, `wrong: …` where the result misses its bound, `failed: …` or `skipped: …` where there is none.
    pub status: String,
}

impl Row {
    /// Whether the row has a time and its result was right.
    pub fn is_ok(&self) -> bool {
        self.status == "ok"
    }

    /// The time that ranks contenders: cold where it was measured, else warm.
    pub fn time_ms(&self) -> Option<f64> {
        self.cold_ms.or(self.warm_ms)
    }

    /// 2 nnz / t of [`Row::time_ms`], in GFLOP/s.
    pub fn gflops(&self) -> Option<f64> {
        self.time_ms().filter(|ms| *ms > 0.0).map(|ms| 2.0 * self.nnz as f64 / (ms * 1e6))
    }

    /// Moved bytes / t of [`Row::time_ms`], in GB/s.
    pub fn gb_per_s(&self) -> Option<f64> {
        let ms = self.time_ms().filter(|ms| *ms > 0.0)?;
        Some(self.moved_bytes? as f64 / (ms * 1e6))
    }

    /// Who made the contender: `cusparse`, `ours`, `cpu`; `auto` for the one of ours that the planner chooses.
    pub fn side(&self) -> &str {
        self.contender.split_once(':').map_or(&*self.contender, |(side, _)| side)
    }

    /// Whether a generated kernel ran: one of ours, whoever chose it.
    pub fn is_generated(&self) -> bool {
        matches!(self.side(), "ours" | "auto")
    }

    /// Contender and parameters in one text, which names a row among those of a matrix, value and operation.
    pub fn label(&self) -> String {
        match &*self.params {
            "" => self.contender.clone(),
            params => format!("{} {params}", self.contender),
        }
    }
}

/// What records until November 2026 call `non_transpose`.
const NON_TRANSPOSE_BEFORE: &str = "plain";

/// A head and its rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Where, when and with what.
    pub head: Head,
    /// The figures.
    pub rows: Vec<Row>,
}

/// Why a record cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text cannot be read or written.
    #[error("a record cannot be read or written: {0}")]
    Io(#[from] std::io::Error),
    /// The first line is not a head.
    #[error("the first line of a record is `# ` and its head as JSON: {0}")]
    Head(String),
    /// A row is not one.
    #[error("a row of the record: {0}")]
    Row(#[from] csv::Error),
}

impl Record {
    /// Reads a record's text.
    ///
    /// # Errors
    /// [`RecordError`] where the text is not a record.
    pub fn read(mut from: impl Read) -> Result<Record, RecordError> {
        let mut text = String::new();
        from.read_to_string(&mut text)?;
        let (first, rows) = text.split_once('\n').unwrap_or((&text, ""));
        let head =
            first.strip_prefix("# ").ok_or_else(|| RecordError::Head(first.chars().take(80).collect()))?;
        let head = serde_json::from_str(head).map_err(|error| RecordError::Head(error.to_string()))?;
        let mut rows =
            csv::Reader::from_reader(rows.as_bytes()).deserialize().collect::<Result<Vec<Row>, _>>()?;
        for row in &mut rows {
            if row.operation == NON_TRANSPOSE_BEFORE {
                row.operation = Operation::NonTranspose.name().into();
            }
        }
        Ok(Record { head, rows })
    }

    /// Reads a record's file.
    ///
    /// # Errors
    /// [`RecordError`], with the path where the file cannot be opened.
    pub fn open(path: &Path) -> Result<Record, RecordError> {
        let file = std::fs::File::open(path)
            .map_err(|source| RecordError::File { path: path.display().to_string(), source })?;
        Record::read(file)
    }

    /// Writes the record's text.
    ///
    /// # Errors
    /// [`RecordError`] where it cannot be written.
    pub fn write(&self, mut to: impl Write) -> Result<(), RecordError> {
        let head = serde_json::to_string(&self.head).map_err(|error| RecordError::Head(error.to_string()))?;
        writeln!(to, "# {head}")?;
        let mut writer = csv::Writer::from_writer(to);
        for row in &self.rows {
            writer.serialize(row)?;
        }
        Ok(writer.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_it_went() {
        let row = Row {
            matrix: "a, \"b\"".into(),
            nnz: 4_000_000,
            contender: "ours:csr_vector".into(),
            params: "threads_per_vector=8".into(),
            cold_ms: Some(0.008),
            deterministic: Some(true),
            moved_bytes: Some(32_000_000),
            status: "ok".into(),
            ..Row::default()
        };
        let record = Record {
            head: Head { gpu: "a GPU\nof two lines".into(), notes: vec!["one".into()], ..Head::default() },
            rows: vec![row.clone(), Row { cold_ms: None, status: "skipped: \n".into(), ..row.clone() }],
        };
        let mut text = Vec::new();
        record.write(&mut text).unwrap();
        assert_eq!(Record::read(&text[..]).unwrap(), record);
        assert_eq!((row.gflops(), row.gb_per_s(), row.side()), (Some(1000.0), Some(4000.0), "ours"));
        assert_eq!(row.label(), "ours:csr_vector threads_per_vector=8");
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let read = |text: &str| Record::read(text.as_bytes()).unwrap_err().to_string();
        assert!(read("matrix,class\n").contains("first line"));
        assert!(read("# {\n").contains("EOF"));
        assert!(read("# {}\nmatrix,nnz\na,many\n").contains("a row of the record"));
    }
}
