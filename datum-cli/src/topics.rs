//! Topics that a command needs: created where they are missing, and kept for ever.
//!
//! Sample records and panes carry the time of the event, which may be long past: a topic with a retention time would delete them as they
//! come. So topics are created with unlimited retention, and one that exists with less is warned about.

use std::io::Write;

use datum::kafka::admin::{Admin, NewTopic};
use datum::kafka::{ClientSettings, TopicPartition};

use crate::error::CliError;

/// The settings that bound how long and how much a topic keeps; -1 is no bound.
const RETENTION: [&str; 2] = ["retention.ms", "retention.bytes"];

/// Connects to the brokers given.
pub(crate) async fn connect(brokers: &[String]) -> Result<Admin, CliError> {
    Ok(Admin::connect(ClientSettings::new(&brokers.join(","))).await?)
}

/// Creates `topic` with `partitions` and unlimited retention, or warns about the retention of the one that is there.
pub(crate) async fn ensure(admin: &Admin, topic: &str, partitions: i32) -> Result<(), CliError> {
    let wanted =
        RETENTION.iter().fold(NewTopic::new(topic).partitions(partitions), |t, key| t.config(key, "-1"));
    if admin.create_topic(&wanted).await? {
        return Ok(());
    }
    let config = admin.topic_config(topic, &RETENTION).await?;
    for (key, value) in config.iter().filter(|(_, value)| *value != "-1") {
        // Nothing can be done about a closed standard error.
        let _ = writeln!(
            std::io::stderr().lock(),
            "datum: warning: topic {topic} has {key}={value} and may delete records with old timestamps as they come; \
             set it to -1",
        );
    }
    Ok(())
}

/// The partitions of a topic that must be there.
pub(crate) async fn partitions(admin: &Admin, topic: &str) -> Result<Vec<TopicPartition>, CliError> {
    let metadata = admin.describe_topic(topic).await?;
    let count = metadata.partition_count(topic).unwrap_or_default();
    Ok((0..).take(count).map(|partition| TopicPartition::new(topic, partition)).collect())
}
