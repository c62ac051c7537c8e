//! Consumer groups.
//!
//! Source: the message definitions of Apache Kafka 4.4.

use super::{BLOB, BOOL, I8, I16, I32, STRING, Shape, UUID, array, field, one, optional, rows, shape};

pub(super) const JOIN_GROUP_REQUEST: Shape = shape(
    "JoinGroup request",
    6,
    &[
        field("group id", STRING),
        field("session timeout ms", I32),
        field("rebalance timeout ms", I32).since(1),
        field("member id", STRING),
        field("group instance id", STRING).since(5),
        field("protocol type", STRING),
        field("protocols", rows![field("name", STRING), field("metadata", BLOB),]),
        field("reason", STRING).since(8),
    ],
);

pub(super) const JOIN_GROUP_RESPONSE: Shape = shape(
    "JoinGroup response",
    6,
    &[
        field("throttle time ms", I32).since(2),
        field("error code", I16),
        field("generation id", I32),
        field("protocol type", STRING).since(7),
        field("protocol name", STRING),
        field("leader", STRING),
        field("skip assignment", BOOL).since(9),
        field("member id", STRING),
        field(
            "members",
            rows![
                field("member id", STRING),
                field("group instance id", STRING).since(5),
                field("metadata", BLOB),
            ],
        ),
    ],
);

pub(super) const SYNC_GROUP_REQUEST: Shape = shape(
    "SyncGroup request",
    4,
    &[
        field("group id", STRING),
        field("generation id", I32),
        field("member id", STRING),
        field("group instance id", STRING).since(3),
        field("protocol type", STRING).since(5),
        field("protocol name", STRING).since(5),
        field("assignments", rows![field("member id", STRING), field("assignment", BLOB),]),
    ],
);

pub(super) const SYNC_GROUP_RESPONSE: Shape = shape(
    "SyncGroup response",
    4,
    &[
        field("throttle time ms", I32).since(1),
        field("error code", I16),
        field("protocol type", STRING).since(5),
        field("protocol name", STRING).since(5),
        field("assignment", BLOB),
    ],
);

pub(super) const HEARTBEAT_REQUEST: Shape = shape(
    "Heartbeat request",
    4,
    &[
        field("group id", STRING),
        field("generation id", I32),
        field("member id", STRING),
        field("group instance id", STRING).since(3),
    ],
);

pub(super) const HEARTBEAT_RESPONSE: Shape =
    shape("Heartbeat response", 4, &[field("throttle time ms", I32).since(1), field("error code", I16)]);

pub(super) const LEAVE_GROUP_REQUEST: Shape = shape(
    "LeaveGroup request",
    4,
    &[
        field("group id", STRING),
        field("member id", STRING).until(2),
        field(
            "members",
            rows![
                field("member id", STRING).since(3),
                field("group instance id", STRING).since(3),
                field("reason", STRING).since(5),
            ],
        )
        .since(3),
    ],
);

pub(super) const LEAVE_GROUP_RESPONSE: Shape = shape(
    "LeaveGroup response",
    4,
    &[
        field("throttle time ms", I32).since(1),
        field("error code", I16),
        field(
            "members",
            rows![
                field("member id", STRING).since(3),
                field("group instance id", STRING).since(3),
                field("error code", I16).since(3),
            ],
        )
        .since(3),
    ],
);

pub(super) const CONSUMER_GROUP_HEARTBEAT_REQUEST: Shape = shape(
    "ConsumerGroupHeartbeat request",
    0,
    &[
        field("group id", STRING),
        field("member id", STRING),
        field("member epoch", I32),
        field("instance id", STRING),
        field("rack id", STRING),
        field("rebalance timeout ms", I32),
        field("subscribed topic names", array(&STRING)),
        field("subscribed topic regex", STRING).since(1),
        field("server assignor", STRING),
        field("topic partitions", rows![field("topic id", UUID), field("partitions", array(&I32)),]),
    ],
);

pub(super) const CONSUMER_GROUP_HEARTBEAT_RESPONSE: Shape = shape(
    "ConsumerGroupHeartbeat response",
    0,
    &[
        field("throttle time ms", I32),
        field("error code", I16),
        field("error message", STRING),
        field("member id", STRING),
        field("member epoch", I32),
        field("heartbeat interval ms", I32),
        field(
            "assignment",
            optional(&[field(
                "topic partitions",
                rows![field("topic id", UUID), field("partitions", array(&I32)),],
            )]),
        ),
    ],
);

pub(super) const DESCRIBE_GROUPS_REQUEST: Shape = shape(
    "DescribeGroups request",
    5,
    &[field("groups", array(&STRING)), field("include authorized operations", BOOL).since(3)],
);

pub(super) const DESCRIBE_GROUPS_RESPONSE: Shape = shape(
    "DescribeGroups response",
    5,
    &[
        field("throttle time ms", I32).since(1),
        field(
            "groups",
            rows![
                field("error code", I16),
                field("error message", STRING).since(6),
                field("group id", STRING),
                field("group state", STRING),
                field("protocol type", STRING),
                field("protocol data", STRING),
                field(
                    "members",
                    rows![
                        field("member id", STRING),
                        field("group instance id", STRING).since(4),
                        field("client id", STRING),
                        field("client host", STRING),
                        field("member metadata", BLOB),
                        field("member assignment", BLOB),
                    ]
                ),
                field("authorized operations", I32).since(3),
            ],
        ),
    ],
);

pub(super) const LIST_GROUPS_REQUEST: Shape = shape(
    "ListGroups request",
    3,
    &[field("states filter", array(&STRING)).since(4), field("types filter", array(&STRING)).since(5)],
);

pub(super) const LIST_GROUPS_RESPONSE: Shape = shape(
    "ListGroups response",
    3,
    &[
        field("throttle time ms", I32).since(1),
        field("error code", I16),
        field(
            "groups",
            rows![
                field("group id", STRING),
                field("protocol type", STRING),
                field("group state", STRING).since(4),
                field("group type", STRING).since(5),
            ],
        ),
    ],
);

pub(super) const DELETE_GROUPS_REQUEST: Shape =
    shape("DeleteGroups request", 2, &[field("groups names", array(&STRING))]);

pub(super) const DELETE_GROUPS_RESPONSE: Shape = shape(
    "DeleteGroups response",
    2,
    &[
        field("throttle time ms", I32),
        field(
            "results",
            rows![
                field("group id", STRING),
                field("error code", I16),
                field("error message", STRING).since(3),
            ],
        ),
    ],
);

pub(super) const CONSUMER_GROUP_DESCRIBE_REQUEST: Shape = shape(
    "ConsumerGroupDescribe request",
    0,
    &[field("group ids", array(&STRING)), field("include authorized operations", BOOL)],
);

pub(super) const CONSUMER_GROUP_DESCRIBE_RESPONSE: Shape = shape(
    "ConsumerGroupDescribe response",
    0,
    &[
        field("throttle time ms", I32),
        field(
            "groups",
            rows![
                field("error code", I16),
                field("error message", STRING),
                field("group id", STRING),
                field("group state", STRING),
                field("group epoch", I32),
                field("assignment epoch", I32),
                field("assignor name", STRING),
                field(
                    "members",
                    rows![
                        field("member id", STRING),
                        field("instance id", STRING),
                        field("rack id", STRING),
                        field("member epoch", I32),
                        field("client id", STRING),
                        field("client host", STRING),
                        field("subscribed topic names", array(&STRING)),
                        field("subscribed topic regex", STRING),
                        field(
                            "assignment",
                            one(&[field(
                                "topic partitions",
                                rows![
                                    field("topic id", UUID),
                                    field("topic name", STRING),
                                    field("partitions", array(&I32)),
                                ]
                            ),])
                        ),
                        field(
                            "target assignment",
                            one(&[field(
                                "topic partitions",
                                rows![
                                    field("topic id", UUID),
                                    field("topic name", STRING),
                                    field("partitions", array(&I32)),
                                ]
                            ),])
                        ),
                        field("member type", I8).since(1),
                    ]
                ),
                field("authorized operations", I32),
            ],
        ),
    ],
);
