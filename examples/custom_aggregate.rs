//! An aggregate of one's own beside the built-in ones: the slowest request of each region and minute, with its trace.
//!
//! `cargo run -p datum --example custom_aggregate`

#![allow(clippy::print_stdout, reason = "a program for people")]

use std::time::Duration;

use datum::codec::{Json, Projected};
use datum::window::aggregate::Custom;
use datum::window::{Aggregates, KeyedWindows, RecordPosition, Tumbling};

#[derive(Projected)]
struct Request {
    at: i64,
    region: String,
    latency_ms: f64,
    #[projected(path = "trace.id")]
    trace: String,
}

const RECORDS: [&str; 4] = [
    r#"{"at":10000,"region":"eu","latency_ms":12.5,"trace":{"id":"a1"}}"#,
    r#"{"at":11000,"region":"eu","latency_ms":91.0,"trace":{"id":"b2"}}"#,
    r#"{"at":12000,"region":"us","latency_ms":40.0,"trace":{"id":"c3"}}"#,
    r#"{"at":62000,"region":"eu","latency_ms":7.0,"trace":{"id":"d4"}}"#,
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // How to start, add a record, add another's records (each partition aggregates on its own), and finish. The name ends with a
    // version: raise it when the meaning changes, since a job compares it with what its stored state was made under.
    let slowest = Custom::new(
        "slowest trace 1",
        || (f64::MIN, String::new()),
        |slowest: &mut (f64, String), request: &Request| {
            if request.latency_ms > slowest.0 {
                *slowest = (request.latency_ms, request.trace.clone());
            }
        },
        |slowest, other| {
            if other.0 > slowest.0 {
                slowest.clone_from(other);
            }
        },
        |slowest| slowest.1.clone(),
    );
    let aggregates = Aggregates::<Request>::new()
        .count("requests")
        .mean("latency", |r| r.latency_ms)
        .with("slowest", slowest);

    let windows = Tumbling::of(Duration::from_secs(60)).grace(Duration::from_secs(1)).checked()?;
    let mut panes = KeyedWindows::<String, _, _>::new(windows, aggregates);
    let mut requests = Json::<Request>::projected();
    for (offset, record) in (0..).zip(RECORDS) {
        let request = requests.decode(record)?;
        panes.add(RecordPosition::new(0, offset, request.at), request.region.as_str(), &request);
    }

    // The record at 62,000 has passed the end of the first minute and its grace.
    let closed = panes.close();
    let slowest: Vec<_> = closed
        .iter()
        .map(|pane| (pane.key.as_str(), pane.value.get("slowest").map(ToString::to_string)))
        .collect();
    assert_eq!(slowest, [("eu", Some("b2".to_owned())), ("us", Some("c3".to_owned()))]);
    for (region, trace) in slowest {
        println!("{region}: the slowest request was {}", trace.unwrap_or_default());
    }
    Ok(())
}
