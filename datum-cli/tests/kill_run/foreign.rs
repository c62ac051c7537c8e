//! Kafka's own console consumer: in the rollup's group, where it does not belong, and as the reader of the output.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::process::Process;

/// A consumer in a group.
pub struct Console<'a> {
    pub brokers: &'a str,
    pub topic: &'a str,
    pub group: &'a str,
    pub protocol: &'a str,
}

impl Console<'_> {
    /// Starts it; it commits nothing, since offsets without the job's state would make the job refuse.
    pub fn start(&self, said: &Path) -> Process {
        let (tool, folder) = dev_kafka();
        // `exec`, so that the process signalled is the consumer itself; what it reads is thrown away.
        let line = r#"libs=${DATUM_KAFKA_LIBS:-$(dirname "$0")/../target/dev/kafka-libs}
            exec java -Xmx256m -Dlog4j2.configurationFile="$1/log4j2.properties" -cp "$libs/*" \
            org.apache.kafka.tools.consumer.ConsoleConsumer --bootstrap-server "$2" --topic "$3" --group "$4" \
            --command-property "group.protocol=$5" --command-property enable.auto.commit=false >&2"#;
        let mut command = Command::new("bash");
        command.args(["-c", line, &tool, &folder, self.brokers, self.topic, self.group, self.protocol]);
        Process::start(&mut command, said)
    }
}

/// The path of `dev/kafka` and the folder of the cluster.
pub fn dev_kafka() -> (String, String) {
    let tool = std::env::var("DATUM_DEV_KAFKA").expect("DATUM_DEV_KAFKA names dev/kafka");
    let folder =
        std::env::var("DATUM_TEST_KAFKA_DIR").expect("DATUM_TEST_KAFKA_DIR names the cluster's folder");
    (tool, folder)
}

/// What the console consumer sees of the output, read committed: panes, each with the key and the time it should have.
pub fn panes(brokers: &str, topic: &str) -> Vec<Value> {
    let (tool, folder) = dev_kafka();
    let output = Command::new(tool)
        .args(["tool", &folder, "consumer.ConsoleConsumer", "--bootstrap-server", brokers, "--topic", topic])
        .args(["--from-beginning", "--isolation-level", "read_committed", "--timeout-ms", "10000"])
        .args(["--property", "print.key=true", "--property", "print.timestamp=true"])
        .output()
        .unwrap();
    let mut panes: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with("CreateTime:"))
        .map(|line| {
            let (time, rest) = line["CreateTime:".len()..].split_once('\t').unwrap();
            let (key, value) = rest.split_once('\t').unwrap();
            let pane: Value = serde_json::from_str(value).unwrap();
            assert_eq!(pane["region"], key);
            let last = time.parse::<i64>().unwrap();
            assert_eq!(pane["window_end_ms"], last + 1, "a pane's time is its last moment");
            pane
        })
        .collect();
    assert!(!panes.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    panes.sort_by_key(|pane| {
        (pane["window_start_ms"].as_i64().unwrap(), pane["region"].as_str().unwrap().to_owned())
    });
    panes
}
