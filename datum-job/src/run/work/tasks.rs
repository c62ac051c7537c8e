//! What a driver asks for, done beside the loop: one future per request.

use std::future::Future;
use std::pin::Pin;

use datum_kafka::group::{CommitOffset, GroupIdentity, Offsets};
use datum_kafka::producer::ProducerRecord;

use super::{Done, Key, Work};
use crate::protocol::{Answer, Delivery, Lost, Request, Ticket};
use crate::run::facts::{GROUP_HEADER, PARTITION_HEADER, Question, partition};
use crate::run::requests::{self, Finished, Outcome};
use crate::run::{JobLogic, LogicCut, transactional_id};

impl<L: JobLogic> Work<L> {
    pub(super) fn request(&mut self, key: Key, ticket: Ticket, request: Request) {
        let task = self.task(key, request);
        self.tasks.push(Box::pin(async move {
            let finished = Box::new(task.await);
            Done::Request { key, ticket, request, finished }
        }));
    }

    fn task(&mut self, key: Key, request: Request) -> Pin<Box<dyn Future<Output = Finished> + Send>> {
        let answered = |outcome: Outcome| Finished { outcome, producer: None };
        let now_stale = move || -> Pin<Box<dyn Future<Output = Finished> + Send>> {
            Box::pin(async move { answered(Answer::StaleGeneration.into()) })
        };
        let limit = self.run.request_limit;
        let observer = self.observer.clone();
        let group = self.group.clone();
        match request {
            Request::InitProducer => {
                let mut settings = self.run.output.clone().transaction_timeout(self.run.transaction_timeout);
                settings.transactional_id = Some(transactional_id(&self.run.group(), &self.topic, key));
                Box::pin(requests::init(settings))
            }
            Request::Facts => {
                let question = self.question(key);
                Box::pin(async move { answered(requests::ask(question, limit).await) })
            }
            Request::Confirm { generation } => {
                Box::pin(async move { answered(requests::confirm(group, generation, limit).await) })
            }
            Request::Produce => {
                let records = self.output(key);
                match (self.take_producer(key), &self.plain) {
                    (Some(producer), _) => Box::pin(requests::produce(producer, records, observer)),
                    (None, Some(plain)) => {
                        let plain = plain.clone();
                        Box::pin(
                            async move { answered(requests::produce_plain(plain, records, observer).await) },
                        )
                    }
                    (None, None) => no_producer(),
                }
            }
            Request::CommitOffsets { generation } => {
                let offsets = self.offsets(key);
                if self.run.delivery == Delivery::AtLeastOnce {
                    return Box::pin(async move {
                        answered(requests::commit_plain(group, offsets, limit, observer).await)
                    });
                }
                let Some(identity) = self.identity(generation) else { return now_stale() };
                match self.take_producer(key) {
                    Some(producer) => {
                        Box::pin(requests::commit_offsets(producer, offsets, group, identity, observer))
                    }
                    None => no_producer(),
                }
            }
            Request::EndTransaction => match self.take_producer(key) {
                Some(producer) => Box::pin(requests::end(producer, observer)),
                None => no_producer(),
            },
        }
    }

    fn take_producer(&mut self, key: Key) -> Option<datum_kafka::transaction::TransactionalProducer> {
        self.units.get_mut(&key).and_then(|unit| unit.producer.take())
    }

    /// Who this member is, if it is in that generation.
    fn identity(&self, generation: i32) -> Option<GroupIdentity> {
        self.group.identity().filter(|identity| identity.generation == generation)
    }

    fn question(&self, key: Key) -> Question {
        Question {
            cluster: self.cluster.clone(),
            group: self.run.group(),
            topic: self.topic.clone(),
            only: key,
            input: self.run.input.clone(),
            output: self.run.output.client.clone(),
            output_topics: self.run.output_topics.clone(),
            reset: self.run.reset,
        }
    }

    fn cut(&self, key: Key) -> Option<&LogicCut<L>> {
        self.units.get(&key)?.driver.cut()
    }

    fn output(&mut self, key: Key) -> Vec<ProducerRecord> {
        let mut records = Vec::new();
        // The cut is the driver's until it is committed, so that it can be written again.
        if let Some(cut) = self.units.get(&key).and_then(|unit| unit.driver.cut()) {
            self.logic.write(cut, &mut records);
        }
        self.report.output += u64::try_from(records.len()).unwrap_or(0);
        let group = self.run.group();
        for record in &mut records {
            let name = |bytes: &'static [u8]| bytes::Bytes::from_static(bytes);
            record.headers.push((name(GROUP_HEADER), Some(group.as_bytes().to_vec().into())));
            if let Some(partition) = key {
                record.headers.push((name(PARTITION_HEADER), Some(partition.to_string().into())));
            }
        }
        records
    }

    fn offsets(&self, key: Key) -> Offsets {
        let Some(cut) = self.cut(key) else { return Offsets::new() };
        let stored = cut.offsets.iter();
        stored
            .map(|(number, state)| {
                let commit =
                    CommitOffset { offset: state.low, leader_epoch: -1, metadata: state.to_text().into() };
                (partition(&self.topic, *number), commit)
            })
            .collect()
    }
}

fn no_producer() -> Pin<Box<dyn Future<Output = Finished> + Send>> {
    Box::pin(async { Finished { outcome: Answer::Refused(Lost::NotCommitted).into(), producer: None } })
}
