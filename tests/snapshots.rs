//! The generated CUDA, as reviewed text: an algorithm's usual configuration in full, and what each switch
//! changes in it.

use std::fmt::Write;

use spmv_codegen::{
    Algorithm, AlgorithmSpec, COMMON_KEYS, KernelConfig, Program, ValueType, VectorOp, VectorProgram,
};

fn default_config(spec: &AlgorithmSpec) -> KernelConfig {
    KernelConfig::builder((spec.default)()).build().unwrap()
}

#[test]
fn usual_configurations() {
    for spec in Algorithm::ALL {
        insta::assert_snapshot!(format!("{}.cu", spec.name), default_config(spec).program().source);
    }
}

#[test]
fn vector_operations() {
    for &entry in ValueType::ALL {
        insta::assert_snapshot!(format!("vector_{entry}.cu"), VectorProgram::new(entry).source);
    }
}

/// How programs are run: passes, arguments, buffers, guarantees.
#[test]
fn launches() {
    for spec in Algorithm::ALL {
        let Program { source: _, prepare, multiply, buffers, counts, storage, guarantees } =
            default_config(spec).program();
        let mut text = String::new();
        writeln!(text, "{}: {storage}\nprepare {prepare:#?}\nmultiply {multiply:#?}", spec.name).unwrap();
        writeln!(text, "{buffers:#?}\n{counts:#?}\n{guarantees:#?}").unwrap();
        writeln!(text, "depth {}", guarantees.summation_depth).unwrap();
        insta::assert_snapshot!(format!("launches_{}", spec.name), text);
    }
    let mut text = String::new();
    for &op in VectorOp::ALL {
        writeln!(text, "vector {}: {:#?}\n", op.name(), VectorProgram::new(ValueType::F32).passes(op))
            .unwrap();
    }
    insta::assert_snapshot!("launches_vector", text);
}

/// Which files of types a source begins with, and the lines behind them.
fn parts(source: &str) -> (Vec<&str>, Vec<&str>) {
    let mut lines = source.lines();
    let types = lines.by_ref().take_while(|line| *line != "#line 1 \"generated\"");
    (types.filter(|line| line.starts_with("#line")).collect(), lines.collect())
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
                let ((files, source), (usual_files, usual_source)) = (parts(&source), parts(&usual_source));
                for file in files.iter().filter(|file| !usual_files.contains(file)) {
                    writeln!(text, "    {file}").unwrap();
                }
                assert_eq!(source.len(), usual_source.len());
                for (new, _) in source.iter().zip(&usual_source).filter(|(new, old)| new != old) {
                    writeln!(text, "    {new}").unwrap();
                }
            }
        }
        insta::assert_snapshot!(format!("switches_{}", spec.name), text);
    }
}
