//! Brokers to test with: the embedded one as a process of its own, and real ones where the environment names them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// An embedded broker as a process of its own.
pub struct Broker {
    process: Child,
    pub address: String,
}

impl Broker {
    pub fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_datum"))
            .args(["broker"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { process, address: address.trim().to_owned() }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Real brokers, or none where none is required.
pub fn real() -> Option<String> {
    let address = std::env::var("DATUM_TEST_KAFKA").ok();
    assert!(
        address.is_some() || std::env::var_os("DATUM_TEST_REQUIRE_KAFKA").is_none(),
        "DATUM_TEST_KAFKA names no broker"
    );
    address
}
