//! The prices of a product's terms, read from and written as text.

use std::fmt;
use std::str::FromStr;

use spmv_codegen::{ConfigError, Features, KernelConfig, Types};

use super::terms::{NUM_TERMS, TERMS};
use super::{Prediction, own_settings};

/// Index of the term that preparation depends on, in [`TERMS`].
const MATRIX: usize = 1;

/// What a product reads and writes beside the L2 cache. Prices of each kind are fitted apart: launches and first loads make the
/// times of the first, uneven warps those of the second, bytes and reads of x those of the third.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Footprint {
    /// The CSR arrays, x and y take at most an eighth of it.
    Small,
    /// They take more, and at most two thirds.
    InL2,
    /// They take more.
    BeyondL2,
}

impl Footprint {
    /// All of them.
    pub const ALL: [Footprint; 3] = [Footprint::Small, Footprint::InL2, Footprint::BeyondL2];

    /// That of a product of a matrix with these features.
    pub fn of(features: &Features, types: Types, l2_bytes: u64) -> Footprint {
        let entries = features.nnz.saturating_mul((types.value.size() + types.index.size()) as u64);
        let of_rows = features.num_rows * (types.offset.size() + types.y.size()) as u64;
        let of_cols = features.num_cols * types.x.size() as u64;
        let bytes = entries.saturating_add(of_rows).saturating_add(of_cols);
        match () {
            () if bytes <= l2_bytes / 8 => Footprint::Small,
            () if bytes <= l2_bytes / 3 * 2 => Footprint::InL2,
            () => Footprint::BeyondL2,
        }
    }

    /// `small`, `in_l2` or `beyond_l2`.
    pub fn name(self) -> &'static str {
        match self {
            Footprint::Small => "small",
            Footprint::InL2 => "in_l2",
            Footprint::BeyondL2 => "beyond_l2",
        }
    }
}

/// What the prices of a configuration are good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// To choose it, and to say when it is measured.
    Choose,
    /// To say when and whether it is measured: without it some matrix would lack a kernel as fast as its fastest, but choices would be worse
    /// with it.
    Tune,
}

impl Purpose {
    /// Both.
    pub const ALL: [Purpose; 2] = [Purpose::Choose, Purpose::Tune];

    /// `choose` or `tune`.
    pub fn name(self) -> &'static str {
        match self {
            Purpose::Choose => "choose",
            Purpose::Tune => "tune",
        }
    }
}

/// Configurations with their prices. As text: comment lines that begin with `#`, then comma-separated values, one line a
/// configuration, under a line of names. `special` has those settings there that do not follow from the features
/// ([`shape`](super::shape)).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Model {
    /// What the text says of itself: where the prices come from.
    pub comments: Vec<String>,
    /// Configurations with what their prices are for.
    pub priced: Vec<Priced>,
}

/// A configuration's prices in milliseconds for matrices of one footprint.
#[derive(Clone, Debug, PartialEq)]
pub struct Priced {
    /// The algorithm and its parameters; types and operation are the defaults and count for nothing.
    pub config: KernelConfig,
    /// What the prices are good for.
    pub purpose: Purpose,
    /// The matrices that the prices are for.
    pub footprint: Footprint,
    /// Of a unit of each term.
    pub prices: [f64; NUM_TERMS],
    /// Of making a plan: once, and for each GB of the matrix as it is stored for the product.
    pub prepare: [f64; 2],
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
        "line {line}: expected an algorithm, its settings, choose or tune, small, in_l2 or beyond_l2, and {} finite numbers from 0 on",
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
    let names: Vec<_> = ["algorithm", "settings", "purpose", "footprint"]
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
                model.priced.push(parsed(line, content)?);
            }
        }
        match named {
            true => Ok(model),
            false => Err(ModelError::Names { line: 1, expected: names() }),
        }
    }
}

fn parsed(line: usize, content: &str) -> Result<Priced, ModelError> {
    let wrong = || ModelError::Values { line };
    let mut values = content.split(',');
    let (algorithm, settings) = values.next().zip(values.next()).ok_or_else(wrong)?;
    let settings: Option<Vec<_>> =
        settings.split_whitespace().map(|setting| setting.split_once('=')).collect();
    let config = KernelConfig::from_settings(algorithm, settings.ok_or_else(wrong)?)
        .map_err(|source| ModelError::Config { line, source })?;
    let (purpose, footprint) = values.next().zip(values.next()).ok_or_else(wrong)?;
    let purpose = Purpose::ALL.into_iter().find(|known| known.name() == purpose).ok_or_else(wrong)?;
    let footprint = Footprint::ALL.into_iter().find(|known| known.name() == footprint).ok_or_else(wrong)?;
    let numbers: Vec<f64> = values.map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    if numbers.len() != NUM_TERMS + 2 || numbers.iter().any(|number| !number.is_finite() || *number < 0.0) {
        return Err(wrong());
    }
    let (prices, prepare) = numbers.split_at(NUM_TERMS);
    let prices = prices.try_into().map_err(|_| wrong())?;
    let prepare = prepare.try_into().map_err(|_| wrong())?;
    Ok(Priced { config, purpose, footprint, prices, prepare })
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.comments.iter().try_for_each(|comment| writeln!(f, "# {comment}"))?;
        writeln!(f, "{}", names())?;
        for Priced { config, purpose, footprint, prices, prepare } in &self.priced {
            let settings: Vec<_> =
                own_settings(*config).iter().map(|(key, value)| format!("{key}={value}")).collect();
            write!(f, "{},{}", config.algorithm().name(), settings.join(" "))?;
            write!(f, ",{},{}", purpose.name(), footprint.name())?;
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
        let of_vector = Priced {
            config: KernelConfig::from_settings("csr_vector", [("threads_per_vector", "16")]).unwrap(),
            purpose: Purpose::Choose,
            footprint: Footprint::BeyondL2,
            prices: std::array::from_fn(|term| term as f64 / 7.0),
            prepare: [0.25, 1e-3],
        };
        let config =
            KernelConfig::from_settings("hola", [("nnz_per_thread", "16"), ("threads_per_block", "512")])
                .unwrap();
        let of_hola =
            Priced { config, purpose: Purpose::Tune, footprint: Footprint::InL2, ..of_vector.clone() };
        let model = Model { comments: vec!["of a test".to_owned()], priced: vec![of_vector, of_hola] };
        assert!(model.to_string().contains("threads_per_vector=16 unroll=4 aligned=0,"));
        assert_eq!(model.to_string().parse::<Model>().unwrap(), model);
    }

    #[test]
    fn what_is_no_model_is_told_with_its_line() {
        let text = |line: &str| format!("# made up\n{}\n{line}\n", names());
        let error = |text: &str| text.parse::<Model>().unwrap_err().to_string();
        assert!(
            error("").starts_with("line 1: expected the names algorithm,settings,purpose,footprint,launch,")
        );
        assert!(error("algorithm,settings\n").starts_with("line 1: "));
        assert!(
            error(&text("dia,,choose,in_l2,1,2"))
                .starts_with("line 3: expected an algorithm, its settings, choose or tune, ")
        );
        let numbers =
            ["-1"].into_iter().chain(std::iter::repeat_n("1", NUM_TERMS + 1)).collect::<Vec<_>>().join(",");
        assert!(error(&text(&format!("dia,,choose,in_l2,{numbers}"))).starts_with("line 3: expected"));
        let numbers = numbers.replace('-', "");
        assert!(text(&format!("dia,,choose,in_l2,{numbers}")).parse::<Model>().is_ok());
        assert!(error(&text(&format!("dia,,choose,l2,{numbers}"))).starts_with("line 3: expected"));
        assert!(error(&text(&format!("dia,,race,in_l2,{numbers}"))).starts_with("line 3: expected"));
        assert!(error(&text("dia,,tune")).starts_with("line 3: expected"));
        assert!(error(&text(&format!("dai,,choose,in_l2,{numbers}"))).starts_with("line 3: "));
    }
}
