//! Records and offsets: Produce and Fetch as a broker reads them, and where logs begin and end.
//!
//! Source: the message definitions of Apache Kafka 4.4.

use super::{BLOB, I8, I16, I32, I64, STRING, Shape, UUID, array, field, one, rows, shape};

pub(super) const PRODUCE_REQUEST: Shape = shape(
    "Produce request",
    9,
    &[
        field("transactional id", STRING).since(3),
        field("acks", I16),
        field("timeout ms", I32),
        field(
            "topic data",
            rows![
                field("name", STRING).until(12),
                field("topic id", UUID).since(13),
                field("partition data", rows![field("index", I32), field("records", BLOB),]),
            ],
        ),
    ],
);

pub(super) const PRODUCE_RESPONSE: Shape = shape(
    "Produce response",
    9,
    &[
        field(
            "responses",
            rows![
                field("name", STRING).until(12),
                field("topic id", UUID).since(13),
                field(
                    "partition responses",
                    rows![
                        field("index", I32),
                        field("error code", I16),
                        field("base offset", I64),
                        field("log append time ms", I64).since(2),
                        field("log start offset", I64).since(5),
                        field(
                            "record errors",
                            rows![
                                field("batch index", I32).since(8),
                                field("batch index error message", STRING).since(8),
                            ]
                        )
                        .since(8),
                        field("error message", STRING).since(8),
                        field(
                            "current leader",
                            one(&[field("leader id", I32).since(10), field("leader epoch", I32).since(10),])
                        )
                        .since(10)
                        .tag(0),
                    ]
                ),
            ],
        ),
        field("throttle time ms", I32).since(1),
        field(
            "node endpoints",
            rows![
                field("node id", I32).since(10),
                field("host", STRING).since(10),
                field("port", I32).since(10),
                field("rack", STRING).since(10),
            ],
        )
        .since(10)
        .tag(0),
    ],
);

pub(super) const FETCH_REQUEST: Shape = shape(
    "Fetch request",
    12,
    &[
        field("cluster id", STRING).since(12).tag(0),
        field("replica id", I32).until(14),
        field(
            "replica state",
            one(&[field("replica id", I32).since(15), field("replica epoch", I64).since(15)]),
        )
        .since(15)
        .tag(1),
        field("max wait ms", I32),
        field("min bytes", I32),
        field("max bytes", I32).since(3),
        field("isolation level", I8).since(4),
        field("session id", I32).since(7),
        field("session epoch", I32).since(7),
        field(
            "topics",
            rows![
                field("topic", STRING).until(12),
                field("topic id", UUID).since(13),
                field(
                    "partitions",
                    rows![
                        field("partition", I32),
                        field("current leader epoch", I32).since(9),
                        field("fetch offset", I64),
                        field("last fetched epoch", I32).since(12),
                        field("log start offset", I64).since(5),
                        field("partition max bytes", I32),
                        field("replica directory id", UUID).since(17).tag(0),
                        field("high watermark", I64).since(18).tag(1),
                    ]
                ),
            ],
        ),
        field(
            "forgotten topics data",
            rows![
                field("topic", STRING).since(7).until(12),
                field("topic id", UUID).since(13),
                field("partitions", array(&I32)).since(7),
            ],
        )
        .since(7),
        field("rack id", STRING).since(11),
    ],
);

pub(super) const FETCH_RESPONSE: Shape = shape(
    "Fetch response",
    12,
    &[
        field("throttle time ms", I32).since(1),
        field("error code", I16).since(7),
        field("session id", I32).since(7),
        field(
            "responses",
            rows![
                field("topic", STRING).until(12),
                field("topic id", UUID).since(13),
                field(
                    "partitions",
                    rows![
                        field("partition index", I32),
                        field("error code", I16),
                        field("high watermark", I64),
                        field("last stable offset", I64).since(4),
                        field("log start offset", I64).since(5),
                        field(
                            "diverging epoch",
                            one(&[field("epoch", I32).since(12), field("end offset", I64).since(12),])
                        )
                        .since(12)
                        .tag(0),
                        field(
                            "current leader",
                            one(&[field("leader id", I32).since(12), field("leader epoch", I32).since(12),])
                        )
                        .since(12)
                        .tag(1),
                        field("snapshot id", one(&[field("end offset", I64), field("epoch", I32),]))
                            .since(12)
                            .tag(2),
                        field(
                            "aborted transactions",
                            rows![field("producer id", I64).since(4), field("first offset", I64).since(4),]
                        )
                        .since(4),
                        field("preferred read replica", I32).since(11),
                        field("records", BLOB),
                    ]
                ),
            ],
        ),
        field(
            "node endpoints",
            rows![
                field("node id", I32).since(16),
                field("host", STRING).since(16),
                field("port", I32).since(16),
                field("rack", STRING).since(16),
            ],
        )
        .since(16)
        .tag(0),
    ],
);

pub(super) const LIST_OFFSETS_REQUEST: Shape = shape(
    "ListOffsets request",
    6,
    &[
        field("replica id", I32),
        field("isolation level", I8).since(2),
        field(
            "topics",
            rows![
                field("name", STRING),
                field(
                    "partitions",
                    rows![
                        field("partition index", I32),
                        field("current leader epoch", I32).since(4),
                        field("timestamp", I64),
                    ]
                ),
            ],
        ),
        field("timeout ms", I32).since(10),
    ],
);

pub(super) const LIST_OFFSETS_RESPONSE: Shape = shape(
    "ListOffsets response",
    6,
    &[
        field("throttle time ms", I32).since(2),
        field(
            "topics",
            rows![
                field("name", STRING),
                field(
                    "partitions",
                    rows![
                        field("partition index", I32),
                        field("error code", I16),
                        field("timestamp", I64).since(1),
                        field("offset", I64).since(1),
                        field("leader epoch", I32).since(4),
                    ]
                ),
            ],
        ),
    ],
);

pub(super) const OFFSET_FOR_LEADER_EPOCH_REQUEST: Shape = shape(
    "OffsetForLeaderEpoch request",
    4,
    &[
        field("replica id", I32).since(3),
        field(
            "topics",
            rows![
                field("topic", STRING),
                field(
                    "partitions",
                    rows![
                        field("partition", I32),
                        field("current leader epoch", I32).since(2),
                        field("leader epoch", I32),
                    ]
                ),
            ],
        ),
    ],
);

pub(super) const OFFSET_FOR_LEADER_EPOCH_RESPONSE: Shape = shape(
    "OffsetForLeaderEpoch response",
    4,
    &[
        field("throttle time ms", I32).since(2),
        field(
            "topics",
            rows![
                field("topic", STRING),
                field(
                    "partitions",
                    rows![
                        field("error code", I16),
                        field("partition", I32),
                        field("leader epoch", I32).since(1),
                        field("end offset", I64),
                    ]
                ),
            ],
        ),
    ],
);

pub(super) const DELETE_RECORDS_REQUEST: Shape = shape(
    "DeleteRecords request",
    2,
    &[
        field(
            "topics",
            rows![
                field("name", STRING),
                field("partitions", rows![field("partition index", I32), field("offset", I64),]),
            ],
        ),
        field("timeout ms", I32),
    ],
);

pub(super) const DELETE_RECORDS_RESPONSE: Shape = shape(
    "DeleteRecords response",
    2,
    &[
        field("throttle time ms", I32),
        field(
            "topics",
            rows![
                field("name", STRING),
                field(
                    "partitions",
                    rows![
                        field("partition index", I32),
                        field("low watermark", I64),
                        field("error code", I16),
                    ]
                ),
            ],
        ),
    ],
);
