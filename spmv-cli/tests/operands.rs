//! What a shell gives and takes: vectors as files, pipes, and the same choice told by every command.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const MATRIX: &str =
    "%%MatrixMarket matrix coordinate real general\n3 4 4\n1 1 1.5\n2 2 -2\n3 1 4\n3 4 0.25\n";
const PATTERN: &str = "%%MatrixMarket matrix coordinate pattern general\n3 3 3\n1 2\n2 3\n3 1\n";
const COMPLEX: &str = "%%MatrixMarket matrix coordinate complex general\n2 2 2\n1 1 1 2\n2 2 0 -1\n";
const WHOLE: &str = "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 3\n2 2 -4\n";

/// A folder with these matrices and a cache.
struct Shell(TempDir);

impl Shell {
    fn new() -> Shell {
        let folder = TempDir::new().unwrap();
        for (name, text) in [("a", MATRIX), ("pattern", PATTERN), ("complex", COMPLEX), ("whole", WHOLE)] {
            fs::write(folder.path().join(name).with_extension("mtx"), text).unwrap();
        }
        Shell(folder)
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spmv"));
        command
            .args(arguments.split(' '))
            .current_dir(self.0.path())
            .env("SPMV_CACHE_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache-of-operands"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &str, input: &str) -> Output {
        let mut child = self.command(arguments).spawn().unwrap();
        // Whoever refuses its arguments reads nothing.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }

    fn right(&self, arguments: &str, input: &str) -> String {
        let output = self.run(arguments, input);
        assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.right(&format!("{arguments} --json"), "")).unwrap()
    }

    /// What a command that is refused says, with its exit code.
    fn refused(&self, arguments: &str) -> (Option<i32>, String) {
        let output = self.run(arguments, "");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

#[test]
fn vectors_are_read_and_the_product_is_written() {
    let shell = Shell::new();
    shell.file("x.mtx", "%%MatrixMarket matrix array real general\n4 1\n2\n0.5\n-1\n8\n");
    shell.file("y.mtx", "%%MatrixMarket matrix coordinate real general\n1 3 1\n1 2 10\n");
    for device in ["sim", "cpu"] {
        let run = format!("run a.mtx --value f64 --x x.mtx --repeat 0 --device {device}");
        let report = shell.json(&format!("{run} -o product.mtx"));
        assert_eq!(report["product"]["written_to"], "product.mtx");
        let product = "%%MatrixMarket matrix array real general\n3 1\n3.0\n-1.0\n10.0\n";
        assert_eq!(shell.text("product.mtx"), product);
        // Nothing but the product goes to standard output.
        assert_eq!(shell.right(&format!("{run} -o -"), ""), product);
        let scaled = shell.right(&format!("{run} --alpha 2 --y y.mtx --beta -0.5 -o -"), "");
        assert!(scaled.ends_with("\n6.0\n-7.0\n20.0\n"), "{scaled}");
    }
    // What was written is read again.
    let transposed =
        "run a.mtx --value f64 --set operation=transpose --x product.mtx --repeat 0 --device sim -o -";
    assert!(shell.right(transposed, "").ends_with("\n4 1\n44.5\n2.0\n0.0\n2.5\n"));
    shell.file(
        "wide.mtx",
        "%%MatrixMarket matrix coordinate complex general\n2 3 3\n1 1 1 2\n1 3 0 1\n2 2 3 -1\n",
    );
    shell.file("two.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n10\n");
    for device in ["sim", "cpu"] {
        let transposed = "run a.mtx --value f64 --transpose --x product.mtx --repeat 0";
        let product = shell.right(&format!("{transposed} --device {device} -o -"), "");
        assert!(product.ends_with("\n4 1\n44.5\n2.0\n0.0\n2.5\n"), "{device}: {product}");
        for value in ["c32", "c64"] {
            let transposed = format!("run wide.mtx --value {value} --transpose --x two.mtx --repeat 0");
            let product = shell.right(&format!("{transposed} --device {device} -o -"), "");
            assert!(product.ends_with("\n3 1\n1.0 2.0\n30.0 -10.0\n0.0 1.0\n"), "{device}: {product}");
        }
    }
    let told = shell.json("run a.mtx --transpose --device cpu --repeat 0");
    assert_eq!(
        (&told["product"]["operation"], &told["verification"]["rows"]),
        (&"transpose".into(), &4.into())
    );
    let told = shell.json("run complex.mtx --repeat 0 --device sim");
    assert_eq!(told["memory_bytes"]["vectors"], 4 * 16);
    let complex = shell.right("run complex.mtx --repeat 0 --device sim -o -", "");
    assert!(complex.starts_with("%%MatrixMarket matrix array complex general\n2 1\n"), "{complex}");
    shell.file("whole_x.mtx", "%%MatrixMarket matrix array integer general\n2 1\n5\n7\n");
    let whole = shell.right("run whole.mtx --value i32 --x whole_x.mtx --repeat 0 --device sim -o -", "");
    assert_eq!(whole, "%%MatrixMarket matrix array integer general\n2 1\n15\n-28\n");
}

/// Whole numbers stay exact, complex ones complex, and a triangle is one, as from a file.
#[test]
#[cfg(target_os = "linux")]
fn pipes_say_what_files_say() {
    let shell = Shell::new();
    let exact = WHOLE.replace("1 1 3", "1 1 9007199254740993");
    assert!(shell.right("matrix convert - -", &exact).ends_with("\n1 1 9007199254740993\n2 2 -4\n"));
    assert!(shell.right("inspect -", COMPLEX).contains("(complex, general)"));
    let complex = shell.right("run - --repeat 0 --device sim -o -", COMPLEX);
    assert_eq!(complex, shell.right("run complex.mtx --repeat 0 --device sim -o -", ""));
    let skew = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 1 3\n";
    shell.right("run - --storage symmetric --repeat 0 --device sim", skew);
    let output = shell.run("run - --x - --device sim", MATRIX);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("two inputs are standard input"));
}

#[test]
fn paths_that_are_not_known_are_infinite() {
    let shell = Shell::new();
    shell.file("start.mtx", "%%MatrixMarket matrix array real general\n2 1\n0\ninf\n");
    shell.file("steps.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 2 1.5\n2 1 2.5\n");
    let run = "run steps.mtx --semiring min_plus --x start.mtx --repeat 0 --device sim";
    assert!(shell.right(&format!("{run} -o -"), "").ends_with("\ninf\n2.5\n"));
    let (code, said) = shell.refused(&format!("{run} --value i32"));
    assert_eq!(code, Some(3), "{said}");
}

#[test]
fn complex_values_are_not_rounded_to_real_ones() {
    let shell = Shell::new();
    for value in ["f16", "f32", "f64"] {
        let (code, said) = shell.refused(&format!("matrix convert complex.mtx o.mtx --value {value}"));
        assert_eq!(code, Some(2));
        assert!(
            said.contains(&format!("the matrix is complex, and {value} has no imaginary part")),
            "{said}"
        );
    }
    assert!(shell.right("matrix convert complex.mtx - --value c32", "").contains("\n1 1 1.0 2.0\n"));
}

#[test]
fn vectors_that_do_not_fit_are_refused() {
    let shell = Shell::new();
    shell.file("short.mtx", "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n");
    for (arguments, code, says) in [
        ("--x short.mtx", 3, "a vector for x is 4 x 1 or 1 x 4, and this is 3 x 1"),
        ("--y short.mtx", 2, "--y is what beta is multiplied with"),
        ("--x missing.mtx", 3, "missing.mtx: could not be read"),
        ("-o no/such/y.mtx", 4, "there is no folder no/such"),
        ("-o y.mtx.gz", 2, "-o writes Matrix Market text, and no .gz"),
        ("-o y.mtx.GZ", 2, "-o writes Matrix Market text, and no .gz"),
    ] {
        let (exit, text) = shell.refused(&format!("run a.mtx --device sim --repeat 0 {arguments}"));
        assert_eq!(exit, Some(code), "{arguments}: {text}");
        assert!(text.contains(says), "{arguments}: {text}");
    }
}

#[test]
#[cfg(unix)]
fn a_file_may_have_any_name() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let shell = Shell::new();
    let names = [&b"a\xff.mtx"[..], b"x\xfe.mtx", b"y\xfd.mtx"];
    let [a, x, y] = names.map(|name| shell.0.path().join(OsStr::from_bytes(name)));
    let done = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    done(shell.command("matrix convert a.mtx").arg(&a));
    fs::write(&x, "%%MatrixMarket matrix array real general\n4 1\n1\n2\n3\n4\n").unwrap();
    done(shell.command("inspect").arg(&a));
    let run = "run --device cpu --repeat 0";
    done(shell.command(run).arg(&a).arg("--x").arg(&x).arg("--output").arg(&y));
    assert!(fs::read_to_string(y).unwrap().ends_with("\n1.5\n-4.0\n5.0\n"));
    done(shell.command("bench --device cpu --contenders cpu:serial").arg(&a));
}

#[test]
fn matrices_come_and_go_through_pipes() {
    let shell = Shell::new();
    let made = shell.right("matrix make tridiagonal --set n=6 -o -", "");
    assert!(made.starts_with("%%MatrixMarket matrix coordinate real general\n6 6 16\n"), "{made}");
    let report: Value =
        serde_json::from_str(&shell.right("run - --repeat 0 --device sim --json", &made)).unwrap();
    assert_eq!(report["matrix"]["nnz"], 16);
    // Whoever has read enough may go: more than a pipe holds is written to nobody.
    let mut child = shell.command("matrix make tridiagonal --set n=100000 -o -").spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    // Whole numbers stay whole.
    let whole = shell.right("matrix convert whole.mtx -", "");
    assert_eq!(whole, "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 3\n2 2 -4\n");
    assert!(shell.right("matrix convert whole.mtx - --value f32", "").contains("coordinate real general"));
}

#[test]
fn every_type_that_has_sums_is_tuned_and_then_run() {
    let shell = Shell::new();
    for (matrix, value) in [("whole.mtx", "i32"), ("complex.mtx", "c64"), ("a.mtx", "f16")] {
        let tuned = shell.json(&format!("tune {matrix} --value {value} --device sim"));
        assert!(tuned["config"].as_str().unwrap().contains(&format!("value={value} ")), "{tuned}");
        let run = shell.json(&format!("run {matrix} --value {value} --device sim --repeat 0"));
        assert_eq!(run["kernel"]["chosen_by"], "tuning", "{matrix} {value}");
    }
    // A complex matrix is tuned as it is run.
    assert!(shell.json("tune complex.mtx --device sim")["config"].as_str().unwrap().contains("value=c64 "));
    assert_eq!(shell.refused("tune a.mtx --value i32 --device sim").0, Some(3));
    assert_eq!(shell.refused("tune a.mtx --value bool --device sim").0, Some(2));
}

/// On a machine with a GPU `explain` speaks of that GPU, which nothing was tuned for.
#[test]
fn what_is_told_is_what_is_run() {
    let shell = Shell::new();
    let run = shell.json("run a.mtx --set threads_per_vector=8 --repeat 0");
    let explained = shell.json("explain a.mtx --set threads_per_vector=8");
    assert!(explained["candidates"][0]["config"].as_str().unwrap().contains("threads_per_vector=8"));
    assert_eq!(run["kernel"]["settings"]["threads_per_vector"], "8");
    assert!(
        shell.json("explain complex.mtx")["candidates"][0]["config"].as_str().unwrap().contains("value=c64")
    );
    assert_eq!(shell.json("explain a.mtx --value f64")["tuned"], Value::Null);

    let tuned = shell.json("tune a.mtx --value f32")["config"].clone();
    assert_eq!(shell.json("explain a.mtx")["tuned"]["config"], tuned);
    assert_eq!(shell.json("inspect a.mtx")["chosen"]["config"], tuned);
    assert_eq!(shell.json("run a.mtx --repeat 0")["kernel"]["chosen_by"], "tuning");
    // Whoever sets something else gets what the planner chooses.
    assert_eq!(shell.json("explain a.mtx --set threads_per_block=64")["tuned"], Value::Null);
}

#[test]
fn a_kernel_is_chosen_for_truth_values() {
    let shell = Shell::new();
    for arguments in ["", " --storage csc", " --deterministic", " --set operation=transpose"] {
        let run =
            format!("run pattern.mtx --value bool --semiring or_and --repeat 0 --device sim{arguments}");
        assert_eq!(shell.json(&run)["verification"]["passed"], true, "{arguments}");
    }
    let explained = shell.json("explain pattern.mtx --value bool --semiring or_and");
    assert!(explained["candidates"][0]["config"].as_str().unwrap().contains("semiring=or_and"));
}

#[test]
fn what_is_misspelt_is_named() {
    let shell = Shell::new();
    for (arguments, says) in [
        ("run a.mtx --set thread_per_vector=8", "did you mean `threads_per_vector`?"),
        ("explain a.mtx --set unrol=2", "did you mean `unroll`?"),
        ("explain a.mtx --set threads_per_block=100", "`threads_per_block` cannot be `100`"),
        ("run a.mtx --set value=f64 --value f32", "`value` is set twice"),
        ("run whole.mtx --value i32 --alpha 0.5", "allowed are whole numbers from -2147483648"),
        ("run whole.mtx --value i64 --alpha 9007199254740993", "to 9007199254740991"),
        ("run a.mtx --device cpu --deterministic", "--device cpu runs none"),
        ("run a.mtx --device cpu --products 5", "--device cpu runs none"),
        ("run a.mtx --seed -1", "allowed are whole numbers from 0"),
        ("bench --class diagonal:n=4 --configuration foo:x=1", "unknown algorithm `foo`"),
        ("bench --class diagonal:n=4 --configuration csr_vector:threads_per_vector=7", "cannot be `7`"),
        (
            "bench --class diagonal:n=4 --contenders ours:csr_vector --configuration hola:nnz_per_thread=4",
            "--contenders leaves out ours:hola",
        ),
        ("bench --class diagonal:n=4 --contenders cpu:* --variants each", "--variants is for ours:*"),
        ("bench --class diagonal:n=4 --contenders ours:hola --cusparse .", "--cusparse is for cusparse:*"),
        (
            "bench --class diagonal:n=4 --configuration csr_scalar:semiring=min_plus",
            "not for a configuration of csr_scalar; allowed: unroll, min_blocks, threads_per_block, loads",
        ),
        ("bench --class diagonal:n=4 --configuration csr_scalar:unroll=8,unroll=2", "`unroll` is set twice"),
        ("bench --class diagonal:n=4 --matrices .", "--matrices"),
        ("run a.mtx --device sim --set sigma=16", "`sigma` cannot be `16`"),
        ("tune --export e.tsv --deterministic", "--deterministic"),
        ("tune --import e.tsv --device sim", "--device"),
        ("run a.mtx --device cpu --repeat 4294967296", "allowed are whole numbers from 0 to 1000000"),
        ("plot --matrix a.mtx --report r.html", "--report tells what was measured"),
    ] {
        let (exit, text) = shell.refused(arguments);
        assert_eq!(exit, Some(2), "{arguments}: {text}");
        assert!(text.contains(says), "{arguments}: {text}");
    }
}
