//! A tiny raw client: one blocking socket, any request in any version.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::fetch_response::PartitionData;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::PartitionProduceResponse;
use kafka_protocol::messages::{
    ApiKey, BrokerId, CreateTopicsRequest, FetchRequest, FindCoordinatorRequest, GroupId, ListOffsetsRequest,
    MetadataRequest, OffsetFetchRequest, ProduceRequest, RequestHeader, ResponseHeader, TopicName,
    TransactionalId,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

/// Every wait of the suite ends here.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Client {
    socket: TcpStream,
    correlation: i32,
}

pub(crate) fn text(value: &str) -> StrBytes {
    StrBytes::from_string(value.to_owned())
}

pub(crate) fn topic_name(value: &str) -> TopicName {
    TopicName(text(value))
}

impl Client {
    pub(crate) fn connect(address: &str) -> Self {
        let socket = TcpStream::connect(address).expect("the broker listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        socket.set_nodelay(true).expect("a socket");
        Self { socket, correlation: 0 }
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn call<Q: Request>(&mut self, version: i16, request: &Q) -> Q::Response
    where
        Q::Response: HeaderVersion,
    {
        self.send(version, request);
        self.receive::<Q>(version)
    }

    pub(crate) fn send<Q: Request>(&mut self, version: i16, request: &Q) {
        self.correlation += 1;
        let header = RequestHeader::default()
            .with_request_api_key(Q::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation)
            .with_client_id(Some(StrBytes::from_static_str("conformance")));
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        header.encode(&mut frame, Q::header_version(version)).expect("a header");
        request.encode(&mut frame, version).expect("the request fits its version");
        let length = i32::try_from(frame.len() - 4).expect("short");
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.socket.write_all(&frame).expect("the broker reads");
    }

    pub(crate) fn receive<Q: Request>(&mut self, version: i16) -> Q::Response
    where
        Q::Response: HeaderVersion,
    {
        let mut frame = self.frame();
        let header_version = <Q::Response as HeaderVersion>::header_version(version);
        let header = ResponseHeader::decode(&mut frame, header_version).expect("a response header");
        assert_eq!(header.correlation_id, self.correlation, "answers come in order");
        let response = Q::Response::decode(&mut frame, version).expect("a response of this version");
        assert!(frame.is_empty(), "nothing after the response");
        response
    }

    pub(crate) fn frame(&mut self) -> Bytes {
        let mut length = [0; 4];
        self.socket.read_exact(&mut length).expect("an answer in time");
        let mut frame = vec![0; usize::try_from(i32::from_be_bytes(length)).expect("a length")];
        self.socket.read_exact(&mut frame).expect("a whole answer");
        frame.into()
    }

    /// Whether nothing has come within a moment: what must not be answered yet.
    pub(crate) fn is_silent(&self) -> bool {
        let moment = Some(Duration::from_millis(200));
        self.socket.set_read_timeout(moment).expect("a socket");
        let silent = self.socket.peek(&mut [0]).is_err();
        self.socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        silent
    }

    /// Whether the broker closes the connection instead of answering.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.socket.read(&mut [0]), Ok(0) | Err(_))
    }

    pub(crate) fn send_raw(&mut self, key: ApiKey, version: i16) {
        let mut frame = BytesMut::new();
        frame.put_i32(11);
        frame.put_i16(key as i16);
        frame.put_i16(version);
        self.correlation += 1;
        frame.put_i32(self.correlation);
        frame.put_i16(-1);
        frame.put_u8(0);
        self.socket.write_all(&frame).expect("the broker reads");
    }

    /// Error code and message.
    pub(crate) fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        config: &[(&str, &str)],
    ) -> (i16, String) {
        let config = config.iter().map(|&(name, value)| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
        });
        let topic = CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(partitions)
            .with_replication_factor(1)
            .with_configs(config.collect());
        let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(10_000);
        let result = self.call(7, &request).topics.remove(0);
        if result.error_code == 0 {
            self.await_leaders(name);
        }
        (result.error_code, result.error_message.map(|m| m.to_string()).unwrap_or_default())
    }

    /// A topic is there when metadata names all its leaders.
    fn await_leaders(&mut self, name: &str) {
        let partitions = until("the topic has leaders", || {
            let asked = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
            let answer = self.call(12, &MetadataRequest::default().with_topics(Some(vec![asked])));
            let topic = &answer.topics[0];
            let led = topic.partitions.iter().all(|p| p.error_code == 0 && p.leader_id.0 >= 0);
            (topic.error_code == 0 && led).then_some(topic.partitions.len())
        });
        // A real node may be told later than the metadata that it leads.
        until("the leaders know of it", || {
            let partition = |index| {
                let partition =
                    ListOffsetsPartition::default().with_partition_index(index).with_timestamp(-1);
                partition.with_current_leader_epoch(-1)
            };
            let asked = (0..i32::try_from(partitions).expect("few")).map(partition).collect();
            let topics = vec![ListOffsetsTopic::default().with_name(topic_name(name)).with_partitions(asked)];
            let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(topics);
            let answer = self.call(7, &request);
            answer.topics[0].partitions.iter().all(|p| p.error_code == 0).then_some(())
        });
    }

    pub(crate) fn topic_id(&mut self, name: &str) -> uuid::Uuid {
        let asked = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        self.call(12, &MetadataRequest::default().with_topics(Some(vec![asked]))).topics[0].topic_id
    }

    /// Produces one batch to partition 0, with acks -1, in version 9.
    pub(crate) fn produce(&mut self, topic: &str, batch: impl Into<Bytes>) -> PartitionProduceResponse {
        self.produce_as(9, topic, None, batch)
    }

    pub(crate) fn produce_as(
        &mut self,
        version: i16,
        topic: &str,
        transactional: Option<&str>,
        batch: impl Into<Bytes>,
    ) -> PartitionProduceResponse {
        let data = PartitionProduceData::default().with_records(Some(batch.into()));
        let topic = TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]);
        let request = ProduceRequest::default()
            .with_acks(-1)
            .with_timeout_ms(10_000)
            .with_transactional_id(transactional.map(|id| TransactionalId(text(id))))
            .with_topic_data(vec![topic]);
        self.call(version, &request).responses.remove(0).partition_responses.remove(0)
    }

    pub(crate) fn fetch_request(topic: &str, offset: i64) -> FetchRequest {
        let partition = FetchPartition::default()
            .with_fetch_offset(offset)
            .with_partition_max_bytes(1 << 20)
            .with_current_leader_epoch(-1)
            .with_last_fetched_epoch(-1);
        FetchRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_max_wait_ms(0)
            .with_min_bytes(1)
            .with_max_bytes(50 << 20)
            .with_session_epoch(-1)
            .with_topics(vec![
                FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![partition]),
            ])
    }

    /// Fetches partition 0 at once, in version 12.
    pub(crate) fn fetch(&mut self, topic: &str, offset: i64, committed: bool) -> PartitionData {
        let request = Self::fetch_request(topic, offset).with_isolation_level(committed.into());
        self.call(12, &request).responses.remove(0).partitions.remove(0)
    }

    /// Error, time stamp and offset of partition 0.
    pub(crate) fn list_offset(&mut self, topic: &str, time: i64, committed: bool) -> (i16, i64, i64) {
        let partition = ListOffsetsPartition::default().with_timestamp(time).with_current_leader_epoch(-1);
        let topic = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
        let request = ListOffsetsRequest::default()
            .with_replica_id(BrokerId(-1))
            .with_isolation_level(committed.into())
            .with_topics(vec![topic]);
        let answer = self.call(7, &request).topics.remove(0).partitions.remove(0);
        (answer.error_code, answer.timestamp, answer.offset)
    }

    /// Waits until a coordinator answers for this key (a fresh broker makes its internal topics first).
    pub(crate) fn coordinator(&mut self, key: &str, kind: i8) {
        until("there is a coordinator", || {
            let request =
                FindCoordinatorRequest::default().with_key_type(kind).with_coordinator_keys(vec![text(key)]);
            (self.call(4, &request).coordinators[0].error_code == 0).then_some(())
        });
        if kind == 0 {
            until("the coordinator has loaded the group", || {
                let group = OffsetFetchRequestGroup::default()
                    .with_group_id(GroupId(text(key)))
                    .with_member_epoch(-1)
                    .with_topics(None);
                let answer = self.call(8, &OffsetFetchRequest::default().with_groups(vec![group]));
                (!matches!(answer.groups[0].error_code, 14..=16)).then_some(())
            });
        }
    }
}

/// Tries until there is something, or the suite's patience is over.
pub(crate) fn until<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(Instant::now() < deadline, "not in time: {what}");
        thread::yield_now();
    }
}

/// Tries again while the answer is one of these codes: a real coordinator needs moments that ours does not.
pub(crate) fn settled(what: &str, passing: &[i16], mut attempt: impl FnMut() -> i16) -> i16 {
    until(what, || Some(attempt()).filter(|code| !passing.contains(code)))
}
