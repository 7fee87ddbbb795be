//! Generated matrices: what they are, and that they stay what they are.

use spmv_matrix::generate::{ALL, GenerateError, Generator, Values, class};
use spmv_matrix::{CsrMatrix, Offset, Statistics, Value};

/// Class, parameters, hash of seed 1.
type Pinned = (&'static str, &'static [(&'static str, f64)], u64);

/// Small matrices of every class.
const PINNED: &[Pinned] = &[
    ("diagonal", &[("n", 100.0)], 0x9a32_cdc3_cef3_5fb6),
    ("tridiagonal", &[("n", 100.0)], 0x8723_3c76_fd51_87dc),
    ("banded", &[("n", 300.0), ("lower", 5.0), ("upper", 3.0), ("fill", 0.6)], 0xa8ad_1842_50df_5fbe),
    ("dense", &[("rows", 30.0), ("cols", 20.0)], 0xe1cf_7b4c_0d1c_0a05),
    ("stencil_5", &[("nx", 17.0), ("ny", 9.0)], 0xc290_7557_524a_d8e5),
    ("stencil_9", &[("nx", 17.0), ("ny", 9.0)], 0xdc1f_4226_67e3_6fc9),
    ("stencil_7", &[("nx", 7.0), ("ny", 5.0), ("nz", 4.0)], 0xd79f_202b_c3dd_2d55),
    ("stencil_27", &[("nx", 7.0), ("ny", 5.0), ("nz", 4.0)], 0x71d0_1cd6_026e_1536),
    ("fem", &[("nx", 4.0), ("ny", 3.0), ("nz", 3.0)], 0x34f1_3c9f_8822_2dc0),
    ("gaussian", &[("n", 2000.0), ("sigma", 50.0)], 0x8209_2820_b0c7_f75d),
    ("uniform", &[("rows", 2000.0), ("cols", 900.0)], 0x0bed_1eac_9928_7321),
    ("power_law", &[("n", 3000.0), ("longest", 2000.0)], 0x295c_f571_33ff_aa6c),
    ("rmat", &[("scale", 11.0), ("per_row", 8.0)], 0x5176_b73b_02ae_0156),
    ("road", &[("n", 5000.0)], 0xd61c_326d_e2aa_1ce6),
    ("circuit", &[("n", 3000.0), ("dense_rows", 3.0), ("dense_length", 500.0)], 0x53a4_57ce_0f41_a0e5),
    ("giant_row", &[("n", 3000.0), ("giant", 1300.0)], 0xe27f_6acc_e954_120a),
    ("rail", &[("rows", 40.0), ("cols", 3000.0), ("per_row", 100.0)], 0x5315_969f_8aca_aa84),
    ("tall", &[("rows", 6000.0), ("cols", 300.0), ("stretch", 50.0)], 0x347c_1667_8da2_d0b6),
    ("chemistry", &[("n", 1000.0), ("per_row", 60.0)], 0x555c_0d87_db3e_fb79),
];

fn generator(name: &str, set: &[(&str, f64)]) -> Generator {
    set.iter()
        .fold(Generator::new(name).unwrap(), |generator, &(name, value)| generator.set(name, value).unwrap())
}

/// FNV-1a over sizes, offsets, columns and values.
fn hash<V: Value, O: Offset>(matrix: &CsrMatrix<V, O>) -> u64 {
    let numbers = [matrix.num_rows() as u64, matrix.num_cols() as u64].into_iter();
    let numbers = numbers.chain(matrix.row_offsets().iter().map(|offset| offset.to_usize() as u64));
    let numbers = numbers.chain(matrix.col_indices().iter().map(|&col| u64::from(col)));
    let numbers = numbers.chain(matrix.values().iter().map(|value| value.to_f64().to_bits()));
    numbers.flat_map(u64::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[test]
fn every_class_is_pinned() {
    let names: Vec<&str> = PINNED.iter().map(|pinned| pinned.0).collect();
    assert_eq!(names, ALL.iter().map(|class| class.name).collect::<Vec<_>>());
    let found: Vec<(&str, u64)> = PINNED
        .iter()
        .map(|(name, set, _)| {
            let of_single = || generator(name, set).seed(1).values(Values::Single);
            let double = of_single().generate::<f64, u64>().unwrap();
            let single = of_single().generate::<f32, u32>().unwrap();
            assert_eq!(hash(&double), hash(&single), "{name}: f32 holds the same numbers");
            (*name, hash(&double))
        })
        .collect();
    let expected: Vec<(&str, u64)> = PINNED.iter().map(|pinned| (pinned.0, pinned.2)).collect();
    assert_eq!(found, expected);
}

#[test]
fn hardly_any_random_number_is_an_f32() {
    let of = |values| generator("dense", &[]).values(values).generate::<f64, u32>().unwrap().into_parts().2;
    let (wide, single) = (of(Values::Random), of(Values::Single));
    assert!(single.iter().all(|value| f64::from(*value as f32) == *value));
    let narrow = wide.iter().filter(|value| f64::from(**value as f32) == **value).count();
    assert!(narrow * 1000 <= wide.len(), "{narrow} of {}", wide.len());
    let apart = wide.iter().zip(&single).map(|(wide, single)| (wide - single).abs());
    assert!(apart.fold(0.0, f64::max) < 2f64.powi(-25));
    assert!(wide.iter().all(|value| *value != 0.0 && value.abs() < 1.0));
}

#[test]
fn threads_do_not_matter_and_seeds_do() {
    for (name, set, _) in PINNED {
        let of_threads = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| generator(name, set).seed(9).generate::<f64, u32>()).unwrap()
        };
        let one = of_threads(1);
        assert!(one == of_threads(2) && one == of_threads(5), "{name}");
        let other = generator(name, set).seed(10).generate::<f64, u32>().unwrap();
        assert!(one.values() != other.values(), "{name}");
    }
}

#[test]
fn rows_are_ascending_and_distinct_and_sizes_predicted() {
    for (name, set, _) in PINNED {
        let generator = generator(name, set).seed(4);
        let size = generator.size::<f64, u32>().unwrap();
        let matrix = generator.generate::<f64, u32>().unwrap();
        let found = Statistics::of(&matrix);
        assert!(found.sorted_columns && found.adjacent_duplicates == 0 && found.stored_zeros == 0, "{name}");
        assert_eq!((size.num_rows, size.num_cols), (matrix.num_rows(), matrix.num_cols()), "{name}");
        let ratio = size.nnz as f64 / matrix.nnz() as f64;
        assert!((0.7..=1.7).contains(&ratio), "{name}: {} predicted, {} found", size.nnz, matrix.nnz());
        // What came out is a matrix for anyone.
        let (num_rows, num_cols) = (matrix.num_rows(), matrix.num_cols());
        let (offsets, cols, values) = matrix.into_parts();
        CsrMatrix::new(num_rows, num_cols, offsets, cols, values).unwrap();
    }
}

#[test]
fn classes_are_what_they_say() {
    let of = |name: &str, set: &[(&str, f64)]| {
        Statistics::of(&generator(name, set).generate::<f32, u32>().unwrap())
    };
    let tridiagonal = of("tridiagonal", &[("n", 50.0)]);
    assert_eq!((tridiagonal.nnz, tridiagonal.lower_bandwidth, tridiagonal.upper_bandwidth), (148, 1, 1));
    let banded = of("banded", &[("n", 100.0), ("lower", 2.0), ("upper", 7.0), ("fill", 0.0)]);
    assert_eq!((banded.nnz, banded.diagonal_entries), (100, 100));
    let dense = of("dense", &[("rows", 3.0), ("cols", 70.0)]);
    assert_eq!((dense.nnz, dense.density), (210, 1.0));
    assert_eq!(of("stencil_7", &[("nx", 4.0), ("ny", 3.0), ("nz", 2.0)]).nnz, 24 + 2 * (18 + 16 + 12));
    assert_eq!(of("stencil_9", &[("nx", 3.0), ("ny", 3.0)]).nnz, 49);
    assert_eq!(of("stencil_27", &[("nx", 3.0), ("ny", 3.0), ("nz", 3.0)]).nnz, 343);
    let fem = of("fem", &[("nx", 3.0), ("ny", 3.0), ("nz", 3.0), ("unknowns", 3.0)]);
    assert_eq!((fem.num_rows, fem.nnz, fem.row_nnz_max), (81, 343 * 9, 81));
    let uniform = of("uniform", &[("rows", 500.0), ("cols", 100.0), ("per_row", 7.0)]);
    assert_eq!((uniform.row_nnz_min, uniform.row_nnz_max), (7, 7));
    let road = of("road", &[("n", 50_000.0)]);
    assert!((1.6..1.75).contains(&road.row_nnz_mean), "{road:?}");
    let giant = of("giant_row", &[("n", 20_000.0), ("giant", 9_000.0)]);
    assert_eq!((giant.row_nnz_max, giant.empty_rows), (9_000, 0));
    let trace = of("giant_row", &[("n", 20_000.0), ("giant", 9_000.0), ("empty", 0.4)]);
    assert_eq!(trace.row_nnz_max, 9_000);
    assert!((7_700..8_300).contains(&trace.empty_rows), "{trace:?}");
    let circuit = of("circuit", &[("n", 9_000.0), ("dense_rows", 4.0), ("dense_length", 3_000.0)]);
    assert_eq!((circuit.row_nnz_max, circuit.row_nnz_histogram[12]), (3_000, 4));
    let tall = of("tall", &[("rows", 20_000.0), ("cols", 500.0), ("stretch", 100.0), ("empty", 0.25)]);
    assert_eq!(tall.empty_rows, 5_000);
    let rmat = of("rmat", &[("scale", 12.0)]);
    assert!(rmat.empty_rows > 400 && rmat.row_nnz_max > 200, "{rmat:?}");
    let chemistry = of("chemistry", &[("n", 5_000.0)]);
    assert!(
        chemistry.row_nnz_std > 30.0 && (120.0..180.0).contains(&chemistry.row_nnz_mean),
        "{chemistry:?}"
    );
    let power_law = of("power_law", &[("n", 20_000.0), ("longest", 9_000.0)]);
    assert!(power_law.row_nnz_min == 1 && power_law.row_nnz_max > 1_000, "{power_law:?}");
    let gaussian =
        generator("gaussian", &[("n", 50_000.0), ("sigma", 100.0)]).generate::<f32, u32>().unwrap();
    let squares: f64 = (10_000..40_000)
        .flat_map(|row| gaussian.row(row).0.iter().map(move |&col| (f64::from(col) - row as f64).powi(2)))
        .sum();
    assert!(((squares / 240_000.0).sqrt() - 100.0).abs() < 1.5);
}

#[test]
fn edges_of_the_parameters() {
    for class in ALL {
        // Every parameter at its least value, and a few rows only.
        let least =
            class.parameters.iter().fold(Generator::new(class.name).unwrap(), |generator, parameter| {
                let value = if parameter.name == "longest" { 5.0 } else { parameter.min };
                generator.set(parameter.name, value).unwrap()
            });
        least.generate::<f64, u32>().unwrap_or_else(|error| panic!("{}: {error}", class.name));
        // Small sizes with everything else as it is.
        for size in [1.0, 2.0, 3.0, 10.0] {
            let small =
                class.parameters.iter().fold(Generator::new(class.name).unwrap(), |generator, parameter| {
                    let is_size =
                        matches!(parameter.name, "n" | "nx" | "ny" | "nz" | "rows" | "cols" | "scale");
                    if is_size { generator.set(parameter.name, size).unwrap() } else { generator }
                });
            small.generate::<f64, u32>().unwrap_or_else(|error| panic!("{}: {error}", class.name));
        }
    }
}

#[test]
fn values_can_be_chosen() {
    let of = |values: &str| {
        let values: Values = values.parse().unwrap();
        generator("dense", &[("rows", 100.0), ("cols", 100.0)]).values(values).generate::<f64, u32>().unwrap()
    };
    assert!(of("ones").values().iter().all(|&value| value == 1.0));
    let integers = of("integers");
    for number in [-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0] {
        let count = integers.values().iter().filter(|&&value| value == number).count();
        assert!((1_000..1_500).contains(&count), "{number}: {count}");
    }
    let random = of("random");
    assert!(random.values().iter().all(|&value| value.abs() < 1.0 && value != 0.0));
    assert!(random.values().iter().sum::<f64>().abs() < 200.0);
    assert_eq!(
        "some".parse::<Values>().unwrap_err().to_string(),
        "there are no values \"some\"; there are random, single, ones, integers, laplacian"
    );
}

#[test]
fn laplacians_are_poissons() {
    let generator = generator("stencil_5", &[("nx", 3.0), ("ny", 2.0)]).values(Values::Laplacian);
    let a: CsrMatrix<f64> = generator.generate().unwrap();
    // Points of 3 by 2: none has more than three neighbours.
    let row = |row: usize| a.row(row);
    assert_eq!(row(0), (&[0, 1, 3][..], &[3.0, -1.0, -1.0][..]));
    assert_eq!(row(1), (&[0, 1, 2, 4][..], &[-1.0, 3.0, -1.0, -1.0][..]));
    let large: CsrMatrix<f32> =
        Generator::new("stencil_5").unwrap().values(Values::Laplacian).generate().unwrap();
    assert!(large.values().iter().all(|&value| value == 4.0 || value == -1.0));
    let unsigned: CsrMatrix<u32> = generator.generate().unwrap();
    assert_eq!(unsigned.row(0).1, [3, 1, 1]);
    let error = generator.generate::<bool, u32>().unwrap_err().to_string();
    assert_eq!(error, "laplacian values need 3 on the diagonal, which bool does not hold; a wider type does");
    // Of a grid in three dimensions: symmetric, and every row sums to no less than nothing.
    let cube: CsrMatrix<f64> = "stencil_7:nx=5,ny=4,nz=3"
        .parse::<Generator>()
        .unwrap()
        .values(Values::Laplacian)
        .generate()
        .unwrap();
    assert_eq!(cube.transpose().unwrap(), cube);
    let sums: Vec<f64> = (0..cube.num_rows()).map(|row| cube.row(row).1.iter().sum()).collect();
    assert!(sums.iter().all(|&sum| sum >= 0.0) && sums.contains(&0.0) && sums.contains(&3.0));
}

#[test]
fn what_is_not_allowed_is_said() {
    let error = Generator::new("stencil").unwrap_err().to_string();
    assert!(
        error.starts_with("there is no class \"stencil\"; there are diagonal, tridiagonal, banded, "),
        "{error}"
    );
    assert!(class("rmat").is_ok());
    let gaussian = || Generator::new("gaussian").unwrap();
    let text = |result: Result<Generator, GenerateError>| result.unwrap_err().to_string();
    assert_eq!(
        text(gaussian().set("width", 1.0)),
        "gaussian has no parameter \"width\"; it has n, per_row, sigma"
    );
    assert_eq!(
        text(gaussian().set("n", 1.5)),
        "gaussian: n = 1.5; allowed are whole numbers from 0 to 2147483647"
    );
    assert_eq!(
        text(gaussian().set("n", f64::NAN)),
        "gaussian: n = NaN; allowed are whole numbers from 0 to 2147483647"
    );
    assert_eq!(
        text(gaussian().set_text("sigma", "wide")),
        "gaussian: sigma = wide; allowed are numbers from 0.5 to 1000000000"
    );
    assert!(gaussian().set_text("n", " 1e3 ").is_ok());
    let error = generator("rmat", &[("a", 0.9), ("b", 0.9)]).generate::<f64, u32>().unwrap_err();
    assert_eq!(error.to_string(), "rmat: a + b + c = 1.99 exceeds 1");
    let error =
        generator("power_law", &[("shortest", 9.0), ("longest", 3.0)]).size::<f64, u32>().unwrap_err();
    assert_eq!(error.to_string(), "power_law: shortest = 9 exceeds longest = 3");
}

#[test]
fn sizes_are_limited() {
    let huge = generator("stencil_27", &[("nx", 2e9), ("ny", 2e9), ("nz", 2e9)]);
    assert!(matches!(huge.size::<f64, u64>(), Err(GenerateError::Matrix(_))));
    let huge = generator("fem", &[("nx", 2000.0), ("ny", 1000.0), ("nz", 1000.0)]);
    let error = huge.size::<f64, u64>().unwrap_err().to_string();
    assert_eq!(error, "6000000000 rows are too many: at most 2147483647 are allowed");
    let dense = generator("dense", &[("rows", 1e5), ("cols", 1e5)]);
    let error = dense.generate::<f64, u32>().unwrap_err().to_string();
    assert_eq!(
        error,
        "10000000000 nonzeros do not fit in u32 row offsets (at most 4294967295): use u64 offsets"
    );
    let size = dense.size::<f64, u64>().unwrap();
    assert_eq!((size.nnz, size.bytes), (10_000_000_000, 160_001_200_012));
    let error = dense.max_bytes(1 << 30).generate::<f64, u64>().unwrap_err().to_string();
    assert_eq!(error, "the matrix would take about 160001200012 bytes; at most 1073741824 are allowed");
}

#[test]
fn a_text_says_how_a_matrix_is_made() {
    let made: Generator = "uniform:rows=100, cols=50,per_row=3,seed=7".parse().unwrap();
    let set = generator("uniform", &[("rows", 100.0), ("cols", 50.0), ("per_row", 3.0)]).seed(7);
    assert_eq!(hash(&made.generate::<f64, u32>().unwrap()), hash(&set.generate::<f64, u32>().unwrap()));
    assert_eq!("road".parse::<Generator>().unwrap().class().name, "road");
    let error = |text: &str| text.parse::<Generator>().unwrap_err();
    assert!(matches!(error("unifrom"), GenerateError::UnknownClass { .. }));
    assert!(matches!(error("uniform:sides=2"), GenerateError::UnknownParameter { .. }));
    assert!(matches!(error("uniform:rows=x"), GenerateError::OutOfRange { .. }));
    for (text, what) in [
        ("uniform:rows", "\"rows\" is no KEY=VALUE"),
        ("uniform:seed=-1", "seed = -1 is no whole number"),
        ("uniform:rows=5,rows=6", "rows is set twice"),
    ] {
        let written = "; a matrix is written CLASS or CLASS:KEY=VALUE,..., each key once";
        assert_eq!(error(text).to_string(), format!("{text:?}: {what}{written}"));
    }
}
