//! Child processes that do not outlive the test, and signals to them.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long anything may take before the test fails.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LIMIT, "waited {LIMIT:?} until {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// A child, with what it says in a file.
pub struct Process {
    child: Child,
    said: PathBuf,
}

impl Process {
    pub fn start(command: &mut Command, said: &Path) -> Self {
        let file = std::fs::File::create(said).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        Self { child: command.spawn().unwrap(), said: said.to_owned() }
    }

    /// What it has written to its standard error.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap()
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    pub fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        stat.rsplit(") ").next().unwrap().starts_with('T')
    }

    /// Waits for its end.
    pub fn end(mut self) -> (ExitStatus, String) {
        until("a process ends", || self.has_ended());
        (self.child.wait().unwrap(), self.said())
    }

    /// It has been killed.
    pub fn killed(self) {
        let (status, said) = self.end();
        assert_eq!(status.signal(), Some(9), "instead of being killed it ended with {status}: {said}");
    }

    /// It has ended well.
    pub fn done(self) {
        let (status, said) = self.end();
        assert!(status.success(), "{status}: {said}");
    }

    /// Asks it to end, and it does, well.
    pub fn ask_to_end(self) {
        self.signal(Signal::SIGTERM);
        self.done();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
