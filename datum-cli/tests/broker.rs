//! `datum broker` as a process: says where it is, ends when asked to.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

fn start(port: &str) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_datum"))
        .args(["broker", "--port", port])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut address = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
    (child, address.trim().to_owned())
}

#[test]
#[cfg(unix)]
fn it_listens_where_it_says_and_ends_in_good_order_when_asked() {
    let (mut broker, address) = start("0");
    TcpStream::connect(&address).unwrap();
    let told = Command::new("kill").args(["-TERM", &broker.id().to_string()]).status().unwrap();
    assert!(told.success());
    assert_eq!(broker.wait().unwrap().code(), Some(0));
    assert!(TcpStream::connect(&address).is_err(), "the port is closed");
}

#[test]
fn a_port_that_is_taken_ends_with_1_and_says_what_to_do() {
    let (mut broker, address) = start("0");
    let port = address.rsplit(':').next().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_datum")).args(["broker", "--port", port]).output().unwrap();
    broker.kill().unwrap();
    broker.wait().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(&address) && said.contains("choose another port"), "{said}");
}
