//! How much memory reading takes, against the bound: 64 MiB, the matrix, and 16 bytes for each entry (and
//! the text where it is held).

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

use spmv_matrix::matrix_market::{ReadError, read_bytes, read_file, write_file};
use spmv_matrix::{Complex64, CsrMatrix, Entry, generate::Generator};

/// Counts what is allocated, and the most that ever was.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: everything is left to the system's allocator; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most memory that `action` held at once, besides what was held before.
fn peak<T>(action: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = action();
    (PEAK.load(Ordering::Relaxed) - before, result)
}

const FIXED: usize = 64 << 20;

fn check<V: Entry>(name: &str, path: &std::path::Path, text_held: usize) {
    let (peak, matrix) = peak(|| read_file::<V, u32>(path).unwrap());
    let bound = FIXED + text_held + matrix.bytes() + 16 * matrix.nnz();
    println!("{name}: peak {peak}, bound {bound}, matrix {}, entries {}", matrix.bytes(), matrix.nnz());
    assert!(peak <= bound, "{name}: {peak} exceeds {bound}");
    // Of the fixed part little is used: it does not hide something that grows with the file.
    assert!(peak <= bound - FIXED + (24 << 20), "{name}: {peak} is close to {bound}");
}

/// One test, so that nothing else allocates meanwhile.
#[test]
fn reading_keeps_to_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let matrix: CsrMatrix<f64> = Generator::new("uniform")
        .unwrap()
        .set("rows", 1e5)
        .unwrap()
        .set("cols", 1e5)
        .unwrap()
        .generate()
        .unwrap();
    write_file(path("a.mtx"), &matrix).unwrap();
    write_file(path("a.mtx.gz"), &matrix).unwrap();
    let text = std::fs::metadata(path("a.mtx")).unwrap().len() as usize;
    check::<f64>("f64", &path("a.mtx"), 0);
    check::<f32>("f32", &path("a.mtx"), 0);
    check::<Complex64>("c64", &path("a.mtx"), text);
    check::<f64>("f64, gzip", &path("a.mtx.gz"), 0);
    drop(matrix);

    // Entries that give two each, in an order in which every row must be sorted.
    let mut lines = String::from("%%MatrixMarket matrix coordinate pattern symmetric\n70000 70000 600000\n");
    for entry in 0..600_000_u64 {
        let row = entry * 7919 % 69_999;
        lines += &format!("{} {}\n", row + 2, entry * 104_729 % (row + 1) + 1);
    }
    std::fs::write(path("symmetric.mtx"), lines).unwrap();
    check::<f64>("symmetric", &path("symmetric.mtx"), 0);

    // One row, backwards.
    let mut lines = String::from("%%MatrixMarket matrix coordinate integer general\n1 800000 800000\n");
    for col in (1..=800_000).rev() {
        lines += &format!("1 {col} 1\n");
    }
    std::fs::write(path("row.mtx"), &lines).unwrap();
    check::<f64>("one row", &path("row.mtx"), 0);
    check::<Complex64>("one row, c64", &path("row.mtx"), lines.len());

    let mut lines = String::from("%%MatrixMarket matrix array real general\n1000 800\n");
    lines += &"1\n".repeat(800_000);
    std::fs::write(path("array.mtx"), lines).unwrap();
    check::<f64>("array", &path("array.mtx"), 0);
    check::<Complex64>("array, c64", &path("array.mtx"), 0);

    // What the header says costs nothing.
    for head in [
        "%%MatrixMarket matrix coordinate real general\n2147483647 2147483647 9000000000000000000\n1 1 1\n",
        "%%MatrixMarket matrix array real general\n2147483647 2147483647\n1\n",
        "%%MatrixMarket matrix coordinate pattern symmetric\n2000000000 2000000000 625000000\n1 1\n1 x\n",
    ] {
        let (peak, result) = peak(|| read_bytes::<f64, u64>(head.as_bytes()));
        assert!(matches!(result, Err(ReadError::Invalid(_))));
        assert!(peak < 8 << 20, "{peak} bytes for {head}");
    }

    // Neither does text without entries, nor a compressed file that is all text.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b"%%MatrixMarket matrix coordinate real general\n9 9 9\n1 1 1\n").unwrap();
    for _ in 0..100 {
        packed.write_all(&vec![b'\n'; 1 << 20]).unwrap();
    }
    let packed = packed.finish().unwrap();
    let (peak, result) = peak(|| read_bytes::<f64, u32>(&packed));
    assert!(result.unwrap_err().to_string().contains("mostly filler"));
    assert!(peak < 16 << 20, "{peak} bytes for filler");
}
