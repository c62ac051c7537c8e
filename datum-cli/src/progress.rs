//! The progress bar: on a terminal only, on the standard error.

use indicatif::{HumanFloatCount, ProgressBar, ProgressState, ProgressStyle};

/// A bar over `total` records, or a counter where the total is not known.
pub(crate) fn bar(total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => {
            (ProgressBar::new(total), "{msg} {bar:30} {human_pos}/{human_len} records, {rate}/s, {eta} to go")
        }
        None => (ProgressBar::no_length(), "{msg} {spinner} {human_pos} records, {rate}/s"),
    };
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.with_key("rate", whole_rate)),
        Err(_) => bar,
    }
}

/// Records per second without digits after the point, which would say nothing.
fn whole_rate(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    // A bar that cannot be drawn is no reason to end.
    let _ = write!(out, "{}", HumanFloatCount(state.per_sec().round()));
}
