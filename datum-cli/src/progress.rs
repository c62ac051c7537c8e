//! The progress bar: on a terminal only, on the standard error.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `total` records, or a counter where the total is not known.
pub(crate) fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{msg} {bar:30} {human_pos}/{human_len} records, {per_sec}, {eta} to go",
        ),
        None => (ProgressBar::no_length(), "{msg} {spinner} {human_pos} records, {per_sec}"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
