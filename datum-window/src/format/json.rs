//! A pane as a compact JSON object.

use std::fmt::Write as _;

use super::{WINDOW_END, WINDOW_START};
use crate::{Key, Pane, Row, Value};

/// Writes panes as JSON objects: the key under its name, the window's bounds, the aggregates.
///
/// Floats are written in the shortest form that reads back as the same bits. JSON has no NaN and no infinities: they
/// are written as `null`. Whole numbers are written in full, even where a reader's own type may not hold them.
///
/// ```
/// use datum_window::{Aggregate, Aggregates, Pane, Window, format::JsonFormat};
///
/// let a = Aggregates::<f64>::new().count("count").mean("avg", |x| *x);
/// let mut acc = a.init();
/// a.add(&mut acc, &1.5);
/// let pane = Pane { window: Window { start: 0, end: 30_000 }, key: "eu-1".to_owned(), value: a.finish(&acc) };
/// let mut out = String::new();
/// JsonFormat::new("region").write(&pane, &mut out);
/// assert_eq!(out, r#"{"region":"eu-1","window_start_ms":0,"window_end_ms":30000,"count":1,"avg":1.5}"#);
/// ```
#[derive(Clone, Debug)]
pub struct JsonFormat {
    key: String,
}

impl JsonFormat {
    /// The key is written under `key`.
    #[must_use]
    pub fn new(key: impl Into<String>) -> Self {
        Self { key: key.into() }
    }

    /// Appends one object, without a line end.
    pub fn write<K: Key>(&self, pane: &Pane<K, Row>, out: &mut String) {
        out.push('{');
        write_json_string(&self.key, out);
        out.push(':');
        write_json_value(&pane.key.to_value(), out);
        let _ = write!(out, ",\"{WINDOW_START}\":{},\"{WINDOW_END}\":{}", pane.window.start, pane.window.end);
        for (name, value) in pane.value.iter() {
            out.push(',');
            write_json_string(name, out);
            out.push(':');
            write_json_value(value, out);
        }
        out.push('}');
    }
}

/// Appends a value as JSON; NaN and infinities become `null`.
pub fn write_json_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Float(x) if !x.is_finite() => out.push_str("null"),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
            let _ = write!(out, "{value}");
        }
        Value::Text(s) => write_json_string(s, out),
    }
}

/// Appends a quoted and escaped JSON string.
pub fn write_json_string(s: &str, out: &mut String) {
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: impl Into<Value>) -> String {
        let mut out = String::new();
        write_json_value(&value.into(), &mut out);
        out
    }

    #[test]
    fn floats_read_back_as_the_same_bits_and_are_json() {
        for x in [0.1_f64, 1.0, -0.0, 1e300, 5e-324, 1.0 / 3.0, 123_456_789.125] {
            let text = json(x);
            assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(x.to_bits()), "{text}");
        }
        assert_eq!(json(f64::NAN), "null");
        assert_eq!(json(f64::NEG_INFINITY), "null");
        assert_eq!(json(1e300), "1e300");
    }

    #[test]
    fn strings_are_escaped() {
        assert_eq!(json("a\"b\\c\n\u{1}é"), "\"a\\\"b\\\\c\\n\\u0001é\"");
    }
}
