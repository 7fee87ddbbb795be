//! Every layout: there and back, what it takes, its product, and where its slots are.

use std::path::Path;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use spmv_matrix::format::{
    BLOCKS_PER_TILE, BccooMatrix, BccooParameters, BsrMatrix, BsrParameters, DiaMatrix, DokMatrix, ESCAPE,
    EllMatrix, Fit, Format, FormatKind, FormatVisitor, HybMatrix, JdsMatrix, NO_COLUMN, NO_LOCAL_COLUMN,
    PktMatrix, PktParameters, SellMatrix, SellParameters, TjdsMatrix,
};
use spmv_matrix::generate::Generator;
use spmv_matrix::matrix_market::read_file;
use spmv_matrix::{Complex64, CooMatrix, CsrMatrix, Entry, MatrixError, Offset, Value, cpu_serial, f16};

/// Rows of columns with values, in any order, with repetitions and zeros.
type Rows = Vec<Vec<(u32, f64)>>;

fn matrix<O: Offset>(num_cols: usize, rows: &Rows) -> CsrMatrix<f64, O> {
    let mut offsets = vec![O::default()];
    for row in rows {
        let end = offsets[offsets.len() - 1].to_usize() + row.len();
        offsets.push(O::from_usize(end).unwrap());
    }
    let (cols, values) = rows.iter().flatten().copied().unzip();
    CsrMatrix::new(rows.len(), num_cols, offsets, cols, values).unwrap()
}

fn rows(num_cols: usize) -> impl Strategy<Value = Rows> {
    let entry = (0..num_cols.max(1) as u32, (-8i32..8).prop_map(f64::from));
    let most = if num_cols == 0 { 0 } else { 12 };
    let row = prop_oneof![Just(vec![]), prop::collection::vec(entry, 0..=most)];
    prop::collection::vec(row, 0..70)
}

fn any_matrix() -> impl Strategy<Value = CsrMatrix<f64>> {
    prop_oneof![4 => 0..6_usize, 8 => 0..80_usize, 1 => Just(40_000)]
        .prop_flat_map(|num_cols| rows(num_cols).prop_map(move |rows| matrix(num_cols, &rows)))
}

/// The whole contract, with some parameters.
fn check<V: Value, O: Offset, F: Format<V, O>>(a: &CsrMatrix<V, O>, parameters: F::Parameters) {
    check_structure::<V, O, F>(a, parameters);
    let made = F::from_csr_with(a, parameters).unwrap();
    let x: Vec<V> = (0..a.num_cols()).map(|col| V::from_f64((col % 7) as f64 - 3.0)).collect();
    for (alpha, beta) in [(1.0, 0.0), (-2.0, 3.0), (0.0, 1.0)] {
        let [alpha, beta] = [alpha, beta].map(V::Sum::from_f64);
        let start = if beta == V::Sum::default() { f64::NAN } else { 2.0 };
        let mut y = vec![V::from_f64(start); a.num_rows()];
        let mut expected = y.clone();
        made.multiply(alpha, &x, beta, &mut y).unwrap();
        cpu_serial(alpha, a, &x, beta, &mut expected).unwrap();
        assert_eq!(y, expected, "{}", F::KIND);
    }
}

fn check_structure<V: Entry, O: Offset, F: Format<V, O>>(a: &CsrMatrix<V, O>, parameters: F::Parameters) {
    let footprint = F::predict_with(a, parameters).unwrap();
    let made = F::from_csr_with(a, parameters).unwrap();
    assert_eq!(made.bytes(), footprint.bytes(size_of::<V>(), size_of::<O>()), "{}", F::KIND);
    assert_eq!((made.num_rows(), made.num_cols(), made.nnz()), (a.num_rows(), a.num_cols(), a.nnz()));
    let mut entries = 0;
    made.for_each_entry(|_, _, _| entries += 1);
    assert_eq!((entries, footprint.nnz), (a.nnz(), a.nnz() as u64), "{}", F::KIND);
    let mut expected = a.clone();
    if !F::KEEPS_ORDER {
        expected.sort_columns();
    }
    assert_eq!(made.to_csr().unwrap(), expected, "{}", F::KIND);
}

struct Structure<'a, V, O>(&'a CsrMatrix<V, O>);

impl<V: Entry, O: Offset> FormatVisitor<V, O> for Structure<'_, V, O> {
    type Output = ();

    fn visit<F: Format<V, O>>(self) {
        check_structure::<V, O, F>(self.0, F::Parameters::default());
    }
}

struct Whole<'a, V, O>(&'a CsrMatrix<V, O>);

impl<V: Value, O: Offset> FormatVisitor<V, O> for Whole<'_, V, O> {
    type Output = ();

    fn visit<F: Format<V, O>>(self) {
        check::<V, O, F>(self.0, F::Parameters::default());
    }
}

/// Checks every layout that is not refused, and says how many are.
fn check_all<V: Value, O: Offset>(a: &CsrMatrix<V, O>) -> usize {
    let refused = |kind: &&FormatKind| {
        let footprint = kind.predict(a).unwrap();
        footprint.fit(size_of::<V>(), size_of::<O>(), a.bytes() as u64) == Fit::Refused
    };
    for kind in FormatKind::ALL.iter().filter(|kind| !refused(kind)) {
        kind.visit(Whole(a));
    }
    FormatKind::ALL.iter().filter(refused).count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_layout_gives_the_matrix_back(a in any_matrix()) {
        prop_assert_eq!(check_all(&a), 0);
        prop_assert_eq!(check_all(&a.convert::<f16>().to_offsets::<u64>().unwrap()), 0);
        for kind in FormatKind::ALL {
            kind.visit(Structure(&a.map_values(|value| Complex64::new(value, 1.0))));
        }
    }

    #[test]
    fn every_parameter_gives_the_matrix_back(
        a in any_matrix(),
        sigma in prop_oneof![Just(1), Just(32), Just(64), Just(1 << 40)],
        packet in 1..=4_usize,
        block_rows in 1..=8_usize,
        block_cols in 1..=8_usize,
    ) {
        check::<_, _, SellMatrix<f64>>(&a, SellParameters { sigma });
        check::<_, _, PktMatrix<f64>>(&a, PktParameters { rows_per_packet: packet * 32 });
        check::<_, _, BsrMatrix<f64>>(&a, BsrParameters { block_rows, block_cols });
        let (block_rows, block_cols) = (block_rows.min(4), block_cols.min(4));
        check::<_, _, BccooMatrix<f64>>(&a, BccooParameters { block_rows, block_cols });
    }

    #[test]
    fn padded_slots_are_where_they_belong(a in any_matrix(), sigma in prop_oneof![Just(1), Just(32), Just(64)]) {
        let ell = EllMatrix::from_csr(&a).unwrap();
        let slots = a.nnz_of_rows().map(|(row, k, col, value)| (k * ell.stride() + row, col, value));
        check_slots(slots, ell.col_indices(), ell.values());
        prop_assert_eq!(ell.stride(), a.num_rows().next_multiple_of(32));

        let sell = SellMatrix::from_csr_with(&a, SellParameters { sigma }).unwrap();
        let mut place = vec![0; a.num_rows()];
        for (i, &row) in sell.permutation().iter().enumerate() {
            place[row as usize] = i;
        }
        let slot = |row: usize, k: usize| {
            sell.slice_offsets()[place[row] / 32] as usize + k * 32 + place[row] % 32
        };
        let slots = a.nnz_of_rows().map(|(row, k, col, value)| (slot(row, k), col, value));
        check_slots(slots, sell.col_indices(), sell.values());
        for window in sell.permutation().chunks(sigma) {
            let key = |row: &u32| (usize::MAX - a.row(*row as usize).0.len(), *row);
            prop_assert!(window.is_sorted_by_key(key), "falling lengths, equal ones in their order");
            let rows = window.iter().map(|&row| row as usize / sigma).collect::<std::collections::BTreeSet<_>>();
            prop_assert_eq!(rows.len(), 1);
        }

        let hyb = HybMatrix::from_csr(&a).unwrap();
        let mut lengths: Vec<usize> = (0..a.num_rows()).map(|row| a.row(row).0.len()).collect();
        lengths.sort_unstable_by(|a, b| b.cmp(a));
        let width = lengths.get((a.num_rows() / 3).max(1) - 1).copied().unwrap_or(0);
        prop_assert_eq!(hyb.ell().width(), width);
        let slots = a.nnz_of_rows().filter(|entry| entry.1 < width);
        let slots = slots.map(|(row, k, col, value)| (k * hyb.ell().stride() + row, col, value));
        check_slots(slots, hyb.ell().col_indices(), hyb.ell().values());
        let rest: Vec<_> = a.nnz_of_rows().filter(|entry| entry.1 >= width).collect();
        prop_assert!(hyb.coo().row_indices().iter().map(|&row| row as usize).eq(rest.iter().map(|entry| entry.0)));
        prop_assert!(hyb.coo().col_indices().iter().copied().eq(rest.iter().map(|entry| entry.2)));
        prop_assert!(hyb.coo().values().iter().copied().eq(rest.iter().map(|entry| entry.3)));
    }

    #[test]
    fn jagged_diagonals_are_where_they_belong(a in any_matrix()) {
        fn check(jds: &JdsMatrix<f64>, a: &CsrMatrix<f64>) {
            let key = |row: &u32| (usize::MAX - a.row(*row as usize).0.len(), *row);
            assert!(jds.permutation().is_sorted_by_key(key));
            let longest = (0..a.num_rows()).map(|row| a.row(row).0.len()).max().unwrap_or(0);
            assert_eq!(jds.diagonal_offsets().len(), longest + 1);
            let place = |row: usize| jds.permutation().iter().position(|&other| other as usize == row).unwrap();
            let slot = |row: usize, k: usize| jds.diagonal_offsets()[k] as usize + place(row);
            let slots = a.nnz_of_rows().map(|(row, k, col, value)| (slot(row, k), col, value));
            check_slots(slots, jds.col_indices(), jds.values());
            assert_eq!(jds.values().len(), a.nnz());
        }
        check(&JdsMatrix::from_csr(&a).unwrap(), &a);
        if a.num_cols() < 100 {
            let tjds = TjdsMatrix::from_csr(&a).unwrap();
            check(tjds.transpose(), &a.transpose().unwrap());
            prop_assert_eq!(tjds.permutation(), tjds.transpose().permutation());
            prop_assert_eq!(tjds.diagonal_offsets(), tjds.transpose().diagonal_offsets());
            prop_assert_eq!(tjds.row_indices(), tjds.transpose().col_indices());
            prop_assert_eq!(tjds.values(), tjds.transpose().values());
        }
    }

    #[test]
    fn diagonals_and_blocks_are_where_they_belong(a in any_matrix(), rows in 1..=8_usize, cols in 1..=8_usize) {
        let mut sorted = a.clone();
        sorted.sort_columns();
        let dia = DiaMatrix::from_csr(&a).unwrap();
        prop_assert!(dia.offsets().is_sorted());
        let bsr = BsrMatrix::from_csr_with(&a, BsrParameters { block_rows: rows, block_cols: cols }).unwrap();
        let (mut previous, mut layer) = (None, 0);
        for (row, _, col, value) in sorted.nnz_of_rows() {
            layer = if previous == Some((row, col)) { layer + 1 } else { 0 };
            previous = Some((row, col));

            let offset = i64::from(col) - row as i64;
            let d = dia.offsets().iter().position(|&other| other == offset).unwrap() + layer;
            prop_assert_eq!(dia.offsets()[d], offset);
            let slot = d * dia.stride() + row;
            prop_assert_eq!((dia.values()[slot], dia.mask()[slot / 32] >> (slot % 32) & 1), (value, 1));

            let range = bsr.block_offsets()[row / rows] as usize..bsr.block_offsets()[row / rows + 1] as usize;
            let in_row = &bsr.block_cols()[range.clone()];
            prop_assert!(in_row.is_sorted());
            let of_block = col / cols as u32;
            let block = range.start + in_row.iter().position(|&other| other == of_block).unwrap() + layer;
            prop_assert_eq!(bsr.block_cols()[block], of_block);
            let place = row % rows * cols + col as usize % cols;
            prop_assert_eq!((bsr.values()[block * rows * cols + place], bsr.mask()[block] >> place & 1), (value, 1));
        }
        let bits = |ones: u32| ones as usize;
        prop_assert_eq!(dia.mask().iter().map(|word| bits(word.count_ones())).sum::<usize>(), a.nnz());
        prop_assert_eq!(bsr.mask().iter().map(|word| bits(word.count_ones())).sum::<usize>(), a.nnz());
        prop_assert!(bsr.mask().iter().all(|&word| word != 0), "no block without an entry");
    }

    #[test]
    fn packets_hold_what_is_in_them(a in any_matrix()) {
        let pkt = PktMatrix::from_csr_with(&a, PktParameters { rows_per_packet: 32 }).unwrap();
        let local = a.nnz_of_rows().filter(|&(row, _, col, _)| row / 32 == col as usize / 32);
        let mut next = vec![0; a.num_rows()];
        let mut slots = std::collections::BTreeSet::new();
        for (row, _, col, value) in local {
            let slot = pkt.packet_offsets()[row / 32] as usize + next[row] * 32 + row % 32;
            next[row] += 1;
            prop_assert_eq!((u32::from(pkt.local_cols()[slot]), pkt.values()[slot]), (col % 32, value));
            slots.insert(slot);
        }
        for (slot, &col) in pkt.local_cols().iter().enumerate() {
            prop_assert!(slots.contains(&slot) || (col == NO_LOCAL_COLUMN && pkt.values()[slot] == 0.0));
        }
        prop_assert_eq!(pkt.remainder().nnz() + slots.len(), a.nnz());
    }

    #[test]
    fn a_dictionary_is_what_was_put_in(
        steps in prop::collection::vec((0..4_usize, 0..6_usize, 0..5_usize, -4i32..4), 0..60),
    ) {
        let mut dok = DokMatrix::<f64>::new(6, 5).unwrap();
        let mut dense = [[None; 5]; 6];
        for (step, row, col, value) in steps {
            let (place, value): (&mut Option<f64>, _) = (&mut dense[row][col], f64::from(value));
            match step {
                0 => prop_assert_eq!(dok.set(row, col, value).unwrap(), place.replace(value)),
                1 => {
                    dok.add(row, col, value).unwrap();
                    *place = Some(place.unwrap_or(0.0) + value);
                }
                2 => prop_assert_eq!(dok.remove(row, col), place.take()),
                _ => prop_assert_eq!(dok.get(row, col), *place),
            }
        }
        let rows: Rows = dense
            .iter()
            .map(|row| (0..5).zip(row).filter_map(|(col, value)| value.map(|value| (col, value))).collect())
            .collect();
        let expected = matrix::<u32>(5, &rows);
        prop_assert_eq!(dok.nnz(), expected.nnz());
        prop_assert_eq!(&dok.to_csr::<u32>().unwrap(), &expected);
        prop_assert_eq!(&dok.to_coo().to_csr::<u32>().unwrap(), &expected);
        prop_assert_eq!(&DokMatrix::from(&expected), &dok);
    }
}

/// Row, number in the row, column and value of every entry.
trait EntriesOf {
    fn nnz_of_rows(&self) -> impl Iterator<Item = (usize, usize, u32, f64)>;
}

impl EntriesOf for CsrMatrix<f64> {
    fn nnz_of_rows(&self) -> impl Iterator<Item = (usize, usize, u32, f64)> {
        (0..self.num_rows()).flat_map(|row| {
            let (cols, values) = self.row(row);
            cols.iter().zip(values).enumerate().map(move |(k, (&col, &value))| (row, k, col, value))
        })
    }
}

/// The slots that are named hold what is said, all others nothing.
fn check_slots(slots: impl Iterator<Item = (usize, u32, f64)>, cols: &[u32], values: &[f64]) {
    let mut expected = vec![(NO_COLUMN, 0.0); cols.len()];
    for (slot, col, value) in slots {
        assert_eq!(expected[slot].0, NO_COLUMN, "slot {slot} is used twice");
        expected[slot] = (col, value);
    }
    assert!(cols.iter().copied().zip(values.iter().copied()).eq(expected));
}

#[test]
fn real_matrices_come_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices");
    let (mut seen, mut refused) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        let a: CsrMatrix<f64> = read_file(file.unwrap().path()).unwrap();
        // Exact in every order.
        refused += check_all(&a.map_values(|value| (value * 16.0).clamp(-1e6, 1e6).round()));
        seen += 1;
    }
    assert!(seen > 10 && refused < seen, "{refused} of {seen} layouts");
}

/// Large enough that several tasks share the arrays.
#[test]
fn the_number_of_threads_does_not_matter() {
    struct Bytes<'a>(&'a CsrMatrix<f64>);
    impl FormatVisitor<f64, u32> for Bytes<'_> {
        type Output = (Vec<(usize, usize, u64)>, CsrMatrix<f64>);

        fn visit<F: Format<f64, u32>>(self) -> Self::Output {
            let made = F::from_csr(self.0).unwrap();
            let mut entries = Vec::new();
            made.for_each_entry(|row, col, value| entries.push((row, col, value.to_bits())));
            (entries, made.to_csr().unwrap())
        }
    }
    let class = |name: &str| Generator::new(name).unwrap();
    let band = class("stencil_5").set("nx", 211.0).unwrap().set("ny", 97.0).unwrap();
    let power_law = class("power_law").set("n", 5000.0).unwrap();
    let uniform = class("uniform").set("rows", 5000.0).unwrap().set("cols", 9000.0).unwrap();
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for generator in [power_law, uniform, band] {
        let a: CsrMatrix<f64> = generator.seed(3).generate().unwrap();
        for &kind in FormatKind::ALL {
            if kind.predict(&a).unwrap().fit(8, 4, a.bytes() as u64) == Fit::Refused {
                continue;
            }
            let made = [1, 3, 7].map(|threads| pool(threads).install(|| kind.visit(Bytes(&a))));
            assert!(made[0] == made[1] && made[0] == made[2], "{kind}");
        }
    }
}

#[test]
fn compressed_blocks_of_several_tiles() {
    // Far jumps within rows and between them, and tiles that begin inside a row.
    let rows: Rows = (0..2000)
        .map(|row: u32| match row % 3 {
            0 => vec![],
            1 => (0..900).map(|k| (k * 2 + row % 11, f64::from(k % 9))).collect(),
            _ => vec![(row % 7, 1.0), (150_000 + row, 2.0), (150_000 + row, 3.0), (199_999, 4.0)],
        })
        .collect();
    let a = matrix::<u32>(200_000, &rows);
    for (block_rows, block_cols) in [(1, 1), (2, 2), (4, 3)] {
        let parameters = BccooParameters { block_rows, block_cols };
        check::<_, _, BccooMatrix<f64>>(&a, parameters);
        let bccoo = BccooMatrix::from_csr_with(&a, parameters).unwrap();
        assert!(bccoo.num_blocks() > 4 * BLOCKS_PER_TILE);
        let escapes = bccoo.col_deltas().iter().filter(|&&delta| delta == ESCAPE).count();
        assert_eq!((escapes > 100, bccoo.escaped_cols().len()), (true, escapes));
        assert_eq!(bccoo.block_shape(), (block_rows, block_cols));
        let mut ends = 0;
        for block in 0..bccoo.num_blocks() {
            if block % BLOCKS_PER_TILE == 0 {
                assert_eq!(bccoo.tile_rows()[block / BLOCKS_PER_TILE], ends);
            }
            ends += u32::from(bccoo.bit_flags()[block / 32] >> (block % 32) & 1 == 0);
        }
        assert_eq!(ends as usize, bccoo.block_rows().len());
        assert_eq!(bccoo.tile_rows().len(), bccoo.num_blocks().div_ceil(BLOCKS_PER_TILE));
    }
    // A difference of exactly −2¹⁵ looks like an escape, and so it is one.
    let rows: Rows = vec![vec![(40_000, 1.0)], vec![(40_000 - (1 << 15), 2.0)], vec![(39_999, 3.0)]];
    let a = matrix::<u32>(50_000, &rows);
    let bccoo = BccooMatrix::from_csr_with(&a, BccooParameters { block_rows: 1, block_cols: 1 }).unwrap();
    assert_eq!(bccoo.col_deltas(), [0, ESCAPE, 32_767]);
    assert_eq!(bccoo.escaped_cols(), [7232]);
    check::<_, _, BccooMatrix<f64>>(&a, BccooParameters { block_rows: 1, block_cols: 1 });
}

/// Fill has no column, so what x holds there does not matter.
#[test]
fn fill_never_touches_x() {
    let a = matrix::<u32>(3, &vec![vec![(0, 1.0)], vec![], vec![(0, 2.0), (2, 3.0)]]);
    struct Multiply<'a>(&'a CsrMatrix<f64>);
    impl FormatVisitor<f64, u32> for Multiply<'_> {
        type Output = ();

        fn visit<F: Format<f64, u32>>(self) {
            let mut y = [f64::NAN; 3];
            F::from_csr(self.0).unwrap().multiply(1.0, &[1.0, f64::NAN, 1.0], 0.0, &mut y).unwrap();
            assert_eq!(y, [1.0, 0.0, 5.0], "{}", F::KIND);
        }
    }
    for kind in FormatKind::ALL {
        kind.visit(Multiply(&a));
    }
}

/// Looking for a free slot from the first on takes minutes.
#[test]
fn diagonals_are_filled_with_many_entries_of_a_place() {
    let (n, times) = (256_u32, 20_000);
    let offsets = (0..=n).map(|row| row * times).collect();
    let cols = (0..n).flat_map(|row| (0..times).map(move |_| row)).collect();
    let values = (0..n * times).map(|entry| entry as i8).collect();
    let a = CsrMatrix::<i8>::new(n as usize, n as usize, offsets, cols, values).unwrap();
    let started = Instant::now();
    let dia = DiaMatrix::from_csr(&a).unwrap();
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(dia.offsets().len(), times as usize);
    assert_eq!(Format::<i8, u32>::to_csr(&dia).unwrap(), a);
}

#[test]
fn what_would_be_mostly_fill_is_refused() {
    // One row of a million entries among as many rows of one.
    let n = 1_000_000;
    let rows = (0..n)
        .map(|row: u32| if row == 7 { (0..n).map(|col| (col, 1.0)).collect() } else { vec![(row, 1.0)] });
    let a = matrix::<u32>(n as usize, &rows.collect());
    for kind in [FormatKind::Ell, FormatKind::SellCSigma, FormatKind::Dia] {
        struct Refused<'a>(&'a CsrMatrix<f64>);
        impl FormatVisitor<f64, u32> for Refused<'_> {
            type Output = Result<(), MatrixError>;

            fn visit<F: Format<f64, u32>>(self) -> Self::Output {
                F::from_csr(self.0).map(|_| ())
            }
        }
        let footprint = kind.predict(&a).unwrap();
        assert_eq!(footprint.fit(8, 4, a.bytes() as u64), Fit::Refused);
        let error = kind.visit(Refused(&a)).unwrap_err();
        let MatrixError::Fill { format, slots, nnz, bytes, csr_bytes, limit_bytes, alternatives } = error
        else {
            panic!("{kind} must be refused: {error}");
        };
        assert_eq!((format, nnz, csr_bytes), (kind.name(), 1_999_999, a.bytes() as u64));
        assert_eq!((slots, bytes, limit_bytes), (footprint.slots, footprint.bytes(8, 4), 64 << 20));
        assert!(alternatives.contains(&"jds") && alternatives.contains(&"csc"), "{alternatives:?}");
        assert!(!alternatives.contains(&kind.name()));
    }
    let error = EllMatrix::from_csr(&a).unwrap_err().to_string();
    assert_eq!(
        error,
        "ell would store 1000000000000 slots for 1999999 entries and take 12000000000000 bytes, against 27999992 in \
         compressed sparse rows; more than 8 slots an entry are allowed for up to 67108864 bytes of fill only; what suits \
         this matrix: coo, csc, jds, tjds, hyb, pkt, bccoo"
    );
}

/// What is small may pad as it likes.
#[test]
fn small_fill_is_allowed() {
    let mut rows: Rows = vec![vec![]; 1000];
    rows[3] = (0..1000).map(|col| (col, 1.0)).collect();
    let a = matrix::<u32>(1000, &rows);
    let footprint = EllMatrix::predict(&a).unwrap();
    assert_eq!((footprint.slots, footprint.fill()), (1024 * 1000, 1024 * 1000 - 1000));
    assert_eq!(footprint.fit(8, 4, a.bytes() as u64), Fit::Pads);
    check::<_, _, EllMatrix<f64>>(&a, ());
    assert_eq!(FormatKind::Jds.predict(&a).unwrap().fit(8, 4, a.bytes() as u64), Fit::Suits);
}

#[test]
fn wrong_parameters_are_named() {
    let a = matrix::<u32>(1, &vec![vec![(0, 1.0)]]);
    let errors = [
        SellMatrix::from_csr_with(&a, SellParameters { sigma: 0 }).err(),
        SellMatrix::from_csr_with(&a, SellParameters { sigma: 48 }).err(),
        BsrMatrix::from_csr_with(&a, BsrParameters { block_rows: 9, block_cols: 1 }).err(),
        BccooMatrix::from_csr_with(&a, BccooParameters { block_rows: 1, block_cols: 5 }).err(),
        PktMatrix::from_csr_with(&a, PktParameters { rows_per_packet: 1000 }).err(),
        PktMatrix::from_csr_with(&a, PktParameters { rows_per_packet: 8192 }).err(),
    ];
    let expected = [
        "sigma = 0 is not allowed; allowed are 1 and the multiples of 32",
        "sigma = 48 is not allowed; allowed are 1 and the multiples of 32",
        "block_rows = 9 is not allowed; allowed are 1 to 8",
        "block_cols = 5 is not allowed; allowed are 1 to 4",
        "rows_per_packet = 1000 is not allowed; allowed are the multiples of 32 from 32 to 4096",
        "rows_per_packet = 8192 is not allowed; allowed are the multiples of 32 from 32 to 4096",
    ];
    assert_eq!(errors.map(|error| error.unwrap().to_string()), expected);
    let mut dok = DokMatrix::<f32>::new(2, 3).unwrap();
    let error = dok.set(2, 0, 1.0).unwrap_err().to_string();
    assert_eq!(error, "there is no row 2 and column 0 in a matrix of 2 × 3; they count from 0");
    assert_eq!(
        (dok.get(0, 3), dok.remove(7, 0), DokMatrix::<f32>::new(1 << 31, 1).is_err()),
        (None, None, true)
    );
    let wrong = Format::<f64, u32>::multiply(&CooMatrix::from_csr(&a).unwrap(), 1.0, &[], 0.0, &mut [0.0]);
    assert_eq!(wrong.unwrap_err().to_string(), "x has 0 entries: a 1 × 1 matrix needs 1");
}

#[test]
fn unsorted_coordinates_become_sorted_rows() {
    let coo = CooMatrix::new(2, 2, vec![1, 0, 1], vec![1, 0, 0], vec![1.0, 2.0, 3.0]).unwrap();
    let a: CsrMatrix<f64> = Format::to_csr(&coo).unwrap();
    assert_eq!((a.col_indices(), a.values()), (&[0, 0, 1][..], &[2.0, 3.0, 1.0][..]));
}

#[test]
fn layouts_have_names_of_their_own() {
    let names: std::collections::BTreeSet<&str> = FormatKind::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.len(), FormatKind::ALL.len());
    struct Kind;
    impl FormatVisitor<f32, u64> for Kind {
        type Output = FormatKind;

        fn visit<F: Format<f32, u64>>(self) -> FormatKind {
            F::KIND
        }
    }
    for &kind in FormatKind::ALL {
        assert_eq!(kind.visit(Kind), kind);
        assert!(kind.summary().ends_with('.') && !kind.summary().is_empty());
    }
}
