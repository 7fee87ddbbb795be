use proc_macro2::TokenStream;
use quote::quote;
use spmv_codegen::{Algorithm, COMMON_KEYS, KernelConfig, ValueType};

use mutation::{Outcome, Target, mutate_text};

use crate::{check, kernel, parse};

#[path = "../../tests/fuzz/mutation.rs"]
#[allow(dead_code, reason = "other inputs are edited byte by byte")]
mod mutation;

fn checked(arguments: &str) -> (KernelConfig, Vec<String>) {
    let (settings, mut errors) = parse::settings(arguments.parse().unwrap());
    let (checked, refused) = check::check(&settings);
    errors.extend(refused);
    (checked.config, errors.iter().map(ToString::to_string).collect())
}

/// Every key that an algorithm has, with what is allowed for it.
fn keys(algorithm: &str) -> Vec<(&'static str, Vec<String>)> {
    let spec = spmv_codegen::AlgorithmSpec::find(algorithm).unwrap();
    let numbers = |allowed: &[u32]| allowed.iter().map(u32::to_string).collect();
    let parameters = spec.parameters.iter().map(|parameter| (parameter.name, numbers(parameter.allowed)));
    parameters.chain(COMMON_KEYS.iter().map(|common| (common.name, (common.allowed)()))).collect()
}

fn expanded(arguments: TokenStream, item: TokenStream) -> String {
    let file = syn::parse2(kernel(arguments, item)).unwrap();
    let lines = prettyplease::unparse(&file);
    let elided =
        lines.lines().map(|line| match line.split_once("SOURCE: &'static ::core::primitive::str = \"") {
            Some((before, source)) => {
                assert!(source.ends_with("\";"), "the text is one literal");
                format!("{before}SOURCE: &'static ::core::primitive::str = \"…\";\n")
            }
            None => format!("{line}\n"),
        });
    elided.collect()
}

#[test]
fn expansion() {
    insta::assert_snapshot!(expanded(
        quote!(algorithm = csr_vector, value = f32, accumulator = f64, beta = 0),
        quote! {
            /// Eight lanes a row.
            #[derive(Clone)]
            #[cfg(unix)]
            pub(crate) struct Wide;
        },
    ));
}

#[test]
fn expansion_with_errors() {
    insta::assert_snapshot!(expanded(
        quote!(algorithm = csr_vector, threads_per_vector = 3, value = f64, crate = gpu::spmv),
        quote!(
            struct Wide<T>(T);
        ),
    ));
}

#[test]
fn only_what_may_be_deprecated_allows_that() {
    for (attribute, allows) in [
        (quote!(#[deprecated]), true),
        (quote!(#[deprecated(note = "for good")]), true),
        (quote!(#[cfg_attr(unix, deprecated)]), true),
        (quote!(#[cfg_attr(unix, derive(Clone))]), false),
        (quote!(#[doc = "deprecated"]), false),
    ] {
        let expanded = expanded(quote!(algorithm = csr_vector), quote!(#attribute struct Wide;));
        assert_eq!(expanded.contains("allow(deprecated)"), allows, "{attribute}");
    }
}

#[test]
fn every_allowed_value_is_what_the_builder_makes_of_it() {
    for spec in Algorithm::ALL {
        for (key, allowed) in keys(spec.name) {
            for value in allowed {
                let mut builder = KernelConfig::named(spec.name).unwrap();
                builder.set(key, &value).unwrap();
                // Some values exclude what is the default of another key; what is said then is the builder's.
                let problems: Vec<_> = builder.problems().iter().map(ToString::to_string).collect();
                let (config, errors) = checked(&format!("algorithm = {}, {key} = {value}", spec.name));
                assert_eq!(errors, problems);
                if let Ok(built) = builder.build() {
                    assert_eq!(config, built);
                }
            }
        }
    }
}

#[test]
fn whatever_is_not_allowed_is_one_error_that_lists_what_is() {
    for spec in Algorithm::ALL {
        for (key, allowed) in keys(spec.name) {
            for value in [
                "77",
                "-7",
                "7.5",
                "seven",
                "\"seven\"",
                "'7'",
                "true",
                "77 + 77",
                "{ 77 }",
                "r#any",
                "77u8",
                "",
                "=",
            ] {
                let (_, errors) = checked(&format!("algorithm = {}, {key} = {value}", spec.name));
                let [error] = &errors[..] else { panic!("{key} = {value}: {errors:?}") };
                assert!(error.contains(&format!("`{key}`")), "{error}");
                assert!(error.ends_with(&format!("allowed: {}", allowed.join(", "))), "{error}");
            }
        }
    }
}

#[test]
fn everything_wrong_is_said_at_once_and_nothing_that_follows_from_it() {
    let (_, errors) =
        checked("algorithm = csr_scalar, min_blocks = 16, threads_per_blok = 64, value = half, 8");
    let starts = [
        "expected `name = value`, found `8`",
        "csr_scalar has no setting `threads_per_blok`",
        "`value` cannot be `half`",
    ];
    assert_eq!(errors.len(), starts.len(), "{errors:?}");
    for (error, start) in errors.iter().zip(starts) {
        assert!(error.starts_with(start), "{error}");
    }
}

#[test]
fn a_misspelt_value_still_counts_in_combinations() {
    let (config, errors) = checked("algorithm = csr_scalar, min_blocks = 16, threads_per_block = 64u32");
    assert_eq!(errors, ["write `threads_per_block = 64`: integers are written without a suffix"]);
    assert_eq!(config.threads_per_block(), 64);
    let (_, errors) = checked("algorithm = csr_scalar, min_blocks = 16, threads_per_block = 512u32");
    assert_eq!(errors.len(), 2, "{errors:?}");
}

/// What uses the kernel has its types, and is not wrong because something else of it is.
#[test]
fn what_is_not_allowed_leaves_the_types_as_they_are() {
    for (arguments, types) in [
        ("algorithm = csr_vector, value = f64, epilogue = |row, sum, y| sum.sqr()", [ValueType::F64; 3]),
        ("value = f64, algorithm = csr_vectr", [ValueType::F64; 3]),
        (
            "algorithm = csr_vector, x = c32, threads_per_block = 3",
            [ValueType::F32, ValueType::C32, ValueType::C32],
        ),
        ("algorithm = csr_vector, value = f64, y = i32", [ValueType::F64; 3]),
    ] {
        let (config, errors) = checked(arguments);
        assert!(!errors.is_empty(), "{arguments}");
        let found = config.types();
        assert_eq!([found.value, found.x, found.y], types, "{arguments}");
    }
}

#[test]
fn functions_are_read_as_they_are_at_run_time() {
    let arguments = "algorithm = csr_vector, combine = |a, x| if a <= x && !(a == 1.0) { a } else { -x }, value = f64, \
                     epilogue = |row, sum, y, d, c| { let e = d.max(1e-3); c * sum / e + row as f64 }, vectors = [d], \
                     scalars = [c], beta = 0";
    let (config, errors) = checked(arguments);
    assert_eq!(errors, Vec::<String>::new());
    let settings = [
        ("combine", "|a, x| if a <= x && !(a == 1.0) { a } else { -x }"),
        ("value", "f64"),
        ("epilogue", "|row, sum, y, d, c| { let e = d.max(1e-3); c * sum / e + row as f64 }"),
        ("vectors", "d"),
        ("scalars", "c"),
    ];
    assert_eq!(config, KernelConfig::from_settings("csr_vector", settings).unwrap());
}

#[test]
fn literals_are_emitted_with_their_types() {
    let expansion = expanded(
        quote!(
            algorithm = csr_vector,
            value = f64,
            map_value = |a| if 0.5 < a { 1e-3 * (a as f32 + 2.0) as f64 } else { a.max(0.25) },
            map_x = |x, col| x.powi(2) * (col - 3) as f64,
            reduce = |s, t| s.max(t),
            identity = || 0.0
        ),
        quote!(
            struct Wide;
        ),
    );
    for literal in [
        "0.5f64 < a",
        "1e-3f64 *",
        "2.0f32",
        "a.max(0.25f64)",
        "pub fn map_value(a: ::core::primitive::f64)",
        "x.powi(2i32)",
        "(col - 3u32) as f64",
        "(0.0)",
    ] {
        assert!(expansion.contains(literal), "{literal}: {expansion}");
    }
}

#[test]
fn suggestions_are_near() {
    let suggestion = |name: &str| {
        let (_, errors) = checked(&format!("algorithm = {name}"));
        errors[0].split_once("did you mean ").map(|(_, name)| name.to_owned())
    };
    assert_eq!(suggestion("csr_vectro").as_deref(), Some("`csr_vector`?"));
    assert_eq!(suggestion("CSR_Scalar").as_deref(), Some("`csr_scalar`?"));
    assert_eq!(suggestion("lightvector").as_deref(), Some("`light_vector`?"));
    assert_eq!(suggestion("vector"), None);
    assert_eq!(suggestion("x"), None);
}

#[test]
fn any_tokens_are_an_error_and_never_a_panic() {
    let words = [
        "algorithm",
        "=",
        "csr_vector",
        ",",
        "value",
        "f32",
        "crate",
        "-",
        "1",
        "::",
        "\"f32\"",
        "(8)",
        "=>",
        "1.5e3f64",
        "b\"x\"",
        "'a",
        "#",
    ];
    let item = quote!(
        struct Wide;
    );
    for first in words {
        for second in words {
            for third in words {
                let text = format!("{first} {second} {third}");
                let expansion = kernel(text.parse().unwrap(), item.clone()).to_string();
                assert_eq!(expansion.contains("compile_error"), text != "algorithm = csr_vector", "{text}");
            }
        }
    }
    for item in
        ["", ";", "pub", "#[doc]", "struct", "struct Wide", "fn f() {}", "impl X {}", "struct A; struct B;"]
    {
        let expansion = kernel(quote!(algorithm = csr_vector), item.parse().unwrap());
        assert!(expansion.to_string().contains("compile_error"), "{item}");
    }
}

#[test]
fn a_literal_may_end_with_its_point() {
    let expanded = kernel(
        quote!(algorithm = csr_vector, map_value = |a| a + 1.),
        quote!(
            struct S;
        ),
    );
    assert!(expanded.to_string().contains("a + 1.0f32"), "{expanded}");
}

/// The attribute's arguments, and the item in the last line.
const SEEDS: &[&str] = &[
    "algorithm = csr_vector, threads_per_vector = 8, value = f32, accumulator = f64, beta = 0\npub struct Wide;",
    "algorithm = light_vector, alpha = -1, semiring = plus_times, crate = crate::gpu::spmv,\n/// Doc.\n#[derive(Clone)] struct S;",
    "algorithm = csr_vector, epilogue = |row, sum, y, x, b, omega| x + omega * (b - sum), vectors = [x, b], scalars = [omega]\nstruct J;",
    "algorithm = ell, map_value = |a| if a > 0.5 { a.sqrt() } else { -a }, combine = |a, x| a.min(x)\nstruct M;",
    "algorithm = hola, reduce = |s, t| s.max(t), identity = 0.0\nstruct R;",
];

#[test]
fn fuzz_macro() {
    let words: Vec<String> = Algorithm::ALL
        .iter()
        .flat_map(|spec| keys(spec.name))
        .flat_map(|(key, allowed)| allowed.into_iter().map(move |value| format!(", {key} = {value}")))
        .chain(
            [
                "{",
                "}",
                "(",
                ")",
                "[",
                "]",
                "|",
                "||",
                "=",
                ",",
                "crate",
                "r#type",
                "'a",
                "\"s\"",
                "b'x'",
                "1u8",
                "-1",
                "struct S<T>(T);",
                "enum E {}",
                "\n",
            ]
            .map(str::to_owned),
        )
        .collect();
    let mut number = 0u64;
    Target {
        name: "macro",
        seeds: SEEDS.iter().map(|text| text.as_bytes().to_vec()).collect(),
        mutate: &|text, random| mutate_text(text, &words, random),
        run: &mut |text| {
            let text = String::from_utf8_lossy(text);
            let (arguments, item) = text.split_once('\n').unwrap_or((&text, "struct S;"));
            // What is no tokens never comes to a macro.
            let (Ok(arguments), Ok(item)) = (arguments.parse::<TokenStream>(), item.parse::<TokenStream>())
            else {
                return Outcome::Refused("no tokens".into());
            };
            let (settings, mut errors) = parse::settings(arguments.clone());
            errors.extend(check::check(&settings).1);
            let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
            number += 1;
            // The whole text of a kernel is slow to make tokens of.
            if number.is_multiple_of(64) {
                let expanded = kernel(arguments, item.clone());
                let is_item = syn::parse2::<syn::Item>(item).is_ok();
                assert!(
                    !is_item || syn::parse2::<syn::File>(expanded).is_ok(),
                    "what is expanded is no Rust"
                );
            }
            match told.is_empty() {
                true => Outcome::Taken,
                false => Outcome::Refused(told.join("; ")),
            }
        },
    }
    .fuzz(2_000);
}
