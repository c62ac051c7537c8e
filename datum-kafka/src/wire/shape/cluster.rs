//! The cluster: who is there, and what they speak.
//!
//! Source: the message definitions of Apache Kafka 4.4.

use super::{BLOB, BOOL, I8, I16, I32, I64, NEVER, STRING, Shape, UUID, array, field, rows, shape};

pub(super) const API_VERSIONS_REQUEST: Shape = shape(
    "ApiVersions request",
    3,
    &[
        field("client software name", STRING).since(3),
        field("client software version", STRING).since(3),
        field("cluster id", STRING).since(5),
        field("node id", I32).since(5),
    ],
);

pub(super) const API_VERSIONS_RESPONSE: Shape = shape(
    "ApiVersions response",
    3,
    &[
        field("error code", I16),
        field(
            "api keys",
            rows![field("api key", I16), field("min version", I16), field("max version", I16),],
        ),
        field("throttle time ms", I32).since(1),
        field(
            "supported features",
            rows![
                field("name", STRING).since(3),
                field("min version", I16).since(3),
                field("max version", I16).since(3),
            ],
        )
        .since(3)
        .tag(0),
        field("finalized features epoch", I64).since(3).tag(1),
        field(
            "finalized features",
            rows![
                field("name", STRING).since(3),
                field("max version level", I16).since(3),
                field("min version level", I16).since(3),
            ],
        )
        .since(3)
        .tag(2),
        field("zk migration ready", BOOL).since(3).tag(3),
    ],
);

pub(super) const METADATA_REQUEST: Shape = shape(
    "Metadata request",
    9,
    &[
        field("topics", rows![field("topic id", UUID).since(10), field("name", STRING),]),
        field("allow auto topic creation", BOOL).since(4),
        field("include cluster authorized operations", BOOL).since(8).until(10),
        field("include topic authorized operations", BOOL).since(8),
    ],
);

pub(super) const METADATA_RESPONSE: Shape = shape(
    "Metadata response",
    9,
    &[
        field("throttle time ms", I32).since(3),
        field(
            "brokers",
            rows![
                field("node id", I32),
                field("host", STRING),
                field("port", I32),
                field("rack", STRING).since(1),
            ],
        ),
        field("cluster id", STRING).since(2),
        field("controller id", I32).since(1),
        field(
            "topics",
            rows![
                field("error code", I16),
                field("name", STRING),
                field("topic id", UUID).since(10),
                field("is internal", BOOL).since(1),
                field(
                    "partitions",
                    rows![
                        field("error code", I16),
                        field("partition index", I32),
                        field("leader id", I32),
                        field("leader epoch", I32).since(7),
                        field("replica nodes", array(&I32)),
                        field("isr nodes", array(&I32)),
                        field("offline replicas", array(&I32)).since(5),
                    ]
                ),
                field("topic authorized operations", I32).since(8),
            ],
        ),
        field("cluster authorized operations", I32).since(8).until(10),
        field("error code", I16).since(13),
    ],
);

pub(super) const FIND_COORDINATOR_REQUEST: Shape = shape(
    "FindCoordinator request",
    3,
    &[
        field("key", STRING).until(3),
        field("key type", I8).since(1),
        field("coordinator keys", array(&STRING)).since(4),
    ],
);

pub(super) const FIND_COORDINATOR_RESPONSE: Shape = shape(
    "FindCoordinator response",
    3,
    &[
        field("throttle time ms", I32).since(1),
        field("error code", I16).until(3),
        field("error message", STRING).since(1).until(3),
        field("node id", I32).until(3),
        field("host", STRING).until(3),
        field("port", I32).until(3),
        field(
            "coordinators",
            rows![
                field("key", STRING).since(4),
                field("node id", I32).since(4),
                field("host", STRING).since(4),
                field("port", I32).since(4),
                field("error code", I16).since(4),
                field("error message", STRING).since(4),
            ],
        )
        .since(4),
    ],
);

pub(super) const DESCRIBE_CLUSTER_REQUEST: Shape = shape(
    "DescribeCluster request",
    0,
    &[
        field("include cluster authorized operations", BOOL),
        field("endpoint type", I8).since(1),
        field("include fenced brokers", BOOL).since(2),
    ],
);

pub(super) const DESCRIBE_CLUSTER_RESPONSE: Shape = shape(
    "DescribeCluster response",
    0,
    &[
        field("throttle time ms", I32),
        field("error code", I16),
        field("error message", STRING),
        field("endpoint type", I8).since(1),
        field("cluster id", STRING),
        field("controller id", I32),
        field(
            "brokers",
            rows![
                field("broker id", I32),
                field("host", STRING),
                field("port", I32),
                field("rack", STRING),
                field("is fenced", BOOL).since(2),
            ],
        ),
        field("cluster authorized operations", I32),
    ],
);

pub(super) const SASL_HANDSHAKE_REQUEST: Shape =
    shape("SaslHandshake request", NEVER, &[field("mechanism", STRING)]);

pub(super) const SASL_HANDSHAKE_RESPONSE: Shape =
    shape("SaslHandshake response", NEVER, &[field("error code", I16), field("mechanisms", array(&STRING))]);

pub(super) const SASL_AUTHENTICATE_REQUEST: Shape =
    shape("SaslAuthenticate request", 2, &[field("auth bytes", BLOB)]);

pub(super) const SASL_AUTHENTICATE_RESPONSE: Shape = shape(
    "SaslAuthenticate response",
    2,
    &[
        field("error code", I16),
        field("error message", STRING),
        field("auth bytes", BLOB),
        field("session lifetime ms", I64).since(1),
    ],
);
