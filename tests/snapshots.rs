//! The generated CUDA, as reviewed text: an algorithm's usual configuration in full, and what each switch
//! changes in it.

mod cover;

use std::fmt::Write;

use spmv_codegen::{
    Algorithm, AlgorithmSpec, AnalysisProgram, COMMON_KEYS, Expr, FingerprintProgram, IndexType,
    KernelConfig, Operation, Program, Semiring, ValueType, Variable, VectorOp, VectorProgram,
};
use spmv_matrix::generate::Generator;
use spmv_runtime::planner::{TERMS, terms, usually_laid_out};

fn default_config(spec: &AlgorithmSpec) -> KernelConfig {
    KernelConfig::builder((spec.default)()).build().unwrap()
}

#[test]
fn usual_configurations() {
    for spec in Algorithm::ALL {
        insta::assert_snapshot!(format!("{}.cu", spec.name), default_config(spec).program().source);
    }
}

/// The copies that algorithms of the plain product compute others from: what makes them, and how.
#[test]
fn copies() {
    for operation in [Operation::Transpose, Operation::SkewSymmetric] {
        let config = KernelConfig::named("csr_scalar").unwrap().operation(operation).build().unwrap();
        let program = config.program();
        insta::assert_snapshot!(format!("csr_scalar_{operation}.cu"), &program.source);
        insta::assert_snapshot!(format!("launches_csr_scalar_{operation}"), launched("csr_scalar", program));
    }
}

#[test]
fn vector_operations() {
    for &entry in ValueType::ALL {
        insta::assert_snapshot!(format!("vector_{entry}.cu"), VectorProgram::new(entry).source);
    }
}

/// What stands in place of sums of products.
#[test]
fn semirings() {
    let mut text = String::new();
    for &semiring in Semiring::ALL {
        for value in [ValueType::F32, ValueType::F64] {
            let config =
                KernelConfig::named("csr_scalar").unwrap().semiring(semiring).value(value).build().unwrap();
            let source = config.program().source;
            let own = parts(&source)
                .into_iter()
                .filter(|(file, _)| !file.contains("types.cuh") && !file.contains(".cu\""));
            writeln!(text, "{config}").unwrap();
            own.for_each(|(file, lines)| writeln!(text, "{file}\n{}", lines.join("\n")).unwrap());
            writeln!(text).unwrap();
        }
    }
    insta::assert_snapshot!("semirings", text);
}

/// What stands for functions that the user writes, and for nothing else.
#[test]
fn functions() {
    let mut text = String::new();
    for spec in Algorithm::ALL.iter().filter(|spec| matches!(spec.name, "csr_scalar" | "dasp")) {
        for config in cover::over_functions(spec) {
            write_functions(&mut text, &config);
        }
    }
    insta::assert_snapshot!("functions", text);
    let settings = [
        ("epilogue", "|row, sum, y, b, c| b - c * sum"),
        ("dot", "|row, residual, d, b| residual * residual / d"),
        ("vectors", "[b, d]"),
        ("scalars", "[c]"),
    ];
    let mut text = String::new();
    write_functions(&mut text, &KernelConfig::from_settings("csr_vector", settings).expect("it is allowed"));
    insta::assert_snapshot!("dot", text);
}

/// What stands for the functions of a configuration.
fn write_functions(text: &mut String, config: &KernelConfig) {
    let source = config.program().source;
    let own = parts(&source).into_iter();
    let own =
        own.filter(|(file, _)| ["functions", "semiring", "epilogue"].iter().any(|part| file.contains(part)));
    writeln!(text, "{config}").unwrap();
    own.for_each(|(file, lines)| writeln!(text, "{file}\n{}", lines.join("\n")).unwrap());
    writeln!(text).unwrap();
}

#[test]
fn analysis() {
    let program = AnalysisProgram::new(IndexType::U32, IndexType::U32);
    insta::assert_snapshot!("analysis_u32.cu", program.source);
    let AnalysisProgram { source: _, structure_bytes, diagonals_bytes, structure, columns_bytes, columns } =
        program;
    insta::assert_snapshot!(
        "launches_analysis",
        format!(
            "{structure_bytes} bytes, {diagonals_bytes} bytes\n{structure:#?}\n{columns_bytes} bytes\n{columns:#?}"
        )
    );
}

#[test]
fn fingerprint() {
    let program = FingerprintProgram::new();
    insta::assert_snapshot!("fingerprint.cu", program.source);
    insta::assert_snapshot!("launches_fingerprint", format!("{:#?}", program.pass));
}

/// How a program is run: passes, arguments, buffers, guarantees.
fn launched(name: &str, program: Program) -> String {
    let Program {
        source: _,
        prepare,
        multiply,
        buffers,
        counts,
        operands,
        dot,
        entries,
        slots,
        misfits,
        storage,
        guarantees,
    } = program;
    assert!(operands.is_empty() && dot.is_none(), "only what the user writes takes any");
    let mut text = String::new();
    writeln!(text, "{name}: {storage}\nprepare {prepare:#?}\nmultiply {multiply:#?}").unwrap();
    writeln!(text, "{buffers:#?}\n{counts:#?}\n{guarantees:#?}").unwrap();
    if let Some(slots) = slots {
        writeln!(text, "slots {} of {} bytes", slots.number, slots.bytes).unwrap();
    }
    if entries != Expr::from(Variable::Nnz) {
        writeln!(text, "entries {entries}").unwrap();
    }
    for misfits in misfits {
        writeln!(text, "refused where {} are not {}", misfits.number, misfits.wanted).unwrap();
    }
    writeln!(text, "depth {}", guarantees.summation_depth).unwrap();
    text
}

#[test]
fn launches() {
    for spec in Algorithm::ALL {
        let text = launched(spec.name, default_config(spec).program());
        insta::assert_snapshot!(format!("launches_{}", spec.name), text);
    }
    let mut text = String::new();
    for &op in VectorOp::ALL {
        writeln!(text, "vector {}: {:#?}\n", op.name(), VectorProgram::new(ValueType::F32).passes(op))
            .unwrap();
    }
    insta::assert_snapshot!("launches_vector", text);
}

/// The files that a source is put together from: the line that names each, and its lines.
fn parts(source: &str) -> Vec<(&str, Vec<&str>)> {
    let mut parts = vec![("", Vec::new())];
    for line in source.lines() {
        match line.starts_with("#line") {
            true => parts.push((line, Vec::new())),
            false => parts.last_mut().expect("there is one from the start").1.push(line),
        }
    }
    // The first line says what the configuration is.
    parts.split_off(1)
}

/// One line a switch: which lines of the text differ from the usual configuration's.
#[test]
fn switches() {
    for spec in Algorithm::ALL {
        let mut text = String::new();
        let usual_source = default_config(spec).program().source;
        let parameters =
            spec.parameters.iter().map(|p| (p.name, p.allowed.iter().map(u32::to_string).collect()));
        let common = COMMON_KEYS.iter().map(|key| (key.name, (key.allowed)()));
        for (key, values) in parameters.chain(common) {
            for value in values {
                let mut builder = KernelConfig::builder((spec.default)());
                builder.set(key, &value).unwrap();
                let Ok(config) = builder.build() else {
                    writeln!(text, "{} {key}={value}: refused on its own", spec.name).unwrap();
                    continue;
                };
                writeln!(text, "{} {key}={value}:", spec.name).unwrap();
                let source = config.program().source;
                let usual = parts(&usual_source);
                for (file, lines) in parts(&source) {
                    let Some((_, usual_lines)) = usual.iter().find(|(usual, _)| *usual == file) else {
                        writeln!(text, "    {file}").unwrap();
                        continue;
                    };
                    // Constants may be added, and nothing else.
                    let are_more = lines.len() > usual_lines.len()
                        && usual_lines.iter().all(|line| lines.contains(line));
                    assert!(are_more || lines.len() == usual_lines.len());
                    for (place, new) in lines.iter().enumerate() {
                        let is_known =
                            if are_more { usual_lines.contains(new) } else { usual_lines[place] == *new };
                        assert!(is_known || !are_more || new.starts_with("constexpr "), "{new}");
                        if !is_known {
                            writeln!(text, "    {new}").unwrap();
                        }
                    }
                }
            }
        }
        insta::assert_snapshot!(format!("switches_{}", spec.name), text);
    }
}

/// What the planner's prices are multiplied with, for every algorithm and matrices of different kinds; an L2 cache smaller
/// than their vectors, so that every term counts somewhere.
#[test]
fn terms_of_products() {
    let classes: [(&str, &[(&str, f64)]); 7] = [
        ("stencil_7", &[("nx", 24.0), ("ny", 24.0), ("nz", 24.0)]),
        ("fem", &[("nx", 10.0), ("ny", 10.0), ("nz", 10.0)]),
        ("gaussian", &[("n", 6000.0)]),
        ("power_law", &[("n", 6000.0)]),
        ("giant_row", &[("n", 20000.0)]),
        ("dense", &[("rows", 700.0), ("cols", 700.0)]),
        ("road", &[("n", 20000.0)]),
    ];
    let mut text = String::new();
    for (class, parameters) in classes {
        let generator = parameters.iter().fold(Generator::new(class).unwrap(), |generator, (name, value)| {
            generator.set(name, *value).unwrap_or_else(|error| panic!("{class}: {error}"))
        });
        let features = spmv_matrix::features(&generator.seed(1).generate::<f64, u32>().unwrap());
        writeln!(text, "{class}").unwrap();
        for spec in Algorithm::ALL {
            let builder = KernelConfig::builder((spec.default)()).value(ValueType::F64);
            let Ok(config) = builder.build() else { continue };
            let amounts = terms(&usually_laid_out(config, &features, 1 << 17).unwrap(), &features, 1 << 17);
            let line = amounts.map_or(" refused".to_owned(), |amounts| {
                let named = TERMS.iter().zip(amounts).filter(|(_, amount)| *amount != 0.0);
                named.map(|((name, _), amount)| format!(" {name} {amount:.4e}")).collect()
            });
            writeln!(text, "  {}:{line}", spec.name).unwrap();
        }
    }
    insta::assert_snapshot!("terms", text);
}
