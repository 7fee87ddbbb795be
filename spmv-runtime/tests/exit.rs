//! Processes that end while threads of theirs still compile.

use std::process::{self, Command};
use std::time::Duration;

use spmv_runtime::codegen::Operation;
use spmv_runtime::matrix::CsrMatrix;
use spmv_runtime::matrix::generate::Generator;
use spmv_runtime::{Budget, Constraints, Device, Spmv};

/// In a process that is to end: after how many milliseconds.
const ENDS_AFTER: &str = "SPMV_TEST_ENDS_AFTER";

/// Whether it ends without dropping its plan.
const LEAVES_PLAN: &str = "SPMV_TEST_LEAVES_PLAN";

/// NVRTC was taken down under threads that were in it, and more than half of such processes crashed.
#[test]
fn threads_that_compile_end_before_nvrtc_does() {
    if let Ok(ms) = std::env::var(ENDS_AFTER) {
        let generator =
            Generator::new("stencil_5").unwrap().set("nx", 30.0).unwrap().set("ny", 30.0).unwrap();
        let a: CsrMatrix<f64> = generator.generate().unwrap();
        let (constraints, budget) = (Constraints::default(), Budget::Products(50));
        let device = Device::simulator();
        let plan =
            Spmv::tune_in_background(&device, &a, Operation::NonTranspose, &constraints, budget).unwrap();
        std::thread::sleep(Duration::from_millis(ms.parse().unwrap()));
        match std::env::var(LEAVES_PLAN).is_ok() {
            // As where the plan is a static variable: nobody drops it.
            true => std::mem::forget((plan, device)),
            // Threads still compile for a plan and a device that are gone.
            false => drop((plan, device)),
        }
        process::exit(0);
    }
    for (ms, leaves_plan) in (0..8).map(|turn| (60 * turn, turn % 2 == 0)) {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "threads_that_compile_end_before_nvrtc_does", "--nocapture"]);
        again.env(ENDS_AFTER, ms.to_string()).env("SPMV_CACHE_DIR", "off");
        let output = again.envs(leaves_plan.then_some((LEAVES_PLAN, ""))).output().unwrap();
        assert!(
            output.status.success(),
            "after {ms} ms: {}, {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
