//! Topics and their settings.
//!
//! Source: the message definitions of Apache Kafka 4.4.

use super::{BOOL, I8, I16, I32, STRING, Shape, UUID, array, field, rows, shape};

pub(super) const CREATE_TOPICS_REQUEST: Shape = shape(
    "CreateTopics request",
    5,
    &[
        field(
            "topics",
            rows![
                field("name", STRING),
                field("num partitions", I32),
                field("replication factor", I16),
                field("assignments", rows![field("partition index", I32), field("broker ids", array(&I32)),]),
                field("configs", rows![field("name", STRING), field("value", STRING),]),
            ],
        ),
        field("timeout ms", I32),
        field("validate only", BOOL).since(1),
    ],
);

pub(super) const CREATE_TOPICS_RESPONSE: Shape = shape(
    "CreateTopics response",
    5,
    &[
        field("throttle time ms", I32).since(2),
        field(
            "topics",
            rows![
                field("name", STRING),
                field("topic id", UUID).since(7),
                field("error code", I16),
                field("error message", STRING).since(1),
                field("topic config error code", I16).since(5).tag(0),
                field("num partitions", I32).since(5),
                field("replication factor", I16).since(5),
                field(
                    "configs",
                    rows![
                        field("name", STRING).since(5),
                        field("value", STRING).since(5),
                        field("read only", BOOL).since(5),
                        field("config source", I8).since(5),
                        field("is sensitive", BOOL).since(5),
                    ]
                )
                .since(5),
            ],
        ),
    ],
);

pub(super) const DELETE_TOPICS_REQUEST: Shape = shape(
    "DeleteTopics request",
    4,
    &[
        field("topics", rows![field("name", STRING).since(6), field("topic id", UUID).since(6),]).since(6),
        field("topic names", array(&STRING)).until(5),
        field("timeout ms", I32),
    ],
);

pub(super) const DELETE_TOPICS_RESPONSE: Shape = shape(
    "DeleteTopics response",
    4,
    &[
        field("throttle time ms", I32).since(1),
        field(
            "responses",
            rows![
                field("name", STRING),
                field("topic id", UUID).since(6),
                field("error code", I16),
                field("error message", STRING).since(5),
            ],
        ),
    ],
);

pub(super) const CREATE_PARTITIONS_REQUEST: Shape = shape(
    "CreatePartitions request",
    2,
    &[
        field(
            "topics",
            rows![
                field("name", STRING),
                field("count", I32),
                field("assignments", rows![field("broker ids", array(&I32)),]),
            ],
        ),
        field("timeout ms", I32),
        field("validate only", BOOL),
    ],
);

pub(super) const CREATE_PARTITIONS_RESPONSE: Shape = shape(
    "CreatePartitions response",
    2,
    &[
        field("throttle time ms", I32),
        field(
            "results",
            rows![field("name", STRING), field("error code", I16), field("error message", STRING),],
        ),
    ],
);

pub(super) const DESCRIBE_CONFIGS_REQUEST: Shape = shape(
    "DescribeConfigs request",
    4,
    &[
        field(
            "resources",
            rows![
                field("resource type", I8),
                field("resource name", STRING),
                field("configuration keys", array(&STRING)),
            ],
        ),
        field("include synonyms", BOOL).since(1),
        field("include documentation", BOOL).since(3),
    ],
);

pub(super) const DESCRIBE_CONFIGS_RESPONSE: Shape = shape(
    "DescribeConfigs response",
    4,
    &[
        field("throttle time ms", I32),
        field(
            "results",
            rows![
                field("error code", I16),
                field("error message", STRING),
                field("resource type", I8),
                field("resource name", STRING),
                field(
                    "configs",
                    rows![
                        field("name", STRING),
                        field("value", STRING),
                        field("read only", BOOL),
                        field("config source", I8).since(1),
                        field("is sensitive", BOOL),
                        field(
                            "synonyms",
                            rows![
                                field("name", STRING).since(1),
                                field("value", STRING).since(1),
                                field("source", I8).since(1),
                            ]
                        )
                        .since(1),
                        field("config type", I8).since(3),
                        field("documentation", STRING).since(3),
                    ]
                ),
            ],
        ),
    ],
);

pub(super) const ALTER_CONFIGS_REQUEST: Shape = shape(
    "AlterConfigs request",
    2,
    &[
        field(
            "resources",
            rows![
                field("resource type", I8),
                field("resource name", STRING),
                field("configs", rows![field("name", STRING), field("value", STRING),]),
            ],
        ),
        field("validate only", BOOL),
    ],
);

pub(super) const ALTER_CONFIGS_RESPONSE: Shape = shape(
    "AlterConfigs response",
    2,
    &[
        field("throttle time ms", I32),
        field(
            "responses",
            rows![
                field("error code", I16),
                field("error message", STRING),
                field("resource type", I8),
                field("resource name", STRING),
            ],
        ),
    ],
);

pub(super) const INCREMENTAL_ALTER_CONFIGS_REQUEST: Shape = shape(
    "IncrementalAlterConfigs request",
    1,
    &[
        field(
            "resources",
            rows![
                field("resource type", I8),
                field("resource name", STRING),
                field(
                    "configs",
                    rows![field("name", STRING), field("config operation", I8), field("value", STRING),]
                ),
            ],
        ),
        field("validate only", BOOL),
    ],
);

pub(super) const INCREMENTAL_ALTER_CONFIGS_RESPONSE: Shape = shape(
    "IncrementalAlterConfigs response",
    1,
    &[
        field("throttle time ms", I32),
        field(
            "responses",
            rows![
                field("error code", I16),
                field("error message", STRING),
                field("resource type", I8),
                field("resource name", STRING),
            ],
        ),
    ],
);
