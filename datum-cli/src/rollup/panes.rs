//! Panes on the standard output, in the format asked for.

use std::io::{self, Write};
use std::sync::Arc;

use datum::window::format::{CsvFormat, JsonFormat, TableFormat};
use datum::window::{Name, Pane, Row};

use crate::error::CliError;
use crate::options::Format;
use crate::summary::Summary;

/// The key's name in every format.
pub(crate) const KEY: &str = "region";

/// A table is printed whole, so that its columns fit; past this many panes in parts.
const TABLE_PANES: usize = 4_096;

/// A pane of the rollup.
pub(crate) type RegionPane = Pane<Arc<str>, Row>;

/// Prints panes as they come; a table as late as it can.
pub(crate) struct PanePrinter {
    format: Format,
    names: Vec<Name>,
    held: Vec<RegionPane>,
    header_written: bool,
    printed: u64,
}

impl PanePrinter {
    /// Prints in `format`.
    pub(crate) const fn new(format: Format) -> Self {
        Self { format, names: Vec::new(), held: Vec::new(), header_written: false, printed: 0 }
    }

    /// How many panes it was given.
    pub(crate) const fn count(&self) -> u64 {
        self.printed
    }

    /// Takes the panes of closed windows.
    pub(crate) fn print(&mut self, panes: Vec<RegionPane>) -> Result<(), CliError> {
        let Some(first) = panes.first() else { return Ok(()) };
        if self.names.is_empty() {
            self.names = first.value.names().to_vec();
        }
        self.printed += panes.len() as u64;
        let mut text = String::new();
        match self.format {
            Format::Table => {
                self.held.extend(panes);
                return if self.held.len() >= TABLE_PANES { self.flush() } else { Ok(()) };
            }
            Format::Json => {
                let json = JsonFormat::new(KEY);
                for pane in &panes {
                    json.write(pane, &mut text);
                    text.push('\n');
                }
            }
            Format::Csv => {
                let csv = CsvFormat::new(KEY);
                if !self.header_written {
                    csv.write_header(&self.names, &mut text);
                    self.header_written = true;
                }
                for pane in &panes {
                    csv.write(pane, &mut text);
                }
            }
        }
        write_out(&text)
    }

    /// Prints what a table still holds.
    pub(crate) fn flush(&mut self) -> Result<(), CliError> {
        if self.held.is_empty() {
            return Ok(());
        }
        let mut text = String::new();
        TableFormat::new(KEY).write(&self.names, &self.held, &mut text);
        self.held.clear();
        write_out(&text)
    }

    /// Prints what is held, then the summary: below the table, or on the standard error where the output is for
    /// another program.
    pub(crate) fn finish(mut self, summary: &Summary) -> Result<(), CliError> {
        self.flush()?;
        match self.format {
            Format::Table => {
                let mut out = io::stdout().lock();
                out.write_all(b"\n").and_then(|()| summary.print(&mut out)).map_err(CliError::Output)
            }
            Format::Json | Format::Csv => {
                // Nothing can be done about a closed standard error.
                let _ = summary.print(&mut io::stderr().lock());
                Ok(())
            }
        }
    }
}

fn write_out(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}
