//! Products of real matrices, verified by the command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn matrices() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|name| name == "mtx")).collect();
    paths.sort();
    assert!(paths.len() >= 10, "{paths:?}");
    paths
}

/// The command, with one cache for all of these tests.
fn spmv() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spmv"));
    command.env("SPMV_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache-of-products"));
    command
}

fn run(matrix: &Path, arguments: &[&str]) -> Value {
    run_unless_refused(matrix, arguments).expect("a matrix that the layout is for")
}

/// What `spmv run` reports, or nothing where the layout would be mostly fill or is for other matrices.
fn run_unless_refused(matrix: &Path, arguments: &[&str]) -> Option<Value> {
    let output =
        spmv().arg("run").arg(matrix).args(arguments).args(["--repeat", "0", "--json"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let refusals = ["a layout of more than 8 slots a nonzero", "parts of the matrix are not what"];
    if output.status.code() == Some(2) && refusals.iter().any(|refusal| errors.contains(refusal)) {
        return None;
    }
    assert!(output.status.success(), "{} {arguments:?}: {errors}", matrix.display());
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn the_cpu_is_right_on_every_matrix() {
    for matrix in matrices() {
        for arguments in
            [&["--value", "f32"][..], &["--value", "f64", "--alpha", "-1.5", "--beta", "0.3"][..]]
        {
            let report = run(&matrix, &[arguments, &["--device", "cpu"]].concat());
            assert_eq!(report["verification"]["passed"], true);
            assert_eq!(report["verification"]["rows"], report["matrix"]["num_rows"]);
        }
    }
}

/// An algorithm, what sets its sums to f64, and how it gets a matrix.
struct Algorithm {
    name: String,
    wide_sums: &'static [&'static str],
    storage: &'static str,
}

impl Algorithm {
    /// Whether it is for matrices like this one.
    fn takes(&self, matrix: &Path) -> bool {
        let text = fs::read_to_string(matrix).unwrap();
        let head = text.lines().next().unwrap().to_lowercase();
        self.storage != "symmetric" || head.contains("symmetric")
    }
}

/// The first of these settings that the algorithm takes: not all count nonzeros in 64 bits, and those that add by atomics
/// do it in y's own type.
fn wide_sums(algorithm: &str) -> &'static [&'static str] {
    const WIDE: &[&[&str]] = &[
        &["--set", "accumulator=f64", "--set", "offset=u64"],
        &["--set", "accumulator=f64"],
        &["--set", "accumulator=f64", "--set", "y=f64"],
    ];
    let takes = |settings: &&&[&str]| {
        let generated = spmv().args(["gen", "--algorithm", algorithm]).args(**settings).output().unwrap();
        generated.status.success()
    };
    WIDE.iter().find(takes).unwrap_or_else(|| panic!("{algorithm} takes no wide sums"))
}

fn algorithms() -> Vec<Algorithm> {
    let listed = spmv().args(["algorithms", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let all = listed["algorithms"].as_array().unwrap().iter();
    let with_sums = all.map(|algorithm| {
        let (wide_sums, storage): (&[&str], _) = match algorithm["operations"][0].as_str().unwrap() {
            "symmetric" => (&["--set", "accumulator=f64", "--alpha", "-2"], "symmetric"),
            _ => (wide_sums(algorithm["name"].as_str().unwrap()), "csr"),
        };
        Algorithm { name: algorithm["name"].as_str().unwrap().to_owned(), wide_sums, storage }
    });
    with_sums.collect()
}

/// On the GPU where there is one, else on the simulator. Types take turns: over all algorithms every matrix meets each.
#[test]
fn every_algorithm_is_right() {
    for (turn, algorithm) in algorithms().into_iter().enumerate() {
        let mut products = 0;
        for (index, matrix) in matrices().iter().enumerate().filter(|(_, matrix)| algorithm.takes(matrix)) {
            let types = [&["--value", "f32"][..], &["--value", "f64"][..], algorithm.wide_sums];
            let named = ["--algorithm", &algorithm.name, "--storage", algorithm.storage];
            let arguments = [&named, types[(turn + index) % types.len()]].concat();
            let Some(report) = run_unless_refused(matrix, &arguments) else { continue };
            assert_eq!(report["verification"]["passed"], true);
            assert_eq!(report["kernel"]["algorithm"], algorithm.name);
            assert_ne!(report["device"]["kind"], "cpu");
            products += 1;
        }
        assert!(products >= 9, "{}: {products} products", algorithm.name);
    }
}

#[test]
fn every_algorithm_is_right_in_any_order_on_the_simulator() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices");
    for (turn, algorithm) in algorithms().into_iter().enumerate() {
        let types = [
            &["--value", "f32", "--beta", "1"][..],
            &["--value", "f64", "--alpha", "-1.5", "--beta", "0.3"][..],
            algorithm.wide_sums,
        ];
        let mut products = 0;
        for (index, name) in ["karate", "lp_afiro", "LFAT5_hypersparse", "USAir97"].into_iter().enumerate() {
            let matrix = folder.join(name).with_extension("mtx");
            if !algorithm.takes(&matrix) {
                continue;
            }
            for (order, schedule) in ["natural", "1", "2"].into_iter().enumerate() {
                let device = ["--device", "sim", "--schedule", schedule, "--storage", algorithm.storage];
                let named = ["--algorithm", &algorithm.name];
                let arguments = [&device, &named[..], types[(turn + index + order) % types.len()]].concat();
                let Some(report) = run_unless_refused(&matrix, &arguments) else { continue };
                assert_eq!(report["verification"]["passed"], true);
                assert_eq!(report["device"]["schedule"], schedule);
                products += 1;
            }
        }
        assert!(products >= 9, "{}: {products} products", algorithm.name);
    }
}

#[test]
fn a_matrix_by_columns_and_one_triangle_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices");
    let product = |name: &str, arguments: &[&str]| {
        let report = run(&folder.join(name), arguments);
        assert_eq!(report["verification"]["passed"], true, "{arguments:?}");
        let told = |key: &str| report["product"][key].as_str().unwrap().to_owned();
        (report["kernel"]["algorithm"].as_str().unwrap().to_owned(), told("operation"), told("storage"))
    };
    let as_told = |algorithm: &str, operation: &str, storage: &str| {
        (algorithm.to_owned(), operation.to_owned(), storage.to_owned())
    };
    let (_, operation, storage) = product("lp_afiro.mtx", &["--storage", "csc"]);
    assert_eq!((&*operation, &*storage), ("non_transpose", "csc"));
    // A copy by rows does not pay for itself in few products, whatever the prices.
    let few = ["--storage", "csc", "--products", "1"];
    assert_eq!(product("lp_afiro.mtx", &few), as_told("hola_t", "non_transpose", "csc"));
    let named = ["--storage", "csc", "--algorithm", "csr_vector"];
    assert_eq!(product("lp_afiro.mtx", &named), as_told("csr_vector", "non_transpose", "csc"));
    let transposed = ["--storage", "csc", "--transpose"];
    assert_eq!(product("lp_afiro.mtx", &transposed).1, "transpose");
    let triangle = ["--storage", "symmetric"];
    let complex = "../../spmv-cli/tests/files/complex.mtx";
    let symmetries =
        [("karate.mtx", "symmetric"), ("skew_fp64.mtx", "skew_symmetric"), (complex, "hermitian")];
    for (name, symmetry) in symmetries {
        let (_, operation, storage) = product(name, &triangle);
        assert_eq!((&*operation, &*storage), ("non_transpose", symmetry));
        // From the triangle itself, and from a copy with both.
        for algorithm in ["sym_csr", "csr_vector"] {
            let named = [&triangle[..], &["--algorithm", algorithm]].concat();
            assert_eq!(product(name, &named), as_told(algorithm, "non_transpose", symmetry));
        }
    }

    let refused = |name: &str, arguments: &[&str]| {
        let output = spmv().arg("run").arg(folder.join(name)).args(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = refused("lp_afiro.mtx", &triangle);
    assert!(said.contains("only a square matrix can be symmetric"), "{said}");
    let said = refused("arc130.mtx", &triangle);
    assert!(said.contains("not symmetric: ") && said.contains("counted from 0"), "{said}");
    let said = refused("karate.mtx", &["--algorithm", "sym_csr"]);
    assert!(said.contains("--storage symmetric"), "{said}");
    let said = refused("karate.mtx", &["--storage", "symmetric", "--algorithm", "hola_t"]);
    assert!(said.contains("not symmetric, which is computed by ") && said.contains("sym_csr"), "{said}");
    for transposed in [&["--set", "operation=transpose"][..], &["--transpose"]] {
        let said = refused("skew_fp64.mtx", &[&triangle[..], transposed].concat());
        assert!(
            said.contains("there is no transpose product of a matrix in skew_symmetric storage"),
            "{said}"
        );
        assert!(said.contains("leave out --transpose and --set operation, and negate --alpha"), "{said}");
    }
    let said = refused("lp_afiro.mtx", &["--storage", "csc", "--algorithm", "hola_t", "--transpose"]);
    let wanted = "with --storage csc the transpose product is the non_transpose product of the arrays";
    assert!(said.contains(wanted), "{said}");
}

#[test]
fn pipes_are_read_too() {
    let matrix = Path::new(env!("CARGO_MANIFEST_DIR")).join("matrices/gemat12.mtx.gz");
    let mut command = spmv();
    command.args(["run", "/dev/stdin", "--device", "cpu", "--repeat", "0", "--json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::copy(&mut fs::File::open(matrix).unwrap(), &mut child.stdin.take().unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    // A pipe's head is known on Linux, where what came through it is read twice.
    let field = if cfg!(target_os = "linux") { "real".into() } else { Value::Null };
    assert_eq!((&report["matrix"]["nnz"], &report["matrix"]["field"]), (&33111.into(), &field));
    assert_eq!(report["verification"]["passed"], true);
}

/// As in `spmv gen ... | head -1`.
#[test]
fn a_file_that_may_not_be_written_is_not_replaced() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    // Permissions do not hold back root, so that another user tries, with a copy of the command that it can reach.
    let folder = tempfile::tempdir().unwrap();
    let [program, out] = ["spmv", "y.mtx"].map(|name| folder.path().join(name));
    fs::copy(env!("CARGO_BIN_EXE_spmv"), &program).unwrap();
    fs::write(&out, "of before").unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let is_root = fs::metadata(folder.path()).unwrap().uid() == 0;
    let command = || {
        let mut command = Command::new(&program);
        command.current_dir(folder.path());
        if is_root {
            command.uid(65534);
        }
        command
    };
    if is_root && !command().arg("--version").output().is_ok_and(|output| output.status.success()) {
        println!(
            "SKIPPED (another user cannot run the command): a_file_that_may_not_be_written_is_not_replaced"
        );
        return;
    }
    let make = ["matrix", "make", "diagonal", "--set", "n=4", "-o"];
    let output = command().args(make).arg(&out).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("Permission denied"), "{told}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "of before");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let commands =
        [&["gen", "--algorithm", "csr_vector"][..], &["completions", "bash"], &["run", "--help"], &["demo"]];
    for arguments in commands {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = spmv().args(arguments).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {} {errors}", output.status);
    }
}

/// As in `spmv compare OLD NEW --fail-on-slower 5 | head -1`: the verdict counts.
#[test]
fn a_reader_that_leaves_changes_no_verdict() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let [old, new, failed] = ["old.csv", "new.csv", "failed.csv"].map(|name| files.join(name));
    let code = |old: &Path, new: &Path| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = spmv();
        command.arg("compare").args([old, new]).args(["--fail-on-slower", "1"]);
        command.stdout(writer).stderr(Stdio::null()).status().unwrap().code()
    };
    assert_eq!(code(&old, &old), Some(0));
    assert_eq!(code(&old, &new), Some(1));
    assert_eq!(code(&old, &failed), Some(1));
    // Nothing that could be compared is no verdict that all is well.
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.csv");
    let head: Vec<_> =
        fs::read_to_string(&old).unwrap().lines().take(2).map(|line| format!("{line}\n")).collect();
    fs::write(&empty, head.concat()).unwrap();
    assert_eq!(code(&old, &empty), Some(1));
}

#[test]
fn manual_pages_and_completions_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    assert!(spmv().arg("man").arg(&pages).status().unwrap().success());
    for page in ["spmv.1", "spmv-run.1", "spmv-cache-gc.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = spmv().args(["completions", shell]).output().unwrap();
        assert!(
            script.status.success() && String::from_utf8_lossy(&script.stdout).contains("algorithms"),
            "{shell}"
        );
    }
}

/// A complex matrix from a file, and real ones multiplied as such; alpha from device memory.
#[test]
fn complex_products_are_right() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let complex = here.join("tests/files/complex.mtx");
    let scipy = here.join("../spmv-matrix/tests/scipy/csr_complex64.npz");
    let real = here.join("../tests/matrices/karate.mtx");
    let sim = ["--device", "sim"];
    for (matrix, arguments, sums) in [
        (&complex, &[][..], "c64"),
        (
            &complex,
            &["--value", "c32", "--algorithm", "csr_vector", "--alpha", "-2.5", "--beta", "0.5"],
            "c32",
        ),
        (&complex, &["--algorithm", "hola_t", "--set", "threads_per_block=128"], "c64"),
        (&complex, &["--storage", "csc", "--value", "c32"], "c32"),
        (&scipy, &["--value", "c32", "--set", "x=f32", "--algorithm", "sell_c_sigma"], "c32"),
        (&real, &["--set", "x=c32", "--set", "y=c32", "--algorithm", "merge_path", "--beta", "-1"], "c32"),
        (&real, &["--value", "c64", "--storage", "symmetric"], "c64"),
        (&complex, &["--storage", "symmetric", "--alpha", "0.5", "--beta", "-1"], "c64"),
        (&real, &["--set", "alpha=device", "--alpha", "0.3", "--algorithm", "coo"], "f32"),
        (&real, &["--set", "alpha=device", "--alpha", "0.3"], "f32"),
        (
            &complex,
            &["--set", "alpha=device", "--set", "beta=device", "--beta", "2", "--algorithm", "jds"],
            "c64",
        ),
    ] {
        let report = run(matrix, &[&sim, arguments].concat());
        assert_eq!(report["verification"]["passed"], true, "{arguments:?}");
        assert_eq!(report["verification"]["rows"], report["matrix"]["num_rows"], "{arguments:?}");
        assert_eq!(report["product"]["type"], sums, "{arguments:?}");
    }
    for matrix in [&complex, &scipy] {
        for value in ["c32", "c64"] {
            let report = run(matrix, &["--device", "cpu", "--value", value, "--beta", "2"]);
            assert_eq!(report["verification"]["passed"], true);
        }
    }
    let output = spmv().arg("run").arg(&complex).args(["--value", "f32"]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(3) && errors.contains("--value c32 or c64"), "{errors}");
}

/// 27 rows and 102 entries: offsets of 4 bytes, values of 4, and indices of 4 or 2.
#[test]
fn narrow_indices_take_fewer_bytes() {
    let matrix = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices/lp_afiro.mtx");
    for (index, bytes) in [("index=u32", 112 + 102 * 8), ("index=u16", 112 + 102 * 6)] {
        for algorithm in ["csr_vector", "merge_path", "hola_t"] {
            let named = ["--device", "sim", "--set", index, "--algorithm", algorithm];
            let report = run(&matrix, &named);
            assert_eq!(report["verification"]["passed"], true, "{index} {algorithm}");
            assert_eq!(report["memory_bytes"]["matrix"], bytes, "{index} {algorithm}");
        }
    }
    let report = run(&matrix, &["--device", "sim", "--set", "index=u16"]);
    assert!(report["kernel"]["config"].as_str().unwrap().contains("index=u16"), "{}", report["kernel"]);
    for (arguments, wanted) in [
        (&["--set", "index=u64"][..], "so no index needs 64 bits; allowed: u16, u32"),
        (&["--set", "index=u16", "--algorithm", "dia"], "use index = u32, or one of csr_scalar"),
    ] {
        let output =
            spmv().arg("run").arg(&matrix).args(arguments).args(["--device", "sim"]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && errors.contains(wanted), "{arguments:?}: {errors}");
    }
}

#[test]
fn integers_are_exact_and_fractions_refused() {
    let matrix = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/matrices/skew_int32.mtx");
    for arguments in [
        &["--value", "i32", "--device", "sim", "--algorithm", "csr_vector"][..],
        &["--value", "i64", "--device", "cpu", "--alpha", "-3", "--beta", "2"],
        &["--value", "i32", "--device", "sim", "--algorithm", "light_vector", "--semiring", "min_plus"],
        &["--value", "i32", "--device", "sim", "--algorithm", "hola", "--set", "x=f32", "--set", "y=f64"],
    ] {
        let report = run(&matrix, arguments);
        assert_eq!(report["verification"]["passed"], true, "{arguments:?}");
        let error = report["verification"]["max_error_over_bound"].as_f64().unwrap();
        assert!(error == 0.0 || arguments.contains(&"x=f32"), "{arguments:?}: {error}");
    }
    for (arguments, wanted) in [
        (&["--value", "i32", "--alpha", "0.5"][..], "--alpha 0.5: no number of type i32"),
        (&["--value", "u32"], "outside the range of u32"),
        (&["--value", "i32", "--set", "accumulator=f32"], "accumulator = f32 cannot sum"),
    ] {
        let output =
            spmv().arg("run").arg(&matrix).args(arguments).args(["--device", "sim"]).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && errors.contains(wanted), "{arguments:?}: {errors}");
    }
}

#[test]
fn sums_of_a_byte_have_places_in_shared_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("identity.mtx");
    let entries: String = (1..=16).map(|row| format!("{row} {row} 1\n")).collect();
    fs::write(&path, format!("%%MatrixMarket matrix coordinate integer general\n16 16 16\n{entries}"))
        .unwrap();
    let settings = ["--set", "shared_kib=224", "--set", "blocks=20", "--device", "sim"];
    let of_bool = ["--algorithm", "cache_blocked", "--semiring", "or_and", "--value", "bool"];
    let report = run(&path, &[&of_bool[..], &settings].concat());
    assert_eq!(report["verification"]["passed"], true);
}
