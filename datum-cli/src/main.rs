//! The `datum` command.
fn main() {}
