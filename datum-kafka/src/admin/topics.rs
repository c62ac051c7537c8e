//! Creating and deleting topics, adding partitions.

use std::collections::BTreeMap;

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::{CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest};

use super::{Admin, text, timeout_ms, topic_name};
use crate::connection::Call;
use crate::error::{ErrorCode, KafkaError, Result, Subject};

/// A topic to be created.
///
/// ```
/// use datum_kafka::admin::NewTopic;
/// let topic = NewTopic::new("bench-input").partitions(6).config("retention.ms", "-1").config("retention.bytes", "-1");
/// assert_eq!(topic.partitions, 6);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions. Default 1.
    pub partitions: i32,
    /// How many copies; -1, the default, for the broker's `default.replication.factor`.
    pub replication_factor: i16,
    /// Configuration that differs from the broker's defaults.
    pub configs: BTreeMap<String, String>,
}

impl NewTopic {
    /// A topic of one partition with the broker's defaults.
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), partitions: 1, replication_factor: -1, configs: BTreeMap::new() }
    }

    /// Sets the number of partitions.
    pub fn partitions(mut self, count: i32) -> Self {
        self.partitions = count;
        self
    }

    /// Sets the number of copies.
    pub fn replication_factor(mut self, copies: i16) -> Self {
        self.replication_factor = copies;
        self
    }

    /// Sets one configuration value, e.g. `retention.ms`.
    pub fn config(mut self, key: &str, value: &str) -> Self {
        self.configs.insert(key.into(), value.into());
        self
    }
}

impl Admin {
    /// Creates a topic. Whether it was created: `false` if it existed before, however it is configured.
    ///
    /// Returns once the brokers asked afterwards know it, so that what follows does not meet an unknown topic.
    ///
    /// # Errors
    /// The broker's refusal, naming the topic.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the topic may or may not have been created.
    pub async fn create_topic(&self, topic: &NewTopic) -> Result<bool> {
        let configs = topic
            .configs
            .iter()
            .map(|(key, value)| {
                CreatableTopicConfig::default().with_name(text(key)).with_value(Some(text(value)))
            })
            .collect();
        let creatable = CreatableTopic::default()
            .with_name(topic_name(&topic.name))
            .with_num_partitions(topic.partitions)
            .with_replication_factor(topic.replication_factor)
            .with_configs(configs);
        let request = CreateTopicsRequest::default()
            .with_topics(vec![creatable])
            .with_timeout_ms(timeout_ms(&self.cluster));
        let created = self
            .retried(&request, &topic.name, |response| {
                let result = response.topics.first()?;
                Some((result.error_code, result.error_message.as_deref().map(Into::into)))
            })
            .await;
        let created = match created {
            Ok(()) => true,
            Err(error) if error.code() == Some(ErrorCode::TopicAlreadyExists) => false,
            Err(error) => return Err(error),
        };
        // However long it was unknown before: it has only just been created.
        let grace = self.cluster.settings().unknown_topic_grace;
        self.cluster.expect_topic(&topic.name.as_str().into(), grace).await?;
        Ok(created)
    }

    /// Grows a topic to `count` partitions in all.
    ///
    /// # Errors
    /// The broker's refusal, naming the topic; partitions cannot become fewer.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the topic may or may not have grown.
    pub async fn create_partitions(&self, topic: &str, count: i32) -> Result<()> {
        let grown = CreatePartitionsTopic::default()
            .with_name(topic_name(topic))
            .with_count(count)
            .with_assignments(None);
        let request = CreatePartitionsRequest::default()
            .with_topics(vec![grown])
            .with_timeout_ms(timeout_ms(&self.cluster));
        self.retried(&request, topic, |response| {
            let result = response.results.first()?;
            Some((result.error_code, result.error_message.as_deref().map(Into::into)))
        })
        .await
    }

    /// Deletes a topic. Whether it was there.
    ///
    /// # Errors
    /// The broker's refusal, naming the topic.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, the topic may or may not have been deleted.
    pub async fn delete_topic(&self, topic: &str) -> Result<bool> {
        let request = DeleteTopicsRequest::default()
            .with_topic_names(vec![topic_name(topic)])
            .with_timeout_ms(timeout_ms(&self.cluster));
        let deleted = self
            .retried(&request, topic, |response| {
                let result = response.responses.first()?;
                Some((result.error_code, result.error_message.as_deref().map(Into::into)))
            })
            .await;
        match deleted {
            Ok(()) => Ok(true),
            Err(error) if error.code() == Some(ErrorCode::UnknownTopicOrPartition) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends `request` until its one result is good or an error that does not pass.
    async fn retried<C: Call>(
        &self,
        request: &C,
        topic: &str,
        result: impl Fn(&C::Answer) -> Option<(i16, Option<Box<str>>)>,
    ) -> Result<()> {
        let mut retry = self.cluster.retry();
        loop {
            let response = self.cluster.send_to_any(request).await?;
            let (code, message) = result(&response).unwrap_or((ErrorCode::UnknownServerError.code(), None));
            match ErrorCode::from(code).into_result() {
                Ok(()) => return Ok(()),
                Err(code) => {
                    let error =
                        KafkaError::broker_says(code, C::NAME, Subject::topic(topic), message.as_deref());
                    // A topic that is not there does not come by itself.
                    if code == ErrorCode::UnknownTopicOrPartition {
                        return Err(error);
                    }
                    retry.wait(error).await?;
                }
            }
        }
    }
}
