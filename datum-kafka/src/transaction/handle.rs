//! The transactional producer: the machine with a socket.

use std::{sync::Arc, time::Duration};

use datum_net::Rng;
use kafka_protocol::{
    messages::{
        AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, EndTxnRequest, EndTxnResponse, GroupId,
        InitProducerIdRequest, ProducerId, TopicName, TransactionalId, TxnOffsetCommitRequest,
        add_partitions_to_txn_request::AddPartitionsToTxnTopic,
        txn_offset_commit_request::{TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic},
    },
    protocol::StrBytes,
};
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    AbortReason, Reaction, Step, TransactionError, TransactionPhase, TransactionState, TransactionVersion,
};
use crate::{
    TopicPartition,
    cluster::{Cluster, CoordinatorKind},
    connection::{Call, Connection},
    error::{KafkaError, KafkaErrorKind, Subject},
    group::{CommitOffset, GroupIdentity, Offsets, by_topic},
    producer::{Delivery, Producer, ProducerIdentity, ProducerRecord},
    settings::ProducerSettings,
    wire::ErrorCode,
};

type Result<T, E = TransactionError> = std::result::Result<T, E>;

/// Writes records and consumed offsets that become visible together or not at all.
///
/// It has connections of its own, so that no consumer's long poll or join holds up its requests. One transaction at a time; the
/// methods take `&mut self`, since there is nothing that two callers could do to one transaction at once.
///
/// # When it ends
/// [`TransactionError::Fenced`] and [`TransactionError::Refused`] end it. Dropping it within a transaction leaves that to the
/// coordinator, which aborts it after `transaction_timeout`, or when the next producer of this id initialises itself.
#[derive(Debug)]
pub struct TransactionalProducer {
    producer: Producer,
    cluster: Cluster,
    id: Arc<str>,
    state: TransactionState,
    rng: Rng,
}

impl TransactionalProducer {
    /// Connects. The producer has no identity before [`init`](Self::init).
    ///
    /// # Errors
    /// [`TransactionError::NoTransactionalId`], or no bootstrap address answers.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn connect(settings: ProducerSettings) -> Result<Self> {
        let id = settings.transactional_id.clone().ok_or(TransactionError::NoTransactionalId)?;
        let producer = Producer::connect(settings).await?;
        let cluster = producer.cluster().clone();
        let state = TransactionState::new(id.clone());
        Ok(Self { producer, cluster, id, state, rng: Rng::from_entropy() })
    }

    /// Takes the transactional id over: fences every producer that had it before, and aborts what that left open. To be called when it is
    /// certain that this process is to be the owner (after an assignment), and again after
    /// [`OutcomeUnknown`](TransactionError::OutcomeUnknown).
    ///
    /// # Errors
    /// [`Refused`](TransactionError::Refused), or no coordinator answers within `transaction_timeout` and a `request_timeout`.
    ///
    /// # Cancel safety
    /// Safe; call it again.
    pub async fn init(&mut self) -> Result<()> {
        self.state.check_init()?;
        self.producer.abort().await;
        self.producer.take_failure();
        let identity = self.init_producer(None).await?;
        self.producer.adopt(identity);
        self.state.initialised(identity);
        Ok(())
    }

    /// Begins a transaction, in the newest protocol that the cluster has agreed on and the coordinator speaks.
    ///
    /// # Errors
    /// [`Misuse`](TransactionError::Misuse); no coordinator answers.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn begin(&mut self) -> Result<()> {
        let connection = self.cluster.coordinator(CoordinatorKind::Transaction, &self.id).await?;
        let version = negotiated(&connection);
        self.state.begin(version)?;
        self.producer.implicit_partitions(version == TransactionVersion::V2);
        Ok(())
    }

    /// Adds a record. Its fate is decided by the transaction; awaiting the [`Delivery`] is only needed for its offset.
    ///
    /// # Errors
    /// [`Send`](TransactionError::Send) if the record cannot be accepted, which leaves the transaction as it was;
    /// [`Abortable`](TransactionError::Abortable), [`Fenced`](TransactionError::Fenced).
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the record was not accepted.
    pub async fn send(&mut self, mut record: ProducerRecord) -> Result<Delivery> {
        let identity = self.state.check_open("send")?;
        if let Some(why) = self.producer.take_failure() {
            return Err(self.state.broken(AbortReason::Record(why)));
        }
        let partition = self.producer.place(&mut record).await?;
        if self.state.must_add(&partition) {
            self.add_partition(identity, &partition).await?;
            self.state.added(partition.clone());
        }
        let delivery = self.producer.send(record).await?;
        self.state.added(partition);
        Ok(delivery)
    }

    /// Adds consumed offsets, in the name of a group's member and generation: without them the broker would accept offsets of a
    /// member that has long been replaced (KIP-447).
    ///
    /// # Errors
    /// [`Generation`](TransactionError::Generation) leaves the transaction open: wait for the member's next generation
    /// ([`Group::identity_after`](crate::group::Group::identity_after)) and send again, or abort.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the offsets may or may not be in the transaction; send them again or abort.
    pub async fn send_offsets(&mut self, offsets: &Offsets, member: &GroupIdentity) -> Result<()> {
        let identity = self.state.check_open("send_offsets")?;
        if offsets.is_empty() {
            return Ok(());
        }
        if self.state.must_add_group(&member.group) {
            let call = AddOffsetsToTxnRequest::default()
                .with_transactional_id(self.wire_id())
                .with_producer_id(ProducerId(identity.id))
                .with_producer_epoch(identity.epoch)
                .with_group_id(GroupId(text(&member.group)));
            self.run(Step::AddOffsets, None, (0, 4), &call, |answer| answer.error_code).await?;
        }
        self.state.added_group(member.group.clone());
        let call = self.offset_request(identity, offsets, member);
        let versions = match self.state.version() {
            TransactionVersion::V1 => (3, 4),
            TransactionVersion::V2 => (5, 5),
        };
        let group = member.group.clone();
        self.run(Step::CommitOffsets, Some(&group), versions, &call, |answer| {
            let mut codes =
                answer.topics.iter().flat_map(|topic| &topic.partitions).map(|one| one.error_code);
            codes.find(|code| *code != 0).unwrap_or(0)
        })
        .await?;
        Ok(())
    }

    /// Waits until everything sent so far is written, without ending the transaction.
    ///
    /// # Errors
    /// [`Abortable`](TransactionError::Abortable) if something was not written.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn flush(&mut self) -> Result<()> {
        self.state.check_open("flush")?;
        self.producer.flush().await;
        match self.producer.take_failure() {
            Some(why) => Err(self.state.broken(AbortReason::Record(why))),
            None => Ok(()),
        }
    }

    /// Makes everything visible: waits until all records are written, then ends the transaction. An end that is not answered is asked
    /// for again, which the coordinator answers the same.
    ///
    /// # Errors
    /// [`Abortable`](TransactionError::Abortable) if a record was not written, and nothing is visible;
    /// [`OutcomeUnknown`](TransactionError::OutcomeUnknown); [`Fenced`](TransactionError::Fenced).
    ///
    /// # Cancel safety
    /// Not safe: the outcome is then unknown. Call [`init`](Self::init) and recover.
    pub async fn commit(&mut self) -> Result<()> {
        self.flush().await?;
        self.end(true).await
    }

    /// Makes nothing visible: gives up what has not been sent, waits for what has, ends the transaction.
    ///
    /// # Errors
    /// [`OutcomeUnknown`](TransactionError::OutcomeUnknown); [`Fenced`](TransactionError::Fenced).
    ///
    /// # Cancel safety
    /// As [`commit`](Self::commit).
    pub async fn abort(&mut self) -> Result<()> {
        if !matches!(self.state.phase(), TransactionPhase::Open | TransactionPhase::Broken) {
            return Err(self.state.misuse("abort", "there is no transaction to abort"));
        }
        self.producer.abort().await;
        self.producer.take_failure();
        self.end(false).await?;
        if self.state.version() == TransactionVersion::V1 {
            // The broker may have seen other numbers than this side counts with; a new epoch begins at 0 (KIP-360).
            let identity = self.init_producer(self.state.identity()).await?;
            self.producer.adopt(identity);
            self.state.initialised(identity);
        }
        Ok(())
    }

    /// Where it stands.
    pub fn phase(&self) -> TransactionPhase {
        self.state.phase()
    }

    /// The protocol of the present or last transaction.
    pub fn version(&self) -> TransactionVersion {
        self.state.version()
    }

    /// Its producer id and epoch, after [`init`](Self::init).
    pub fn identity(&self) -> Option<ProducerIdentity> {
        self.state.identity()
    }

    /// The transactional id.
    pub fn transactional_id(&self) -> &Arc<str> {
        &self.id
    }

    /// The cluster it writes to.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    async fn end(&mut self, commit: bool) -> Result<()> {
        let identity = match (self.state.has_content(), self.state.identity()) {
            (true, Some(identity)) => identity,
            // Nothing was added, so the coordinator knows of no transaction.
            _ => {
                self.state.ended(None);
                return Ok(());
            }
        };
        let call = EndTxnRequest::default()
            .with_transactional_id(self.wire_id())
            .with_producer_id(ProducerId(identity.id))
            .with_producer_epoch(identity.epoch)
            .with_committed(commit);
        let versions = match self.state.version() {
            TransactionVersion::V1 => (0, 4),
            TransactionVersion::V2 => (5, 5),
        };
        // Until it is known otherwise. If this future is dropped, that is what stays.
        let limit = self.limit();
        self.state.unknown(commit, limit);
        match self.run(Step::End, None, versions, &call, |answer: &EndTxnResponse| answer.error_code).await {
            Ok(answer) => {
                let next = (answer.producer_id.0 >= 0)
                    .then_some(ProducerIdentity { id: answer.producer_id.0, epoch: answer.producer_epoch });
                if let Some(next) = next.filter(|_| self.state.version() == TransactionVersion::V2) {
                    self.producer.adopt(next);
                    self.state.ended(Some(next));
                } else {
                    self.state.ended(None);
                }
                Ok(())
            }
            Err(TransactionError::Kafka(error)) => {
                tracing::warn!(id = %self.id, %error, commit, "the outcome of a transaction is not known");
                Err(self.state.unknown(commit, limit))
            }
            Err(error) => Err(error),
        }
    }

    async fn add_partition(&mut self, identity: ProducerIdentity, partition: &TopicPartition) -> Result<()> {
        let call = AddPartitionsToTxnRequest::default()
            .with_v3_and_below_transactional_id(self.wire_id())
            .with_v3_and_below_producer_id(ProducerId(identity.id))
            .with_v3_and_below_producer_epoch(identity.epoch)
            .with_v3_and_below_topics(vec![
                AddPartitionsToTxnTopic::default()
                    .with_name(TopicName(text(&partition.topic)))
                    .with_partitions(vec![partition.partition]),
            ]);
        self.run(Step::AddPartitions, None, (0, 3), &call, |answer| {
            let mut codes = answer
                .results_by_topic_v3_and_below
                .iter()
                .flat_map(|topic| &topic.results_by_partition)
                .map(|one| one.partition_error_code);
            codes.find(|code| *code != 0).unwrap_or(0)
        })
        .await?;
        Ok(())
    }

    /// InitProducerId; with the present identity it only takes the next epoch.
    async fn init_producer(&mut self, present: Option<ProducerIdentity>) -> Result<ProducerIdentity> {
        let timeout = self.producer.settings().transaction_timeout;
        let present = present.unwrap_or(ProducerIdentity { id: -1, epoch: -1 });
        let call = InitProducerIdRequest::default()
            .with_transactional_id(Some(self.wire_id()))
            .with_transaction_timeout_ms(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
            .with_producer_id(ProducerId(present.id))
            .with_producer_epoch(present.epoch);
        let versions = if present.id < 0 { (0, 5) } else { (3, 5) };
        let answer = self.run(Step::Init, None, versions, &call, |answer| answer.error_code).await?;
        Ok(ProducerIdentity { id: answer.producer_id.0, epoch: answer.producer_epoch })
    }

    fn offset_request(
        &self,
        identity: ProducerIdentity,
        offsets: &Offsets,
        member: &GroupIdentity,
    ) -> TxnOffsetCommitRequest {
        let part = |tp: &TopicPartition, commit: &CommitOffset| {
            TxnOffsetCommitRequestPartition::default()
                .with_partition_index(tp.partition)
                .with_committed_offset(commit.offset)
                .with_committed_leader_epoch(commit.leader_epoch)
                .with_committed_metadata(Some(text(&commit.metadata)))
        };
        let topics = by_topic(offsets, part)
            .into_iter()
            .map(|(name, parts)| {
                TxnOffsetCommitRequestTopic::default().with_name(name).with_partitions(parts)
            })
            .collect();
        TxnOffsetCommitRequest::default()
            .with_transactional_id(self.wire_id())
            .with_group_id(GroupId(text(&member.group)))
            .with_producer_id(ProducerId(identity.id))
            .with_producer_epoch(identity.epoch)
            .with_generation_id(member.generation)
            .with_member_id(text(&member.member_id))
            .with_group_instance_id(member.instance_id.as_deref().map(text))
            .with_topics(topics)
    }

    /// Sends one request of the transaction's life until it is decided, or its time is over.
    async fn run<C: Call + Sync>(
        &mut self,
        step: Step,
        group: Option<&Arc<str>>,
        versions: (i16, i16),
        call: &C,
        code: impl Fn(&C::Answer) -> i16,
    ) -> Result<C::Answer> {
        let (kind, key) = match group {
            Some(group) => (CoordinatorKind::Group, group.clone()),
            None => (CoordinatorKind::Transaction, self.id.clone()),
        };
        let limit = self.limit();
        let until = Instant::now() + limit;
        loop {
            let chance = self.rng.bits();
            let asked = timeout_at(until, ask(&self.cluster, kind, &key, versions, call)).await;
            let (pause, error) = match asked {
                Ok(Ok(answer)) => {
                    let code = ErrorCode::from(code(&answer));
                    let pause = match step.react(code, chance) {
                        Reaction::Done => return Ok(answer),
                        Reaction::Retry(pause) => pause,
                        Reaction::Lookup => {
                            self.cluster.forget_coordinator(kind, &key);
                            Duration::from_millis(20 + chance % 20)
                        }
                        Reaction::Abort => {
                            let request = step.name();
                            return Err(self.state.broken(AbortReason::Request { request, code }));
                        }
                        Reaction::Generation => {
                            return Err(TransactionError::Generation { group: key, code });
                        }
                        Reaction::Fenced => return Err(self.state.fenced()),
                        Reaction::End => return Err(self.state.refused(step, code)),
                    };
                    (pause, KafkaError::broker(code, C::NAME, self.subject(group)))
                }
                Ok(Err(error)) if error.is_connection() || error.is_retriable() => {
                    self.cluster.forget_coordinator(kind, &key);
                    (Duration::from_millis(50 + chance % 50), error)
                }
                Ok(Err(error)) => return Err(error.into()),
                Err(_) => {
                    let peer = Arc::from(format!("the coordinator of `{key}`"));
                    return Err(KafkaError::from(KafkaErrorKind::Timeout {
                        peer,
                        api: C::NAME,
                        after: limit,
                    })
                    .into());
                }
            };
            if Instant::now() + pause >= until {
                return Err(error.into());
            }
            sleep(pause).await;
        }
    }

    /// How long one step may take: as long as the coordinator would let the transaction stay open, and an answer's time.
    fn limit(&self) -> Duration {
        let settings = self.producer.settings();
        settings.transaction_timeout + settings.client.request_timeout
    }

    fn subject(&self, group: Option<&Arc<str>>) -> Subject {
        match group {
            Some(group) => Subject::Group(group.clone()),
            None => Subject::TransactionalId(self.id.clone()),
        }
    }

    fn wire_id(&self) -> TransactionalId {
        TransactionalId(text(&self.id))
    }
}

async fn ask<C: Call>(
    cluster: &Cluster,
    kind: CoordinatorKind,
    key: &Arc<str>,
    (min, max): (i16, i16),
    call: &C,
) -> Result<C::Answer, KafkaError> {
    let connection = cluster.coordinator(kind, key).await?;
    let version = connection.version_between(C::KEY, C::NAME, min, max)?;
    connection.start_in_version(call, version).await?.await
}

/// Version 2 if the cluster has agreed on it and the coordinator speaks what it needs.
fn negotiated(connection: &Connection) -> TransactionVersion {
    let versions = connection.versions();
    let speaks = |key, version| versions.range(key).is_some_and(|(_, max)| max >= version);
    let agreed = versions.feature("transaction.version").is_some_and(|level| level >= 2);
    if agreed && speaks(EndTxnRequest::KEY, 5) && speaks(TxnOffsetCommitRequest::KEY, 5) && speaks(0, 12) {
        TransactionVersion::V2
    } else {
        TransactionVersion::V1
    }
}

fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}
