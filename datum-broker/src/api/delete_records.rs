//! DeleteRecords: moves the log's start.

use kafka_protocol::messages::delete_records_request::DeleteRecordsPartition;
use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

use crate::api::{Call, Range};
use crate::code::{Code, number};
use crate::core::Core;

pub(crate) const VERSIONS: Range = (0, 2);

pub(crate) fn handle(core: &mut Core, call: &Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let delete = |partition: &DeleteRecordsPartition| {
            let outcome = delete(core, call, &topic.name, partition);
            DeleteRecordsPartitionResult::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(number(&outcome))
                .with_low_watermark(outcome.unwrap_or(-1))
        };
        let partitions = topic.partitions.iter().map(delete).collect();
        topics.push(
            DeleteRecordsTopicResult::default().with_name(topic.name.clone()).with_partitions(partitions),
        );
    }
    DeleteRecordsResponse::default().with_topics(topics)
}

fn delete(core: &mut Core, call: &Call, topic: &str, asked: &DeleteRecordsPartition) -> Result<i64, Code> {
    call.forced()?;
    let partition = core.led_mut(topic, asked.partition_index, call.node)?;
    // -1 stands for the high watermark.
    let offset = if asked.offset == -1 { partition.end() } else { asked.offset };
    let freed = partition.delete_to(offset)?;
    let start = partition.start();
    core.touch(topic, asked.partition_index);
    if freed > 0 {
        core.note_freed();
    }
    Ok(start)
}
