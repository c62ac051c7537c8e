//! The topics a rollup writes.

use std::sync::Arc;

use crate::options::RollupOptions;

/// Where the job's output goes.
#[derive(Clone, Debug)]
pub(super) struct Outputs {
    /// Panes.
    pub(super) panes: Arc<str>,
    /// Late records and those too far ahead, if anywhere.
    pub(super) late: Option<Arc<str>>,
    /// Records that could not be decoded, if anywhere.
    pub(super) dead_letter: Option<Arc<str>>,
}

impl Outputs {
    pub(super) fn of(options: &RollupOptions) -> Self {
        Self {
            panes: options.out_topic.as_str().into(),
            late: options.late_topic.as_deref().map(Arc::from),
            dead_letter: options.dead_letter_topic.as_deref().map(Arc::from),
        }
    }

    pub(super) fn topics(&self) -> Vec<Arc<str>> {
        [Some(&self.panes), self.late.as_ref(), self.dead_letter.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }
}
