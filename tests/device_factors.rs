//! α and β that lie in device memory: the same bits as where they are passed by value, and nothing that the host knows.

mod structures;
mod typed;

use spmv_codegen::{Algorithm, Coefficient, KernelConfig, Semiring, ValueKind, ValueType};
use spmv_matrix::{Complex64, CooMatrix, CsrMatrix};
use spmv_runtime::{Device, Error, ErrorKind, Scalar, Spmv, Vector, spmv_kernel};
use structures::{Numbers, Structure};
use typed::AnyVector;

/// Rows that one thread, a group, a block and several blocks compute, and empty ones.
const STRUCTURES: [&str; 4] = ["one_row", "long_and_short_stretches", "alternating_empty", "no_nonzeros"];

/// What a kernel is to find in memory, one after the other.
const FACTORS: [[f64; 2]; 5] = [[2.5, -2.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0], [1.0, 1.0]];

fn bits(y: &AnyVector) -> Vec<u64> {
    y.to_vec().unwrap().into_iter().map(f64::to_bits).collect()
}

/// Every number that must not be read is NaN: x where α is 0, y where β is.
fn compare(device: &Device, config: KernelConfig, [alpha, beta]: [Coefficient; 2], structure: &Structure) {
    let types = config.types();
    let parts = if types.value.kind() == ValueKind::Complex { 2 } else { 1 };
    let a = structures::with_values(&structure.matrix(Numbers::Random), |place| {
        Complex64::new(place as f64 % 7.0 - 3.0, (place % 5) as f64)
    });
    let on_device = config.to_builder().alpha(alpha).beta(beta).build().unwrap();
    let [mut by_value, mut by_address] =
        [config, on_device].map(|config| typed::complex_plan(device, &a, config).unwrap().0);
    let (x_length, y_length) = by_value.vector_lengths();
    let numbers = |length: usize, seed, is_read: bool| match is_read {
        true => Numbers::Random.vector(length * parts, seed),
        false => vec![f64::NAN; length * parts],
    };
    for [alpha, beta] in FACTORS {
        let factor = |re: f64| match (types.accumulator.kind(), re) {
            (ValueKind::Complex, 2.5) => Scalar::from(Complex64::new(re, 0.5)),
            _ => Scalar::from(re),
        };
        let x = AnyVector::new(device, types.x, &numbers(x_length, 3, alpha != 0.0)).unwrap();
        let old = numbers(y_length, 5, beta != 0.0);
        let products = [&mut by_value, &mut by_address].map(|plan| {
            let mut y = AnyVector::new(device, types.y, &old).unwrap();
            typed::apply(plan, factor(alpha), &x, factor(beta), &mut y).unwrap();
            bits(&y)
        });
        let case = format!("{on_device} on {}: alpha = {alpha}, beta = {beta}", structure.name);
        assert!(products[0].iter().all(|bits| !f64::from_bits(*bits).is_nan()), "NaN, {case}");
        let differs = products[0].iter().zip(&products[1]).position(|(value, address)| value != address);
        assert_eq!(differs, None, "{case}");
    }
}

fn every_algorithm(value: ValueType) {
    let device = Device::simulator();
    let structures = structures::all();
    for spec in Algorithm::ALL {
        let builder = KernelConfig::builder((spec.default)()).value(value);
        let config = match builder.clone().build() {
            // What is made for real numbers only.
            Err(error) if error.key() == "value" => continue,
            // Blocks of the usual size have too little shared memory for wide types.
            Err(_) => builder.threads_per_block(128).build().unwrap(),
            Ok(config) => config,
        };
        for name in STRUCTURES {
            let structure = structures.iter().find(|structure| structure.name == name).unwrap();
            compare(&device, config, [Coefficient::OnDevice; 2], structure);
        }
    }
}

#[test]
fn every_algorithm_in_f32() {
    every_algorithm(ValueType::F32);
}

#[test]
fn every_algorithm_in_f64() {
    every_algorithm(ValueType::F64);
}

#[test]
fn every_algorithm_in_c64() {
    every_algorithm(ValueType::C64);
}

#[test]
fn one_of_them_may_be_a_number() {
    let device = Device::simulator();
    let structures = structures::all();
    let structure = structures.iter().find(|structure| structure.name == "alternating_empty").unwrap();
    for name in ["csr_vector", "hola", "csc", "planned_t"] {
        let config = KernelConfig::named(name).unwrap().build().unwrap();
        compare(&device, config, [Coefficient::OnDevice, Coefficient::Any], structure);
        compare(&device, config, [Coefficient::Any, Coefficient::OnDevice], structure);
    }
}

/// Whole numbers are read as such, and so are the truth values of β over a semiring.
#[test]
fn other_types_are_read_as_they_are() {
    let device = Device::simulator();
    let a = CooMatrix::new(2, 2, vec![0, 0, 1], vec![0, 1, 1], vec![2i32, 3, 5])
        .unwrap()
        .to_csr::<u32>()
        .unwrap();
    let on_device = |settings: &[(&str, &str)]| {
        KernelConfig::from_settings("csr_vector", settings.iter().copied()).unwrap()
    };
    let whole = on_device(&[("value", "i32"), ("alpha", "device"), ("beta", "device")]);
    let mut plan = Spmv::with(&device, &a, whole).unwrap();
    let number = |number: i32| Vector::from_slice(&device, &[number]).unwrap();
    let x = Vector::from_slice(&device, &[1i32, 10]).unwrap();
    let mut y = Vector::from_slice(&device, &[7i32, 8]).unwrap();
    plan.apply(&number(-3), &x, &number(2), &mut y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [-82, -134]);
    let least = on_device(&[("value", "i32"), ("semiring", "min_plus"), ("beta", "device")]);
    let mut plan = Spmv::with(&device, &a, least).unwrap();
    plan.apply(1, &x, &number(1), &mut y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [-82, -134]);
    plan.apply(1, &x, &number(0), &mut y).unwrap();
    assert_eq!(y.to_vec().unwrap(), [3, 15]);
}

#[spmv_kernel(algorithm = csr_vector, value = f64, alpha = device, beta = device)]
struct Declared;

/// A dot product becomes α, and another one β, without the host.
#[test]
fn dot_products_become_factors() {
    let device = Device::simulator();
    let rows: Vec<u32> = (0..900).collect();
    let a = CooMatrix::new(900, 900, rows.clone(), rows, vec![0.5f64; 900]).unwrap().to_csr::<u32>().unwrap();
    let entries = |seed| structures::random(900, seed);
    let vector = |entries: &[f64]| Vector::from_slice(&device, entries).unwrap();
    let (x, r) = (vector(&entries(1)), vector(&entries(2)));
    let (mut alpha, mut beta) = (vector(&[f64::NAN]), vector(&[f64::NAN]));
    let mut plan = Declared::plan(&device, &a).unwrap();
    let mut by_value = Spmv::with(
        &device,
        &a,
        KernelConfig::named("csr_vector").unwrap().value(ValueType::F64).build().unwrap(),
    )
    .unwrap();
    let (mut y, mut expected) = (vector(&entries(3)), vector(&entries(3)));
    for _ in 0..3 {
        x.dot_into(&y, &mut alpha).unwrap();
        y.dot_into(&r, &mut beta).unwrap();
        by_value.apply(x.dot(&expected).unwrap(), &x, expected.dot(&r).unwrap(), &mut expected).unwrap();
        plan.apply(&alpha, &x, &beta, &mut y).unwrap();
        assert_eq!(y.to_vec().unwrap(), expected.to_vec().unwrap());
    }
    let error = x.dot_into(&r, &mut vector(&[0.0; 2])).unwrap_err();
    assert_eq!(error.to_string(), "the result has 2 entries and must have 1");
    let elsewhere = Device::simulator();
    let error = x.dot_into(&r, &mut Vector::from_slice(&elsewhere, &[0.0]).unwrap()).unwrap_err();
    assert!(matches!(error, Error::OtherDevice { what: "the result", .. }), "{error}");
}

/// A product of a plan with x, y, and one on the plan's device and on another.
type Product = fn(&mut Spmv, &Vector<f32>, &mut Vector<f32>, &[&Vector<f32>; 2]) -> Result<(), Error>;

/// Where the configuration and the call say different things, nothing is launched.
#[test]
fn what_does_not_fit_is_refused() {
    let device = Device::simulator();
    let a: CsrMatrix<f32> =
        CooMatrix::new(1, 1, vec![0], vec![0], vec![2.0f32]).unwrap().to_csr::<u32>().unwrap();
    let plan = |alpha: &str, beta: &str| {
        let config = KernelConfig::from_settings("csr_vector", [("alpha", alpha), ("beta", beta)]).unwrap();
        Spmv::with(&device, &a, config).unwrap()
    };
    let (x, mut y) =
        (Vector::from_slice(&device, &[3.0f32]).unwrap(), Vector::<f32>::zeros(&device, 1).unwrap());
    let one = Vector::from_slice(&device, &[1.0f32]).unwrap();
    let elsewhere = Vector::from_slice(&Device::simulator(), &[1.0f32]).unwrap();
    let mut refused = |result: Product, plan: &mut Spmv, message: &str| {
        let error = result(plan, &x, &mut y, &[&one, &elsewhere]).unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert_eq!(y.to_vec().unwrap(), [0.0]);
    };
    refused(
        |plan, x, y, _| plan.apply(2.0, x, 0.0, y),
        &mut plan("device", "0"),
        "the kernel reads alpha from device memory and the product was given 2; pass a reference to a vector of one f32, or \
         set `alpha = any` in the configuration",
    );
    refused(
        |plan, x, y, [one, _]| plan.apply(1.0, x, *one, y),
        &mut plan("1", "any"),
        "the kernel was generated for beta = any and the product was given a vector; pass a number, or set `beta = device` in \
         the configuration",
    );
    refused(
        |plan, x, y, [one, _]| plan.apply(*one, x, 0.5, y),
        &mut plan("device", "0"),
        "the kernel was generated for beta = 0 and the product asks for 0.5; set `beta = any` in the configuration",
    );
    refused(
        |plan, x, y, [_, elsewhere]| plan.apply(*elsewhere, x, 0.0, y),
        &mut plan("device", "0"),
        "alpha lives on another device than the plan; upload it to that one, or share clones of one `Device`",
    );
    refused(
        |plan, x, y, [one, _]| plan.apply(&Vector::from_slice(one.device(), &[1.0f32; 2])?, x, 0.0, y),
        &mut plan("device", "0"),
        "alpha has 2 entries and must have 1",
    );
    refused(
        |plan, x, y, [one, _]| plan.apply(&Vector::from_slice(one.device(), &[1.0f64])?, x, 0.0, y),
        &mut plan("device", "0"),
        "the vector of alpha holds f64 and must hold f32, which sums are in",
    );
    let scaled =
        KernelConfig::named("csr_vector").unwrap().semiring(Semiring::MinPlus).alpha(Coefficient::OnDevice);
    let error = scaled.build().unwrap_err();
    assert!(error.key() == "alpha" && error.to_string().ends_with("allowed: 1"), "{error}");
    let settings = [("epilogue", "|row, sum, y| sum"), ("beta", "device")];
    let error = KernelConfig::from_settings("csr_vector", settings).unwrap_err();
    assert!(error.key() == "beta" && error.to_string().ends_with("allowed: 0"), "{error}");
}

/// Only a kernel that reads them says so.
#[test]
fn no_trace_where_they_are_not_read() {
    let source = |settings: &[(&str, &str)]| {
        KernelConfig::from_settings("csr_vector", settings.iter().copied()).unwrap().program().source
    };
    assert!(!source(&[]).contains("OnDevice"));
    let alpha = source(&[("alpha", "device")]);
    assert!(alpha.contains("using AlphaT = OnDevice<AccumT>;\nusing BetaT = AccumT;\n"));
}
