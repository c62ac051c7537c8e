//! `datum rollup --from-file` against the naive oracle, and what it does with bad lines.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{Files, datum, oracle, read_json};

const LAYOUTS: [&str; 4] = ["natural", "spread", "spaced", "long-floats"];
const SIZE_MS: i64 = 30_000;
const GRACE_MS: i64 = 1_000;
/// Long past, so that no window ends after now.
const START_MS: &str = "1700000010000";

struct Case {
    text: String,
    path: std::path::PathBuf,
    files: Files,
}

fn generate(layout: &str, disorder: &str, seed: &str) -> Case {
    let files = Files::new();
    let path = files.path("records.ndjson");
    datum([
        "gen",
        "--out",
        path.to_str().unwrap(),
        "--records",
        "6000",
        "--event-time-rate",
        "50",
        "--start-ms",
        START_MS,
        "--layout",
        layout,
        "--disorder",
        disorder,
        "--seed",
        seed,
    ])
    .ok();
    Case { text: std::fs::read_to_string(&path).unwrap(), path, files }
}

fn check_against_the_oracle(layout: &str, disorder: &str, seed: &str) -> oracle::Answer {
    let case = generate(layout, disorder, seed);
    let answer = oracle::of_lines(&case.text, SIZE_MS, GRACE_MS);
    let summary = case.files.path("summary.json");
    let file = case.path.to_str().unwrap();

    let run = datum([
        "rollup",
        "--from-file",
        file,
        "--format",
        "json",
        "--summary-json",
        summary.to_str().unwrap(),
    ])
    .ok();
    oracle::assert_panes(&answer.closed, SIZE_MS, &run.json_panes());
    let summary = read_json(&summary);
    assert_eq!(summary["records"], 6_000);
    assert_eq!(summary["panes"], answer.closed.len());
    assert_eq!(summary["open_windows"], answer.open_windows);
    assert_eq!(summary["late"], answer.late.len());
    assert_eq!(summary["undecodable"], 0);
    for name in ["seconds", "records_per_second", "cpu_us_per_record", "peak_rss_bytes"] {
        assert!(summary[name].as_f64().unwrap() > 0.0, "{name}");
    }
    assert_eq!(summary.as_object().unwrap().len(), 9);
    answer
}

#[test]
fn panes_are_the_oracle_s_in_order_in_every_layout() {
    for layout in LAYOUTS {
        let answer = check_against_the_oracle(layout, "0ms", "11");
        assert_eq!((answer.closed.len(), answer.open_windows, answer.late.len()), (3 * 16, 1, 0));
    }
}

#[test]
fn panes_are_the_oracle_s_out_of_order_in_every_layout() {
    for layout in LAYOUTS {
        let answer = check_against_the_oracle(layout, "800ms", "12");
        assert_eq!(answer.late.len(), 0, "the grace covers the disorder");
    }
}

#[test]
fn panes_are_the_oracle_s_with_late_records_in_every_layout() {
    for layout in LAYOUTS {
        let answer = check_against_the_oracle(layout, "9s", "13");
        assert!(answer.late.len() > 100, "{} late", answer.late.len());
    }
}

#[test]
fn flush_publishes_windows_that_are_still_open() {
    let case = generate("natural", "2s", "14");
    let mut answer = oracle::of_lines(&case.text, SIZE_MS, GRACE_MS);
    let run =
        datum(["rollup", "--from-file", case.path.to_str().unwrap(), "--format", "json", "--flush"]).ok();
    answer.closed.append(&mut answer.open);
    oracle::assert_panes(&answer.closed, SIZE_MS, &run.json_panes());
}

#[test]
fn flush_leaves_windows_that_end_after_now() {
    let files = Files::new();
    let future = 4_102_444_800_000_i64; // 2100-01-01
    let case = generate("natural", "0ms", "15");
    let line = case.text.lines().next().unwrap().replace(START_MS, &future.to_string());
    let path = files.write("future.ndjson", format!("{}{line}\n", case.text));
    let summary = files.path("summary.json");
    let run = datum([
        "rollup",
        "--from-file",
        path.to_str().unwrap(),
        "--format",
        "json",
        "--flush",
        "--summary-json",
        summary.to_str().unwrap(),
    ])
    .ok();
    assert_eq!(run.json_panes().len(), 4 * 16, "the record of 2100 closes the others and is in none of them");
    assert_eq!(read_json(&summary)["open_windows"], 1);
}

#[test]
fn windows_align_by_floor_before_1970() {
    let files = Files::new();
    let case = generate("natural", "0ms", "16");
    let line = case.text.lines().next().unwrap();
    let at = |ms: i64| line.replace(START_MS, &ms.to_string());
    let path = files.write("old.ndjson", [at(-30_001), at(-1), at(0), at(31_000)].join("\n"));
    let run = datum(["rollup", "--from-file", path.to_str().unwrap(), "--format", "json"]).ok();
    let starts: Vec<i64> =
        run.json_panes().iter().map(|pane| pane["window_start_ms"].as_i64().unwrap()).collect();
    assert_eq!(starts, [-60_000, -30_000, 0]);
}

#[test]
fn a_bad_line_fails_the_job_and_names_the_line_and_the_remedy() {
    let files = Files::new();
    let case = generate("natural", "0ms", "17");
    let path = files.write("bad.ndjson", case.text.replacen("\"latency_ms\":", "\"latency_ms\":x", 3));
    let run = datum(["rollup", "--from-file", path.to_str().unwrap()]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("bad.ndjson:1 is not a record"), "{}", run.stderr);
    assert!(run.stderr.contains("--on-bad-record skip"), "{}", run.stderr);
}

#[test]
fn bad_lines_are_counted_and_skipped_where_asked() {
    let files = Files::new();
    let case = generate("natural", "0ms", "18");
    let broken =
        case.text.replacen("\"latency_ms\":", "\"latency_ms\":x", 3).replacen("\"region\"", "\"area\"", 7);
    // Blank lines are no records; a last line without a break is one.
    let path = files.write("bad.ndjson", format!("\n{broken}\r\n  \n{{\"timestamp\":1"));
    let summary = files.path("summary.json");
    let run = datum([
        "rollup",
        "--from-file",
        path.to_str().unwrap(),
        "--on-bad-record",
        "skip",
        "--format",
        "json",
        "--summary-json",
        summary.to_str().unwrap(),
    ])
    .ok();
    let text: Vec<&str> = broken.lines().skip(7).collect();
    let answer = oracle::of_lines(&text.join("\n"), SIZE_MS, GRACE_MS);
    oracle::assert_panes(&answer.closed, SIZE_MS, &run.json_panes());
    assert_eq!(read_json(&summary)["undecodable"], 8);
    assert_eq!(read_json(&summary)["records"], 6_001);
}

#[test]
fn a_line_without_an_end_takes_no_memory_without_bound() {
    let files = Files::new();
    let case = generate("natural", "0ms", "19");
    let mut text = vec![b'{'; 40 << 20];
    text.push(b'\n');
    text.extend_from_slice(case.text.as_bytes());
    let path = files.write("long.ndjson", text);
    let summary = files.path("summary.json");
    datum([
        "rollup",
        "--from-file",
        path.to_str().unwrap(),
        "--on-bad-record",
        "skip",
        "--summary-json",
        summary.to_str().unwrap(),
    ])
    .ok();
    let summary = read_json(&summary);
    assert_eq!((summary["undecodable"].as_u64(), summary["records"].as_u64()), (Some(1), Some(6_001)));
    // A vector doubles as it grows: twice the longest line, and the program.
    assert!(summary["peak_rss_bytes"].as_u64().unwrap() < 30 << 20, "{summary}");
}

#[test]
fn csv_and_table_hold_the_same_panes_as_json() {
    let case = generate("natural", "0ms", "20");
    let file = case.path.to_str().unwrap();
    let json = datum(["rollup", "--from-file", file, "--format", "json"]).ok().json_panes();

    let csv = datum(["rollup", "--from-file", file, "--format", "csv"]).ok().stdout;
    let mut lines = csv.lines();
    assert_eq!(
        lines.next(),
        Some(
            "region,window_start_ms,window_end_ms,count,latency_avg,latency_min,latency_max,latency_stddev,\
             sla_breaches,error_sum,bytes_sum,cpu_avg,memory_max,queue_depth_max,throughput_sum"
        )
    );
    for (line, pane) in lines.by_ref().zip(&json) {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields[0], pane["region"].as_str().unwrap());
        assert_eq!(fields[4].parse::<f64>().ok(), pane["latency_avg"].as_f64());
        assert_eq!(fields[10].parse::<i64>().ok(), pane["bytes_sum"].as_i64());
    }
    assert_eq!(csv.lines().count(), json.len() + 1);

    let table = datum(["rollup", "--from-file", file]).ok().stdout;
    assert_eq!(
        table
            .lines()
            .filter(|line| line.contains("-1  ") || line.contains("-2  ") || line.contains("-3  "))
            .count(),
        json.len()
    );
    assert!(table.contains("6000 records in "), "the summary stands below: {table}");
}
