//! The command line itself: exit codes, help, configuration files, sample records.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use support::{Files, datum, read_json};

#[test]
fn help_and_version_are_no_failure() {
    for args in
        [&["--help"][..], &["--version"], &["rollup", "--help"], &["gen", "--help"], &["probe", "--help"]]
    {
        let run = datum(args).ok();
        assert!(!run.stdout.is_empty() && run.stderr.is_empty());
    }
    for command in ["rollup", "gen", "enrich", "probe", "group", "broker"] {
        let help = datum([command, "--help"]).ok().stdout;
        assert!(help.contains("Examples:\n  datum "), "{command} shows examples: {help}");
    }
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let wrong: [&[&str]; 9] = [
        &[],
        &["rolup"],
        &["rollup", "--window", "30"],
        &["rollup", "--from-file", "x", "--brokers", "localhost:9092"],
        &["rollup", "--on-bad-record", "dead-letter"],
        &["rollup", "--dead-letter-topic", "bad"],
        &["rollup", "--from-file", "x", "--window", "0s"],
        &["gen"],
        &["gen", "--out", "x", "--layout", "round"],
    ];
    for args in wrong {
        let run = datum(args);
        assert_eq!(run.code, 2, "{args:?}: {}", run.stderr);
        assert!(!run.stderr.is_empty(), "{args:?}");
    }
    assert!(
        datum(["rollup", "--window", "30"]).stderr.contains("500ms, 30s, 5m"),
        "it says how to write one"
    );
}

#[test]
fn a_missing_file_ends_with_1_and_is_named() {
    let run = datum(["rollup", "--from-file", "no/such/file.ndjson"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("no/such/file.ndjson"), "{}", run.stderr);
}

#[test]
fn a_configuration_file_gives_options_and_the_command_line_wins() {
    let files = Files::new();
    let out = files.path("a.ndjson");
    let config = files.write("gen.toml", "records = 300\nlayout = \"spaced\"\nseed = 9\nstart-ms = 1000\n");
    let line = ["gen", "--out", out.to_str().unwrap(), "--config", config.to_str().unwrap()];
    datum(line).ok();
    let text = std::fs::read_to_string(&out).unwrap();
    assert_eq!(text.lines().count(), 300);
    assert!(text.starts_with("{\"timestamp\": 1000, "), "{}", &text[..40]);

    datum(line.iter().chain(&["--records", "5"])).ok();
    let fewer = std::fs::read_to_string(&out).unwrap();
    assert_eq!(fewer.lines().count(), 5);
    assert!(text.starts_with(&fewer), "the rest of the file still holds");
}

#[test]
fn flags_in_a_configuration_file_are_true_or_false() {
    let files = Files::new();
    let records = files.path("a.ndjson");
    datum(["gen", "--out", records.to_str().unwrap(), "--records", "10", "--start-ms", "0"]).ok();
    let panes = |flush: &str| {
        let config = files.write("rollup.toml", format!("flush = {flush}\nformat = \"json\"\n"));
        datum(["rollup", "--from-file", records.to_str().unwrap(), "--config", config.to_str().unwrap()])
    };
    assert!(panes("false").ok().stdout.is_empty());
    assert!(!panes("true").ok().stdout.is_empty());
    let wrong = panes("\"yes\"");
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("`flush` takes true or false"), "{}", wrong.stderr);
}

#[test]
fn an_unknown_key_a_bad_value_and_a_file_that_is_not_toml_end_with_2() {
    let files = Files::new();
    let run = |content: &str| {
        let config = files.write("c.toml", content);
        let run = datum(["gen", "--out", "-", "--config", config.to_str().unwrap()]);
        assert_eq!(run.code, 2, "{}", run.stdout);
        run.stderr
    };
    let unknown = run("record = 5\n");
    assert!(
        unknown.contains("`record`") && unknown.contains("records"),
        "it names the key and the ones there are: {unknown}"
    );
    assert!(run("records = \"many\"\n").contains("2_000_000"), "the option's own check speaks");
    assert!(run("records = 1.5\n").contains("a string or a whole number"));
    assert!(run("records = = 5\n").contains("is not TOML"));
    assert!(run("config = \"other.toml\"\n").contains("`config`"), "no file within a file");
    let missing = datum(["gen", "--out", "-", "--config", "no-such.toml"]);
    assert_eq!(missing.code, 2);
    assert!(missing.stderr.contains("no-such.toml"));
}

#[test]
fn the_same_seed_gives_the_same_file() {
    let generate = |seed: &str| {
        datum(["gen", "--out", "-", "--records", "200", "--start-ms", "0", "--seed", seed]).ok().stdout
    };
    assert_eq!(generate("3"), generate("3"));
    assert_ne!(generate("3"), generate("4"));
}

#[test]
fn a_rate_is_kept_to() {
    let started = std::time::Instant::now();
    datum(["gen", "--out", "-", "--records", "300", "--rate", "1000"]).ok();
    assert!(started.elapsed().as_millis() >= 290, "{:?}", started.elapsed());
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let files = Files::new();
    let run = datum(["gen", "--out", files.path("no/folder").to_str().unwrap(), "--records", "1"]);
    assert_eq!(run.code, 1);
    assert!(run.stderr.contains("no/folder"), "{}", run.stderr);
    let records = files.path("a.ndjson");
    datum(["gen", "--out", records.to_str().unwrap(), "--records", "1"]).ok();
    let summary = files.path("s.json");
    datum(["rollup", "--from-file", records.to_str().unwrap(), "--summary-json", summary.to_str().unwrap()])
        .ok();
    assert_eq!(read_json(&summary)["records"], 1);
}
