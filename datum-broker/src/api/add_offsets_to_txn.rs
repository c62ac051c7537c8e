//! AddOffsetsToTxn: a transaction of the first protocol will commit offsets of this group.

use kafka_protocol::messages::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};

use crate::api::init_producer_id::fenced;
use crate::api::{Call, Range};
use crate::code::number;
use crate::core::Core;
use crate::txn::{Member, Producer};

/// v2 knows `PRODUCER_FENCED`.
pub(crate) const VERSIONS: Range = (0, 4);

pub(crate) fn handle(
    core: &mut Core,
    call: &Call,
    now: i64,
    request: AddOffsetsToTxnRequest,
) -> AddOffsetsToTxnResponse {
    let id = &request.transactional_id;
    let producer = Producer { id: request.producer_id.0, epoch: request.producer_epoch };
    let outcome = call
        .forced()
        .and_then(|()| core.coordinates(id, call.node))
        .and_then(|()| core.txns.add(id, producer, &[Member::Group(&request.group_id)], now))
        .map_err(|code| fenced(code, call.version >= 2));
    AddOffsetsToTxnResponse::default().with_error_code(number(&outcome))
}
