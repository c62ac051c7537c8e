//! Every error code of the Kafka protocol, in one table: number, name, whether a retry can help, and what it means.
//!
//! Nobody else compares numbers. A response's `i16` becomes an [`ErrorCode`] at the edge ([`ErrorCode::from_code`]) and is
//! matched by name from there on. What to *do* about a code depends on the request it answers, so that decision lives
//! with each caller; [`ErrorCode::is_retriable`] is only the protocol's own classification.
//!
//! Source: the error table of the Kafka protocol guide (<https://kafka.apache.org/protocol#protocol_error_codes>),
//! numbers and the retriable flag checked against Kafka 4.4.

use std::fmt;

macro_rules! error_codes {
    ($($code:literal $variant:ident $name:literal $retriable:ident $meaning:literal;)*) => {
        /// An error code of the Kafka protocol; `None` (0) is success.
        ///
        /// A code that this table does not know (a broker newer than us) is kept as [`ErrorCode::Unknown`], which counts
        /// as not retriable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = concat!($name, " (", stringify!($code), "): ", $meaning)] $variant,)*
            /// A code this table does not know.
            Unknown(i16),
        }

        impl ErrorCode {
            /// Every code of the table, in the order of their numbers; for tests and listings.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$variant),*];

            /// The code behind a number of the wire.
            #[must_use]
            pub const fn from_code(code: i16) -> Self {
                match code {
                    $($code => Self::$variant,)*
                    other => Self::Unknown(other),
                }
            }

            /// The number on the wire.
            #[must_use]
            pub const fn code(self) -> i16 {
                match self {
                    $(Self::$variant => $code,)*
                    Self::Unknown(code) => code,
                }
            }

            /// The protocol's name, for instance `OFFSET_OUT_OF_RANGE`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Unknown(_) => "UNKNOWN_ERROR_CODE",
                }
            }

            /// One sentence: what the broker means by it.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)*
                    Self::Unknown(_) => "The broker answered with a code this client does not know; it is probably newer.",
                }
            }

            /// Whether the protocol calls the error transient: the same request may succeed later.
            #[must_use]
            pub const fn is_retriable(self) -> bool {
                match self {
                    $(Self::$variant => error_codes!(@$retriable),)*
                    Self::Unknown(_) => false,
                }
            }
        }
    };
    (@retry) => { true };
    (@final) => { false };
}

error_codes! {
    -1 UnknownServerError "UNKNOWN_SERVER_ERROR" final "The broker failed in a way it has no code for; its log says more.";
    0 None "NONE" final "Success.";
    1 OffsetOutOfRange "OFFSET_OUT_OF_RANGE" final "The offset is below the log's start or above its end.";
    2 CorruptMessage "CORRUPT_MESSAGE" retry "A batch failed its CRC or size check, or has a null key in a compacted topic.";
    3 UnknownTopicOrPartition "UNKNOWN_TOPIC_OR_PARTITION" retry "This broker does not host, or not yet know, the topic or partition.";
    4 InvalidFetchSize "INVALID_FETCH_SIZE" final "The fetch asked for an impossible number of bytes.";
    5 LeaderNotAvailable "LEADER_NOT_AVAILABLE" retry "The partition has no leader now, usually during an election.";
    6 NotLeaderOrFollower "NOT_LEADER_OR_FOLLOWER" retry "This broker no longer leads, or holds, the partition.";
    7 RequestTimedOut "REQUEST_TIMED_OUT" retry "The broker gave up within the request's own time limit; the effect is unknown.";
    8 BrokerNotAvailable "BROKER_NOT_AVAILABLE" final "The broker is not available.";
    9 ReplicaNotAvailable "REPLICA_NOT_AVAILABLE" retry "A replica is not available; leaders may go on without it.";
    10 MessageTooLarge "MESSAGE_TOO_LARGE" final "The batch exceeds max.message.bytes of the topic or broker.";
    11 StaleControllerEpoch "STALE_CONTROLLER_EPOCH" final "The controller has moved on to a newer epoch.";
    12 OffsetMetadataTooLarge "OFFSET_METADATA_TOO_LARGE" final "The text beside the committed offset exceeds offset.metadata.max.bytes.";
    13 NetworkException "NETWORK_EXCEPTION" retry "The connection broke before an answer came.";
    14 CoordinatorLoadInProgress "COORDINATOR_LOAD_IN_PROGRESS" retry "The coordinator is still reading its log after a start or move.";
    15 CoordinatorNotAvailable "COORDINATOR_NOT_AVAILABLE" retry "No coordinator can be named yet.";
    16 NotCoordinator "NOT_COORDINATOR" retry "This broker does not coordinate that group or transactional id.";
    17 InvalidTopicException "INVALID_TOPIC_EXCEPTION" final "The topic name is not legal, or the topic may not be used this way.";
    18 RecordListTooLarge "RECORD_LIST_TOO_LARGE" final "The batch is larger than a log segment.";
    19 NotEnoughReplicas "NOT_ENOUGH_REPLICAS" retry "Fewer replicas are in sync than min.insync.replicas; nothing was written.";
    20 NotEnoughReplicasAfterAppend "NOT_ENOUGH_REPLICAS_AFTER_APPEND" retry "Written, then too few replicas were in sync to acknowledge it.";
    21 InvalidRequiredAcks "INVALID_REQUIRED_ACKS" final "acks must be 0, 1 or -1.";
    22 IllegalGeneration "ILLEGAL_GENERATION" final "The member's generation is not the group's current one.";
    23 InconsistentGroupProtocol "INCONSISTENT_GROUP_PROTOCOL" final "The member offers no assignor that all other members offer, or another protocol type.";
    24 InvalidGroupId "INVALID_GROUP_ID" final "The group id is empty or not legal.";
    25 UnknownMemberId "UNKNOWN_MEMBER_ID" final "The coordinator does not know the member, usually because its session expired.";
    26 InvalidSessionTimeout "INVALID_SESSION_TIMEOUT" final "The session timeout is outside the broker's group.min and group.max limits.";
    27 RebalanceInProgress "REBALANCE_IN_PROGRESS" final "The group is rebalancing; the member should rejoin.";
    28 InvalidCommitOffsetSize "INVALID_COMMIT_OFFSET_SIZE" final "The commit is larger than the coordinator accepts.";
    29 TopicAuthorizationFailed "TOPIC_AUTHORIZATION_FAILED" final "The principal has no permission on the topic.";
    30 GroupAuthorizationFailed "GROUP_AUTHORIZATION_FAILED" final "The principal has no permission on the group.";
    31 ClusterAuthorizationFailed "CLUSTER_AUTHORIZATION_FAILED" final "The principal has no such permission on the cluster.";
    32 InvalidTimestamp "INVALID_TIMESTAMP" final "A record's timestamp is outside what the topic accepts.";
    33 UnsupportedSaslMechanism "UNSUPPORTED_SASL_MECHANISM" final "The broker does not offer the SASL mechanism asked for.";
    34 IllegalSaslState "ILLEGAL_SASL_STATE" final "The request is not valid at this point of authentication.";
    35 UnsupportedVersion "UNSUPPORTED_VERSION" final "The broker does not speak this version of the request.";
    36 TopicAlreadyExists "TOPIC_ALREADY_EXISTS" final "A topic of this name exists.";
    37 InvalidPartitions "INVALID_PARTITIONS" final "The partition count is not possible.";
    38 InvalidReplicationFactor "INVALID_REPLICATION_FACTOR" final "The replication factor is below 1 or above the number of brokers.";
    39 InvalidReplicaAssignment "INVALID_REPLICA_ASSIGNMENT" final "The replica assignment is not possible.";
    40 InvalidConfig "INVALID_CONFIG" final "A setting has an unknown name or an impossible value.";
    41 NotController "NOT_CONTROLLER" retry "This broker is not the controller.";
    42 InvalidRequest "INVALID_REQUEST" final "The request contradicts itself or lacks a required part.";
    43 UnsupportedForMessageFormat "UNSUPPORTED_FOR_MESSAGE_FORMAT" final "The log's record format is too old for the request.";
    44 PolicyViolation "POLICY_VIOLATION" final "A policy of the cluster forbids the parameters.";
    45 OutOfOrderSequenceNumber "OUT_OF_ORDER_SEQUENCE_NUMBER" final "The batch's sequence does not follow the last one of this producer.";
    46 DuplicateSequenceNumber "DUPLICATE_SEQUENCE_NUMBER" final "The batch was already written and is too old for its offset to be known.";
    47 InvalidProducerEpoch "INVALID_PRODUCER_EPOCH" final "The producer's epoch is older than the broker's.";
    48 InvalidTxnState "INVALID_TXN_STATE" final "The transaction is not in a state that allows the request.";
    49 InvalidProducerIdMapping "INVALID_PRODUCER_ID_MAPPING" final "The producer id does not belong to the transactional id.";
    50 InvalidTransactionTimeout "INVALID_TRANSACTION_TIMEOUT" final "The transaction timeout exceeds transaction.max.timeout.ms.";
    51 ConcurrentTransactions "CONCURRENT_TRANSACTIONS" retry "The previous transaction of this id is still being completed.";
    52 TransactionCoordinatorFenced "TRANSACTION_COORDINATOR_FENCED" final "A newer coordinator serves the transactional id.";
    53 TransactionalIdAuthorizationFailed "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" final "The principal has no permission on the transactional id.";
    54 SecurityDisabled "SECURITY_DISABLED" final "The broker has no security features on.";
    55 OperationNotAttempted "OPERATION_NOT_ATTEMPTED" final "Not tried, because another part of the same batch was refused.";
    56 KafkaStorageError "KAFKA_STORAGE_ERROR" retry "The broker failed to read or write its disk.";
    57 LogDirNotFound "LOG_DIR_NOT_FOUND" final "The log folder asked for is not one of the broker's.";
    58 SaslAuthenticationFailed "SASL_AUTHENTICATION_FAILED" final "The credentials were refused.";
    59 UnknownProducerId "UNKNOWN_PRODUCER_ID" final "The broker has no state for the producer id, for instance because it expired.";
    60 ReassignmentInProgress "REASSIGNMENT_IN_PROGRESS" final "The partition is being reassigned.";
    61 DelegationTokenAuthDisabled "DELEGATION_TOKEN_AUTH_DISABLED" final "Delegation tokens are off.";
    62 DelegationTokenNotFound "DELEGATION_TOKEN_NOT_FOUND" final "No such delegation token.";
    63 DelegationTokenOwnerMismatch "DELEGATION_TOKEN_OWNER_MISMATCH" final "The principal neither owns nor may renew the token.";
    64 DelegationTokenRequestNotAllowed "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" final "This connection may not ask for delegation tokens.";
    65 DelegationTokenAuthorizationFailed "DELEGATION_TOKEN_AUTHORIZATION_FAILED" final "No permission on the delegation token.";
    66 DelegationTokenExpired "DELEGATION_TOKEN_EXPIRED" final "The delegation token has expired.";
    67 InvalidPrincipalType "INVALID_PRINCIPAL_TYPE" final "The principal type is not supported.";
    68 NonEmptyGroup "NON_EMPTY_GROUP" final "The group still has members.";
    69 GroupIdNotFound "GROUP_ID_NOT_FOUND" final "No such group.";
    70 FetchSessionIdNotFound "FETCH_SESSION_ID_NOT_FOUND" retry "The broker has dropped the fetch session; start a new one.";
    71 InvalidFetchSessionEpoch "INVALID_FETCH_SESSION_EPOCH" retry "The fetch session's epoch is not the expected one; start a new session.";
    72 ListenerNotFound "LISTENER_NOT_FOUND" retry "The leader has no listener of the kind this request came by.";
    73 TopicDeletionDisabled "TOPIC_DELETION_DISABLED" final "delete.topic.enable is off.";
    74 FencedLeaderEpoch "FENCED_LEADER_EPOCH" retry "The client's leader epoch is older than the broker's; refresh metadata.";
    75 UnknownLeaderEpoch "UNKNOWN_LEADER_EPOCH" retry "The client's leader epoch is newer than the broker's; the broker is behind.";
    76 UnsupportedCompressionType "UNSUPPORTED_COMPRESSION_TYPE" final "The request's version or the broker does not support the compression used.";
    77 StaleBrokerEpoch "STALE_BROKER_EPOCH" final "The broker's own epoch is outdated.";
    78 OffsetNotAvailable "OFFSET_NOT_AVAILABLE" retry "A new leader's high watermark has not caught up yet.";
    79 MemberIdRequired "MEMBER_ID_REQUIRED" final "Join again at once with the member id of this answer.";
    80 PreferredLeaderNotAvailable "PREFERRED_LEADER_NOT_AVAILABLE" retry "The preferred leader is not available.";
    81 GroupMaxSizeReached "GROUP_MAX_SIZE_REACHED" final "The group has as many members as the broker allows.";
    82 FencedInstanceId "FENCED_INSTANCE_ID" final "Another member has registered with the same group.instance.id.";
    83 EligibleLeadersNotAvailable "ELIGIBLE_LEADERS_NOT_AVAILABLE" retry "No replica that may lead is available.";
    84 ElectionNotNeeded "ELECTION_NOT_NEEDED" retry "The partition already has the leader asked for.";
    85 NoReassignmentInProgress "NO_REASSIGNMENT_IN_PROGRESS" final "The partition is not being reassigned.";
    86 GroupSubscribedToTopic "GROUP_SUBSCRIBED_TO_TOPIC" final "Offsets of a topic a live group subscribes to cannot be deleted.";
    87 InvalidRecord "INVALID_RECORD" final "The broker's validation refused a record.";
    88 UnstableOffsetCommit "UNSTABLE_OFFSET_COMMIT" retry "A transaction that is still open has pending offsets for the partition.";
    89 ThrottlingQuotaExceeded "THROTTLING_QUOTA_EXCEEDED" retry "A quota is exceeded; wait as long as the answer says.";
    90 ProducerFenced "PRODUCER_FENCED" final "A newer producer with the same transactional id has taken over.";
    91 ResourceNotFound "RESOURCE_NOT_FOUND" final "No such resource.";
    92 DuplicateResource "DUPLICATE_RESOURCE" final "The request names a resource twice, or it exists.";
    93 UnacceptableCredential "UNACCEPTABLE_CREDENTIAL" final "The credential does not meet the broker's requirements.";
    94 InconsistentVoterSet "INCONSISTENT_VOTER_SET" final "Sender and receiver disagree about the quorum's voters.";
    95 InvalidUpdateVersion "INVALID_UPDATE_VERSION" final "The update's version is not possible.";
    96 FeatureUpdateFailed "FEATURE_UPDATE_FAILED" final "A finalised feature could not be changed.";
    97 PrincipalDeserializationFailure "PRINCIPAL_DESERIALIZATION_FAILURE" final "A forwarded request's principal could not be read.";
    98 SnapshotNotFound "SNAPSHOT_NOT_FOUND" final "No such snapshot.";
    99 PositionOutOfRange "POSITION_OUT_OF_RANGE" final "The position in the snapshot is out of range.";
    100 UnknownTopicId "UNKNOWN_TOPIC_ID" retry "This broker does not know the topic id, or not yet.";
    101 DuplicateBrokerRegistration "DUPLICATE_BROKER_REGISTRATION" final "A broker of this id is already registered.";
    102 BrokerIdNotRegistered "BROKER_ID_NOT_REGISTERED" final "No broker of this id is registered.";
    103 InconsistentTopicId "INCONSISTENT_TOPIC_ID" retry "The topic id of the request is not the one in the log: the topic was recreated.";
    104 InconsistentClusterId "INCONSISTENT_CLUSTER_ID" final "The cluster id of the request is another cluster's.";
    105 TransactionalIdNotFound "TRANSACTIONAL_ID_NOT_FOUND" final "No such transactional id.";
    106 FetchSessionTopicIdError "FETCH_SESSION_TOPIC_ID_ERROR" retry "The fetch session mixes topic ids and names; start a new session.";
    107 IneligibleReplica "INELIGIBLE_REPLICA" final "The new replica may not join the in-sync set.";
    108 NewLeaderElected "NEW_LEADER_ELECTED" final "The change to the in-sync set moved the leadership.";
    109 OffsetMovedToTieredStorage "OFFSET_MOVED_TO_TIERED_STORAGE" final "The offset lies in tiered storage.";
    110 FencedMemberEpoch "FENCED_MEMBER_EPOCH" final "The member's epoch is not the coordinator's; give up all partitions and rejoin.";
    111 UnreleasedInstanceId "UNRELEASED_INSTANCE_ID" final "A live member still uses the instance id.";
    112 UnsupportedAssignor "UNSUPPORTED_ASSIGNOR" final "The coordinator does not have the assignor asked for.";
    113 StaleMemberEpoch "STALE_MEMBER_EPOCH" final "The member has a newer epoch; retry with that of the next heartbeat.";
    114 MismatchedEndpointType "MISMATCHED_ENDPOINT_TYPE" final "The request went to the wrong kind of endpoint, broker or controller.";
    115 UnsupportedEndpointType "UNSUPPORTED_ENDPOINT_TYPE" final "This kind of endpoint is not supported.";
    116 UnknownControllerId "UNKNOWN_CONTROLLER_ID" final "No controller of this id.";
    117 UnknownSubscriptionId "UNKNOWN_SUBSCRIPTION_ID" final "The telemetry subscription is outdated.";
    118 TelemetryTooLarge "TELEMETRY_TOO_LARGE" final "The pushed telemetry is larger than the broker takes.";
    119 InvalidRegistration "INVALID_REGISTRATION" final "The controller refused the broker's registration.";
    120 TransactionAbortable "TRANSACTION_ABORTABLE" final "The transaction can only be aborted; a new one may then begin.";
    121 InvalidRecordState "INVALID_RECORD_STATE" final "The share group's record is not in a state that allows the acknowledgement.";
    122 ShareSessionNotFound "SHARE_SESSION_NOT_FOUND" retry "The broker has dropped the share session.";
    123 InvalidShareSessionEpoch "INVALID_SHARE_SESSION_EPOCH" retry "The share session's epoch is not the expected one.";
    124 FencedStateEpoch "FENCED_STATE_EPOCH" final "The share coordinator has a newer state epoch.";
    125 InvalidVoterKey "INVALID_VOTER_KEY" final "The voter key is not the receiver's.";
    126 DuplicateVoter "DUPLICATE_VOTER" final "The voter is already in the quorum.";
    127 VoterNotFound "VOTER_NOT_FOUND" final "The voter is not in the quorum.";
    128 InvalidRegularExpression "INVALID_REGULAR_EXPRESSION" final "The subscription's regular expression is not legal.";
    129 RebootstrapRequired "REBOOTSTRAP_REQUIRED" final "The client's metadata is of no use any more; start over from the bootstrap addresses.";
    130 StreamsInvalidTopology "STREAMS_INVALID_TOPOLOGY" final "The streams group's topology is not legal.";
    131 StreamsInvalidTopologyEpoch "STREAMS_INVALID_TOPOLOGY_EPOCH" final "The streams group's topology epoch is not legal.";
    132 StreamsTopologyFenced "STREAMS_TOPOLOGY_FENCED" final "The streams group has a newer topology.";
    133 ShareSessionLimitReached "SHARE_SESSION_LIMIT_REACHED" retry "The broker has as many share sessions as it allows.";
    134 GroupDeletionFailed "GROUP_DELETION_FAILED" final "Some groups could not be deleted; the answer says why for each.";
    135 StreamsTopologyDescriptionUpdateFailed "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED" final "The streams group's topology description could not be stored.";
    136 ControllerIdNotRegistered "CONTROLLER_ID_NOT_REGISTERED" final "No controller of this id is registered.";
}

impl ErrorCode {
    /// Whether this is success.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::None)
    }

    /// `Ok(())` for success, the code itself as error otherwise.
    ///
    /// # Errors
    /// The code, if it is not [`ErrorCode::None`].
    pub const fn into_result(self) -> Result<(), Self> {
        if self.is_ok() { Ok(()) } else { Err(self) }
    }

    /// Whether the broker that answered is not the one to ask: the leader or the topic's identity has moved, and fresh
    /// metadata is needed before a retry can help.
    #[must_use]
    pub const fn needs_fresh_metadata(self) -> bool {
        matches!(
            self,
            Self::UnknownTopicOrPartition
                | Self::LeaderNotAvailable
                | Self::NotLeaderOrFollower
                | Self::ReplicaNotAvailable
                | Self::NetworkException
                | Self::KafkaStorageError
                | Self::ListenerNotFound
                | Self::FencedLeaderEpoch
                | Self::UnknownTopicId
                | Self::InconsistentTopicId
        )
    }

    /// Whether the coordinator of a group or transaction has to be looked up again.
    #[must_use]
    pub const fn needs_coordinator_lookup(self) -> bool {
        matches!(self, Self::CoordinatorNotAvailable | Self::NotCoordinator)
    }
}

impl From<i16> for ErrorCode {
    fn from(code: i16) -> Self {
        Self::from_code(code)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.name(), self.code(), self.meaning())
    }
}

impl std::error::Error for ErrorCode {}

#[cfg(test)]
mod tests {
    use super::ErrorCode;

    #[test]
    fn numbers_are_a_bijection_without_gaps() {
        for (i, code) in (-1i16..).zip(ErrorCode::ALL) {
            assert_eq!(code.code(), i, "{}", code.name());
            assert_eq!(ErrorCode::from_code(i), *code);
        }
        assert_eq!(ErrorCode::ALL.len(), 138);
    }

    #[test]
    fn unknown_codes_are_kept_and_never_retried() {
        let code = ErrorCode::from(9_999);
        assert_eq!((code, code.code(), code.is_retriable()), (ErrorCode::Unknown(9_999), 9_999, false));
        assert!(code.to_string().contains("9999"));
    }

    /// The retriable ones of Kafka 4.4's own table.
    #[test]
    fn retriable_flags_match_kafka() {
        let retriable: Vec<i16> =
            ErrorCode::ALL.iter().filter(|c| c.is_retriable()).map(|c| c.code()).collect();
        let kafka = [
            2, 3, 5, 6, 7, 9, 13, 14, 15, 16, 19, 20, 41, 51, 56, 70, 71, 72, 74, 75, 78, 80, 83, 84, 88, 89,
            100, 103, 106, 122, 123, 133,
        ];
        assert_eq!(retriable, kafka);
    }

    #[test]
    fn success_is_not_an_error() {
        assert_eq!(ErrorCode::None.into_result(), Ok(()));
        assert_eq!(ErrorCode::NotCoordinator.into_result(), Err(ErrorCode::NotCoordinator));
    }
}
