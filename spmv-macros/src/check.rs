//! What the settings mean: a configuration, and every error at the token that causes it.

use proc_macro2::{Group, Ident, Literal, Span, TokenStream, TokenTree};
use quote::ToTokens;
use spmv_codegen::function::Function;
use spmv_codegen::{Algorithm, ConfigError, FUNCTION_KEYS, FunctionKey, KernelConfig, KernelConfigBuilder};
use syn::parse::Parser;
use syn::{Error, Lit, Path, parse_quote};

use crate::parse::{Misspelling, Setting, Value};

/// What a kernel is generated from.
pub(crate) struct Checked {
    pub(crate) config: KernelConfig,
    /// The path of `spmv-runtime` in the user's crate.
    pub(crate) runtime: Path,
    /// The functions that are written, as tokens.
    pub(crate) functions: Vec<Written>,
}

/// A function as it was written.
pub(crate) struct Written {
    pub(crate) key: &'static FunctionKey,
    pub(crate) function: Function,
    /// The names of its parameters where they were written, so that the body means them.
    pub(crate) parameters: Vec<Ident>,
    /// What stands behind its parameters, every literal with its type.
    pub(crate) body: TokenStream,
}

/// Checks every setting. Where there are errors, the configuration is as near to what was meant as is known.
pub(crate) fn check(settings: &[Setting]) -> (Checked, Vec<Error>) {
    let mut check = Check { errors: Vec::new(), understood: true };
    let mut algorithm = None;
    let mut runtime = parse_quote!(::spmv_runtime);
    let mut others = Vec::new();
    for (at, setting) in settings.iter().enumerate() {
        let key = setting.key.to_string();
        if let Some(first) = settings[..at].iter().find(|earlier| earlier.key == key) {
            let first = first.value.text.as_ref().map(|value| format!("; the first is `{key} = {value}`"));
            check.error(&setting.key, format!("`{key}` is set twice{}", first.unwrap_or_default()));
        } else if key == "algorithm" {
            algorithm = Some(setting);
        } else if key == "crate" {
            runtime = check.path(&setting.value).unwrap_or(runtime);
        } else {
            others.push(setting);
        }
    }
    let mut builders = check.builders(algorithm, &mut others);
    for setting in &others {
        check.set(&mut builders, setting);
    }
    // What excludes what can be told only where it is known what every setting means.
    if let (true, Some(algorithm)) = (check.understood, algorithm) {
        for problem in builders[0].problems() {
            let setting = others.iter().find(|setting| setting.key == problem.key()).unwrap_or(&algorithm);
            match problem {
                ConfigError::Function { error, .. } => {
                    check.error(setting.value.at(&error.at), error.message)
                }
                other => check.error(&setting.value.tokens, other.to_string()),
            }
        }
    }
    let functions = match (&builders[..], check.errors.is_empty()) {
        ([builder], true) => others.iter().filter_map(|setting| written(setting, builder)).collect(),
        _ => Vec::new(),
    };
    let config = builders.swap_remove(0).build().unwrap_or_else(|_| with_types_of(&others));
    (Checked { config, runtime, functions }, check.errors)
}

/// A configuration in place of one that is not allowed, with the types of that as far as they are: what uses the kernel is not wrong
/// for it.
fn with_types_of(settings: &[&Setting]) -> KernelConfig {
    let mut builder = KernelConfig::builder((Algorithm::ALL[0].default)());
    for key in ["value", "x", "y", "accumulator", "offset", "index"] {
        let Some(text) =
            settings.iter().find(|setting| setting.key == key).and_then(|s| s.value.text.as_ref())
        else {
            continue;
        };
        let mut with_key = builder.clone();
        if with_key.set(key, text).is_ok() && with_key.clone().build().is_ok() {
            builder = with_key;
        }
    }
    builder.build().expect("it was allowed")
}

/// The function that a setting is, where it is one.
fn written(setting: &Setting, builder: &KernelConfigBuilder) -> Option<Written> {
    let key = FUNCTION_KEYS.iter().find(|key| setting.key == key.name && key.is_function())?;
    let function = Function::parse(setting.value.text.as_ref()?).ok()?;
    let literals = builder.literals(key.name);
    let typed: Vec<_> = (literals.iter())
        .flat_map(|(at, of)| setting.value.at(at).into_iter().map(move |token| (token.span(), *of)))
        .collect();
    let mut bars = 0;
    let mut parameters = Vec::new();
    let tokens = setting.value.tokens.clone().into_iter();
    let mut first = tokens.clone();
    let has_head = matches!(first.next(), Some(TokenTree::Punct(punct)) if punct.as_char() == '|');
    let body = tokens.skip_while(|token| {
        let is_head = has_head && bars < 2;
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '|' => bars += 1,
            TokenTree::Ident(name) if is_head => parameters.push(name.clone()),
            _ => {}
        }
        is_head
    });
    let body = with_types(body.collect(), &typed);
    Some(Written { key, body, parameters, function })
}

/// The tokens, literals of numbers with the types that the function has for them.
fn with_types(tokens: TokenStream, literals: &[(Span, &str)]) -> TokenStream {
    let mut literals = literals.iter();
    suffixed(tokens, &mut literals)
}

/// As [`with_types`]: literals without a suffix come in the order of the list.
fn suffixed<'a>(tokens: TokenStream, types: &mut impl Iterator<Item = &'a (Span, &'a str)>) -> TokenStream {
    let with_type = |token| match token {
        TokenTree::Group(group) => {
            let mut typed = Group::new(group.delimiter(), suffixed(group.stream(), types));
            typed.set_span(group.span());
            TokenTree::Group(typed)
        }
        TokenTree::Literal(literal) => {
            let digits = match Lit::new(literal.clone()) {
                // `1.` is a literal, and `1.f32` is none.
                Lit::Float(float) if float.suffix().is_empty() && float.base10_digits().ends_with('.') => {
                    Some(format!("{}0", float.base10_digits()))
                }
                Lit::Float(float) if float.suffix().is_empty() => Some(float.base10_digits().to_owned()),
                Lit::Int(integer) if integer.suffix().is_empty() => Some(integer.base10_digits().to_owned()),
                _ => None,
            };
            TokenTree::Literal(match digits.and_then(|digits| Some((digits, types.next()?))) {
                Some((digits, (span, of))) => {
                    let mut typed: Literal =
                        format!("{digits}{of}").parse().expect("digits and a suffix are a literal");
                    typed.set_span(*span);
                    typed
                }
                None => literal,
            })
        }
        other => other,
    };
    tokens.into_iter().map(with_type).collect()
}

struct Check {
    errors: Vec<Error>,
    /// Whether it is known of every setting what it means.
    understood: bool,
}

impl Check {
    fn error(&mut self, at: impl ToTokens, message: String) {
        self.errors.push(Error::new_spanned(at, message));
    }

    /// An error about something whose meaning stays unknown.
    fn unknown(&mut self, at: impl ToTokens, message: String) {
        self.understood = false;
        self.error(at, message);
    }

    /// A builder of the algorithm, or one of every algorithm where it is unknown which is meant. Takes what names it out of the
    /// other settings.
    fn builders(
        &mut self,
        algorithm: Option<&Setting>,
        others: &mut Vec<&Setting>,
    ) -> Vec<KernelConfigBuilder> {
        let names: Vec<_> = Algorithm::ALL.iter().map(|spec| spec.name).collect();
        let all = || Algorithm::ALL.iter().map(|spec| KernelConfig::builder((spec.default)())).collect();
        let Some(Setting { key, value }) = algorithm else {
            // A name alone says what is meant.
            let bare = |setting: &&Setting| {
                setting.value.text.is_none() && names.iter().any(|name| setting.key == name)
            };
            if let Some(at) = others.iter().position(bare) {
                let name = &others.remove(at).key;
                self.error(name, format!("write `algorithm = {name}`"));
                return KernelConfig::named(&name.to_string()).into_iter().collect();
            }
            // Where the word is misspelt, the setting's own error says so.
            if !others.iter().any(|setting| nearest(&setting.key.to_string(), &["algorithm"]).is_some()) {
                let message =
                    format!("`#[spmv_kernel]` needs `algorithm = name`; allowed: {}", names.join(", "));
                self.errors.push(Error::new(Span::call_site(), message));
            }
            return all();
        };
        let Some(text) = &value.text else {
            self.unknown(&value.tokens, format!("`{key}` has no value; allowed: {}", names.join(", ")));
            return all();
        };
        match KernelConfig::named(text) {
            Ok(builder) => {
                self.spelling(&key.to_string(), value);
                vec![builder]
            }
            Err(error) => {
                let nearest = nearest(text, &names);
                self.unknown(&value.tokens, suggest(error.to_string(), nearest));
                nearest
                    .and_then(|name| KernelConfig::named(name).ok())
                    .map_or_else(all, |builder| vec![builder])
            }
        }
    }

    /// Sets a key in every builder that has it; an error where none accepts it.
    fn set(&mut self, builders: &mut [KernelConfigBuilder], Setting { key, value }: &Setting) {
        let name = key.to_string();
        // No value is no allowed value: the empty text is refused with what is allowed.
        let text = value.text.as_deref().unwrap_or_default();
        let mut refusals: Vec<_> =
            builders.iter_mut().filter_map(|builder| builder.set(&name, text).err()).collect();
        if refusals.len() < builders.len() {
            return self.spelling(&name, value);
        }
        let mut keys = Vec::new();
        for refusal in &mut refusals {
            match refusal {
                ConfigError::Value { allowed, .. } if value.text.is_none() => {
                    let allowed = allowed.join(", ");
                    return self.unknown(&value.tokens, format!("`{name}` has no value; allowed: {allowed}"));
                }
                ConfigError::Key { allowed, .. } => {
                    allowed.extend(["algorithm", "crate"]);
                    keys.extend_from_slice(allowed);
                }
                ConfigError::Function { .. } if value.text.is_none() => {
                    let form = FUNCTION_KEYS.iter().find(|key| key.name == name).map_or("", |key| key.form);
                    let message = format!("`{name}` has no value; write `{name} = {form}`");
                    return self.unknown(&value.tokens, message);
                }
                ConfigError::Function { error, .. } => {
                    return self.unknown(value.at(&error.at), error.message.clone());
                }
                _ => return self.unknown(&value.tokens, refusal.to_string()),
            }
        }
        keys.sort();
        keys.dedup();
        let message = match &refusals[..] {
            [refusal] => refusal.to_string(),
            _ => format!("no algorithm has a setting `{name}`; allowed: {}", keys.join(", ")),
        };
        self.unknown(key, suggest(message, nearest(&name, &keys)));
    }

    /// An error where a value means what is allowed but is not written as a value is.
    fn spelling(&mut self, key: &str, value: &Value) {
        if let (Some(text), Some(misspelling)) = (&value.text, value.misspelling) {
            self.error(&value.tokens, format!("write `{key} = {text}`: {}", misspelling.rule()));
        }
    }

    fn path(&mut self, value: &Value) -> Option<Path> {
        let written = value.text.is_some() && value.misspelling != Some(Misspelling::NotAssigned);
        let path = Path::parse_mod_style.parse2(value.tokens.clone()).ok().filter(|_| written);
        if path.is_none() {
            let message = "`crate` takes the path of `spmv-runtime`, as in `crate = my_crate::spmv_runtime`";
            self.error(&value.tokens, message.into());
        }
        path
    }
}

fn suggest(message: String, nearest: Option<&str>) -> String {
    match nearest {
        Some(name) => format!("{message}; did you mean `{name}`?"),
        None => message,
    }
}

/// The allowed name that differs from a mistyped one in no more than a third of its letters.
fn nearest<'a>(name: &str, allowed: &[&'a str]) -> Option<&'a str> {
    let name = name.to_lowercase();
    let distance = |candidate: &str| strsim::osa_distance(&name, candidate);
    let nearest = allowed.iter().copied().min_by_key(|candidate| distance(candidate))?;
    (distance(nearest) <= nearest.len() / 3).then_some(nearest)
}
