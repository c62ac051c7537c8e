//! DescribeCluster: the nodes, for tools.

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range};
use crate::code::number;
use crate::core::Core;

/// v1 adds the kind of endpoint, v2 fenced brokers; there are none.
pub(crate) const VERSIONS: Range = (0, 2);

pub(crate) fn handle(core: &mut Core, call: &Call, _: DescribeClusterRequest) -> DescribeClusterResponse {
    let broker = |node: &crate::core::Node| {
        DescribeClusterBroker::default()
            .with_broker_id(BrokerId(node.id))
            .with_host(StrBytes::from_string(node.host.clone()))
            .with_port(i32::from(node.port))
    };
    DescribeClusterResponse::default()
        .with_error_code(number(&call.forced()))
        .with_cluster_id(StrBytes::from_string(core.cluster_id.clone()))
        .with_controller_id(BrokerId(core.nodes[0].id))
        .with_brokers(core.nodes.iter().map(broker).collect())
        .with_cluster_authorized_operations(i32::MIN)
}
