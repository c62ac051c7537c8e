//! Panes as CSV (RFC 4180, with `\n` line ends).

use std::fmt::Write as _;

use super::{WINDOW_END, WINDOW_START};
use crate::{Key, Name, Pane, Row};

/// Writes panes as CSV lines. Null is an empty field; NaN and infinities are `NaN`, `inf`, `-inf`.
#[derive(Clone, Debug)]
pub struct CsvFormat {
    key: String,
}

impl CsvFormat {
    /// The key's column is called `key`.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into() }
    }

    /// Appends the line with the names.
    pub fn write_header(&self, names: &[Name], out: &mut String) {
        write_field(&self.key, out);
        let _ = write!(out, ",{WINDOW_START},{WINDOW_END}");
        for name in names {
            out.push(',');
            write_field(name, out);
        }
        out.push('\n');
    }

    /// Appends one line.
    pub fn write<K: Key>(&self, pane: &Pane<K, Row>, out: &mut String) {
        write_field(&pane.key.to_value().to_string(), out);
        let _ = write!(out, ",{},{}", pane.window.start, pane.window.end);
        for value in pane.value.values() {
            out.push(',');
            write_field(&value.to_string(), out);
        }
        out.push('\n');
    }
}

fn write_field(text: &str, out: &mut String) {
    if text.contains([',', '"', '\n', '\r']) {
        let _ = write!(out, "\"{}\"", text.replace('"', "\"\""));
    } else {
        out.push_str(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Aggregate, Aggregates, Window};

    #[test]
    fn fields_with_separators_are_quoted() {
        let a = Aggregates::<f64>::new().count("n, all").mean("avg", |x| *x);
        let pane = Pane {
            window: Window { start: -10, end: 0 },
            key: "a\"b".to_owned(),
            value: a.finish(&a.init()),
        };
        let mut out = String::new();
        let csv = CsvFormat::new("k");
        csv.write_header(a.names(), &mut out);
        csv.write(&pane, &mut out);
        assert_eq!(out, "k,window_start_ms,window_end_ms,\"n, all\",avg\n\"a\"\"b\",-10,0,0,\n");
    }
}
