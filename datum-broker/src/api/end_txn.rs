//! EndTxn: commit or abort.

use kafka_protocol::messages::{EndTxnRequest, EndTxnResponse, ProducerId};

use crate::api::init_producer_id::fenced;
use crate::api::{Call, Range};
use crate::code::number;
use crate::core::Core;
use crate::txn::Producer;

/// v2 knows `PRODUCER_FENCED`; v5 is the second protocol and answers with the next epoch.
pub(crate) const VERSIONS: Range = (0, 5);

pub(crate) fn handle(core: &mut Core, call: &Call, now: i64, request: EndTxnRequest) -> EndTxnResponse {
    let id = &request.transactional_id;
    let producer = Producer { id: request.producer_id.0, epoch: request.producer_epoch };
    let raises = call.version >= 5;
    let outcome = call
        .forced()
        .and_then(|()| core.coordinates(id, call.node))
        .and_then(|()| core.txns.end(id, producer, request.committed, raises, now))
        .map_err(|code| fenced(code, call.version >= 2));
    let response = EndTxnResponse::default().with_error_code(number(&outcome));
    match outcome {
        Ok(next) if raises => response.with_producer_id(ProducerId(next.id)).with_producer_epoch(next.epoch),
        _ => response,
    }
}
