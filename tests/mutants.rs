//! Mutants: templates with one mistake each, of the kinds that such kernels have. The simulator finds every one, by a
//! wrong result, a fault or a race; what it does not find is explained.

mod mutants {
    pub mod list;
}
mod structures;
mod typed;

use mutants::list::{MUTANTS, Mutant};
use rayon::prelude::*;
use spmv_codegen::{Coefficient, KernelConfig, Operation, Scaling, ValueType};
use spmv_matrix::{CsrMatrix, SymmetricCsr, Symmetry, bf16, f16, reference};
use spmv_runtime::ptx_sim::Schedule;
use spmv_runtime::{Device, Error, RealElement, Spmv, Vector};
use structures::{Numbers, Structure};

/// α and β: a store, everything in use, and a product that must not be looked at.
const SCALINGS: &[(f32, f32)] = &[(1.0, 0.0), (2.5, -2.0), (0.0, -2.0)];

#[test]
fn every_mutant_is_found() {
    let structures = structures::all();
    let devices =
        [Schedule::Natural, Schedule::Adversarial(1), Schedule::Adversarial(2)].map(Device::simulator_with);
    let mut configs: Vec<KernelConfig> = Vec::new();
    for config in MUTANTS.iter().map(Mutant::config) {
        if !configs.contains(&config) {
            configs.push(config);
        }
    }
    let as_it_is = |config: &KernelConfig| passes_as_it_is(*config, &devices[0], &structures);
    let sound: Vec<Result<(), String>> = configs.par_iter().map(as_it_is).collect();
    let verdict = |mutant: &Mutant| {
        let place = configs.iter().position(|config| *config == mutant.config());
        sound[place.expect("all are there")].clone().and_then(|()| verdict(mutant, &devices, &structures))
    };
    let verdicts: Vec<Result<String, String>> = MUTANTS.par_iter().map(verdict).collect();
    let mut wrong = 0;
    for (mutant, verdict) in MUTANTS.iter().zip(&verdicts) {
        let (sign, said) = match verdict {
            Ok(said) => ("found", said),
            Err(said) => ("WRONG", said),
        };
        wrong += usize::from(verdict.is_err());
        println!("{sign}  {}: {}: {said}", mutant.kernel, mutant.mistake);
    }
    println!("{} mutants, {} not as listed", MUTANTS.len(), wrong);
    assert_eq!(wrong, 0, "run with --nocapture");
}

/// The text without a mistake passes, or the test would prove nothing.
fn passes_as_it_is(config: KernelConfig, device: &Device, structures: &[Structure]) -> Result<(), String> {
    let source = config.program().source;
    structures.iter().try_for_each(|structure| {
        check(device, config, &source, structure)
            .map_err(|problem| format!("without the mistake, {}: {problem}", structure.name))
    })
}

/// How a mutant was found, or why it stays where that is explained; else what is wrong with the list.
fn verdict(mutant: &Mutant, devices: &[Device], structures: &[Structure]) -> Result<String, String> {
    let config = mutant.config();
    let source = config.program().source;
    match source.matches(mutant.code).count() {
        1 => {}
        count => return Err(format!("its code stands {count} times in the text, not once")),
    }
    let mutated = source.replace(mutant.code, mutant.mutated);
    for device in devices {
        for structure in structures {
            match (check(device, config, &mutated, structure), mutant.stays_because) {
                (Err(problem), None) => return Ok(format!("{}: {problem}", structure.name)),
                (Err(problem), Some(_)) => {
                    return Err(format!("is said to stay, but {}: {problem}", structure.name));
                }
                (Ok(()), _) => {}
            }
        }
    }
    mutant.stays_because.map(|reason| format!("stays: {reason}")).ok_or_else(|| "was not found".into())
}

impl Mutant {
    fn config(&self) -> KernelConfig {
        let mut words = self.kernel.split(' ');
        let mut config = KernelConfig::named(words.next().unwrap_or_default()).expect("an algorithm");
        for (key, value) in words.map(|word| word.split_once('=').expect("key=value")) {
            config.set(key, value).expect("a setting");
        }
        config.build().expect("settings that go together")
    }
}

/// The check of a kernel all of whose types are that of its values.
fn check(device: &Device, config: KernelConfig, source: &str, structure: &Structure) -> Result<(), String> {
    match config.types().value {
        ValueType::F16 => check_in::<f16>(device, config, source, structure),
        ValueType::Bf16 => check_in::<bf16>(device, config, source, structure),
        ValueType::F64 => check_in::<f64>(device, config, source, structure),
        _ => check_in::<f32>(device, config, source, structure),
    }
}

/// Small whole numbers, whose sums are exact in f32 and rounded once where results are narrower. Entries of x that no row names are NaN, all of them where α is 0, and y where
/// β is.
fn check_in<V: RealElement>(
    device: &Device,
    config: KernelConfig,
    source: &str,
    structure: &Structure,
) -> Result<(), String> {
    let told = |error: Error| error.to_string();
    let a: CsrMatrix<V> = structure.matrix(Numbers::Integers).convert();
    let symmetry = match config.operation() {
        Operation::Symmetric => Some(Symmetry::Symmetric),
        Operation::SkewSymmetric => Some(Symmetry::SkewSymmetric),
        _ => None,
    };
    let triangle = symmetry.map(|symmetry| {
        SymmetricCsr::new(symmetry, typed::folded(&a, symmetry)).expect("it is folded to a triangle")
    });
    let plan = match &triangle {
        // SAFETY: the device is a simulator, which checks what kernels do.
        Some(triangle) => unsafe { Spmv::with_source(device, triangle, config, source) },
        // SAFETY: as above.
        None => unsafe { Spmv::with_source(device, &a, config, source) },
    };
    let mut plan = match plan {
        Err(Error::Fill { .. } | Error::Misfit { .. }) => return Ok(()),
        plan => plan.map_err(told)?,
    };
    let op_a = match (config.operation(), triangle) {
        (_, Some(triangle)) => triangle.to_csr().expect("twice as large at most"),
        (Operation::Transpose, _) => a.transpose().expect("its transpose is no larger"),
        _ => a,
    };
    let mut x = Numbers::Integers.vector(op_a.num_cols(), 29);
    let y = Numbers::Integers.vector(op_a.num_rows(), 31);
    let wanted = |alpha: f32, beta: f32| {
        reference(f64::from(alpha), &op_a.convert::<f64>(), &x, f64::from(beta), &y).expect("lengths fit").y
    };
    let expected: Vec<Vec<f64>> = SCALINGS.iter().map(|&(alpha, beta)| wanted(alpha, beta)).collect();
    if !plan.program().guarantees.fill_touches_x {
        let mut is_named = vec![false; x.len()];
        op_a.col_indices().iter().for_each(|&col| is_named[col as usize] = true);
        x.iter_mut().zip(is_named).filter(|(_, named)| !named).for_each(|(entry, _)| *entry = f64::NAN);
    }
    let stores = config.user_functions().stores();
    let scalings = if stores { &SCALINGS[..1] } else { SCALINGS };
    for (&(alpha, beta), expected) in scalings.iter().zip(&expected) {
        let Scaling { alpha: known_alpha, beta: known_beta } = config.scaling();
        let is_other =
            |known: Coefficient, given: f32| known.known().is_some_and(|it| it != f64::from(given));
        if is_other(known_alpha, alpha) || is_other(known_beta, beta) {
            continue;
        }
        let entries = x.iter().map(|&entry| V::from_f64(if alpha == 0.0 { f64::NAN } else { entry }));
        let x = Vector::from_slice(device, &entries.collect::<Vec<_>>()).map_err(told)?;
        let old = y.iter().map(|&entry| V::from_f64(if beta == 0.0 { f64::NAN } else { entry }));
        let mut result = Vector::from_slice(device, &old.collect::<Vec<_>>()).map_err(told)?;
        // The second product of a plan finds what the first left behind.
        for _ in 0..2 {
            let old = y.iter().map(|&entry| V::from_f64(if beta == 0.0 { f64::NAN } else { entry }));
            result.copy_from_slice(&old.collect::<Vec<_>>()).map_err(told)?;
            plan.apply(alpha, &x, beta, &mut result).map_err(told)?;
            let result = result.to_vec().map_err(told)?;
            let differs = |(got, wanted): (&V, &f64)| *got != V::from_f64(*wanted);
            if let Some(row) = result.iter().zip(expected).position(differs) {
                return Err(format!(
                    "row {row} is {} and must be {}, alpha={alpha} beta={beta}",
                    result[row], expected[row]
                ));
            }
            typed::check_dot(
                &plan,
                &[],
                &expected.iter().map(|&row| f64::from(row as f32)).collect::<Vec<_>>(),
            )?;
        }
    }
    Ok(())
}
