//! `spmv algorithms`: what there is, and what each is good for.

use std::io::{self, Write};

use serde::{Serialize, Serializer};
use spmv_runtime::codegen::{
    Algorithm, AlgorithmSpec, COMMON_KEYS, FUNCTION_KEYS, FunctionKey, KernelConfig, ParameterSpec,
};

use crate::command::generate::GuaranteeFacts;
use crate::failure::Failure;
use crate::report::{OutputArgs, Report, fact, print_table, table};
use crate::settings::algorithm_names;

/// List the algorithms with their parameters; with a name, everything about one
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct Algorithms {
    /// The algorithm to tell everything about
    #[arg(value_parser = algorithm_names())]
    name: Option<String>,
    #[command(flatten)]
    pub output: OutputArgs,
}

const AFTER_HELP: &str = "\
Examples:
  spmv algorithms
  spmv algorithms csr_vector
  spmv algorithms --json

JSON (--json), one object:
  algorithms (name, summary, operations, header, parameters (name, about, default, allowed), guarantees),
  common_settings (name, about, default, allowed)";

#[derive(Debug, Serialize)]
struct AlgorithmsReport {
    algorithms: Vec<AlgorithmFacts>,
    common_settings: Vec<Setting>,
    #[serde(skip)]
    in_full: bool,
}

#[derive(Debug, Serialize)]
struct AlgorithmFacts {
    name: &'static str,
    summary: &'static str,
    /// op(A) that it computes.
    operations: Vec<&'static str>,
    header: Header,
    parameters: Vec<Setting>,
    guarantees: GuaranteeFacts,
}

/// The fields of a template's header, in their order; a JSON object.
#[derive(Debug)]
struct Header(Vec<(&'static str, &'static str)>);

impl Serialize for Header {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(field, text)| (field.to_lowercase(), text)))
    }
}

#[derive(Debug, Serialize)]
struct Setting {
    name: &'static str,
    about: &'static str,
    default: String,
    allowed: Vec<String>,
}

impl Algorithms {
    pub fn run(self) -> Result<(), Failure> {
        let named = |spec: &&AlgorithmSpec| self.name.as_deref().is_none_or(|name| name == spec.name);
        let algorithms =
            Algorithm::ALL.iter().filter(named).map(AlgorithmFacts::of).collect::<Result<_, _>>()?;
        let common_settings = common_settings()?;
        self.output.print(&AlgorithmsReport { algorithms, common_settings, in_full: self.name.is_some() })
    }
}

impl AlgorithmFacts {
    fn of(spec: &'static AlgorithmSpec) -> Result<AlgorithmFacts, Failure> {
        let program = KernelConfig::builder((spec.default)()).build()?.program();
        Ok(AlgorithmFacts {
            name: spec.name,
            summary: spec.summary(),
            operations: spec.operations.iter().map(|operation| operation.name()).collect(),
            header: Header(spec.header()),
            parameters: spec.parameters.iter().map(Setting::of).collect(),
            guarantees: GuaranteeFacts::of(&program),
        })
    }
}

impl Setting {
    fn of(parameter: &ParameterSpec) -> Setting {
        Setting {
            name: parameter.name,
            about: parameter.doc,
            default: parameter.default.to_string(),
            allowed: parameter.allowed.iter().map(u32::to_string).collect(),
        }
    }

    fn row(&self) -> [String; 4] {
        let Setting { name, about, default, allowed } = self;
        [(*name).to_owned(), default.clone(), allowed.join(", "), (*about).to_owned()]
    }
}

/// Defaults are the same for every algorithm, so any one shows them.
fn common_settings() -> Result<Vec<Setting>, Failure> {
    let Some(spec) = Algorithm::ALL.first() else { return Ok(Vec::new()) };
    let usual = KernelConfig::builder((spec.default)()).build()?;
    let setting = |key: &spmv_runtime::CommonKey| Setting {
        name: key.name,
        about: key.doc,
        default: key.of(&usual),
        allowed: (key.allowed)(),
    };
    let function = |key: &FunctionKey| Setting {
        name: key.name,
        about: key.doc,
        default: String::new(),
        allowed: vec![key.form.to_owned()],
    };
    Ok(COMMON_KEYS.iter().map(setting).chain(FUNCTION_KEYS.iter().map(function)).collect())
}

impl Report for AlgorithmsReport {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for algorithm in &self.algorithms {
            writeln!(out, "{}: {}", algorithm.name, algorithm.summary)?;
            if self.in_full {
                writeln!(out)?;
                for (field, text) in &algorithm.header.0 {
                    fact(out, &field.to_lowercase(), text)?;
                }
                algorithm.guarantees.text(out)?;
                writeln!(out)?;
            } else if let Some((_, suits)) = algorithm.header.0.iter().find(|(field, _)| *field == "Suits") {
                writeln!(out, "  suits {suits}")?;
            }
            settings_text(out, &algorithm.parameters)?;
            writeln!(out)?;
        }
        if self.in_full {
            writeln!(out, "Settings of every algorithm:\n")?;
            return settings_text(out, &self.common_settings);
        }
        writeln!(out, "`spmv algorithms NAME` tells everything about one, and the settings that all have.")
    }
}

fn settings_text(out: &mut dyn Write, settings: &[Setting]) -> io::Result<()> {
    if settings.is_empty() {
        return Ok(());
    }
    let mut table = table(&["setting", "default", "allowed", "what it is"]);
    table.add_rows(settings.iter().map(Setting::row));
    print_table(out, table)
}
