//! Facts that a command prints: one structure, as text for people and as JSON for programs.

use std::fmt::Display;
use std::io::{self, Write};

use comfy_table::{Cell, ContentArrangement, Table, presets};
use console::Term;
use serde::Serialize;

use crate::failure::Failure;

/// How the answer is wanted.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct OutputArgs {
    /// Print one JSON object with the same facts; errors on standard error are JSON too
    #[arg(long, global = true)]
    pub json: bool,
}

/// Facts that can be told to a person.
pub trait Report: Serialize {
    fn text(&self, out: &mut dyn Write) -> io::Result<()>;
}

impl OutputArgs {
    /// Prints to standard output.
    pub fn print(self, report: &impl Report) -> Result<(), Failure> {
        self.print_to(io::stdout().lock(), report)
    }

    /// Prints to standard output, or to standard error where what was asked for goes to standard output.
    pub fn print_beside(self, takes_stdout: bool, report: &impl Report) -> Result<(), Failure> {
        if takes_stdout { self.print_to(io::stderr().lock(), report) } else { self.print(report) }
    }

    fn print_to(self, out: impl Write, report: &impl Report) -> Result<(), Failure> {
        let mut out = io::BufWriter::new(out);
        match self.json {
            true => write_json(&mut out, report)?,
            false => report.text(&mut out)?,
        }
        Ok(out.flush()?)
    }
}

fn write_json(out: &mut dyn Write, facts: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, facts)?;
    writeln!(out)
}

/// Prints one JSON object to standard output.
pub fn print_json(facts: &impl Serialize) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    write_json(&mut out, facts)?;
    Ok(out.flush()?)
}

/// One fact in a line: what it is, and the fact.
pub fn fact(out: &mut dyn Write, what: &str, is: impl Display) -> io::Result<()> {
    writeln!(out, "{what:<14}{is}")
}

/// A table whose cells wrap at the width of the terminal.
pub fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    let terminal = Term::stdout();
    if let (true, Some((_, width))) = (terminal.is_term(), terminal.size_checked()) {
        table.set_width(width);
    }
    table.set_header(head.iter().map(Cell::new));
    table
}

/// Prints a table without blanks at the ends of lines.
pub fn print_table(out: &mut dyn Write, mut table: Table) -> io::Result<()> {
    table.column_iter_mut().for_each(|column| {
        column.set_padding((0, 2));
    });
    for line in table.lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
