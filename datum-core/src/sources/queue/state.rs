//! The queue between handles and stage.

use crate::error::StreamError;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

pub(super) struct Shared<T>(Mutex<State<T>>);

pub(super) struct State<T> {
    pub(super) held: VecDeque<T>,
    pub(super) capacity: usize,
    /// Set once: no offer is accepted any more.
    pub(super) end: Option<Result<(), StreamError>>,
    /// The stream takes nothing any more.
    pub(super) gone: bool,
    pub(super) handles: usize,
    pub(super) reader: Option<Waker>,
    /// Offers that wait for room, oldest first.
    pub(super) waiting: VecDeque<(u64, Waker)>,
    pub(super) next_ticket: u64,
    /// Who waits for the stream to be gone.
    pub(super) watchers: Vec<Waker>,
}

impl<T> Shared<T> {
    pub(super) fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Shared(Mutex::new(State {
            held: VecDeque::new(),
            capacity,
            end: None,
            gone: false,
            handles: 1,
            reader: None,
            waiting: VecDeque::new(),
            next_ticket: 0,
            watchers: Vec::new(),
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts no more offers; the first end counts. A failure drops what is held.
    pub(super) fn end(&self, end: Result<(), StreamError>) {
        let mut state = self.lock();
        if state.end.is_some() {
            return;
        }
        let dropped = if end.is_err() { std::mem::take(&mut state.held) } else { VecDeque::new() };
        state.end = Some(end);
        let reader = state.reader.take();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(dropped);
        reader.into_iter().chain(waiting.into_iter().map(|(_, waker)| waker)).for_each(Waker::wake);
    }

    /// The stream is over: drops what is held and tells everybody.
    pub(super) fn gone(&self) {
        let mut state = self.lock();
        state.gone = true;
        let held = std::mem::take(&mut state.held);
        let waiting = std::mem::take(&mut state.waiting);
        let watchers = std::mem::take(&mut state.watchers);
        drop(state);
        drop(held);
        waiting.into_iter().map(|(_, waker)| waker).chain(watchers).for_each(Waker::wake);
    }
}

impl<T> State<T> {
    /// No offer is accepted any more.
    pub(super) fn is_closed(&self) -> bool {
        self.gone || self.end.is_some()
    }

    /// Room that no earlier offer waits for.
    pub(super) fn has_room(&self) -> bool {
        self.held.len() < self.capacity
    }

    /// The offer whose turn it is, if there is room for it.
    pub(super) fn next_waiting(&self) -> Option<Waker> {
        if self.has_room() { self.waiting.front().map(|(_, waker)| waker.clone()) } else { None }
    }
}
