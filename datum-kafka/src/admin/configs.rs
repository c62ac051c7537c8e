//! Reading a topic's configuration.

use std::collections::BTreeMap;

use kafka_protocol::messages::DescribeConfigsRequest;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;

use super::{Admin, text};
use crate::error::{ErrorCode, KafkaError, ProtocolFault, Result, Subject};

/// The protocol's number for a topic among the kinds of resources.
const TOPIC: i8 = 2;

impl Admin {
    /// The values of these configuration keys of a topic as they are in force, defaults included. A key the broker does not know
    /// is missing from the map; all keys if `keys` is empty.
    ///
    /// # Errors
    /// The broker's refusal, naming the topic.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn topic_config(&self, topic: &str, keys: &[&str]) -> Result<BTreeMap<String, String>> {
        let names = (!keys.is_empty()).then(|| keys.iter().map(|key| text(key)).collect());
        let resource = DescribeConfigsResource::default()
            .with_resource_type(TOPIC)
            .with_resource_name(text(topic))
            .with_configuration_keys(names);
        let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
        let mut retry = self.cluster.retry();
        loop {
            let response = self.cluster.send_to_any(&request).await?;
            let Some(result) = response.results.into_iter().next() else {
                let fault = ProtocolFault::Content("no result for the topic asked for");
                return Err(KafkaError::protocol("the cluster", "DescribeConfigs", fault));
            };
            match ErrorCode::from(result.error_code).into_result() {
                Ok(()) => {
                    let value = |v: &str| v.to_owned();
                    return Ok(result
                        .configs
                        .iter()
                        .filter_map(|config| Some((value(&config.name), value(config.value.as_deref()?))))
                        .collect());
                }
                Err(code) => {
                    let message = result.error_message.as_deref();
                    retry
                        .wait(KafkaError::broker_says(
                            code,
                            "DescribeConfigs",
                            Subject::topic(topic),
                            message,
                        ))
                        .await?;
                }
            }
        }
    }
}
