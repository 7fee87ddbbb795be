use super::eval::Value;
use super::*;

fn f32_function(text: &str) -> Typed {
    let function = Function::parse(text).unwrap();
    let parameters = vec![Type::F32; function.parameters().count()];
    function.typed(&parameters, Type::F32, Type::F32).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn f32_value(text: &str, arguments: &[f32]) -> f32 {
    let arguments: Vec<Value> = arguments.iter().map(|argument| (*argument).into()).collect();
    f32::of(f32_function(text).eval(&arguments)).unwrap()
}

/// What is wrong with a function of two singles: the word, and the beginning of the message.
fn refused(text: &str) -> (String, String) {
    let error = Function::parse(text)
        .and_then(|function| function.typed(&[Type::F32, Type::F32], Type::F32, Type::F32))
        .expect_err(text);
    assert!(error.found == "the end" || text[error.at.clone()].starts_with(&error.found), "{error:?}");
    (error.found, error.message)
}

#[test]
fn canonical_text_reads_back_as_the_same() {
    for (text, canonical) in [
        ("|a,x|a*x", "|a, x| a * x"),
        ("| a , x | ( a - x ) . abs ( )", "|a, x| (a - x).abs()"),
        ("|a, x| ((a + (x)))", "|a, x| a + x"),
        ("|a, x| a - (x - a)", "|a, x| a - (x - a)"),
        ("|a, x| (a - x) - a", "|a, x| a - x - a"),
        ("|a, x| -(-a)", "|a, x| --a"),
        ("|a| (-a).abs()", "|a| (-a).abs()"),
        ("|a| -a.abs()", "|a| -a.abs()"),
        ("|a| -a as f64 as f32", "|a| (-a as f64) as f32"),
        ("|a| (a as f64).sqrt() as f32", "|a| (a as f64).sqrt() as f32"),
        ("|s, t| if s < t { s } else { t }", "|s, t| if s < t { s } else { t }"),
        (
            "|s, t| { if s<t {s} else if s == t {t} else {0.5_0f32} }",
            "|s, t| if s < t { s } else if s == t { t } else { 0.50f32 }",
        ),
        (
            "|s| { let h = s*0.5; let h: f32 = h+h; h.powi(-2) }",
            "|s| { let h = s * 0.5; let h: f32 = h + h; h.powi(-2) }",
        ),
        ("|s| 1.0 + if s > 0. { s } else { -s }", "|s| 1.0 + (if s > 0.0 { s } else { -s })"),
        ("|s| s * (2.).sqrt()", "|s| s * 2.0.sqrt()"),
        (
            "|s| if !(s == 1.0) && (s < 2.0 || true) { 1e-3 } else { f32::INFINITY }",
            "|s| if !(s == 1.0) && (s < 2.0 || true) { 1e-3 } else { f32::INFINITY }",
        ),
        ("|row| row % 2", "|row| row % 2"),
        ("f32::NEG_INFINITY", "f32::NEG_INFINITY"),
        ("|| 1.0", "1.0"),
    ] {
        let function = Function::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(function.to_string(), canonical);
        let again = Function::parse(canonical).unwrap_or_else(|error| panic!("{canonical}: {error}"));
        assert_eq!(again, function);
        assert_eq!(again.to_string(), canonical);
    }
}

#[test]
fn functions_compute_what_rust_computes() {
    let numbers = [0.0f32, -0.0, 1.0, -2.5, 3.25, 1e-7, 1e30, f32::INFINITY, f32::NAN];
    type Case = (&'static str, fn(f32, f32) -> f32);
    let cases: &[Case] = &[
        ("|a, x| a * x - a / x + a % x", |a, x| a * x - a / x + a % x),
        ("|a, x| (a - x).abs().sqrt()", |a, x| (a - x).abs().sqrt()),
        ("|a, x| a.mul_add(x, 0.1).max(x).min(2.0)", |a, x| a.mul_add(x, 0.1).max(x).min(2.0)),
        ("|a, x| if a < x && !(a == 1.0) || x >= 3.0 { a } else { -x }", |a, x| {
            if a < x && !(a == 1.0) || x >= 3.0 { a } else { -x }
        }),
        ("|a, x| { let d = a as f64 - x as f64; let d = d * d; d as f32 }", |a, x| {
            let d = a as f64 - x as f64;
            let d = d * d;
            d as f32
        }),
        ("|a, x| (a > x) as u32 as f32 + (a as u32 / 2) as f32", |a, x| {
            (a > x) as u32 as f32 + (a as u32 / 2) as f32
        }),
        ("|a, x| a.floor() + x.ceil() + a.trunc() + x.round() + a.signum() * x.recip()", |a, x| {
            a.floor() + x.ceil() + a.trunc() + x.round() + a.signum() * x.recip()
        }),
        (
            "|a, x| if a.is_nan() || x.is_infinite() || !x.is_finite() { 7.0 } else { a.copysign(x) }",
            |a, x| {
                if a.is_nan() || x.is_infinite() || !x.is_finite() { 7.0 } else { a.copysign(x) }
            },
        ),
        ("|a, x| a.clamp(-1.0, 2.0) + x.powi(3) - x.powi(-2)", |a, x| {
            a.clamp(-1.0, 2.0) + x * (x * x) - 1.0 / (x * x)
        }),
    ];
    for (text, rust) in cases {
        for a in numbers {
            for x in numbers {
                let (found, wanted) = (f32_value(text, &[a, x]), rust(a, x));
                assert!(
                    found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan(),
                    "{text} of {a}, {x}: {found} and not {wanted}"
                );
            }
        }
    }
    let text = "|a| 0.1 * a";
    let typed = Function::parse(text).unwrap().typed(&[Type::F64], Type::F64, Type::F64).unwrap();
    assert_eq!(typed.eval(&[3.0.into()]), Value::F64(0.1 * 3.0));
    assert_eq!(typed.literals(), [(4..7, "f64")]);
    let text = "|a, row| { let b = row + 1 - 2u32; a.powi(-3) * b as f64 }";
    let typed = Function::parse(text).unwrap().typed(&[Type::F64, Type::U32], Type::F64, Type::F64).unwrap();
    let suffixes: Vec<_> = typed.literals().iter().map(|(at, suffix)| (&text[at.clone()], *suffix)).collect();
    assert_eq!(suffixes, [("1", "u32"), ("3", "i32")]);
    // Rust leaves open which zero it is; kernels have an order.
    for (text, bits) in [("|a, x| a.min(x)", (-0.0f32).to_bits()), ("|a, x| a.max(x)", 0)] {
        assert_eq!(
            (f32_value(text, &[0.0, -0.0]).to_bits(), f32_value(text, &[-0.0, 0.0]).to_bits()),
            (bits, bits)
        );
    }
}

#[test]
fn what_is_read_is_read_again() {
    // Parentheses around casts are the canonical text's own.
    let casts = |count: usize| format!("|a| a{}", " + a as f32".repeat(count));
    let longest = (1..100).take_while(|count| Function::parse(&casts(*count)).is_ok()).last().unwrap();
    assert!(longest > 10);
    let error = Function::parse(&casts(longest + 1)).unwrap_err();
    assert!(error.message.contains("a function has at most 250 words"), "{error}");
    let canonical = Function::parse(&casts(longest)).unwrap().to_string();
    assert_eq!(Function::parse(&canonical).unwrap().to_string(), canonical);
}

#[test]
fn cuda_is_readable_and_parenthesised_as_it_must_be() {
    for (text, cuda) in [
        ("|a, x| a * x", "float f(float a, float x) { return a * x; }"),
        ("|a, x| a - (x - 0.1)", "float f(float a, float x) { return a - (x - 0.1f); }"),
        ("|a, x| -(-a) * (a + x)", "float f(float a, float x) { return -(-a) * (a + x); }"),
        ("|a| a.max(0.0)", "float f(float a) { return fmaxf(a, 0.0f); }"),
        (
            "|s, t| if s < t { s } else { t * 2.0 }",
            "float f(float s, float t) { return s < t ? s : t * 2.0f; }",
        ),
        (
            "|s, t| (if s < t { s } else { t }) * 2.0",
            "float f(float s, float t) { return (s < t ? s : t) * 2.0f; }",
        ),
        ("|int, int_| int + int_", "float f(float int_, float int__) { return int_ + int__; }"),
        ("|a| a.powi(-3) % f32::INFINITY", "float f(float a) { return fmodf(powi<-3>(a), (1.0f / 0.0f)); }"),
        ("|a| (a as f64).ln() as f32", "float f(float a) { return float(log(double(a))); }"),
        (
            "|a| { let h = a * 0.5; let h = h * h; h + 1e-7 }",
            "float f(float a) {\n  const float h = a * 0.5f;\n  const float h_ = h * h;\n  return h_ + 1e-7f;\n}",
        ),
    ] {
        assert_eq!(
            f32_function(text).cuda("f", |_| true).0,
            format!("__device__ __forceinline__ {cuda}\n"),
            "{text}"
        );
    }
    let helped = [f32_function("|a| a.clamp(0.0, 1.0).powi(2)"), f32_function("|a| a.powi(3)")];
    let helpers = cuda::helpers(&helped);
    assert_eq!(
        (helpers.matches("T clamp(").count(), helpers.matches("T powi(").count()),
        (1, 1),
        "{helpers}"
    );
}

#[test]
fn what_is_not_in_the_language_is_refused_where_it_stands() {
    for (text, found, message) in [
        ("|a, x| a.gamma()", "gamma", "there is no method `gamma` in a function; allowed: abs, sqrt, "),
        ("|a, x| a & x", "&", "`&` is not allowed in a function; allowed are + - * / %"),
        ("|a, x| a = x", "=", "`=` is not allowed in a function; assignments"),
        ("|a, x| a + y", "y", "there is no `y` here; known are a, x"),
        ("|a, x| a + 1", "1", "this is a whole number, and f32 is needed; write `1.0`"),
        ("|a, x| a < x", "a < x", "this is bool, and the function gives f32"),
        ("|a, x| if a { x } else { a }", "a", "a condition is bool, and this is f32"),
        ("|a, x| if a < x { x }", "if a < x { x }", "an `if` has an `else`"),
        ("|a, x| if a < x { x } else { true }", "true", "both branches have one type"),
        ("|a, x| a < x < a", "<", "comparisons cannot be chained"),
        ("|a, x| a + x as f64", "x as f64", "`+` needs two of one type"),
        ("|a, x| a as i64", "i64", "there is no type `i64`"),
        ("|a, x| (a < x) as f32", "(a < x) as f32", "bool is cast to u32 first"),
        ("|a, x| a as bool", "a as bool", "numbers are compared"),
        ("|a, x| max(a, x)", "max", "functions are called as methods: `a.max(…)`"),
        ("|a, x| f32::max(a, x)", "f32::max", "functions are called as methods"),
        ("|a, x| erf(a)", "erf", "there is no function `erf`"),
        ("|a, x| a.max()", "max", "`max` takes 1 argument, not 0"),
        ("|a, x| a.powi(x)", "x", "`powi` takes a whole number that is written out"),
        ("|a, x| a.powi(5000)", "5000", "`powi` takes a whole number that is written out"),
        ("|a, x| f32::PI", "f32::PI", "there is no such constant"),
        ("|a, a| a", "a", "`a` stands twice"),
        ("|a: f32, x| a", ":", "parameters have the types of the kernel"),
        ("|a, x| { let mut b = a; b }", "mut", "`mut` is not allowed in a function; names are bound once"),
        ("|a, x| { a; x }", ";", "`;` is not allowed in a function; only `let` ends with it"),
        ("|a, x| { let b = a; }", "}", "a block ends with its value"),
        ("|a, x| return a", "return", "`return` is not allowed in a function"),
        ("|a, x| match a { _ => x }", "match", "`match` is not allowed in a function"),
        ("|a, x| println!(\"\")", "\"", "functions are written in ASCII letters"),
        ("|a, x| vec![a]", "vec", "macros are not allowed"),
        ("|a, x| |b| b", "|", "`|` is not allowed in a function; a function holds no other"),
        ("|a, x| &a", "&", "`&` is not allowed in a function; there are no references"),
        ("|a, x| [a, x]", "[", "`[` is not allowed in a function"),
        ("|a, x| (a, x)", ",", "`,` is not allowed in a function; there are no tuples"),
        ("|a, x| a +", "the end", "expected an expression, found nothing"),
        ("|a, x| (a + x", "the end", "expected `)` or an operator, found nothing"),
        ("|a, x| a x", "x", "expected an operator, found `x`"),
        ("|a, x| 1e50", "1e50", "this is greater than every f32"),
        ("|a, x| 0x10 as f32", "0x10", "this is no whole number of 32 bits"),
        ("|a, x| a.0", "the end", "expected an operator, found nothing"),
        ("|a, x| é", "é", "functions are written in ASCII"),
        ("|_, x| x", "_", "every parameter has a name"),
        ("|fn, x| x", "fn", "`fn` is a word of Rust's"),
        ("|a, x| (3 / (a as u32)) as f32", "(a as u32)", "whole numbers are divided by a constant"),
        ("|a, x| -(a as u32) as f32", "(a as u32)", "`-` needs f32 or f64"),
        ("|a, x| (a as u32).sqrt()", "sqrt", "u32 has no method `sqrt`"),
        ("move |a, x| a", "move", "`move` is not allowed"),
        ("|a, x| -> f32 { a }", "->", "`->` is not allowed"),
    ] {
        // A dot and digits are one word or two as Rust has it; what is said of them is no matter.
        if text == "|a, x| a.0" {
            assert!(Function::parse(text).is_err());
            continue;
        }
        let (at, said) = refused(text);
        assert_eq!(at, found, "{text}: {said}");
        assert!(said.starts_with(message), "{text}: {said}");
    }
}

/// A declared kernel's function is one of Rust's too, so no name may be a strict or reserved word of edition 2024.
#[test]
fn words_of_rusts_are_no_names() {
    let strict = "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod \
                  move mut pub ref return self Self static struct super trait true type unsafe use where while";
    let reserved = "abstract become box do final gen macro override priv try typeof unsized virtual yield";
    for word in strict.split_whitespace().chain(reserved.split_whitespace()) {
        for text in [format!("|{word}, x| x"), format!("|a, x| {{ let {word} = a; x }}")] {
            let (found, said) = refused(&text);
            assert_eq!(found, word, "{text}: {said}");
        }
    }
}

#[test]
fn no_text_is_too_much() {
    for text in [
        "(".repeat(100_000),
        "-".repeat(100_000),
        "if true { ".repeat(10_000),
        format!("1.0{}", " + 1.0".repeat(100_000)),
        format!("1.0{}", ".abs()".repeat(100_000)),
        "1.0 as f32 as f64 ".repeat(10_000),
    ] {
        assert!(Function::parse(&text).is_err());
    }
    let longest = format!("1.0{}", " + 1.0".repeat(124));
    assert_eq!(f32_value(&longest, &[]), 125.0);
    let words = ["|", "a", "1.5", "-", ".", "abs", "(", ")", "{ let b =", "; b }", "if", "as f32", "<"];
    for first in words {
        for second in words {
            for third in words {
                for fourth in words {
                    let text = format!("{first} {second} {third} {fourth}");
                    if let Ok(function) = Function::parse(&text) {
                        assert_eq!(Function::parse(&function.to_string()).unwrap(), function, "{text}");
                    }
                }
            }
        }
    }
}

#[test]
fn lists_of_names() {
    assert_eq!(names("[d, b]").unwrap(), ["d", "b"]);
    assert_eq!(names(" d ,b, ").unwrap(), ["d", "b"]);
    assert!(names("[]").unwrap().is_empty());
    for wrong in ["[d", "d]", "d d", "1", "d, d", "[d; 2]"] {
        assert!(names(wrong).is_err(), "{wrong}");
    }
}
