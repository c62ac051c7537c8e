//! What an answer to a fetch means for the partitions it is about.

use tokio::time::Instant;

use super::asking::Sent;
use super::partition::{Phase, Reaction};
use super::queue::{Item, Waiting};
use super::task::Task;
use crate::TopicPartition;
use crate::cluster::{Broker, Leadership};
use crate::consumer::handle::FetchAnswer;
use crate::error::{ErrorCode, KafkaError, Result, Subject};
use crate::wire::fetch::{self, FetchResponse, FetchedPartition};
use crate::wire::leader::NodeEndpoint;

impl Task {
    pub(super) fn fetched(&mut self, broker: i32, sent: &[Sent], outcome: Result<FetchResponse>) {
        let now = Instant::now();
        let outcome = outcome.and_then(|response| match response.error {
            ErrorCode::None => Ok(response),
            code => Err(KafkaError::broker(code, fetch::NAME, Subject::Broker(broker))),
        });
        let Some(asked) = self.brokers.get_mut(&broker) else { return };
        asked.in_flight = false;
        match outcome {
            Ok(response) => {
                asked.backoff.reset();
                asked.not_before = None;
                asked.meter.answered(asked.since);
                let waiting = asked.waiting.clone();
                self.answered(sent, response, &waiting, now);
            }
            Err(error) if error.is_retriable() => {
                tracing::debug!(broker, %error, "fetch failed");
                asked.meter.failures.increment(1);
                asked.not_before = Some(now + asked.backoff.next_delay(&mut self.rng));
                self.stale = true;
            }
            Err(error) => {
                for sent in sent.iter().filter(|sent| self.is_current(sent)).collect::<Vec<_>>() {
                    self.fail(&sent.partition, error.clone());
                }
            }
        }
    }

    fn is_current(&self, sent: &Sent) -> bool {
        self.partitions.get(&sent.partition).is_some_and(|partition| {
            partition.handle.epoch() == sent.epoch
                && partition.handle.is_active()
                && partition.generation == sent.generation
                && partition.position == sent.position
                && partition.phase == Phase::Fetch
        })
    }

    fn answered(&mut self, sent: &[Sent], response: FetchResponse, waiting: &Waiting, now: Instant) {
        for topic in response.topics {
            for answer in topic.partitions {
                let asked = sent
                    .iter()
                    .find(|sent| sent.partition.partition == answer.partition && topic.topic.is(&sent.topic));
                // What was not asked for, or belongs to an assignment or a position of the past, has no effect.
                if let Some(asked) = asked.filter(|sent| self.is_current(sent)) {
                    self.take(&asked.partition, answer, &response.endpoints, waiting, now);
                }
            }
        }
    }

    fn take(
        &mut self,
        who: &TopicPartition,
        answer: FetchedPartition,
        endpoints: &[NodeEndpoint],
        waiting: &Waiting,
        now: Instant,
    ) {
        let policy = self.offset_reset;
        let most = self.cluster.settings().max_response_bytes;
        let Some(partition) = self.partitions.get_mut(who) else { return };
        if let Some(diverging) = answer.diverging {
            let reaction = partition.truncated(Some(diverging.end_offset).filter(|&end| end >= 0), policy);
            self.react(who, reaction, now);
            return;
        }
        if !answer.error.is_ok() {
            let reaction = partition.react(answer.error);
            let hinted = self.hint(who, &answer, endpoints);
            if !(hinted && matches!(reaction, Reaction::Refresh)) {
                self.react(who, reaction, now);
            }
            return;
        }
        partition.handle.meter().bytes.increment(answer.records.len() as u64);
        let info = (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset);
        let item = partition.advance(answer, waiting, most);
        let answer = FetchAnswer {
            position: partition.position,
            high_watermark: info.0,
            last_stable_offset: if info.1 < 0 { info.0 } else { info.1 },
            log_start: info.2,
            at: now,
        };
        partition.handle.note_answer(partition.generation, partition.origin, answer);
        match item {
            Ok(Some(item)) => self.emit(Item::Fetched(item)),
            Ok(None) => {}
            Err(reaction) => self.react(who, reaction, now),
        }
    }

    /// Takes up what the answer says about the partition's leader. Whether it was news.
    fn hint(&self, who: &TopicPartition, answer: &FetchedPartition, endpoints: &[NodeEndpoint]) -> bool {
        let Some(current) = answer.current_leader.filter(|current| current.leader >= 0) else { return false };
        let endpoint = endpoints.iter().find(|endpoint| endpoint.node == current.leader);
        let broker = endpoint.and_then(|endpoint| {
            Some(Broker {
                id: endpoint.node,
                address: datum_net::Address::new(&endpoint.host, u16::try_from(endpoint.port).ok()?),
                rack: endpoint.rack.as_deref().map(Into::into),
            })
        });
        self.cluster.hint_leader(
            who,
            Leadership { leader: Some(current.leader), epoch: current.epoch },
            broker,
        )
    }
}
