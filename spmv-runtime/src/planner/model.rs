//! The prices of a product's terms, read from and written as text.

use std::fmt;
use std::str::FromStr;

use spmv_codegen::{ConfigError, KernelConfig};

use super::Prediction;
use super::terms::{NUM_TERMS, TERMS};

/// Index of the term that preparation depends on, in [`TERMS`].
const MATRIX: usize = 1;

/// Configurations with their prices. As text: comment lines that begin with `#`, then comma-separated values, one line a
/// configuration, under a line of names.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// What the text says of itself: where the prices come from.
    pub comments: Vec<String>,
    /// The configurations.
    pub priced: Vec<Priced>,
}

/// A configuration's prices in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Priced {
    /// What its line is good for.
    pub used: Used,
    /// The algorithm and its parameters; types and operation are the defaults and count for nothing.
    pub config: KernelConfig,
    /// Of a unit of each term.
    pub prices: [f64; NUM_TERMS],
    /// Of making a plan: once, and for each GB of the matrix as it is stored for the product.
    pub prepare: [f64; 2],
}

/// When a configuration is a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// Always: choosing by its prices makes the choices better.
    Choose,
    /// Where candidates are measured: some matrix has no faster one, and its prices say no more than which to try first.
    Tune,
}

impl Used {
    const ALL: [Used; 2] = [Used::Choose, Used::Tune];

    /// As it is in the text.
    const fn name(self) -> &'static str {
        match self {
            Used::Choose => "choose",
            Used::Tune => "tune",
        }
    }
}

impl Priced {
    /// What these amounts cost.
    pub fn predict(&self, terms: &[f64; NUM_TERMS]) -> Prediction {
        let terms_ms = std::array::from_fn(|term| self.prices[term] * terms[term]);
        Prediction {
            product_ms: terms_ms.iter().sum(),
            prepare_ms: self.prepare[0] + self.prepare[1] * terms[MATRIX],
            terms_ms,
        }
    }
}

/// Why a text is not a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The line of names is another one.
    #[error("line {line}: expected the names {expected}")]
    Names {
        /// The line, from 1.
        line: usize,
        /// The names.
        expected: String,
    },
    /// A line does not have a value for each name, or one is no finite number from 0 on.
    #[error(
        "line {line}: expected `choose` or `tune`, an algorithm, its settings, and {} finite numbers from 0 on",
        NUM_TERMS + 2
    )]
    Values {
        /// The line, from 1.
        line: usize,
    },
    /// There is no such configuration.
    #[error("line {line}: {source}")]
    Config {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: ConfigError,
    },
}

fn names() -> String {
    let terms = TERMS.iter().map(|(name, _)| *name);
    let names: Vec<_> = ["used", "algorithm", "settings"]
        .into_iter()
        .chain(terms)
        .chain(["prepare", "prepare_matrix"])
        .collect();
    names.join(",")
}

impl FromStr for Model {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<Model, ModelError> {
        let mut model = Model::default();
        let mut named = false;
        for (line, content) in text.lines().enumerate().map(|(index, content)| (index + 1, content)) {
            if let Some(comment) = content.strip_prefix('#') {
                model.comments.push(comment.trim().to_owned());
            } else if !named {
                named = content == names();
                if !named {
                    return Err(ModelError::Names { line, expected: names() });
                }
            } else {
                model.priced.push(priced(line, content)?);
            }
        }
        match named {
            true => Ok(model),
            false => Err(ModelError::Names { line: 1, expected: names() }),
        }
    }
}

fn priced(line: usize, content: &str) -> Result<Priced, ModelError> {
    let wrong = || ModelError::Values { line };
    let mut values = content.split(',');
    let used = values.next().and_then(|name| Used::ALL.into_iter().find(|used| used.name() == name));
    let used = used.ok_or_else(wrong)?;
    let (algorithm, settings) = values.next().zip(values.next()).ok_or_else(wrong)?;
    let settings: Option<Vec<_>> =
        settings.split_whitespace().map(|setting| setting.split_once('=')).collect();
    let config = KernelConfig::from_settings(algorithm, settings.ok_or_else(wrong)?)
        .map_err(|source| ModelError::Config { line, source })?;
    let numbers: Vec<f64> = values.map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    if numbers.len() != NUM_TERMS + 2 || numbers.iter().any(|number| !number.is_finite() || *number < 0.0) {
        return Err(wrong());
    }
    let (prices, prepare) = numbers.split_at(NUM_TERMS);
    let prices = prices.try_into().map_err(|_| wrong())?;
    Ok(Priced { used, config, prices, prepare: prepare.try_into().map_err(|_| wrong())? })
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.comments.iter().try_for_each(|comment| writeln!(f, "# {comment}"))?;
        writeln!(f, "{}", names())?;
        for Priced { used, config, prices, prepare } in &self.priced {
            let own = config.algorithm().spec().parameters.len();
            let settings: Vec<_> =
                config.settings()[..own].iter().map(|(key, value)| format!("{key}={value}")).collect();
            write!(f, "{},{},{}", used.name(), config.algorithm().name(), settings.join(" "))?;
            prices.iter().chain(prepare).try_for_each(|price| write!(f, ",{price}"))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_model_are_the_same() {
        let priced = Priced {
            used: Used::Tune,
            config: KernelConfig::from_settings("csr_vector", [("threads_per_vector", "16")]).unwrap(),
            prices: std::array::from_fn(|term| term as f64 / 7.0),
            prepare: [0.25, 1e-3],
        };
        let model = Model { comments: vec!["of a test".to_owned()], priced: vec![priced] };
        assert_eq!(model.to_string().parse::<Model>().unwrap(), model);
    }

    #[test]
    fn what_is_no_model_is_told_with_its_line() {
        let text = |line: &str| format!("# made up\n{}\n{line}\n", names());
        let error = |text: &str| text.parse::<Model>().unwrap_err().to_string();
        assert!(error("").starts_with("line 1: expected the names used,algorithm,settings,launch,"));
        assert!(error("algorithm,settings\n").starts_with("line 1: "));
        assert!(error(&text("tune,dia,,1,2")).starts_with("line 3: expected `choose` or "));
        let numbers =
            ["-1"].into_iter().chain(std::iter::repeat_n("1", NUM_TERMS + 1)).collect::<Vec<_>>().join(",");
        assert!(error(&text(&format!("tune,dia,,{numbers}"))).starts_with("line 3: expected"));
        assert!(error(&text(&format!("tune,dai,,{}", numbers.replace('-', "")))).starts_with("line 3: "));
        assert!(
            error(&text(&format!("guess,dia,,{}", numbers.replace('-', "")))).starts_with("line 3: expected")
        );
    }
}
