//! Fetching metadata: who asks, how often, and what the answer becomes.

use std::sync::Arc;
use std::time::Duration;

use datum_net::{Address, Backoff};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{MetadataResponse, MetadataResponseTopic};
use kafka_protocol::messages::{MetadataRequest, TopicName};
use kafka_protocol::protocol::StrBytes;
use tokio::time::{Instant, sleep_until};

use super::metadata::{Answer, Broker, Leadership, Topic, TopicId};
use super::{Cluster, Metadata, Retry};
use crate::TopicPartition;
use crate::error::{ErrorCode, KafkaError, KafkaErrorKind, Result, Subject};
use crate::settings::ClientSettings;

/// How fast refreshes may follow one another.
#[derive(Debug)]
pub(super) struct Pace {
    backoff: Backoff,
    not_before: Option<Instant>,
}

impl Pace {
    pub(super) fn new(settings: &ClientSettings) -> Self {
        Self { backoff: Backoff::new(settings.retry_backoff), not_before: None }
    }
}

impl Cluster {
    /// Keeps metadata of these topics from now on, and makes sure that each is known.
    ///
    /// # Errors
    /// [`UnknownTopic`](KafkaErrorKind::UnknownTopic) after `unknown_topic_grace`,
    /// [`Unauthorized`](KafkaErrorKind::Unauthorized) at once, or no broker answers.
    ///
    /// # Cancel safety
    /// Safe; the topics stay of interest.
    pub async fn require_topics(&self, topics: impl IntoIterator<Item = Arc<str>>) -> Result<()> {
        let topics: Vec<Arc<str>> = topics.into_iter().collect();
        if self.is_news(&topics) {
            self.refresh().await?;
        }
        while let Some(missing) = self.first_missing(&topics) {
            self.check_topic(missing)?;
            self.refresh().await?;
        }
        Ok(())
    }

    /// Keeps metadata of a topic from now on that must be there already, or was just created: however long it has been unknown
    /// before, it gets `grace` from now, since a new topic reaches some brokers a moment later.
    ///
    /// # Errors
    /// [`UnknownTopic`](KafkaErrorKind::UnknownTopic) after `grace`, else as [`require_topics`](Self::require_topics).
    ///
    /// # Cancel safety
    /// Safe; the topic stays of interest.
    pub(crate) async fn expect_topic(&self, topic: &Arc<str>, grace: Duration) -> Result<()> {
        let asked = Instant::now();
        let topics = std::slice::from_ref(topic);
        self.is_news(topics);
        while self.first_missing(topics).is_some() {
            self.refresh().await?;
            if self.first_missing(topics).is_some() {
                self.judge(topic, Some(asked), grace)?;
            }
        }
        Ok(())
    }

    /// Makes topics of interest; whether one of them was not before.
    fn is_news(&self, topics: &[Arc<str>]) -> bool {
        let mut shared = self.shared();
        topics.iter().filter(|topic| shared.topics.insert(Arc::clone(topic))).count() > 0
    }

    fn first_missing<'a>(&self, topics: &'a [Arc<str>]) -> Option<&'a Arc<str>> {
        let metadata = self.metadata();
        topics.iter().find(|topic| metadata.partition_count(topic).is_none())
    }

    /// Keeps metadata of these topics from the next refresh on.
    pub(crate) fn add_topics(&self, topics: impl IntoIterator<Item = Arc<str>>) {
        self.shared().topics.extend(topics);
    }

    /// Whether a topic's last answer is one that waiting will not mend.
    ///
    /// # Errors
    /// As [`require_topics`](Self::require_topics).
    pub fn check_topic(&self, topic: &Arc<str>) -> Result<()> {
        let since = self.shared().unknown_since.get(topic).copied();
        self.judge(topic, since, self.settings().unknown_topic_grace)
    }

    /// A topic's last answer, if it is not known for `grace` since `since`.
    fn judge(&self, topic: &Arc<str>, since: Option<Instant>, grace: Duration) -> Result<()> {
        let code =
            self.metadata().topic(topic).map_or(ErrorCode::UnknownTopicOrPartition, |topic| topic.error);
        match code {
            ErrorCode::None => Ok(()),
            ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId => match since {
                Some(since) if since.elapsed() >= grace => {
                    Err(KafkaErrorKind::UnknownTopic { topic: topic.clone(), waited: grace }.into())
                }
                _ => Ok(()),
            },
            code if code.is_retriable() => Ok(()),
            code => Err(KafkaError::broker(code, "Metadata", Subject::Topic(topic.clone()))),
        }
    }

    /// Fetches metadata of the topics of interest and returns what is known then. Callers at the same time share one request: whoever
    /// waits while another's is under way returns with its result.
    ///
    /// # Errors
    /// What befell the last broker once all of them were tried for `request_timeout`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn refresh(&self) -> Result<Arc<Metadata>> {
        let asked = Instant::now();
        let mut pace = self.0.refreshing.lock().await;
        if self.shared().fetched_at.is_some_and(|at| at >= asked) {
            return Ok(self.metadata());
        }
        if let Some(at) = pace.not_before {
            sleep_until(at).await;
        }
        let outcome = self.fetch_metadata(self.retry()).await;
        let now = Instant::now();
        let wait = if outcome.is_ok() {
            pace.backoff.reset();
            self.settings().retry_backoff.initial
        } else {
            pace.backoff.next_delay(&mut self.0.connections.rng())
        };
        pace.not_before = Some(now + wait);
        outcome
    }

    /// [`refresh`](Self::refresh) if the last is older than `age`.
    ///
    /// # Errors
    /// As [`refresh`](Self::refresh).
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn refresh_if_older(&self, age: Duration) -> Result<Arc<Metadata>> {
        let fresh = self.shared().fetched_at.is_some_and(|at| at.elapsed() < age);
        if fresh { Ok(self.metadata()) } else { self.refresh().await }
    }

    /// How long metadata may be used until it is `age` old.
    pub fn metadata_fresh_for(&self, age: Duration) -> Duration {
        self.shared().fetched_at.map_or(Duration::ZERO, |at| age.saturating_sub(at.elapsed()))
    }

    /// Takes up what a response said in passing about a partition's leader (KIP-951): no metadata request is needed then. Whether it was news.
    pub fn hint_leader(
        &self,
        partition: &TopicPartition,
        leader: Leadership,
        broker: Option<Broker>,
    ) -> bool {
        self.0.metadata.send_if_modified(|known| match known.hint(partition, leader, broker) {
            Some(next) => {
                *known = Arc::new(next);
                true
            }
            None => false,
        })
    }

    /// The first answer of the cluster. Nobody who listens nowhere is waited for as long as for one who was there before.
    pub(super) async fn first_contact(&self) -> Result<Arc<Metadata>> {
        self.fetch_metadata(self.retry().refused_within(self.settings().first_contact_timeout)).await
    }

    async fn fetch_metadata(&self, mut retry: Retry) -> Result<Arc<Metadata>> {
        let topics: Vec<Arc<str>> = self.shared().topics.iter().cloned().collect();
        let request = request(&topics);
        let answer = loop {
            let sent = async {
                let response = self.any_connection().await?.send(&request).await?;
                ErrorCode::from(response.error_code)
                    .into_result()
                    .map_err(|code| KafkaError::broker(code, "Metadata", Subject::Cluster))?;
                Ok::<_, KafkaError>(response)
            };
            match sent.await {
                Ok(response) => break answer(response),
                Err(error) if error.code() == Some(ErrorCode::RebootstrapRequired) => {
                    // KIP-1102: what we know of the brokers is of another cluster by now; the next attempt starts over.
                    tracing::warn!("the broker asks to start over from the bootstrap addresses");
                    self.0.metadata.send_modify(|known| *known = Arc::new(known.without_brokers()));
                }
                Err(error) => retry.wait(error).await?,
            }
        };
        self.note(&answer);
        if !answer.brokers.is_empty() {
            self.0.connections.release_bootstrap();
        }
        self.0.metadata.send_modify(|known| *known = Arc::new(known.merge(answer)));
        Ok(self.metadata())
    }

    fn note(&self, answer: &Answer) {
        let now = Instant::now();
        let mut shared = self.shared();
        shared.fetched_at = Some(now);
        for (name, topic) in &answer.topics {
            match topic.error {
                ErrorCode::UnknownTopicOrPartition | ErrorCode::UnknownTopicId => {
                    shared.unknown_since.entry(name.clone()).or_insert(now);
                }
                _ => {
                    shared.unknown_since.remove(name);
                }
            }
        }
    }
}

fn request(topics: &[Arc<str>]) -> MetadataRequest {
    let topics = topics
        .iter()
        .map(|name| {
            MetadataRequestTopic::default()
                .with_name(Some(TopicName(StrBytes::from_string(name.to_string()))))
        })
        .collect();
    MetadataRequest::default().with_topics(Some(topics)).with_allow_auto_topic_creation(false)
}

fn answer(response: MetadataResponse) -> Answer {
    let brokers = response
        .brokers
        .iter()
        .filter_map(|broker| {
            let port = u16::try_from(broker.port).ok()?;
            Some(Broker {
                id: broker.node_id.0,
                address: Address::new(&broker.host, port),
                rack: broker.rack.as_ref().map(|rack| rack.as_str().into()),
            })
        })
        .collect();
    Answer {
        cluster_id: response.cluster_id.as_ref().map(|id| id.as_str().into()),
        brokers,
        topics: response.topics.into_iter().filter_map(topic).collect(),
    }
}

fn topic(topic: MetadataResponseTopic) -> Option<(Arc<str>, Topic)> {
    let name: Arc<str> = topic.name.as_ref()?.0.as_str().into();
    let error = ErrorCode::from(topic.error_code);
    let none = Leadership { leader: None, epoch: -1 };
    let mut found = topic.partitions;
    found.sort_by_key(|partition| partition.partition_index);
    let mut partitions = Vec::with_capacity(found.len());
    for partition in found {
        let index = usize::try_from(partition.partition_index).ok()?;
        // A gap cannot be in an honest answer, and one of a hostile peer must not make us allocate.
        if index != partitions.len() {
            return Some((
                name,
                Topic { id: TopicId::default(), error, internal: false, partitions: vec![none; 0] },
            ));
        }
        let leader = Some(partition.leader_id.0).filter(|&leader| leader >= 0);
        partitions.push(Leadership { leader, epoch: partition.leader_epoch });
    }
    Some((name, Topic { id: topic.topic_id.into_bytes(), error, internal: topic.is_internal, partitions }))
}
