//! Lets time pass: wakes at the machines' next deadline, not at intervals.

use crate::server::Shared;

/// Runs until the broker stops.
pub(crate) async fn run(shared: &Shared) {
    let mut stopping = shared.stopping.subscribe();
    while !*stopping.borrow_and_update() {
        let deadline = shared.arm();
        tokio::select! {
            () = shared.clock.sleep_until(deadline) => {}
            () = shared.rearm.notified() => {}
            _ = stopping.changed() => {}
        }
    }
}
