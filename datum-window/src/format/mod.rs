//! Panes as text: one JSON object each, CSV lines, or a table.
//!
//! All three show the key first, then `window_start_ms` and `window_end_ms`, then the aggregates in their order. They
//! write to a `String` and cannot fail.

mod csv;
mod json;
mod table;

pub use csv::CsvFormat;
pub use json::{JsonFormat, write_json_string, write_json_value};
pub use table::TableFormat;

/// The name of the column with a window's first millisecond.
pub const WINDOW_START: &str = "window_start_ms";
/// The name of the column with the first millisecond after a window.
pub const WINDOW_END: &str = "window_end_ms";
