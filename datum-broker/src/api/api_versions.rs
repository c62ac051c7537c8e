//! ApiVersions: what the broker speaks, and which protocol of transactions.

use kafka_protocol::messages::api_versions_response::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::{Call, Range, TABLE};
use crate::code::{Code, number};
use crate::core::Core;

/// v3 adds client names and features, v4 features that begin at version 0.
pub(crate) const VERSIONS: Range = (0, 4);

const TRANSACTIONS: StrBytes = StrBytes::from_static_str("transaction.version");

pub(crate) fn handle(core: &mut Core, call: &Call, _request: ApiVersionsRequest) -> ApiVersionsResponse {
    let response = ApiVersionsResponse::default()
        .with_error_code(number(&call.forced()))
        .with_api_keys(keys())
        .with_finalized_features_epoch(1);
    let level = core.settings.transaction_version;
    let supported = SupportedFeatureKey::default().with_name(TRANSACTIONS).with_max_version(2);
    let finalized = FinalizedFeatureKey::default()
        .with_name(TRANSACTIONS)
        .with_max_version_level(level)
        .with_min_version_level(level);
    // A feature at level 0 is not finalized; one that begins at 0 is not told to clients before v4.
    response
        .with_supported_features(if call.version >= 4 { vec![supported] } else { Vec::new() })
        .with_finalized_features(if level > 0 { vec![finalized] } else { Vec::new() })
}

/// The answer to a version that is not spoken: in version 0, which everybody reads.
pub(crate) fn unsupported() -> ApiVersionsResponse {
    ApiVersionsResponse::default().with_error_code(Code::UnsupportedVersion.code()).with_api_keys(keys())
}

fn keys() -> Vec<ApiVersion> {
    let key = |row: &crate::api::Versions| {
        let (min, max) = row.told();
        ApiVersion::default().with_api_key(row.api.key()).with_min_version(min).with_max_version(max)
    };
    TABLE.iter().map(key).collect()
}
