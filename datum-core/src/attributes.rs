//! Attributes: settings that a part of a stream hands to everything inside it.

use crate::stage::Supervision;

/// Settings for the part of a stream they are put on. What is not set is inherited from around it.
///
/// ```
/// use datum_core::prelude::*;
/// let quiet = Attributes::new().supervision(Supervision::resume()).window(64);
/// let _source = Source::from_iter(0..10).map(|x: i32| 10 / x).with_attributes(quiet);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    pub(crate) window: Option<usize>,
    pub(crate) supervision: Option<Supervision>,
    pub(crate) name: Option<&'static str>,
}

impl Attributes {
    /// Nothing set.
    #[must_use]
    pub fn new() -> Self {
        Attributes::default()
    }

    /// How many elements an async boundary or a substream may hold, produced and not consumed. Default 16: enough
    /// that both sides work at once, few enough that a rate-sensitive operator behind it sees little that is stale.
    /// 64 and more costs less per element.
    #[must_use]
    pub fn window(mut self, elements: usize) -> Self {
        self.window = Some(elements.max(1));
        self
    }

    /// What the operators that call user code do when it fails. Default: the stream fails.
    #[must_use]
    pub fn supervision(mut self, supervision: Supervision) -> Self {
        self.supervision = Some(supervision);
        self
    }

    /// A name for logs and metrics. Default: none.
    #[must_use]
    pub fn name(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// These, on top of `around`.
    #[must_use]
    pub(crate) fn over(self, around: &Attributes) -> Attributes {
        Attributes {
            window: self.window.or(around.window),
            supervision: self.supervision.or_else(|| around.supervision.clone()),
            name: self.name.or(around.name),
        }
    }
}
