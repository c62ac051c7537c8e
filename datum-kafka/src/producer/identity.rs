//! Getting a producer id (InitProducerId) without a transaction.

use kafka_protocol::messages::{InitProducerIdRequest, ProducerId};

use super::ProducerIdentity;
use crate::{
    cluster::Cluster,
    connection::Call,
    error::{KafkaError, Result, Subject},
    wire::ErrorCode,
};

/// What the cluster's refusal says.
pub(super) fn refused(code: ErrorCode) -> KafkaError {
    KafkaError::broker(code, InitProducerIdRequest::NAME, Subject::Cluster)
}

/// A fresh producer id from any broker.
pub(super) async fn idempotent(cluster: &Cluster) -> Result<ProducerIdentity> {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(i32::MAX)
        .with_producer_id(ProducerId(-1))
        .with_producer_epoch(-1);
    let mut retry = cluster.retry();
    loop {
        let answer = cluster.send_to_any(&request).await?;
        match ErrorCode::from(answer.error_code) {
            ErrorCode::None => {
                return Ok(ProducerIdentity { id: answer.producer_id.0, epoch: answer.producer_epoch });
            }
            code => {
                retry.wait(refused(code)).await?;
            }
        }
    }
}
