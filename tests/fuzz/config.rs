//! Edits of configurations as they are set by name, and of the functions in them. What is taken gives a program, and comes
//! back from its own settings.

use spmv_codegen::function::Function;
use spmv_codegen::{Algorithm, COMMON_KEYS, FUNCTION_KEYS, KernelConfig};

use super::mutation::Outcome;

/// A line `key=function` each.
pub const FUNCTIONS: &[&str] = &[
    "combine=|a, x| a.min(x) - a * x",
    "map_value=|a| if a > 0.5 { a.sqrt() } else { -a.abs() * 2.5e-3 }",
    "map_x=|x, col| { let weight = (col % 7) as f32; x / (weight + 1.0) }",
    "map_x=|x, col| if col >> 3 & 1 == 0 && !(x < 0.0) { x.powi(3) } else { x.mul_add(2.0, f32::EPSILON) }",
    "epilogue=|row, sum, y| (sum + y).max(0.0) + if row == 0 { 1.0 } else { 0.0 }",
    "identity=0.0",
    "vectors=[b, d]",
];

/// What a function may say and the seeds do not, and what none may.
const FUNCTION_WORDS: [&str; 62] = [
    "|",
    "||",
    "&&",
    "==",
    "!=",
    "<=",
    ">=",
    "<",
    ">",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<<",
    ">>",
    "&",
    "^",
    "!",
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ";",
    "=",
    "as f64",
    "as f32",
    "as u32",
    "as i64",
    "as bool",
    "if",
    "else",
    "let",
    "mut",
    "true",
    "false",
    "0",
    "1",
    "0u32",
    "1.0",
    "2.5f64",
    "1e39",
    "1e400",
    "4294967296",
    "18446744073709551616",
    "0x1f",
    "f32::MAX",
    "f64::INFINITY",
    "f32::NAN",
    "f32",
    "a",
    "x",
    "col",
    "row",
    "sum",
    "y",
    "s",
    "t",
    "\u{e9}",
];

pub fn function_words() -> Vec<String> {
    let methods = spmv_codegen::function::METHODS.iter().map(|method| format!(".{}(", method.name));
    let keys = FUNCTION_KEYS.iter().map(|key| format!("{}=", key.name));
    FUNCTION_WORDS.iter().map(|word| word.to_string()).chain(methods).chain(keys).collect()
}

/// Names, keys and values of every setting.
pub fn words() -> Vec<String> {
    let mut words: Vec<String> = FUNCTIONS.iter().map(|text| text.to_string()).collect();
    for spec in Algorithm::ALL {
        words.push(spec.name.to_owned());
        for parameter in spec.parameters {
            words.extend(parameter.allowed.iter().map(|value| format!("{}={value}\n", parameter.name)));
        }
    }
    for key in COMMON_KEYS {
        for value in (key.allowed)() {
            words.push(format!("{}={value}\n", key.name));
            words.push(value);
        }
    }
    words.extend(["=", "-1", "4294967296", "16.0", "\t", "any", "auto", "1e300", "nan"].map(str::to_owned));
    words.sort();
    words.dedup();
    words
}

/// The algorithm's name in a line, a line for each setting.
pub fn seeds() -> Vec<Vec<u8>> {
    let text = |config: &KernelConfig| {
        let settings = config.settings().into_iter().map(|(key, value)| format!("{key}={value}\n"));
        format!("{}\n{}", config.algorithm().name(), settings.collect::<String>()).into_bytes()
    };
    let named = |name| KernelConfig::named(name).expect("an algorithm").build().expect("its defaults");
    Algorithm::ALL.iter().map(|spec| text(&named(spec.name))).collect()
}

pub fn build(text: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(text);
    let (algorithm, settings) = text.split_once('\n').unwrap_or((&text, ""));
    let settings = settings.lines().map(|line| line.split_once('=').unwrap_or((line, "")));
    match KernelConfig::from_settings(algorithm, settings) {
        Ok(config) => {
            check(config);
            Outcome::Taken
        }
        Err(error) => Outcome::Refused(error.to_string()),
    }
}

pub fn function(text: &[u8]) -> Outcome {
    let text = String::from_utf8_lossy(text);
    let (key, function) = text.split_once('=').unwrap_or(("map_value", &text));
    match Function::parse(function) {
        Ok(read) => {
            let printed = read.to_string();
            let again = Function::parse(&printed).expect("what is printed is read");
            assert_eq!(again.to_string(), printed);
        }
        Err(error) => {
            assert!(function.get(error.at.clone()).is_some(), "{error:?} is at no part of {function:?}")
        }
    }
    let mut settings = vec![(key, function)];
    match key {
        "identity" => settings.push(("reduce", "|s, t| s.max(t)")),
        "reduce" => settings.push(("identity", "0.0")),
        "vectors" | "scalars" => settings.push(("epilogue", "|row, sum, y, b, d| sum + b * d")),
        _ => {}
    }
    match KernelConfig::from_settings("csr_vector", settings) {
        Ok(config) => {
            check(config);
            Outcome::Taken
        }
        Err(error) => Outcome::Refused(error.to_string()),
    }
}

/// A program comes of it, its settings give it again, and its functions have values.
fn check(config: KernelConfig) {
    let program = config.program();
    assert!(!program.multiply.is_empty() && program.source.starts_with("// "));
    let settings = config.settings();
    let settings = settings.iter().map(|(key, value)| (*key, value.as_str()));
    let again = KernelConfig::from_settings(config.algorithm().name(), settings);
    assert_eq!(again.as_ref(), Ok(&config));
    if config.user_functions().is_empty() {
        return;
    }
    let operators = config.operators();
    let user = config.user_functions();
    let operands = vec![0.5f32; user.vectors.len() + user.scalars.len()];
    for number in [0.0f32, -0.0, 1.5, -3e38, f32::INFINITY, f32::NAN] {
        for index in [0, 1, 31, u32::MAX] {
            operators.store(index, operators.combine(number, number, index), number, &operands);
        }
        operators.reduce(number, operators.identity());
    }
}
