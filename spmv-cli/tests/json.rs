//! Every `--json` answer is one JSON object with the keys that `--help` names.

use std::process::{Command, Output};

use serde_json::Value;
use spmv_runtime::matrix::format::FormatKind;
use tempfile::TempDir;

struct Spmv {
    folder: TempDir,
}

impl Spmv {
    fn new() -> Spmv {
        Spmv { folder: tempfile::tempdir().unwrap() }
    }

    fn output(&self, command: &str) -> Output {
        let command = command.replace("TMP", self.folder.path().to_str().unwrap());
        Command::new(env!("CARGO_BIN_EXE_spmv"))
            .args(command.split(' '))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("SPMV_CACHE_DIR", self.folder.path().join("cache"))
            .output()
            .unwrap()
    }

    fn json(&self, command: &str) -> Value {
        let output = self.output(&format!("{command} --json"));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {}\n{errors}", output.status);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{command}: {error}"))
    }
}

/// Checks that an object has these keys and no others.
#[track_caller]
fn keys(value: &Value, expected: &str) {
    let object = value.as_object().unwrap_or_else(|| panic!("{value} is no object"));
    let mut found: Vec<&str> = object.keys().map(String::as_str).collect();
    let mut expected: Vec<&str> = expected.split_whitespace().collect();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

const MATRIX: &str = "path format field symmetry num_rows num_cols nnz density empty_rows row_nnz_min row_nnz_mean \
                      row_nnz_max row_nnz_std row_nnz_histogram lower_bandwidth upper_bandwidth diagonal_entries \
                      stored_zeros sorted_columns adjacent_duplicates bytes";
const DEVICE: &str = "kind name arch multiprocessors memory_bytes l2_bytes cuda_version schedule notice";
const KERNEL: &str = "algorithm chosen_by reason passed_over warning config settings source_bytes compiled";
const COMPILED: &str = "origin arch cubin_bytes ptx_bytes resources";
const RESOURCES: &str = "kernel registers spill_store_bytes spill_load_bytes shared_bytes";
const VERIFICATION: &str = "passed rows failed_rows max_error_over_bound worst_row expected actual unit_roundoff \
                            depth_of_longest_row same_bits_again";
const PERFORMANCE: &str =
    "samples products_per_sample median_ms min_ms max_ms spread_percent gflops bytes gb_per_s cache";

const SIMULATION: &str = "warp_instructions host_ms warp_instructions_per_s";
const REPORT: &str = "warp_instructions thread_instructions warp_execution_efficiency global_load_requests \
                      global_load_sectors global_load_bytes global_load_efficiency sectors_per_load_request \
                      global_store_requests global_store_sectors global_store_bytes global_store_efficiency \
                      bytes_moved shared_requests shared_bank_conflicts global_atomic_requests global_atomics \
                      shared_atomics barriers blocks";

#[test]
fn run() {
    let spmv = Spmv::new();
    let command = "run ../tests/matrices/gemat12.mtx --set threads_per_vector=16 --time-limit 0.1";
    let report = spmv.json(command);
    let facts =
        "matrix device kernel product times_ms memory_bytes slots verification performance simulation report";
    keys(&report, facts);
    keys(&report["matrix"], MATRIX);
    keys(&report["device"], DEVICE);
    keys(&report["kernel"], KERNEL);
    keys(&report["kernel"]["compiled"], COMPILED);
    keys(&report["product"], "computed_by operation semiring storage type alpha beta seed x y written_to");
    let times = "read open_device find_nvrtc generate compile load_module upload prepare first_product";
    keys(&report["times_ms"], times);
    keys(&report["memory_bytes"], "matrix vectors workspace scratch");
    keys(&report["verification"], VERIFICATION);

    assert_eq!(report["matrix"]["nnz"], 33111);
    assert_eq!(report["kernel"]["chosen_by"], "planner");
    assert_eq!(report["kernel"]["settings"]["threads_per_vector"], "16");
    assert_eq!(report["kernel"]["settings"]["beta"], "0");
    assert_eq!(report["kernel"]["compiled"]["origin"], "compiled");
    assert!(report["kernel"]["compiled"]["ptx_bytes"].as_u64().unwrap() > 1000);
    assert_eq!(report["verification"]["passed"], true);
    assert_eq!(report["verification"]["same_bits_again"], true);
    assert!(report["report"].is_null());
    // A GPU is timed; the simulator is not, and says why it is taken.
    let on_gpu = report["device"]["kind"] == "cuda";
    // The simulator takes PTX: there is no machine code whose resources could be told.
    let resources = report["kernel"]["compiled"]["resources"].as_array().unwrap();
    assert_eq!((resources.is_empty(), report["kernel"]["compiled"]["cubin_bytes"] == 0), (!on_gpu, !on_gpu));
    assert_eq!(report["product"]["computed_by"], if on_gpu { "cuda" } else { "sim" });
    assert_eq!(report["device"]["notice"].is_string(), !on_gpu);
    if on_gpu {
        keys(&report["performance"], PERFORMANCE);
        assert!(report["performance"]["samples"].as_u64().unwrap() >= 15);
        assert!(report["simulation"].is_null());
    } else {
        keys(&report["simulation"], SIMULATION);
        assert!(report["performance"].is_null());
    }

    let again = spmv.json(command);
    assert_eq!(again["kernel"]["compiled"]["origin"], "disk");
    assert_eq!(again["verification"]["actual"], report["verification"]["actual"]);
}

/// A row that holds the whole matrix, and one that does not.
#[test]
fn giant_rows_are_warned_of() {
    let spmv = Spmv::new();
    spmv.json("matrix make giant_row --set n=20000 --set giant=17000 --seed 7 -o TMP/giant.mtx.gz");
    let command = "run TMP/giant.mtx.gz --device sim --algorithm csr_vector";
    let warning = spmv.json(command)["kernel"]["warning"].as_str().map(str::to_owned).expect("a warning");
    assert!(
        warning.starts_with("the longest row has ") && warning.contains("does not split rows"),
        "{warning}"
    );
    let text = spmv.output(command).stdout;
    assert!(String::from_utf8_lossy(&text).contains(&format!("warning       {warning}\n")));
    let quiet = spmv.json("run ../tests/matrices/karate.mtx --device sim --algorithm csr_vector");
    assert!(quiet["kernel"]["warning"].is_null());
}

#[test]
fn run_on_the_simulator() {
    let spmv = Spmv::new();
    let command = "run ../tests/matrices/gemat12.mtx --algorithm csr_vector --device sim --report";
    let natural = spmv.json(command);
    keys(&natural["simulation"], SIMULATION);
    keys(&natural["report"], REPORT);
    assert_eq!((&natural["device"]["kind"], &natural["device"]["arch"]), (&"sim".into(), &"sm_90".into()));
    assert_eq!(natural["device"]["schedule"], "natural");
    assert!(natural["device"]["notice"].is_null() && natural["performance"].is_null());
    let count = |report: &Value, key: &str| report["report"][key].as_u64().unwrap();
    // A product reads 4 + 4 bytes a nonzero, and x; it writes 4 bytes a row.
    assert!(count(&natural, "global_load_bytes") > 33111 * 12);
    assert_eq!(count(&natural, "global_store_bytes"), 4929 * 4);
    let sectors = count(&natural, "global_load_sectors") + count(&natural, "global_store_sectors");
    assert_eq!(count(&natural, "bytes_moved"), sectors * 32);
    let efficiency = natural["report"]["warp_execution_efficiency"].as_f64().unwrap();
    assert!(efficiency > 0.5 && efficiency < 1.0, "{efficiency}");

    // Lanes run in another order and meet later; memory is touched as before, and the bits are those that are
    // promised.
    let adversarial = spmv.json(&format!("{command} --schedule 7"));
    assert_eq!(adversarial["device"]["schedule"], "7");
    assert_eq!(adversarial["verification"]["actual"], natural["verification"]["actual"]);
    assert!(count(&adversarial, "warp_instructions") > count(&natural, "warp_instructions"));
    assert_eq!(count(&adversarial, "global_load_bytes"), count(&natural, "global_load_bytes"));

    // Where an option asks for the simulator, `auto` is the simulator.
    let auto = spmv.json("run ../tests/matrices/karate.mtx --algorithm naive_t --report");
    assert_eq!(auto["device"]["kind"], "sim");
    assert!(count(&auto, "global_atomics") > 0);
}

/// Of settings that say what is computed, and how, the planner keeps to those that it can.
#[test]
fn settings_go_with_a_kernel_that_is_chosen() {
    let spmv = Spmv::new();
    for setting in ["semiring=min_plus", "map_x=|x,col|x*2.0", "loads=streaming", "threads_per_block=64"] {
        let run =
            spmv.json(&format!("run ../tests/matrices/karate.mtx --device sim --repeat 0 --set {setting}"));
        assert_eq!(run["kernel"]["chosen_by"], "planner", "{run}");
        assert_eq!(run["verification"]["passed"], true, "{run}");
        let (key, value) = setting.split_once('=').unwrap();
        let config = run["kernel"]["config"].as_str().unwrap();
        let is_told = config.replace(' ', "").contains(&format!("{key}={value}"));
        assert_eq!(is_told, setting != "loads=streaming", "{config}");
        assert!(!config.contains("loads=cached") || key != "loads", "{config}");
    }
    let output = spmv.output("run ../tests/matrices/karate.mtx --device sim --set sigma=7777");
    assert!(!output.status.success());
}

#[test]
fn run_on_the_cpu() {
    let report = Spmv::new().json("run ../tests/matrices/gemat12.mtx --device cpu --time-limit 0.1");
    for absent in ["kernel", "simulation", "report"] {
        assert!(report[absent].is_null(), "{absent}");
    }
    assert!(report["device"]["notice"].is_null());
    assert_eq!(report["product"]["computed_by"], "cpu_parallel");
    keys(&report["performance"], PERFORMANCE);
    assert!(report["performance"]["samples"].as_u64().unwrap() >= 15);
    assert_eq!(report["verification"]["passed"], true);
}

#[test]
fn generate() {
    let spmv = Spmv::new();
    let report = spmv.json("gen --algorithm light_vector --value f64");
    keys(
        &report,
        "algorithm config settings source storage prepare multiply buffers counts slots guarantees",
    );
    keys(&report["multiply"][0], "kernel grid threads_per_block shared_bytes args");
    keys(&report["buffers"][0], "name bytes zeroed scratch");
    keys(&report["guarantees"], "bit_reproducible fill_touches_x splits_rows summation_depth operation");
    let text = spmv.output("gen --algorithm light_vector --value f64");
    assert_eq!(report["source"].as_str().unwrap().as_bytes(), text.stdout);
}

#[test]
fn compile() {
    let spmv = Spmv::new();
    let keys_of_all = "algorithm config settings nvrtc_version time_ms compiled written_to ptx";
    let report = spmv.json("compile --algorithm csr_scalar --arch sm_75 -o TMP/kernel.cubin");
    keys(&report, keys_of_all);
    keys(&report["compiled"], COMPILED);
    keys(&report["compiled"]["resources"][0], RESOURCES);
    let cubin = std::fs::read(spmv.folder.path().join("kernel.cubin")).unwrap();
    assert!(cubin.starts_with(b"\x7fELF"));
    assert_eq!(report["compiled"]["cubin_bytes"], cubin.len());
    assert_eq!(report["compiled"]["origin"], "compiled");

    let report = spmv.json("compile --algorithm csr_scalar --arch sm_75 --ptx");
    assert_eq!(report["compiled"]["origin"], "disk");
    let ptx = report["ptx"].as_str().unwrap();
    assert!(ptx.contains(".target sm_75") && ptx.contains("spmv_csr_scalar"), "{ptx}");
    assert_eq!(spmv.output("compile --algorithm csr_scalar --arch sm_75 --ptx").stdout, ptx.as_bytes());
    spmv.json("compile --algorithm csr_scalar --arch sm_75 --ptx -o TMP/kernel.ptx");
    assert_eq!(std::fs::read(spmv.folder.path().join("kernel.ptx")).unwrap(), ptx.as_bytes());
}

#[test]
fn algorithms() {
    let report = Spmv::new().json("algorithms");
    keys(&report, "algorithms common_settings");
    for algorithm in report["algorithms"].as_array().unwrap() {
        keys(algorithm, "name summary operations header parameters guarantees");
        keys(&algorithm["header"], "formula paper suits suffers bytes guarantee launch");
        assert!(!algorithm["operations"].as_array().unwrap().is_empty());
        for parameter in algorithm["parameters"].as_array().unwrap() {
            keys(parameter, "name about default allowed");
        }
    }
    keys(&report["common_settings"][0], "name about default allowed");
}

#[test]
fn inspect() {
    let report = Spmv::new().json("inspect ../tests/matrices/lp_afiro.mtx");
    keys(
        &report,
        &format!(
            "{MATRIX} read_ms csr_bytes_f32 csr_bytes_f64 csr_bytes_c32 csr_bytes_c64 triangle_bytes_f32 \
             triangle_bytes_f64 triangle_bytes_c32 triangle_bytes_c64 chosen layouts"
        ),
    );
    keys(&report["chosen"], "config reason");
    let layouts = report["layouts"].as_array().unwrap();
    assert!(layouts.iter().map(|layout| &layout["name"]).eq(FormatKind::ALL.iter().map(|kind| kind.name())));
    for layout in layouts {
        keys(layout, "name slots fill bytes_f32 bytes_f64 bytes_c32 bytes_c64 fit");
    }
    assert_eq!((&report["num_rows"], &report["num_cols"]), (&27.into(), &51.into()));
}

#[test]
fn matrix() {
    let spmv = Spmv::new();
    let report = spmv.json("matrix make stencil_5 --set nx=30 --set ny=20 --seed 7 -o TMP/a.mtx.gz");
    keys(&report, "class seed values make_ms write_ms file_bytes matrix");
    assert_eq!(report["matrix"]["nnz"], 2900);
    let report = spmv.json("matrix convert TMP/a.mtx.gz TMP/b.mtx");
    keys(&report, "written_to read_ms write_ms file_bytes matrix");
    assert_eq!(report["matrix"]["nnz"], 2900);
    assert_eq!(spmv.json("inspect TMP/b.mtx")["nnz"], 2900);
    let report = spmv.json("matrix classes");
    keys(&report["classes"][0], "name summary parameters");
    keys(&report["classes"][0]["parameters"][0], "name about default min max whole");
    // Symmetric entries are written out.
    let report = spmv.json("matrix convert ../tests/matrices/karate.mtx TMP/c.mtx --value f32");
    let general = spmv.json("inspect TMP/c.mtx");
    assert_eq!((&report["matrix"]["nnz"], &general["symmetry"]), (&general["nnz"], &"general".into()));
    // SciPy's files, both ways.
    spmv.json("matrix convert TMP/c.mtx TMP/c.npz --value f32");
    let scipy = spmv.json("inspect TMP/c.npz");
    assert_eq!(
        (&scipy["format"], &scipy["field"], &scipy["nnz"]),
        (&"csr".into(), &"float32".into(), &general["nnz"])
    );
    assert!(scipy["symmetry"].is_null());
    // Complex entries stay complex.
    spmv.json("matrix convert tests/files/complex.mtx TMP/d.mtx");
    let complex = spmv.json("inspect TMP/d.mtx");
    assert_eq!((&complex["field"], &complex["nnz"]), (&"complex".into(), &5.into()));
    assert!(complex["chosen"]["config"].as_str().unwrap().contains("value=c64"));
    assert!(complex["triangle_bytes_c64"].is_null() && complex["csr_bytes_c64"] == 116);
    // Four entries with offsets for three rows.
    let hermitian = spmv.json("inspect tests/files/complex.mtx");
    assert_eq!(
        (&hermitian["triangle_bytes_c32"], &hermitian["triangle_bytes_c64"]),
        (&64.into(), &96.into())
    );
    assert!(hermitian["triangle_bytes_f64"].is_null());
}

#[test]
fn doctor() {
    let report = Spmv::new().json("doctor");
    keys(&report, "driver devices default nvrtc cusparse cache ready_for");
    keys(&report["driver"], "cuda_version problem help");
    keys(&report["nvrtc"], "version path found_by archs compile_ms problem");
    keys(&report["cusparse"], "version library problem");
    keys(&report["cache"], "folder max_bytes entries bytes problem");
    keys(&report["ready_for"], "compile gpu simulator cpu");
    assert_eq!(
        (&report["ready_for"]["compile"], &report["ready_for"]["simulator"]),
        (&true.into(), &true.into())
    );
    let gpu = !report["devices"].as_array().unwrap().is_empty();
    assert_eq!(report["default"], if gpu { "cuda:0" } else { "sim" });
}

/// A driver that does not start is told, and the simulator does not take its place unasked.
#[test]
#[cfg(target_os = "linux")]
fn doctor_tells_of_a_driver_that_does_not_start() {
    let spmv = Spmv::new();
    let at = |name: &str| spmv.folder.path().join(name);
    let driver = "int cuInit(unsigned flags) { (void)flags; return 803; }
        int cuGetErrorName(int error, const char **name) { (void)error; *name = \"MISMATCH\"; return 0; }
        int cuGetErrorString(int error, const char **text) { (void)error; *text = \"it is\"; return 0; }";
    std::fs::write(at("driver.c"), driver).unwrap();
    let mut cc = Command::new("cc");
    let linked = cc.args(["-shared", "-fPIC", "-o"]).arg(at("libcuda.so.1")).arg(at("driver.c")).status();
    assert!(linked.is_ok_and(|status| status.success()), "cc, which links Rust too, makes the driver");
    std::fs::copy(at("libcuda.so.1"), at("libcuda.so")).unwrap();
    let folder = spmv.folder.path();
    let output = |arguments: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spmv"));
        command.args(arguments.split(' ')).env("SPMV_CACHE_DIR", "off").env("LD_LIBRARY_PATH", folder);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap()
    };
    let doctor = output("doctor --json");
    assert_eq!(doctor.status.code(), Some(4));
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let problem = "the CUDA driver does not start: cuInit failed with MISMATCH, error 803 (it is)";
    assert_eq!(report["driver"]["problem"], problem);
    assert!(report["driver"]["help"].as_str().unwrap().contains("nvidia-smi"), "{report}");
    assert!(report["default"].is_null() && report["ready_for"]["gpu"] == false, "{report}");
    assert_eq!(
        (&report["ready_for"]["simulator"], &report["devices"]),
        (&true.into(), &Value::Array(vec![]))
    );
    let text = String::from_utf8(output("doctor").stdout).unwrap();
    assert!(text.contains(problem) && text.contains("only --device sim runs them"), "{text}");
    let run = "run ../tests/matrices/gemat12.mtx --algorithm csr_scalar --time-limit 0.1 --device";
    let auto = output(&format!("{run} auto"));
    assert_eq!(auto.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&auto.stderr).contains(problem));
    assert!(output(&format!("{run} sim")).status.success());
}

#[test]
fn cache() {
    let spmv = Spmv::new();
    keys(&spmv.json("cache path"), "folder max_bytes problem");
    for algorithm in ["csr_scalar", "csr_vector"] {
        spmv.json(&format!("compile --algorithm {algorithm}"));
    }
    let listed = spmv.json("cache ls");
    keys(&listed, "folder bytes entries choices");
    keys(&listed["entries"][0], "key path bytes last_used_s arch nvrtc_version kernel resources");
    assert_eq!(listed["entries"].as_array().unwrap().len(), 2);

    let damaged = listed["entries"][0]["path"].as_str().unwrap();
    std::fs::write(damaged, "damaged").unwrap();
    let verified = spmv.json("cache verify");
    keys(&verified, "folder right bytes damaged");
    keys(&verified["damaged"][0], "path reason");
    assert_eq!((&verified["right"], &verified["damaged"][0]["path"]), (&1.into(), &damaged.into()));

    let swept = "folder removed_entries removed_temporaries removed_bytes kept_entries kept_bytes";
    let report = spmv.json("cache gc --max-bytes 1M");
    keys(&report, swept);
    assert_eq!((&report["removed_entries"], &report["kept_entries"]), (&0.into(), &1.into()));
    let report = spmv.json("cache clear");
    keys(&report, swept);
    assert_eq!((&report["removed_entries"], &report["kept_entries"]), (&1.into(), &0.into()));
}

#[test]
fn demo() {
    let report = Spmv::new().json("demo");
    keys(&report, "matrix device kernel product table");
    keys(&report["matrix"], MATRIX);
    keys(&report["device"], DEVICE);
    keys(&report["kernel"], "config reason source_lines compiled");
    keys(&report["kernel"]["compiled"], COMPILED);
    keys(&report["product"], "computed_by first_ms verification");
    keys(&report["product"]["verification"], VERIFICATION);
    let table = report["table"].as_array().unwrap();
    assert!(table.len() > 3);
    for row in table {
        keys(row, "name processor verified speed_up performance report");
        assert_eq!(row["verified"], true);
        if row["processor"] == "sim" {
            keys(&row["report"], REPORT);
            assert!(row["performance"].is_null() && row["speed_up"].is_null());
        } else {
            keys(&row["performance"], PERFORMANCE);
            assert!(row["speed_up"].is_f64() && row["report"].is_null());
        }
    }
}

#[test]
fn errors() {
    let spmv = Spmv::new();
    let cases = [
        ("gen --algorithm nothing", "usage", 2),
        ("gen --algorithm csr_vector --set x=i16", "usage", 2),
        ("run ../tests/matrices/karate.mtx --device cuda --report", "usage", 2),
        ("run nowhere.mtx", "input", 3),
        ("run ../tests/matrices/karate.mtx --device cuda:4096", "environment", 4),
        ("matrix make dense --set rows=2e9 --set cols=2e9 -o TMP/a.mtx", "memory", 5),
    ];
    for (command, kind, code) in cases {
        let output = spmv.output(&format!("{command} --json"));
        assert_eq!(output.status.code(), Some(code), "{command}");
        assert!(output.stdout.is_empty(), "{command}");
        let report: Value = serde_json::from_slice(&output.stderr).unwrap();
        keys(&report["error"], "kind exit_code message causes help");
        assert_eq!((&report["error"]["kind"], &report["error"]["exit_code"]), (&kind.into(), &code.into()));
    }
}

#[test]
fn explain() {
    let report = Spmv::new().json("explain ../tests/matrices/gemat12.mtx --products 1000000000000");
    keys(&report, "path features tuned candidates");
    let features = "num_rows num_cols nnz longest_row row_lengths warp_steps num_diagonals different_rows \
         sampled_values different_values wide_values uneven_values near far hot";
    keys(&report["features"], features);
    let candidates = report["candidates"].as_array().unwrap();
    for candidate in candidates {
        keys(candidate, "config reason product_us prepare_us terms_us");
        assert_eq!(candidate["product_us"].is_null(), candidate["terms_us"].is_null());
        assert!(candidate["product_us"].is_null() || candidate["terms_us"]["launch"].is_number());
    }
    let times: Vec<f64> =
        candidates.iter().filter_map(|candidate| candidate["product_us"].as_f64()).collect();
    assert!(times.len() > 2 && times.is_sorted(), "{times:?}");
}

/// The record's matrix is that of a suite, small, and has two kernels.
#[test]
fn fit() {
    let spmv = Spmv::new();
    let head = "# {\"l2_bytes\":62914560}";
    let columns = "matrix,class,rows,cols,nnz,value,operation,contender,params,cold_ms,prepare_ms,status";
    let row = |contender: &str, ms: &str| {
        format!(
            "quick_road,road,120000,120000,200045,f32,plain,ours:{contender},threads_per_block=256,{ms},1,ok"
        )
    };
    let write = |file: &str, [scalar, vector]: [&str; 2]| {
        let rows = [row("csr_scalar", scalar), row("csr_vector", vector)];
        let lines = [vec![head.to_owned(), columns.to_owned()], rows.to_vec()].concat();
        std::fs::write(spmv.folder.path().join(file), lines.join("\n") + "\n").unwrap();
    };
    write("r.csv", ["0.5", "0.25"]);
    let report = spmv.json("fit TMP/r.csv -o TMP/model.csv");
    keys(&report, "model geomean largest choices judged");
    assert_eq!(report["judged"].as_array().unwrap().len(), 0);
    keys(&report["geomean"], "fitted left_out");
    let choice = &report["choices"][0];
    keys(choice, "matrix value fitted left_out best");
    assert_eq!(
        choice["fitted"]["label"],
        "ours:csr_vector threads_per_vector=8;unroll=4;aligned=0;threads_per_block=256"
    );
    let model = std::fs::read_to_string(spmv.folder.path().join("model.csv")).unwrap();
    assert_eq!(report["model"], model);
    assert!(model.lines().any(|line| line.starts_with("csr_vector,threads_per_vector=8 ")), "{model}");
    // Of other matrices the record says nothing.
    assert!(model.contains(",small,") && !model.contains(",in_l2,"), "{model}");
    let output = spmv.output("fit TMP/none.csv");
    assert_eq!(output.status.code(), Some(3));

    // Where the one that is chosen is not the fastest.
    write("other.csv", ["0.25", "0.5"]);
    let report = spmv.json("fit TMP/r.csv --judge TMP/other.csv");
    let judged = &report["judged"][0];
    keys(judged, "matrix value chosen best");
    assert_eq!([&judged["chosen"]["ms"], &judged["best"]["ms"]], [0.5, 0.25]);
    let model = report["model"].as_str().unwrap();
    assert!(model.contains("2.000 (geometric mean), 2.00 (largest)"), "{model}");
    let output = spmv.output("fit TMP/r.csv --judge TMP/none.csv");
    assert_eq!(output.status.code(), Some(3));

    // What judges nothing is told before the fit, which has something to say itself here.
    let edit = |from: &str, to: &str, text: &str, by: &str| {
        let read = std::fs::read_to_string(spmv.folder.path().join(from)).unwrap();
        std::fs::write(spmv.folder.path().join(to), read.replace(text, by)).unwrap();
    };
    edit("other.csv", "chosen.csv", "ours:csr_scalar", "auto");
    edit("chosen.csv", "chosen.csv", "ours:csr_vector", "auto");
    edit("r.csv", "unknown.csv", "quick_road", "no_such");
    let told = |command: &str| String::from_utf8(spmv.output(command).stderr).unwrap();
    assert!(told("fit TMP/unknown.csv").contains("no_such"));
    let error = told("fit TMP/unknown.csv --judge TMP/chosen.csv");
    assert!(error.contains("chosen.csv") && error.contains("no correct product"), "{error}");
}

/// A layout that copies the values is no choice where there is no memory for them.
#[test]
fn extra_memory_is_limited() {
    let spmv = Spmv::new();
    spmv.json("matrix make stencil_5 --set nx=500 --set ny=450 -o TMP/a.mtx");
    let chosen = |limit: &str| {
        let report = spmv.json(&format!("run TMP/a.mtx --products 100000000{limit} --repeat 0"));
        let algorithm = report["kernel"]["algorithm"].as_str().unwrap().to_owned();
        (algorithm, report["memory_bytes"]["workspace"].as_u64().unwrap())
    };
    assert_eq!(chosen("").0, "dia");
    let (algorithm, workspace) = chosen(" --max-extra-bytes 4K");
    assert!(workspace <= 4096, "{algorithm} takes {workspace}");
}
