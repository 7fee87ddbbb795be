//! What the attribute leaves in the user's crate.

use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use spmv_codegen::{COMMON_KEYS, Coefficient, FUNCTION_KEYS, KernelConfig, ValueType};
use syn::{Attribute, DeriveInput, parse_quote};

use crate::check::{Checked, Written};

/// The struct as the user wrote it, with the kernel in its documentation, and its two `impl`s.
pub(crate) fn expand(
    mut declaration: DeriveInput,
    Checked { config, runtime, functions }: &Checked,
) -> TokenStream {
    let documentation =
        documentation(config, declaration.attrs.iter().any(|attribute| attribute.path().is_ident("doc")));
    declaration.attrs.push(parse_quote!(#[doc = #documentation]));
    let name = &declaration.ident;
    let cfgs: Vec<&Attribute> =
        declaration.attrs.iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
    // Only where it is needed: a crate may forbid it.
    let allowed = declaration.attrs.iter().any(may_deprecate).then(|| quote!(#[allow(deprecated)]));
    let (impl_generics, type_generics, where_clause) = declaration.generics.split_for_impl();

    let source = config.program().source;
    let algorithm = config.algorithm().name();
    // All of them: a run-time library whose defaults differ still makes this configuration, so `expect` is never met.
    let settings = config.settings().into_iter().map(|(key, value)| quote!((#key, #value)));
    let types = config.types();
    let [value, x, y, accumulator] =
        [types.value, types.x, types.y, types.accumulator].map(|value| rust_type(value, runtime));
    let functions = functions.iter().map(|written| function(written, &accumulator));
    let scaling = config.scaling();
    let [alpha, beta] = [scaling.alpha, scaling.beta].map(|coefficient| match coefficient {
        Coefficient::OnDevice => quote!(&'a #runtime::Vector<#accumulator>),
        _ => accumulator.clone(),
    });

    quote! {
        #declaration

        #(#cfgs)*
        #allowed
        impl #impl_generics #name #type_generics #where_clause {
            /// The generated CUDA text.
            pub const SOURCE: &'static ::core::primitive::str = #source;

            /// The configuration that [`Self::SOURCE`] was generated from.
            pub fn config() -> #runtime::KernelConfig {
                #runtime::KernelConfig::from_settings(#algorithm, [#(#settings),*])
                    .expect("settings of a configuration that `spmv_kernel` has checked")
            }

            /// Compiles the kernel, or takes it from the cache, and plans products with `a` on `device`.
            ///
            /// # Errors
            /// Where the matrix is not valid or does not fit, or where compiling or the driver fails.
            pub fn plan(
                device: &#runtime::Device,
                a: &impl #runtime::MatrixSource,
            ) -> ::core::result::Result<#runtime::Plan<Self>, #runtime::Error> {
                #runtime::Plan::new(device, a)
            }

            #(#functions)*
        }

        #(#cfgs)*
        #allowed
        impl #impl_generics #runtime::DeclaredKernel for #name #type_generics #where_clause {
            type Value = #value;
            type X = #x;
            type Y = #y;
            type Accumulator = #accumulator;
            type Alpha<'a> = #alpha;
            type Beta<'a> = #beta;

            const SOURCE: &'static ::core::primitive::str = Self::SOURCE;

            fn config() -> #runtime::KernelConfig {
                Self::config()
            }
        }
    }
}

/// Whether what has this attribute is deprecated, or may be: a `cfg_attr` says so only under its condition.
fn may_deprecate(attribute: &Attribute) -> bool {
    let path = attribute.path();
    path.is_ident("deprecated")
        || path.is_ident("cfg_attr") && attribute.to_token_stream().to_string().contains("deprecated")
}

/// A function that the user writes, as one of Rust's.
fn function(Written { key, function, parameters, body }: &Written, number: &TokenStream) -> TokenStream {
    let name = format_ident!("{}", key.name);
    let doc = format!("`{}`, on the CPU. {}", function, key.doc);
    let parameters =
        parameters.iter().enumerate().map(|(place, parameter)| match key.parameters.get(place) {
            Some(&("row" | "col")) => quote!(#parameter: ::core::primitive::u32),
            _ => quote!(#parameter: #number),
        });
    generated(quote! {
        #[doc = #doc]
        #[allow(clippy::all)]
        pub fn #name(#(#parameters),*) -> #number {
            (#body)
        }
    })
}

/// Tokens that the compiler's lints take for the attribute's own, which they leave alone, wherever they stand: what is unused in a
/// kernel may be so, and a crate may forbid to allow it. Clippy looks into them all the same.
fn generated(tokens: TokenStream) -> TokenStream {
    let token = |mut token: TokenTree| {
        let span = token.span().resolved_at(Span::call_site());
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), generated(group.stream())).into();
        }
        token.set_span(span);
        token
    };
    tokens.into_iter().map(token).collect()
}

/// Every value type has the name of the Rust type that holds it.
fn rust_type(value: ValueType, runtime: &impl ToTokens) -> TokenStream {
    let name = format_ident!("{}", value.name());
    match value {
        ValueType::F16 | ValueType::Bf16 => quote!(#runtime::matrix::#name),
        ValueType::C32 => quote!(#runtime::matrix::Complex32),
        ValueType::C64 => quote!(#runtime::matrix::Complex64),
        _ => quote!(::core::primitive::#name),
    }
}

/// The kernel in a sentence and every setting in a table; a section of its own below what the user wrote.
fn documentation(config: &KernelConfig, below: bool) -> String {
    let spec = config.algorithm().spec();
    let meaning = |key: &str| {
        let parameters = spec.parameters.iter().map(|parameter| (parameter.name, parameter.doc));
        let functions = FUNCTION_KEYS.iter().map(|function| (function.name, function.doc));
        let common = COMMON_KEYS.iter().map(|common| (common.name, common.doc));
        let mut all = parameters.chain(common).chain(functions);
        all.find(|(name, _)| *name == key).map_or("", |(_, doc)| doc)
    };
    let heading = if below { "\n# Kernel\n\n" } else { "" };
    let mut text =
        format!("{heading}`{}`: {}\n\n| setting | value | |\n|---|---|---|\n", spec.name, spec.summary());
    for (key, value) in config.settings() {
        // A bar would end the cell.
        text += &format!("| `{key}` | `{}` | {} |\n", value.replace('|', "\\|"), meaning(key));
    }
    text
}
