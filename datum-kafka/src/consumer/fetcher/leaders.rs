//! What the fetcher's task does about metadata: when it asks for it, and what a change means for its partitions.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::partition::Phase;
use super::task::{Done, Task};
use crate::error::KafkaErrorKind;
use crate::wire::topic::TopicId;

impl Task {
    /// Fetches metadata if something failed for want of it, or it has become old.
    pub(super) fn refresh(&mut self) {
        let age = self.cluster.settings().metadata_max_age;
        let old = self.cluster.metadata_fresh_for(age).is_zero();
        if self.refreshing || !(self.stale || old) {
            return;
        }
        self.refreshing = true;
        self.stale = false;
        let cluster = self.cluster.clone();
        let topics: Vec<Arc<str>> = self.partitions.keys().map(|who| who.topic.clone()).collect();
        self.work.push(
            async move {
                cluster.add_topics(topics);
                Done::Refreshed { outcome: cluster.refresh().await }
            }
            .boxed(),
        );
    }

    pub(super) fn take_metadata(&mut self) {
        let metadata = self.metadata.borrow_and_update().clone();
        let grace = self.cluster.settings().unknown_topic_grace;
        let mut failed = Vec::new();
        for (who, partition) in &mut self.partitions {
            if partition.phase == Phase::Failed {
                continue;
            }
            let Some(topic) = metadata.topic(&who.topic) else { continue };
            if topic.id != TopicId::default() && topic.id != partition.topic.id {
                if partition.topic.has_id() {
                    failed.push((
                        who.clone(),
                        KafkaErrorKind::TopicRecreated { topic: who.topic.clone() }.into(),
                    ));
                }
                partition.topic.id = topic.id;
            }
            if let Err(error) = self.cluster.check_topic(&who.topic) {
                failed.push((who.clone(), error));
            } else if let Some(error) = partition.missing(topic, Instant::now(), grace) {
                failed.push((who.clone(), error));
            }
        }
        for (who, error) in failed {
            self.fail(&who, error);
        }
    }
}
