//! Who coordinates a group or a transactional id, and a connection to them.

use std::sync::Arc;

use kafka_protocol::messages::{FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::{Cluster, Purpose, Retry};
use crate::connection::{Call, Connection};
use crate::error::{ErrorCode, KafkaError, ProtocolFault, Result, Subject};

/// What is being coordinated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CoordinatorKind {
    /// A consumer group.
    Group,
    /// A transactional id.
    Transaction,
}

impl CoordinatorKind {
    fn wire(self) -> i8 {
        match self {
            Self::Group => 0,
            Self::Transaction => 1,
        }
    }

    fn subject(self, key: &Arc<str>) -> Subject {
        match self {
            Self::Group => Subject::Group(key.clone()),
            Self::Transaction => Subject::TransactionalId(key.clone()),
        }
    }
}

impl Cluster {
    /// An open connection to the coordinator of `key`, which is looked up if it is not known.
    ///
    /// Whoever is told `NOT_COORDINATOR` or `COORDINATOR_NOT_AVAILABLE`, or loses the connection, calls
    /// [`forget_coordinator`](Self::forget_coordinator) and asks again.
    ///
    /// # Errors
    /// [`Unauthorized`](crate::KafkaErrorKind::Unauthorized) at once; else what befell the last attempt within `request_timeout`.
    ///
    /// # Cancel safety
    /// Safe.
    pub async fn coordinator(&self, kind: CoordinatorKind, key: &Arc<str>) -> Result<Connection> {
        self.coordinator_for(kind, key, Purpose::Coordinator).await
    }

    /// As [`coordinator`](Self::coordinator), over one or the other connection to it.
    pub(crate) async fn coordinator_for(
        &self,
        kind: CoordinatorKind,
        key: &Arc<str>,
        purpose: Purpose,
    ) -> Result<Connection> {
        let mut retry = self.retry();
        loop {
            let found = async {
                let known = self.shared().coordinators.get(&(kind, key.clone())).copied();
                let broker = match known {
                    Some(broker) => broker,
                    None => self.find_coordinator(kind, key).await?,
                };
                self.connection(broker, purpose).await
            };
            match found.await {
                Ok(connection) => return Ok(connection),
                Err(error) => {
                    self.forget_coordinator(kind, key);
                    retry.wait(error).await?;
                }
            }
        }
    }

    /// After a coordinator's answer that failed: forgets it where another may be the one, and waits for the next attempt.
    ///
    /// # Errors
    /// `error` itself, once trying again cannot help or has taken too long.
    pub(crate) async fn coordinator_failed(
        &self,
        kind: CoordinatorKind,
        key: &Arc<str>,
        error: KafkaError,
        retry: &mut Retry,
    ) -> Result<()> {
        if error.is_connection() || error.code().is_some_and(ErrorCode::needs_coordinator_lookup) {
            self.forget_coordinator(kind, key);
        }
        retry.wait(error).await
    }

    /// The coordinator of `key` has moved or is gone: the next caller looks it up anew.
    pub fn forget_coordinator(&self, kind: CoordinatorKind, key: &Arc<str>) {
        self.shared().coordinators.remove(&(kind, key.clone()));
    }

    async fn find_coordinator(&self, kind: CoordinatorKind, key: &Arc<str>) -> Result<i32> {
        let connection = self.any_connection().await?;
        // Since version 4 (KIP-699) keys go in batches, before that one by one.
        let batched = connection.version_of::<FindCoordinatorRequest>()? >= 4;
        let text = StrBytes::from_string(key.to_string());
        let request = FindCoordinatorRequest::default().with_key_type(kind.wire());
        let request =
            if batched { request.with_coordinator_keys(vec![text]) } else { request.with_key(text) };
        let response = connection.send(&request).await?;
        let broker = read(response, kind, key, connection.peer())?;
        if !self.metadata().brokers.contains_key(&broker) {
            self.refresh().await?;
        }
        self.shared().coordinators.insert((kind, key.clone()), broker);
        Ok(broker)
    }
}

fn read(
    response: FindCoordinatorResponse,
    kind: CoordinatorKind,
    key: &Arc<str>,
    peer: &Arc<str>,
) -> Result<i32> {
    const NAME: &str = <FindCoordinatorRequest as Call>::NAME;
    let (code, message, broker) = match response.coordinators.first() {
        Some(found) => (found.error_code, &found.error_message, found.node_id),
        None if response.error_code == 0 && response.node_id.0 < 0 => {
            return Err(KafkaError::protocol(
                peer.clone(),
                NAME,
                ProtocolFault::Content("no coordinator named"),
            ));
        }
        None => (response.error_code, &response.error_message, response.node_id),
    };
    ErrorCode::from(code)
        .into_result()
        .map_err(|code| KafkaError::broker_says(code, NAME, kind.subject(key), message.as_deref()))?;
    Ok(broker.0)
}
