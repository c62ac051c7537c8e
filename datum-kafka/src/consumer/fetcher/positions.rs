//! Looking up positions that are not known, and checking those that a new leader may not have.

use futures_util::FutureExt;
use tokio::time::Instant;

use super::partition::{Phase, Reaction};
use super::resolve::{Question, Resolved, look_up};
use super::task::{Done, Task};
use crate::error::Result;

impl Task {
    pub(super) fn resolve(&mut self, now: Instant) {
        for (who, partition) in &mut self.partitions {
            let Phase::Resolve(resolve) = partition.phase else { continue };
            if !partition.due(now) {
                continue;
            }
            partition.phase = Phase::Resolving(resolve);
            let question = Question {
                partition: who.clone(),
                epoch: partition.handle.epoch(),
                generation: partition.generation,
                resolve,
            };
            let (cluster, isolation) = (self.cluster.clone(), self.isolation);
            self.work.push(
                async move {
                    let outcome = look_up(&cluster, &question, isolation).await;
                    Done::Resolved { question, outcome }
                }
                .boxed(),
            );
        }
    }

    pub(super) fn resolved(&mut self, question: &Question, outcome: Result<Resolved>) {
        let now = Instant::now();
        let policy = self.offset_reset;
        let Some(partition) = self.partitions.get_mut(&question.partition) else { return };
        let current =
            partition.handle.epoch() == question.epoch && partition.generation == question.generation;
        if !current || partition.phase != Phase::Resolving(question.resolve) {
            return;
        }
        let reaction = match outcome {
            Ok(Resolved::Position { offset }) => {
                partition.begin(offset);
                partition.succeeded();
                return;
            }
            Ok(Resolved::Ends { log_start, end }) => partition.out_of_range(log_start, end, policy),
            Ok(Resolved::Agreement { under, end }) => partition.agreement(under, end, policy),
            Err(error) if error.is_retriable() => {
                tracing::warn!(partition = %question.partition, %error, "position not found yet");
                partition.phase = Phase::Resolve(question.resolve);
                Reaction::Refresh
            }
            Err(error) => Reaction::Fail(error),
        };
        self.react(&question.partition, reaction, now);
    }
}
