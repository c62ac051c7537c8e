//! Offsets of consumer groups.
//!
//! Source: the message definitions of Apache Kafka 4.4.

use super::{BOOL, I16, I32, I64, NEVER, STRING, Shape, UUID, array, field, rows, shape};

pub(super) const OFFSET_COMMIT_REQUEST: Shape = shape(
    "OffsetCommit request",
    8,
    &[
        field("group id", STRING),
        field("generation id or member epoch", I32).since(1),
        field("member id", STRING).since(1),
        field("group instance id", STRING).since(7),
        field("retention time ms", I64).since(2).until(4),
        field(
            "topics",
            rows![
                field("name", STRING).until(9),
                field("topic id", UUID).since(10),
                field(
                    "partitions",
                    rows![
                        field("partition index", I32),
                        field("committed offset", I64),
                        field("committed leader epoch", I32).since(6),
                        field("committed metadata", STRING),
                    ]
                ),
            ],
        ),
    ],
);

pub(super) const OFFSET_COMMIT_RESPONSE: Shape = shape(
    "OffsetCommit response",
    8,
    &[
        field("throttle time ms", I32).since(3),
        field(
            "topics",
            rows![
                field("name", STRING).until(9),
                field("topic id", UUID).since(10),
                field("partitions", rows![field("partition index", I32), field("error code", I16),]),
            ],
        ),
    ],
);

pub(super) const OFFSET_FETCH_REQUEST: Shape = shape(
    "OffsetFetch request",
    6,
    &[
        field("group id", STRING).until(7),
        field(
            "topics",
            rows![field("name", STRING).until(7), field("partition indexes", array(&I32)).until(7),],
        )
        .until(7),
        field(
            "groups",
            rows![
                field("group id", STRING).since(8),
                field("member id", STRING).since(9),
                field("member epoch", I32).since(9),
                field(
                    "topics",
                    rows![
                        field("name", STRING).since(8).until(9),
                        field("topic id", UUID).since(10),
                        field("partition indexes", array(&I32)).since(8),
                    ]
                )
                .since(8),
            ],
        )
        .since(8),
        field("require stable", BOOL).since(7),
    ],
);

pub(super) const OFFSET_FETCH_RESPONSE: Shape = shape(
    "OffsetFetch response",
    6,
    &[
        field("throttle time ms", I32).since(3),
        field(
            "topics",
            rows![
                field("name", STRING).until(7),
                field(
                    "partitions",
                    rows![
                        field("partition index", I32).until(7),
                        field("committed offset", I64).until(7),
                        field("committed leader epoch", I32).since(5).until(7),
                        field("metadata", STRING).until(7),
                        field("error code", I16).until(7),
                    ]
                )
                .until(7),
            ],
        )
        .until(7),
        field("error code", I16).since(2).until(7),
        field(
            "groups",
            rows![
                field("group id", STRING).since(8),
                field(
                    "topics",
                    rows![
                        field("name", STRING).since(8).until(9),
                        field("topic id", UUID).since(10),
                        field(
                            "partitions",
                            rows![
                                field("partition index", I32).since(8),
                                field("committed offset", I64).since(8),
                                field("committed leader epoch", I32).since(8),
                                field("metadata", STRING).since(8),
                                field("error code", I16).since(8),
                            ]
                        )
                        .since(8),
                    ]
                )
                .since(8),
                field("error code", I16).since(8),
            ],
        )
        .since(8),
    ],
);

pub(super) const OFFSET_DELETE_REQUEST: Shape = shape(
    "OffsetDelete request",
    NEVER,
    &[
        field("group id", STRING),
        field(
            "topics",
            rows![field("name", STRING), field("partitions", rows![field("partition index", I32),]),],
        ),
    ],
);

pub(super) const OFFSET_DELETE_RESPONSE: Shape = shape(
    "OffsetDelete response",
    NEVER,
    &[
        field("error code", I16),
        field("throttle time ms", I32),
        field(
            "topics",
            rows![
                field("name", STRING),
                field("partitions", rows![field("partition index", I32), field("error code", I16),]),
            ],
        ),
    ],
);

pub(super) const TXN_OFFSET_COMMIT_REQUEST: Shape = shape(
    "TxnOffsetCommit request",
    3,
    &[
        field("transactional id", STRING),
        field("group id", STRING),
        field("producer id", I64),
        field("producer epoch", I16),
        field("generation id or member epoch", I32).since(3),
        field("member id", STRING).since(3),
        field("group instance id", STRING).since(3),
        field(
            "topics",
            rows![
                field("name", STRING).until(5),
                field("topic id", UUID).since(6),
                field(
                    "partitions",
                    rows![
                        field("partition index", I32),
                        field("committed offset", I64),
                        field("committed leader epoch", I32).since(2),
                        field("committed metadata", STRING),
                    ]
                ),
            ],
        ),
    ],
);

pub(super) const TXN_OFFSET_COMMIT_RESPONSE: Shape = shape(
    "TxnOffsetCommit response",
    3,
    &[
        field("throttle time ms", I32),
        field(
            "topics",
            rows![
                field("name", STRING).until(5),
                field("topic id", UUID).since(6),
                field("partitions", rows![field("partition index", I32), field("error code", I16),]),
            ],
        ),
    ],
);
