//! Where panes go.

use std::sync::Arc;

use datum_core::Sink;
use datum_core::blueprint::Unset;
use datum_kafka::ProducerSettings;

/// The output of a window job, found as `Sink::kafka_panes(..)`.
pub trait KafkaPaneSinks {
    /// Panes as JSON records in `topic`. Transactional id and timeout are the job's, whatever the settings say, and so is
    /// the delivery: in transactions with the input's offsets, unless the job is
    /// [`at_least_once`](super::PaneJob::at_least_once).
    fn kafka_panes(settings: ProducerSettings, topic: impl Into<Arc<str>>) -> PaneSink;
}

impl KafkaPaneSinks for Sink<Unset> {
    fn kafka_panes(settings: ProducerSettings, topic: impl Into<Arc<str>>) -> PaneSink {
        PaneSink { settings, topic: topic.into() }
    }
}

/// The description of where panes go.
#[derive(Clone, Debug)]
pub struct PaneSink {
    pub(super) settings: ProducerSettings,
    pub(super) topic: Arc<str>,
}
