//! What the command's tests share: running it, and the naive oracle its panes are compared with.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses its part, and fails by panicking"
)]

pub mod brokers;
pub mod oracle;
pub mod topic;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// What a run of `datum` printed and ended with.
pub struct Run {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs `datum` to its end.
pub fn datum<I: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = I>) -> Run {
    let output: Output =
        Command::new(env!("CARGO_BIN_EXE_datum")).args(args).output().expect("the command starts");
    Run {
        code: output.status.code().expect("it ends by itself"),
        stdout: String::from_utf8(output.stdout).expect("UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("UTF-8"),
    }
}

impl Run {
    /// Fails the test with what was printed, unless the run ended well.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// The one line in which a command that failed says why.
    pub fn complaint(&self) -> &str {
        let said: Vec<&str> = self.stderr.lines().filter(|line| line.starts_with("datum: ")).collect();
        assert_eq!(said.len(), 1, "{}", self.stderr);
        said[0]
    }

    /// The panes of `--format json`.
    pub fn json_panes(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// A folder for one test, and files in it.
pub struct Files(tempfile::TempDir);

impl Files {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("written");
        path
    }
}

pub fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).expect("the file")).expect("JSON")
}
