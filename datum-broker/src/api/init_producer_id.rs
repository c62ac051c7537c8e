//! InitProducerId.

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::Core;
use crate::txn::{InitRequest, Producer};

/// v3 lets a producer name what it holds (KIP-360), v4 knows `PRODUCER_FENCED`, v5 `TRANSACTION_ABORTABLE`.
pub(crate) const VERSIONS: Range = (0, 5);

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    now: i64,
    request: InitProducerIdRequest,
) -> InitProducerIdResponse {
    let held = Producer { id: request.producer_id.0, epoch: request.producer_epoch };
    let id = request.transactional_id.as_deref();
    let init = InitRequest {
        id: id.map(|id| &**id),
        timeout: i64::from(request.transaction_timeout_ms),
        held: (call.version >= 3 && held.id >= 0 && held.epoch >= 0).then_some(held),
    };
    let outcome = call
        .forced()
        .and_then(|()| id.map_or(Ok(()), |id| core.coordinates(id, call.node)))
        .and_then(|()| core.txns.init(init, now))
        .map_err(|code| fenced(code, call.version >= 4));
    let producer = outcome.unwrap_or(Producer { id: -1, epoch: -1 });
    InitProducerIdResponse::default()
        .with_error_code(number(&outcome))
        .with_producer_id(ProducerId(producer.id))
        .with_producer_epoch(producer.epoch)
}

/// Clients that do not know `PRODUCER_FENCED` are told the older code.
pub(crate) fn fenced(code: Code, knows: bool) -> Code {
    if code == Code::ProducerFenced && !knows { Code::InvalidProducerEpoch } else { code }
}
