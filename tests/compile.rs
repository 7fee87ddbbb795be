//! What is generated beside products compiles with NVRTC for every architecture and loads in the simulator. Products do so in
//! `tests/conformance.rs`, a pairwise cover of all settings; here every configuration for all architectures with
//! `SPMV_FULL_SWEEP=1/1` (hours on few cores; the count is printed), the k-th of n parts with `k/n`.

mod compiled;
mod cover;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use compiled::{ARCHS, check_ptx};
use rayon::prelude::*;
use spmv_codegen::{Algorithm, IndexType, KernelConfig, Loads, ValueType};
use spmv_runtime::cache::{CacheLocation, DiskCache};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Compiler, Device, Nvrtc};

/// A compiler that compiles anew whatever earlier runs left on disk.
fn compiler() -> Compiler {
    Compiler::new(DiskCache::open(&CacheLocation::off()))
}

/// Every configuration with every architecture.
fn with_archs(configs: &[KernelConfig]) -> Vec<(KernelConfig, &'static str)> {
    configs.iter().flat_map(|config| ARCHS.iter().map(|arch| (*config, *arch))).collect()
}

fn compile_all(programs: &[(KernelConfig, &str)]) {
    let nvrtc = Nvrtc::find().expect("NVRTC is needed: run `make nvrtc`");
    let started = Instant::now();
    let spilled = AtomicUsize::new(0);
    let failures: Vec<String> = programs
        .par_iter()
        .filter_map(|&(ref config, arch)| {
            // A compiler a program: nothing is kept in memory that nobody asks for again.
            let artifact = match compiler().compile(config, arch) {
                Ok((artifact, _)) => artifact,
                Err(error) => return Some(format!("{config} for {arch}: {error}")),
            };
            let kernels = &artifact.kernels;
            spilled.fetch_add(kernels.iter().any(|k| k.spill_store_bytes > 0).into(), Ordering::Relaxed);
            let problem = compiled::check(config, arch, &artifact).err()?;
            Some(format!("{config} for {arch}: {problem}"))
        })
        .collect();
    println!(
        "{} programs for {} architectures compiled by NVRTC {} in {:.1} s, {} of them with spills",
        programs.len(),
        ARCHS.len(),
        nvrtc.version(),
        started.elapsed().as_secs_f64(),
        spilled.into_inner()
    );
    let few: Vec<_> = failures.iter().take(20).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} failures, the first of them:\n{}", failures.len(), few.join("\n"));
}

#[test]
fn every_configuration_compiles() {
    let Ok(share) = std::env::var("SPMV_FULL_SWEEP") else {
        println!("set SPMV_FULL_SWEEP=1/1 to compile every configuration");
        return;
    };
    let numbers = share.split_once('/').and_then(|(k, n)| Some((k.parse::<usize>().ok()?, n.parse().ok()?)));
    let (k, n) =
        numbers.filter(|&(k, n)| (1..=n).contains(&k)).expect("SPMV_FULL_SWEEP is k/n with k from 1 to n");
    let all: Vec<_> = Algorithm::ALL.iter().flat_map(cover::all).collect();
    println!("{} configurations in all, share {k} of {n}", all.len());
    compile_all(&with_archs(&all.into_iter().skip(k - 1).step_by(n).collect::<Vec<_>>()));
}

/// Choices at random that are looked at, of an algorithm that has more.
const MOST_CHOICES: usize = 50_000;
/// Choices without types of half precision that are all looked at.
const MOST_ENUMERATED: usize = 2_000_000;

#[test]
fn the_cover_covers() {
    type Setting = (&'static str, String);
    fn pairs<T>(settings: &[T]) -> impl Iterator<Item = (&T, &T)> {
        settings
            .iter()
            .enumerate()
            .flat_map(|(a, first)| settings[a + 1..].iter().map(move |second| (first, second)))
    }

    // With what is told only where it is not as usual.
    let every_setting = |config: &KernelConfig| {
        let mut settings = config.settings();
        if config.loads() == Loads::Streaming {
            settings.push(("loads", config.loads().name().to_owned()));
        }
        settings
    };
    for spec in Algorithm::ALL {
        // An operation from a copy multiplies what there is to choose from, and nothing else.
        let mut dimensions = cover::dimensions(spec);
        dimensions.iter_mut().filter(|one| one.key == "operation").for_each(|one| one.values.truncate(1));
        let (mut some, few) = (cover::within(spec, &dimensions, MOST_CHOICES), cover::pairwise(spec));
        for dimension in &mut dimensions {
            if matches!(dimension.key, "value" | "x" | "y" | "accumulator") {
                dimension.values.retain(|name| !name.ends_with("16"));
            }
        }
        let choices = dimensions.iter().map(|dimension| dimension.values.len()).product::<usize>();
        let is_enumerated = choices <= MOST_ENUMERATED;
        if is_enumerated {
            some.extend(cover::within(spec, &dimensions, usize::MAX));
        }
        println!("{}: of {} configurations and more a cover of {}", spec.name, some.len(), few.len());
        let covered: Vec<_> = few.iter().map(every_setting).collect();
        assert_eq!(dimensions.len(), covered[0].len());
        // More than can be enumerated: every value stands in the cover.
        if !is_enumerated {
            for (dimension, value) in
                dimensions.iter().flat_map(|d| d.values.iter().map(move |value| (d, value)))
            {
                let is_it = |(key, set): &Setting| *key == dimension.key && set == value;
                let stands = covered.iter().flatten().any(is_it);
                assert!(stands || dimension.key == "value", "{}: {} = {value}", spec.name, dimension.key);
            }
        }
        // Settings by their numbers: millions of pairs are looked up.
        let known: BTreeSet<&Setting> = covered.iter().flatten().collect();
        let known: Vec<_> = known.into_iter().collect();
        let numbers = |settings: &[Setting]| -> Vec<Option<usize>> {
            settings.iter().map(|setting| known.binary_search(&setting).ok()).collect()
        };
        let mut met = vec![false; known.len() * known.len()];
        let place = |a: &Option<usize>, b: &Option<usize>| Some((*a)? * known.len() + (*b)?);
        for settings in &covered {
            for (a, b) in pairs(&numbers(settings)) {
                met[place(a, b).expect("it is known")] = true;
            }
        }
        for config in some {
            let settings = every_setting(&config);
            let numbers = numbers(&settings);
            let mut of_both = pairs(&settings).zip(pairs(&numbers));
            let missing = of_both.find(|(_, (a, b))| !place(a, b).is_some_and(|place| met[place]));
            let missing = missing.map(|(pair, _)| pair);
            assert!(missing.is_none(), "{}: {missing:?} is not covered", spec.name);
        }
        assert!(few.len() < 200);
    }
}

#[test]
fn vector_operations_compile() {
    for &entry in ValueType::ALL {
        for arch in ARCHS {
            let (artifact, _) = compiler().compile_vector(entry, arch).unwrap();
            assert_eq!(artifact.kernels.len(), 11, "{entry} for {arch}");
            assert!(artifact.kernels.iter().all(|kernel| kernel.spill_store_bytes == 0));
            check_ptx(&artifact.images[0].ptx, arch)
                .unwrap_or_else(|problem| panic!("{entry} for {arch}: {problem}"));
        }
    }
}

#[test]
fn the_analysis_compiles() {
    let types = IndexType::OFFSETS
        .iter()
        .flat_map(|offset| IndexType::INDICES.iter().map(move |index| (*offset, *index)));
    for (offset, index) in types {
        for arch in ARCHS {
            let (artifact, _) = compiler().compile_analysis(offset, index, arch).unwrap();
            assert_eq!(artifact.kernels.len(), 4, "{offset}, {index} for {arch}");
            for kernel in &artifact.kernels {
                assert_eq!(kernel.spill_store_bytes, 0, "{offset}, {index} for {arch}: {kernel:?}");
            }
            check_ptx(&artifact.images[0].ptx, arch)
                .unwrap_or_else(|problem| panic!("{offset}, {index} for {arch}: {problem}"));
        }
    }
}

#[test]
fn the_hash_of_structures_compiles() {
    for arch in ARCHS {
        let (artifact, _) = compiler().compile_fingerprint(arch).unwrap();
        assert_eq!(artifact.kernels.len(), 1, "{arch}");
        assert_eq!(artifact.kernels[0].spill_store_bytes, 0, "{arch}");
        check_ptx(&artifact.images[0].ptx, arch).unwrap_or_else(|problem| panic!("{arch}: {problem}"));
    }
}

#[test]
fn errors_carry_the_log_with_template_lines() {
    let nvrtc = Nvrtc::find().unwrap();
    let source = KernelConfig::named("csr_vector").unwrap().build().unwrap().program().source;
    let line = source.lines().skip_while(|line| !line.contains("\"prelude/group_rows.cuh\"")).skip(1);
    let wanted = line.enumerate().find(|(_, line)| line.contains("store_scaled")).unwrap().0 + 1;
    let request = spmv_runtime::CompileRequest {
        source: source
            .replace("store_scaled(y, row, sum, alpha, beta);", "store_scaled(y, row, summ, alpha, beta);"),
        options: vec!["--gpu-architecture=sm_90".into(), "--std=c++17".into()],
        arch: "sm_90".into(),
        nvrtc_version: (nvrtc.version().major, nvrtc.version().minor),
        nvrtc_bytes: nvrtc.bytes(),
        driver_version: None,
    };
    let error = nvrtc.compile(&request).unwrap_err();
    assert!(error.log.contains(&format!("prelude/group_rows.cuh({wanted}): error")), "{error}");
    assert!(error.to_string().contains("summ"), "{error}");
}

#[test]
fn an_unknown_architecture_is_refused_with_what_is_allowed() {
    let config = KernelConfig::named("csr_scalar").unwrap().build().unwrap();
    for arch in ["sm_12", "sm_", "90", "compute_90", "", "sm_90x", "sm_9\u{0}0"] {
        let error = compiler().compile(&config, arch).unwrap_err().to_string();
        let of_device = Device::simulator_of(arch, Schedule::Natural).err().unwrap().to_string();
        for error in [error, of_device] {
            assert!(error.contains("sm_90") && error.contains("allowed"), "{arch}: {error}");
        }
    }
}

/// Templates are legal CUDA as they stand, with the includes that an editor follows.
#[test]
fn templates_compile_as_files() {
    let nvrtc = Nvrtc::find().unwrap();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let mut compiled = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "cu") {
            continue;
        }
        let request = spmv_runtime::CompileRequest {
            source: std::fs::read_to_string(&path).unwrap(),
            options: vec![
                "--gpu-architecture=sm_90".into(),
                "--std=c++17".into(),
                format!("--include-path={}", folder.display()),
            ],
            arch: "sm_90".into(),
            nvrtc_version: (nvrtc.version().major, nvrtc.version().minor),
            nvrtc_bytes: nvrtc.bytes(),
            driver_version: None,
        };
        let artifact = nvrtc.compile(&request).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(!artifact.images[0].cubin.is_empty());
        compiled += 1;
    }
    // The operations on vectors, the analysis and the fingerprint are templates too.
    assert_eq!(compiled, Algorithm::ALL.len() + 3);
}
