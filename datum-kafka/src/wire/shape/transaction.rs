//! Producers and transactions.
//!
//! Source: the message definitions of Apache Kafka 4.4.

use super::{BOOL, I16, I32, I64, STRING, Shape, array, field, rows, shape};

pub(super) const INIT_PRODUCER_ID_REQUEST: Shape = shape(
    "InitProducerId request",
    2,
    &[
        field("transactional id", STRING),
        field("transaction timeout ms", I32),
        field("producer id", I64).since(3),
        field("producer epoch", I16).since(3),
        field("enable2 pc", BOOL).since(6),
        field("keep prepared txn", BOOL).since(6),
    ],
);

pub(super) const INIT_PRODUCER_ID_RESPONSE: Shape = shape(
    "InitProducerId response",
    2,
    &[
        field("throttle time ms", I32),
        field("error code", I16),
        field("producer id", I64),
        field("producer epoch", I16),
        field("ongoing txn producer id", I64).since(6),
        field("ongoing txn producer epoch", I16).since(6),
    ],
);

pub(super) const ADD_PARTITIONS_TO_TXN_REQUEST: Shape = shape(
    "AddPartitionsToTxn request",
    3,
    &[
        field(
            "transactions",
            rows![
                field("transactional id", STRING).since(4),
                field("producer id", I64).since(4),
                field("producer epoch", I16).since(4),
                field("verify only", BOOL).since(4),
                field("topics", rows![field("name", STRING), field("partitions", array(&I32)),]).since(4),
            ],
        )
        .since(4),
        field("v3 and below transactional id", STRING).until(3),
        field("v3 and below producer id", I64).until(3),
        field("v3 and below producer epoch", I16).until(3),
        field("v3 and below topics", rows![field("name", STRING), field("partitions", array(&I32)),])
            .until(3),
    ],
);

pub(super) const ADD_PARTITIONS_TO_TXN_RESPONSE: Shape = shape(
    "AddPartitionsToTxn response",
    3,
    &[
        field("throttle time ms", I32),
        field("error code", I16).since(4),
        field(
            "results by transaction",
            rows![
                field("transactional id", STRING).since(4),
                field(
                    "topic results",
                    rows![
                        field("name", STRING),
                        field(
                            "results by partition",
                            rows![field("partition index", I32), field("partition error code", I16),]
                        ),
                    ]
                )
                .since(4),
            ],
        )
        .since(4),
        field(
            "results by topic v3 and below",
            rows![
                field("name", STRING),
                field(
                    "results by partition",
                    rows![field("partition index", I32), field("partition error code", I16),]
                ),
            ],
        )
        .until(3),
    ],
);

pub(super) const ADD_OFFSETS_TO_TXN_REQUEST: Shape = shape(
    "AddOffsetsToTxn request",
    3,
    &[
        field("transactional id", STRING),
        field("producer id", I64),
        field("producer epoch", I16),
        field("group id", STRING),
    ],
);

pub(super) const ADD_OFFSETS_TO_TXN_RESPONSE: Shape =
    shape("AddOffsetsToTxn response", 3, &[field("throttle time ms", I32), field("error code", I16)]);

pub(super) const END_TXN_REQUEST: Shape = shape(
    "EndTxn request",
    3,
    &[
        field("transactional id", STRING),
        field("producer id", I64),
        field("producer epoch", I16),
        field("committed", BOOL),
    ],
);

pub(super) const END_TXN_RESPONSE: Shape = shape(
    "EndTxn response",
    3,
    &[
        field("throttle time ms", I32),
        field("error code", I16),
        field("producer id", I64).since(5),
        field("producer epoch", I16).since(5),
    ],
);
