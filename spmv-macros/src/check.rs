//! What the settings mean: a configuration, and every error at the token that causes it.

use proc_macro2::Span;
use quote::ToTokens;
use spmv_codegen::{Algorithm, ConfigError, KernelConfig, KernelConfigBuilder};
use syn::parse::Parser;
use syn::{Error, Path, parse_quote};

use crate::parse::{Misspelling, Setting, Value};

/// What a kernel is generated from.
pub(crate) struct Checked {
    pub(crate) config: KernelConfig,
    /// The path of `spmv-runtime` in the user's crate.
    pub(crate) runtime: Path,
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
    let mut builders = check.builders(algorithm);
    for setting in &others {
        check.set(&mut builders, setting);
    }
    // What excludes what can be told only where it is known what every setting means.
    if let (true, Some(algorithm)) = (check.understood, algorithm) {
        for problem in builders[0].problems() {
            let setting = others.iter().find(|setting| setting.key == problem.key()).unwrap_or(&algorithm);
            check.error(&setting.value.tokens, problem.to_string());
        }
    }
    let config = builders.swap_remove(0).build().unwrap_or_else(|_| {
        KernelConfig::builder((Algorithm::ALL[0].default)()).build().expect("defaults are allowed")
    });
    (Checked { config, runtime }, check.errors)
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

    /// A builder of the algorithm, or one of every algorithm where it is unknown which is meant.
    fn builders(&mut self, algorithm: Option<&Setting>) -> Vec<KernelConfigBuilder> {
        let names: Vec<_> = Algorithm::ALL.iter().map(|spec| spec.name).collect();
        let all = || Algorithm::ALL.iter().map(|spec| KernelConfig::builder((spec.default)())).collect();
        let Some(Setting { key, value }) = algorithm else {
            let message = format!("`#[spmv_kernel]` needs `algorithm = name`; allowed: {}", names.join(", "));
            self.errors.push(Error::new(Span::call_site(), message));
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
        let refusals: Vec<_> =
            builders.iter_mut().filter_map(|builder| builder.set(&name, text).err()).collect();
        if refusals.len() < builders.len() {
            return self.spelling(&name, value);
        }
        let mut keys = Vec::new();
        for refusal in &refusals {
            match refusal {
                ConfigError::Value { allowed, .. } if value.text.is_none() => {
                    let allowed = allowed.join(", ");
                    return self.unknown(&value.tokens, format!("`{name}` has no value; allowed: {allowed}"));
                }
                ConfigError::Key { allowed, .. } => keys.extend(allowed),
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
