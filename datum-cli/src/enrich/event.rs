//! What enriching is: the fields that are read, the regions that are kept, the record that is written.

use datum::codec::Projected;
use serde::Serialize;

use crate::rollup::OBJECTIVE_MS;

/// Regions whose name begins with this are kept.
const KEPT: &str = "eu-";

/// The fields of a record that are read. Texts are borrowed from it.
#[derive(Clone, Copy, Debug, PartialEq, Projected)]
pub(super) struct Event<'a> {
    event_id: &'a str,
    region: &'a str,
    timestamp: i64,
    latency_ms: f64,
}

/// The record that is written.
#[derive(Debug, Serialize)]
struct Enriched<'a> {
    event_id: &'a str,
    region: &'a str,
    timestamp: i64,
    latency_ms: f64,
    /// The latency in terms of the objective.
    latency_ratio: f64,
    /// Whether the latency is above the objective.
    sla_breach: bool,
}

/// The record to be written for one that was read, as JSON; `None` if its region is not kept.
pub(super) fn enrich(event: Event<'_>) -> Option<Vec<u8>> {
    if !event.region.starts_with(KEPT) {
        return None;
    }
    let enriched = Enriched {
        event_id: event.event_id,
        region: event.region,
        timestamp: event.timestamp,
        latency_ms: event.latency_ms,
        latency_ratio: event.latency_ms / OBJECTIVE_MS,
        sla_breach: event.latency_ms > OBJECTIVE_MS,
    };
    let mut json = Vec::with_capacity(224);
    // A vector takes everything, and the struct has nothing that JSON cannot hold.
    let written = serde_json::to_writer(&mut json, &enriched);
    debug_assert!(written.is_ok());
    Some(json)
}

#[cfg(test)]
mod tests {
    use super::{Event, enrich};

    fn of(region: &str, latency_ms: f64) -> Option<String> {
        let json = enrich(Event { event_id: "a\"b", region, timestamp: -5, latency_ms })?;
        Some(String::from_utf8(json).unwrap())
    }

    #[test]
    fn european_regions_are_kept_and_no_others() {
        assert!(of("eu-west-1", 1.0).is_some());
        for other in ["us-east-1", "eu", "EU-west-1", "ap-eu-1", ""] {
            assert_eq!(of(other, 1.0), None, "{other}");
        }
    }

    #[test]
    fn a_breach_is_above_the_objective_not_at_it() {
        assert_eq!(
            of("eu-1", 80.0).unwrap(),
            r#"{"event_id":"a\"b","region":"eu-1","timestamp":-5,"latency_ms":80.0,"latency_ratio":1.0,"sla_breach":false}"#
        );
        assert!(of("eu-1", 80.5).unwrap().ends_with(r#""latency_ratio":1.00625,"sla_breach":true}"#));
    }
}
