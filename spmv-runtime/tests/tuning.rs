//! Kernels that are found by measuring, on the simulator, which counts: the same matrix always gets the same kernel, and it is
//! the one that counts least.

use std::sync::Arc;

use spmv_runtime::cache::{CacheLocation, DiskCache};
use spmv_runtime::codegen::{IndexType, Loads, Operation};
use spmv_runtime::matrix::generate::Generator;
use spmv_runtime::matrix::{CscMatrix, CsrMatrix, cpu_serial};
use spmv_runtime::planner;
use spmv_runtime::tuning::{Choice, ChoiceError, Outcome, Question, Stop, Unit};
use spmv_runtime::{
    Budget, Compiler, Constraints, Device, DeviceMatrix, Error, Fingerprint, KernelConfig, Spmv, Vector,
};
use tempfile::TempDir;

/// The simulator, with kernels that are kept in memory alone, so that nothing is remembered.
fn forgetful() -> Device {
    static COMPILER: std::sync::LazyLock<Arc<Compiler>> =
        std::sync::LazyLock::new(|| Arc::new(Compiler::new(DiskCache::open(&CacheLocation::off()))));
    Device::simulator().with_compiler(COMPILER.clone())
}

/// A generated matrix with small whole numbers, which every order of summation adds up exactly.
fn generated(class: &str, parameters: &[(&str, f64)]) -> CsrMatrix<f64> {
    let generator = Generator::new(class).unwrap().seed(5);
    let set = |generator: Generator, (name, value): &(&str, f64)| generator.set(name, *value).unwrap();
    let a: CsrMatrix<f64> = parameters.iter().fold(generator, set).generate().unwrap();
    a.map_values(|value| (value * 8.0).round())
}

fn structures() -> Vec<CsrMatrix<f64>> {
    vec![
        generated("stencil_5", &[("nx", 40.0), ("ny", 31.0)]),
        generated("giant_row", &[("n", 3000.0), ("giant", 1500.0), ("empty", 0.4)]),
        generated("rmat", &[("scale", 9.0), ("per_row", 9.0)]),
    ]
}

/// Multiplies with the plan and compares with the product on the CPU.
fn check(plan: &mut Spmv, a: &CsrMatrix<f64>) {
    let x: Vec<f64> = (0..a.num_cols()).map(|i| (i % 13) as f64 - 6.0).collect();
    let mut expected: Vec<f64> = (0..a.num_rows()).map(|i| (i % 5) as f64).collect();
    let device = plan.device().clone();
    let mut y = Vector::from_slice(&device, &expected).unwrap();
    cpu_serial(2.0, a, &x, -1.0, &mut expected).unwrap();
    plan.apply(2.0, &Vector::from_slice(&device, &x).unwrap(), -1.0, &mut y).unwrap();
    assert!(y.to_vec().unwrap() == expected, "{}", plan.config());
}

#[test]
fn the_kernel_that_costs_least_is_found() {
    let device = forgetful();
    let mut constraints = Constraints::default();
    constraints.products = 1_000_000_000;
    let mut hopeless = 0;
    for a in structures() {
        let tune = || {
            let operation = Operation::NonTranspose;
            Spmv::tune_with(&device, &a, operation, &constraints, Budget::default()).unwrap()
        };
        let mut tuned = tune();
        check(&mut tuned.plan, &a);
        assert_eq!(tuned.report.unit, Unit::Counted);
        let cost = |config| {
            let tried = tuned.report.tried.iter().find(|tried| tried.config == config);
            match tried.map(|tried| &tried.outcome) {
                Some(Outcome::Measured { product, .. }) => *product,
                other => panic!("{config}: {other:?}"),
            }
        };
        let least = cost(tuned.report.config);
        for tried in &tuned.report.tried {
            if let Outcome::Measured { product, products, .. } = tried.outcome {
                assert_eq!(products, 1);
                assert!(product >= least, "{}: {product} < {least}", tried.config);
            }
        }
        // What differs from it in one setting was tried, too, and does not count less; not with other loads, as L2 has room for
        // these matrices.
        for beside in planner::neighbours(tuned.report.config) {
            if beside.loads() == Loads::Streaming {
                assert!(tuned.report.tried.iter().all(|tried| tried.config != beside), "{beside}");
                continue;
            }
            let tried = tuned.report.tried.iter().find(|tried| tried.config == beside);
            assert!(tried.is_some_and(|tried| tried.outcome != Outcome::NotTried), "{beside}");
        }
        // Who is expected to take more than twice as long as the fastest until then is not even made a plan of.
        let expected = tuned.report.tried.iter().filter_map(|tried| {
            Some((tried.prediction?.ms_of_product(constraints.products), &tried.outcome))
        });
        let least = expected.clone().map(|(expected, _)| expected).fold(f64::INFINITY, f64::min);
        for (expected, outcome) in expected {
            if matches!(outcome, Outcome::Refused(reason) if reason.starts_with("expected to take")) {
                assert!(expected > 2.0 * least, "{expected} and {least}");
                hopeless += 1;
            }
        }
        let again = tune();
        assert_eq!(again.report.config, tuned.report.config);
        assert_eq!(again.plan.config(), tuned.plan.config());
    }
    assert!(hopeless > 0);
}

#[test]
fn transposed_products_and_matrices_by_columns_are_tuned() {
    let device = forgetful();
    let constraints = Constraints::default();
    for a in structures() {
        let mut tuned =
            Spmv::tune_with(&device, &a, Operation::Transpose, &constraints, Budget::default()).unwrap();
        check(&mut tuned.plan, &a.transpose().unwrap());
        let csc = CscMatrix::from_csr(&a).unwrap();
        check(&mut Spmv::tune(&device, &csc, Budget::default()).unwrap().plan, &a);
    }
}

#[test]
fn constraints_are_kept_when_tuning() {
    let device = forgetful();
    for a in structures() {
        let mut constraints = Constraints::default();
        constraints.deterministic = true;
        constraints.max_extra_bytes = Some(4096);
        let tuned = Spmv::tune_with(&device, &a, Operation::NonTranspose, &constraints, Budget::default());
        let plan = tuned.unwrap().plan;
        assert!(plan.program().guarantees.bit_reproducible, "{}", plan.config());
        assert!(plan.workspace_bytes() <= 4096, "{}", plan.config());
        constraints.max_extra_bytes = Some(0);
        let none = Spmv::tune_with(&device, &a, Operation::Transpose, &constraints, Budget::default());
        assert!(matches!(none, Err(Error::Constraints { .. })), "{none:?}");
    }
}

#[test]
fn a_matrix_without_rows_is_tuned() {
    let device = forgetful();
    for (rows, cols) in [(0, 0), (0, 7), (7, 0)] {
        let mut row_offsets = vec![0; rows];
        row_offsets.push(0);
        let a = CsrMatrix::new(rows, cols, row_offsets, Vec::new(), Vec::<f64>::new()).unwrap();
        let mut tuned = Spmv::tune(&device, &a, Budget::default()).unwrap();
        check(&mut tuned.plan, &a);
    }
}

#[test]
fn candidates_of_the_caller_keep_the_constraints() {
    let device = forgetful();
    let a = generated("rmat", &[("scale", 7.0), ("per_row", 4.0)]);
    let config = KernelConfig::from_settings("hola_t", [("value", "f64")]).unwrap();
    let mut constraints = Constraints::default();
    let tune = |constraints: &Constraints| {
        let candidates = vec![planner::Candidate::new(config, "asked for")];
        let operation = Operation::Transpose;
        Spmv::tune_among(&device, &a, operation, constraints, candidates, Budget::default())
    };
    assert!(tune(&constraints).is_ok());
    constraints.deterministic = true;
    let Err(error @ Error::Constraints { .. }) = tune(&constraints) else { panic!("sums in any order") };
    let told =
        "no kernel for the transpose product keeps the constraints: hola_t: its sums have no fixed order";
    assert_eq!(error.to_string(), told);
}

#[test]
fn candidates_of_the_caller_are_for_values_that_change() {
    let device = forgetful();
    let a = generated("stencil_5", &[("nx", 12.0), ("ny", 12.0)]);
    let config = |algorithm, encoding: &str| {
        let settings = [("value", "f64"), ("encoding", encoding)];
        KernelConfig::from_settings(algorithm, settings.into_iter().filter(|(_, value)| !value.is_empty()))
    };
    let mut constraints = Constraints::default();
    let mut tune = |values_change| {
        constraints.values_change = values_change;
        let configs = [("row_patterns", ""), ("dia", "3"), ("csr5", "1"), ("csr_vector", ""), ("dia", "0")];
        let configs = configs.map(|(algorithm, encoding)| config(algorithm, encoding).unwrap());
        let candidates = configs.map(|config| planner::Candidate::new(config, "asked for")).to_vec();
        let operation = Operation::NonTranspose;
        let tuned =
            Spmv::tune_among(&device, &a, operation, &constraints, candidates, Budget::default()).unwrap();
        let tried = tuned.report.tried.into_iter();
        tried.map(|tried| matches!(tried.outcome, Outcome::Refused(_))).collect::<Vec<_>>()
    };
    assert_eq!(tune(true), [true, true, true, false, false]);
    assert_eq!(tune(false), [false; 5]);
}

/// The matrix is stored with the types of the first.
#[test]
fn candidates_of_the_caller_for_other_types_are_refused() {
    let a = generated("stencil_5", &[("nx", 12.0), ("ny", 12.0)]);
    let named = [("csr_vector", "f64"), ("csr_scalar", "f32")];
    let configs = named.map(|(name, value)| KernelConfig::from_settings(name, [("value", value)]).unwrap());
    let candidates = configs.map(|config| planner::Candidate::new(config, "asked for")).to_vec();
    let (operation, constraints) = (Operation::NonTranspose, Constraints::default());
    let tuned =
        Spmv::tune_among(&forgetful(), &a, operation, &constraints, candidates, Budget::default()).unwrap();
    assert_eq!(*tuned.plan.config(), configs[0]);
    assert!(matches!(tuned.report.tried[1].outcome, Outcome::Refused(_)));
}

#[test]
fn candidates_of_the_caller_for_another_product_are_refused() {
    let a = generated("stencil_5", &[("nx", 12.0), ("ny", 12.0)]);
    let tune = |names: &[&str], semiring| {
        let config = |name: &&str| {
            KernelConfig::from_settings(name, [("value", "f64"), ("semiring", semiring)]).unwrap()
        };
        let candidates = names.iter().map(config).map(|config| planner::Candidate::new(config, "asked for"));
        let (operation, constraints) = (Operation::NonTranspose, Constraints::default());
        let candidates = candidates.collect();
        Spmv::tune_among(&forgetful(), &a, operation, &constraints, candidates, Budget::default())
    };
    let tuned = tune(&["hola_t", "csr_scalar", "sym_csr"], "plus_times").unwrap();
    let outcomes = tuned.report.tried.iter().map(|tried| matches!(tried.outcome, Outcome::Refused(_)));
    assert_eq!(outcomes.collect::<Vec<_>>(), [true, false, true]);
    let question = |plan: &Spmv| {
        Question::new(plan.device(), plan.matrix(), Operation::NonTranspose, &Constraints::default()).unwrap()
    };
    assert!(tuned.report.choice(question(&tuned.plan)).is_some());
    let shortest = tune(&["csr_vector", "csr_scalar"], "min_plus").unwrap();
    assert_eq!(shortest.report.choice(question(&shortest.plan)), None);
    let error = tune(&[], "plus_times").unwrap_err().to_string();
    assert!(error.ends_with("there are no candidates"), "{error}");
}

#[test]
fn what_a_kernel_multiplies_fill_with_is_found_out() {
    let device = forgetful();
    let blocks = generated("fem", &[("nx", 5.0), ("ny", 4.0), ("nz", 4.0), ("unknowns", 2.0)]);
    let constraints = Constraints::default();
    let tuned =
        Spmv::tune_with(&device, &blocks, Operation::NonTranspose, &constraints, Budget::default()).unwrap();
    let plan = tuned.plan;
    let fill = plan.fill().unwrap_or(0);
    assert!(!plan.program().guarantees.fill_touches_x || fill == 0, "{}", plan.config());
    let there = DeviceMatrix::upload(&device, &blocks, IndexType::U32).unwrap();
    let features = there.features().unwrap();
    assert_eq!(features.slots_per_entry((2, 2)), Some(1.0));
    assert!(features.slots_per_entry((3, 3)).unwrap() > 1.0);
    let multiplies = |rows: &str| {
        let settings = [("block_rows", rows), ("block_cols", "0")];
        planner::multiplies_fill(&KernelConfig::from_settings("bsr", settings).unwrap(), &features)
    };
    assert_eq!(["2", "3"].map(multiplies), [false, true]);
    let types = plan.config().types();
    let found =
        planner::candidates_to_measure(&features, types, Operation::NonTranspose, 1 << 20, &constraints);
    assert!(found.unwrap().iter().all(|candidate| !planner::multiplies_fill(&candidate.config, &features)));
}

#[test]
fn the_host_and_the_device_have_the_same_fingerprint() {
    let device = forgetful();
    // Up to a subtree of the hash, a bit more, and many with a rest.
    let sizes = [1usize, 100, 65_535, 65_536, 65_537, 200_000, 330_001];
    let mut seen = Vec::new();
    for nnz in sizes {
        let cols: Vec<u32> = (0..nnz).map(|i| (i * 7919 % 1000) as u32).collect();
        let a =
            CsrMatrix::new(2, 1000, vec![0u32, nnz as u32 / 3, nnz as u32], cols, vec![1.0f32; nnz]).unwrap();
        for offset in [IndexType::U32, IndexType::U64] {
            let there = DeviceMatrix::upload(&device, &a, offset).unwrap();
            let fingerprint = there.fingerprint().unwrap();
            assert_eq!(fingerprint, Fingerprint::of(&a, offset), "{nnz} {offset}");
            assert!(!seen.contains(&fingerprint));
            seen.push(fingerprint);
        }
    }
    let tall = generated("tall", &[("rows", 90_000.0), ("cols", 400.0), ("per_row", 2.0)]);
    let there = DeviceMatrix::upload(&device, &tall, IndexType::U64).unwrap();
    assert_eq!(there.fingerprint().unwrap(), Fingerprint::of(&tall, IndexType::U64));
}

#[test]
fn the_fingerprint_is_that_of_the_structure() {
    let a = &structures()[0];
    let before = Fingerprint::of(a, IndexType::U32);
    let other_values = a.clone().map_values(|value| value + 1.0);
    assert_eq!(Fingerprint::of(&other_values, IndexType::U32), before);
    let (row_offsets, mut cols, values) = a.clone().into_parts();
    cols.swap(0, 1);
    let swapped =
        CsrMatrix::new(a.num_rows(), a.num_cols(), row_offsets.clone(), cols.clone(), values.clone());
    assert_ne!(Fingerprint::of(&swapped.unwrap(), IndexType::U32), before);
    cols.swap(0, 1);
    let wider = CsrMatrix::new(a.num_rows(), a.num_cols() + 1, row_offsets, cols, values).unwrap();
    assert_ne!(Fingerprint::of(&wider, IndexType::U32), before);
}

#[test]
fn an_upgrade_is_taken_when_it_is_asked_for() {
    let device = forgetful();
    for a in structures() {
        let mut constraints = Constraints::default();
        constraints.products = 1_000_000_000;
        let operation = Operation::NonTranspose;
        let mut spmv =
            Spmv::tune_in_background(&device, &a, operation, &constraints, Budget::default()).unwrap();
        let first = *spmv.config();
        check(&mut spmv, &a);
        assert_eq!(*spmv.config(), first);
        assert_eq!(first.loads(), Loads::Cached, "L2 has room for the matrix");
        assert!(spmv.is_tuning());
        let mut taken = 0;
        while spmv.is_tuning() {
            let before = *spmv.config();
            let upgraded = spmv.upgrade().unwrap();
            assert_eq!(upgraded, *spmv.config() != before);
            taken += u32::from(upgraded);
            check(&mut spmv, &a);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert!(!spmv.upgrade().unwrap());
        let tuned = Spmv::tune_with(&device, &a, operation, &constraints, Budget::default()).unwrap();
        if *tuned.plan.config() != first {
            assert!(taken > 0, "{first} stayed, and {} is faster", tuned.plan.config());
        }
    }
}

/// The matrix was brought there by another handle, with another compiler.
#[test]
fn kernels_come_from_the_handle_that_tunes() {
    let root = TempDir::new().unwrap();
    let a = generated("rmat", &[("scale", 7.0), ("per_row", 9.0)]);
    let uploads = with_cache(&root.path().join("cache"));
    let matrix = Arc::new(DeviceMatrix::upload(&uploads, &a, IndexType::U32).unwrap());
    let device = uploads.with_compiler(forgetful().compiler().clone());
    let (operation, constraints) = (Operation::NonTranspose, Constraints::default());
    let budget = Budget::Products(20);
    let mut spmv = Spmv::tune_in_background(&device, &matrix, operation, &constraints, budget).unwrap();
    while spmv.is_tuning() {
        spmv.upgrade().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    check(&mut spmv, &a);
    let mut tuned = Spmv::tune_with(&device, &matrix, operation, &constraints, budget).unwrap().plan;
    check(&mut tuned, &a);
    for plan in [&spmv, &tuned, &Spmv::auto(&device, &matrix).unwrap()] {
        assert!(Arc::ptr_eq(plan.device().compiler(), device.compiler()), "{}", plan.config());
    }
    assert!(uploads.compiler().disk().entries().unwrap().is_empty());
}

/// A kernel for values that repeat was taken, and then they are replaced by values that do not.
#[test]
fn an_upgrade_leaves_a_kernel_that_cannot_have_the_values() {
    let device = forgetful();
    let a = generated("stencil_5", &[("nx", 50.0), ("ny", 40.0)]).map_values(|_| 1.0);
    let matrix = Arc::new(DeviceMatrix::upload(&device, &a, IndexType::U32).unwrap());
    let mut constraints = Constraints::default();
    constraints.products = 1_000_000_000;
    let (operation, budget) = (Operation::NonTranspose, Budget::default());
    let mut spmv = Spmv::tune_in_background(&device, &matrix, operation, &constraints, budget).unwrap();
    let has_patterns = |spmv: &Spmv| spmv.config().algorithm().name() == "row_patterns";
    while spmv.is_tuning() && !has_patterns(&spmv) {
        spmv.upgrade().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(has_patterns(&spmv) && spmv.is_tuning(), "with {}", spmv.config());
    let mut new = a.clone();
    new.values_mut().iter_mut().enumerate().for_each(|(place, value)| *value = place as f64);
    matrix.update_from(&new).unwrap();
    assert!(matches!(spmv.refresh(), Err(Error::Misfit { algorithm: "row_patterns", .. })));
    while !spmv.upgrade().unwrap() {
        assert!(!has_patterns(&spmv));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(!has_patterns(&spmv));
    check(&mut spmv, &new);
    while spmv.is_tuning() {
        spmv.upgrade().unwrap();
        check(&mut spmv, &new);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// A kernel whose values took a byte each was taken, and then they are replaced by others, which take more than may be taken.
#[test]
fn an_upgrade_leaves_a_kernel_that_takes_too_much_with_new_values() {
    let device = forgetful();
    let a =
        generated("stencil_5", &[("nx", 100.0), ("ny", 100.0)]).map_values(|value| value.clamp(-4.0, 4.0));
    let matrix = Arc::new(DeviceMatrix::upload(&device, &a, IndexType::U32).unwrap());
    let mut constraints = Constraints::default();
    (constraints.products, constraints.max_extra_bytes) = (1_000_000_000, Some(150_000));
    let (operation, budget) = (Operation::NonTranspose, Budget::default());
    let mut spmv = Spmv::tune_in_background(&device, &matrix, operation, &constraints, budget).unwrap();
    let is_encoded = |spmv: &Spmv| spmv.config().algorithm().encoding().unwrap_or(0) != 0;
    while spmv.is_tuning() && !is_encoded(&spmv) {
        spmv.upgrade().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(is_encoded(&spmv) && spmv.workspace_bytes() <= 150_000, "with {}", spmv.config());
    let mut new = a.clone();
    new.values_mut().iter_mut().enumerate().for_each(|(place, value)| *value = place as f64);
    matrix.update_from(&new).unwrap();
    let mut swapped = 0;
    loop {
        swapped += u32::from(spmv.upgrade().unwrap());
        assert!(spmv.workspace_bytes() <= 150_000, "with {}", spmv.config());
        check(&mut spmv, &new);
        if !spmv.is_tuning() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(swapped > 0);
}

/// A device whose kernels and choices are kept in this folder.
fn with_cache(folder: &std::path::Path) -> Device {
    let disk = DiskCache::open(&CacheLocation::folder(folder));
    Device::simulator().with_compiler(Arc::new(Compiler::new(disk)))
}

/// Files of a folder that are no kernels.
fn notes(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "note")).collect()
}

#[test]
fn what_was_found_is_found_again() {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("cache");
    let a = &structures()[0];
    let tune = |a: &CsrMatrix<f64>| Spmv::tune(&with_cache(&folder), a, Budget::default()).unwrap();
    let found = tune(a);
    assert_ne!(found.report.stop, Stop::Recalled);
    let other_values = a.clone().map_values(|value| value + 1.0);
    let mut again = tune(&other_values);
    assert_eq!((again.report.stop, again.report.config), (Stop::Recalled, found.report.config));
    assert!(again.report.tried.is_empty());
    check(&mut again.plan, &other_values);
    // Another question.
    assert_ne!(tune(&structures()[1]).report.stop, Stop::Recalled);
    let mut constraints = Constraints::default();
    constraints.deterministic = true;
    let device = with_cache(&folder);
    let tuned =
        Spmv::tune_with(&device, a, Operation::NonTranspose, &constraints, Budget::default()).unwrap();
    assert_ne!(tuned.report.stop, Stop::Recalled);
    assert_eq!(notes(&folder).len(), 3);
    assert_eq!(device.compiler().disk().verify().unwrap().damaged, []);
}

#[test]
fn a_damaged_choice_is_none() {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("cache");
    let choice = choice_of(&with_cache(&folder));
    let disk = DiskCache::open(&CacheLocation::folder(&folder));
    let keep = || {
        assert!(choice.keep(&disk));
        assert_eq!(choice.question.choice(&disk).as_ref(), Some(&choice));
        let note = notes(&folder).pop().unwrap();
        (std::fs::read(&note).unwrap(), note)
    };
    let (whole, note) = keep();
    let none = |what: &str, bytes: &[u8]| {
        std::fs::write(&note, bytes).unwrap();
        assert_eq!(choice.question.choice(&disk), None, "{what}");
        assert!(!note.exists(), "{what}");
        keep();
    };
    for bit in (0..whole.len() * 8).step_by(3) {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        none("a flipped bit", &flipped);
    }
    for length in (0..whole.len()).step_by(7) {
        none("a truncated file", &whole[..length]);
    }
    none("a longer file", &[&whole[..], b"x"].concat());
    none("a foreign file", b"#!/bin/sh\necho this is no choice, and it is longer than a header alone is\n");
    // A whole note under another name: that of another version's question.
    let mut other = choice.clone();
    other.question.version = "0.0.0".to_owned();
    std::fs::remove_file(&note).unwrap();
    assert!(other.keep(&disk));
    assert_eq!(choice.question.choice(&disk), None);
    let misplaced = notes(&folder).pop().unwrap();
    std::fs::rename(&misplaced, &note).unwrap();
    assert_eq!(choice.question.choice(&disk), None);
    assert!(!note.exists());
    std::fs::create_dir(&note).unwrap();
    assert_eq!(choice.question.choice(&disk), None);
    keep();
    std::fs::remove_file(&note).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", &note).unwrap();
    assert_eq!(choice.question.choice(&disk), None);
    keep();
}

#[test]
fn choices_are_listed_and_cleared_with_the_kernels() {
    let root = TempDir::new().unwrap();
    let folder = root.path().join("cache");
    let choice = choice_of(&with_cache(&folder));
    let disk = DiskCache::open(&CacheLocation::folder(&folder));
    assert!(choice.keep(&disk));
    assert_eq!(Choice::kept(&disk).unwrap(), std::slice::from_ref(&choice));
    // That of a version with another format, which may share the folder, is not this one's to delete.
    let mut other_format = std::fs::read(&notes(&folder)[0]).unwrap();
    other_format[8] ^= 4;
    std::fs::write(&notes(&folder)[0], other_format).unwrap();
    assert_eq!(disk.verify().unwrap().damaged, []);
    assert_eq!(notes(&folder).len(), 1);
    std::fs::write(notes(&folder)[0].clone(), b"damaged").unwrap();
    assert_eq!(Choice::kept(&disk).unwrap(), []);
    assert_eq!(disk.verify().unwrap().damaged.len(), 1);
    assert!(choice.keep(&disk));
    disk.clear().unwrap();
    assert_eq!(notes(&folder).len(), 0);
    let off = DiskCache::open(&CacheLocation::off());
    assert!(!choice.keep(&off));
    assert_eq!(choice.question.choice(&off), None);
}

fn choice_of(device: &Device) -> Choice {
    let a = &structures()[0];
    let config =
        KernelConfig::named("csr_vector").unwrap().value(spmv_runtime::ValueType::F64).build().unwrap();
    let mut constraints = Constraints::default();
    constraints.max_extra_bytes = Some(1 << 30);
    let fingerprint = Fingerprint::of(a, IndexType::U32);
    let (csr, plain) = (spmv_runtime::StorageFormat::Csr, Operation::NonTranspose);
    let question = Question::of(device, fingerprint, csr, plain, config.types(), &constraints);
    Choice { question, config, product: 1.25, prepare: 0.5, unit: Unit::Counted }
}

#[test]
fn choices_are_exported_and_imported() {
    let device = forgetful();
    let choice = choice_of(&device);
    let text = Choice::export(std::slice::from_ref(&choice));
    assert_eq!(Choice::import(&text).unwrap(), std::slice::from_ref(&choice));
    assert_eq!(Choice::import(&Choice::export(&[])).unwrap(), []);
    let error = |text: &str| Choice::import(text).unwrap_err();
    assert!(matches!(error(""), ChoiceError::Names));
    let lines: Vec<&str> = text.lines().collect();
    assert!(matches!(error(&text.replacen('\t', "\tother_", 1)), ChoiceError::Names));
    let builder = KernelConfig::named("hola").unwrap().value(spmv_runtime::ValueType::F64);
    let mut builder = builder.threads_per_block(128);
    for (key, value) in [("nnz_per_thread", "16"), ("prepared", "1")] {
        builder.set(key, value).unwrap();
    }
    let other = Choice { config: builder.build().unwrap(), ..choice.clone() };
    assert_eq!(Choice::import(&Choice::export(std::slice::from_ref(&other))).unwrap(), [other]);
    let mut narrow = choice.clone();
    narrow.config = narrow.config.to_builder().index(IndexType::U16).build().unwrap();
    narrow.question.types = narrow.config.types();
    assert_eq!(Choice::import(&Choice::export(std::slice::from_ref(&narrow))).unwrap(), [narrow]);
    // What no question asks for is not lost on the way: it is not kept at all.
    let root = TempDir::new().unwrap();
    let disk = DiskCache::open(&CacheLocation::folder(root.path()));
    for (key, value) in [("semiring", "min_plus"), ("alpha", "1"), ("map_x", "|x, col| x.abs()")] {
        let mut builder = KernelConfig::named("csr_scalar").unwrap().value(spmv_runtime::ValueType::F64);
        builder.set(key, value).unwrap();
        let other = Choice { config: builder.build().unwrap(), ..choice.clone() };
        assert!(!other.keep(&disk) && Choice::kept(&disk).unwrap().is_empty(), "{key}");
        assert_eq!(Choice::export(&[other]), Choice::export(&[]), "{key}");
        let with_key = text.replacen("threads_per_vector=", &format!("{key}={value} threads_per_vector="), 1);
        assert!(
            with_key != text
                && matches!(
                    error(&with_key),
                    ChoiceError::Value { line: 2, .. } | ChoiceError::Config { .. }
                ),
            "{key}"
        );
    }
    assert!(choice.keep(&disk));
    assert!(matches!(
        error(&format!("{}\nfew\tvalues\n", lines[0])),
        ChoiceError::Values { line: 2, found: 2 }
    ));
    for (index, value) in lines[1].split('\t').enumerate() {
        // Names of devices may be anything, as may versions and architectures, and there may be no settings.
        if (13..16).contains(&index) || value.is_empty() {
            continue;
        }
        let values = lines[1].split('\t').enumerate();
        let changed: Vec<&str> = values.map(|(at, value)| if at == index { "?" } else { value }).collect();
        let told = error(&format!("{}\n{}\n", lines[0], changed.join("\t")));
        assert!(told.to_string().starts_with("line 2: "), "{told}");
    }
    for time in [f64::NAN, f64::INFINITY, -1.0] {
        let told = error(&Choice::export(&[Choice { product: time, ..choice.clone() }]));
        assert!(matches!(told, ChoiceError::Value { line: 2, .. }), "{told}");
    }
}

#[test]
fn values_are_replaced_under_plans() {
    let device = forgetful();
    let a = &structures()[0];
    let matrix = Arc::new(DeviceMatrix::upload(&device, a, IndexType::U32).unwrap());
    let plan = |name: &str| {
        let config = KernelConfig::named(name).unwrap().value(spmv_runtime::ValueType::F64).build().unwrap();
        Spmv::with(&device, &matrix, config).unwrap()
    };
    let (mut reads, mut copies, mut planned) = (plan("csr_vector"), plan("sell_c_sigma"), plan("planned_t"));
    assert_eq!([&reads, &copies, &planned].map(|plan| plan.copies_values()), [false, true, false]);
    check(&mut copies, a);
    let new = a.clone().map_values(|value| 3.0 - value);
    matrix.update_from(&new).unwrap();
    check(&mut reads, &new);
    check(&mut planned, &new.transpose().unwrap());
    let x = Vector::<f64>::zeros(&device, a.num_cols()).unwrap();
    let mut y = Vector::<f64>::zeros(&device, a.num_rows()).unwrap();
    let refused = copies.apply(1.0, &x, 0.0, &mut y).unwrap_err();
    assert!(matches!(refused, Error::StaleValues { algorithm: "sell_c_sigma" }), "{refused}");
    copies.refresh().unwrap();
    check(&mut copies, &new);
    // Values that are on the device, in the same order.
    let newer = a.clone().map_values(|value| value + 5.0);
    matrix.update_values_from(&Vector::from_slice(&device, newer.values()).unwrap()).unwrap();
    check(&mut reads, &newer);
    copies.refresh().unwrap();
    check(&mut copies, &newer);
}

#[test]
fn values_of_another_structure_are_refused() {
    let device = forgetful();
    let a = &structures()[0];
    let matrix = DeviceMatrix::upload(&device, a, IndexType::U32).unwrap();
    assert!(matrix.has_structure_of(a).unwrap());
    let (row_offsets, mut cols, values) = a.clone().into_parts();
    cols.swap(0, 1);
    let other = CsrMatrix::new(a.num_rows(), a.num_cols(), row_offsets, cols, values).unwrap();
    assert!(!matrix.has_structure_of(&other).unwrap());
    // The size is the same, so only a debug build sees it by itself.
    assert_eq!(matches!(matrix.update_from(&other), Err(Error::Structure { .. })), cfg!(debug_assertions));
    assert!(matches!(matrix.update_from(&structures()[1]), Err(Error::Structure { .. })));
    assert!(matches!(matrix.update_values(&[1.0f64]), Err(Error::Length { .. })));
    assert!(matches!(matrix.update_values(&[1.0f32]), Err(Error::NewValueType { .. })));
}

/// A race multiplies by numbers and binds nothing: kernels that take more are refused, and not launched.
#[test]
fn kernels_that_take_more_than_numbers_are_refused() {
    let a = &structures()[0];
    let with = |settings: &[(&str, &str)]| {
        let mut builder = KernelConfig::named("csr_vector").unwrap();
        for (key, value) in settings.iter().chain(&[("value", "f64")]) {
            builder.set(key, value).unwrap();
        }
        builder.build().unwrap()
    };
    let plain = with(&[]);
    let taking_more = [
        with(&[("alpha", "device")]),
        with(&[("beta", "device")]),
        with(&[("epilogue", "|row, sum, y, d| sum + d"), ("vectors", "[d]")]),
    ];
    let candidates = taking_more.iter().chain([&plain]).map(|config| planner::Candidate::new(*config, ""));
    let tuned = Spmv::tune_among(
        &forgetful(),
        a,
        Operation::NonTranspose,
        &Constraints::default(),
        candidates.collect(),
        Budget::default(),
    )
    .unwrap();
    assert_eq!(*tuned.plan.config(), plain);
    let refused = tuned.report.tried.iter().filter(|tried| matches!(tried.outcome, Outcome::Refused(_)));
    assert_eq!(refused.map(|tried| tried.config).collect::<Vec<_>>(), taking_more);
}

/// Where no candidate has a plan, the error is not that none keeps the constraints.
#[test]
fn why_every_candidate_is_refused_is_told() {
    let a = generated("uniform", &[("rows", 20_000.0)]);
    let diagonals = KernelConfig::from_settings("dia", [("value", "f64")]).unwrap();
    let tune = |configs: &[KernelConfig], constraints: &Constraints| {
        let candidates = configs.iter().map(|config| planner::Candidate::new(*config, "")).collect();
        let operation = Operation::NonTranspose;
        Spmv::tune_among(&forgetful(), &a, operation, constraints, candidates, Budget::default())
    };
    let mut constraints = Constraints::default();
    let refused = tune(&[diagonals], &constraints);
    assert!(matches!(refused, Err(Error::Fill { .. })), "{:?}", refused.err());
    assert!(matches!(tune(&[], &constraints), Err(Error::Constraints { .. })));
    constraints.max_extra_bytes = Some(0);
    let tiles = KernelConfig::from_settings("csr5", [("value", "f64")]).unwrap();
    assert!(matches!(tune(&[tiles, diagonals], &constraints), Err(Error::Constraints { .. })));
}
