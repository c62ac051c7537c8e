//! Slots for futures: what `map_async` and the `foreach_async` sink share.
//!
//! A future stays pinned in its slot. It is polled once when it starts and later only when it was woken, whatever the
//! number of its neighbours. Outcomes leave in the order of starting, or in the order of completion.

use crate::error::{BoxError, StreamError};
use crate::stage::{Judge, Push, StageCx, guard};
use datum_sync::wake_set::WakeSet;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// What a future's output means: a value, or a `Result` of one.
pub trait Settle<Output>: Send + 'static {
    /// The value.
    type Value: Send + 'static;

    /// The value, or the error that the future gave.
    ///
    /// # Errors
    /// That error.
    fn settle(stage: &'static str, output: Output) -> Result<Self::Value, StreamError>;
}

/// The output is the value.
#[derive(Clone, Copy, Debug)]
pub enum Infallible {}

/// The output is a `Result` of the value.
#[derive(Clone, Copy, Debug)]
pub enum Fallible {}

impl<T: Send + 'static> Settle<T> for Infallible {
    type Value = T;

    #[inline]
    fn settle(_: &'static str, output: T) -> Result<T, StreamError> {
        Ok(output)
    }
}

impl<T: Send + 'static, E: Into<BoxError>> Settle<Result<T, E>> for Fallible {
    type Value = T;

    #[inline]
    fn settle(stage: &'static str, output: Result<T, E>) -> Result<T, StreamError> {
        output.map_err(|error| StreamError::failed(stage, error))
    }
}

/// At most `limit` futures that are running or whose outcome has not been taken.
pub(crate) struct Slots<Fut, V> {
    stage: &'static str,
    slots: Vec<Slot<Fut, V>>,
    free: Vec<usize>,
    /// Ordered: all taken slots, oldest first. Unordered: those that are done, first done first.
    queue: VecDeque<usize>,
    taken: usize,
    limit: usize,
    ordered: bool,
    set: WakeSet,
}

struct Slot<Fut, V> {
    /// Pinned for good; a finished future is replaced in place.
    future: Pin<Box<Option<Fut>>>,
    state: State<V>,
}

enum State<V> {
    Free,
    Running,
    Done(V),
    /// Its failure was resumed: nothing comes of it.
    Skipped,
}

impl<Fut, V> Slots<Fut, V>
where
    Fut: Future,
    V: Send + 'static,
{
    /// Slots that are made when they are first needed.
    pub(crate) fn new(stage: &'static str, limit: usize, ordered: bool) -> Self {
        let (slots, free, queue) = (Vec::new(), Vec::new(), VecDeque::new());
        Slots { stage, slots, free, queue, taken: 0, limit, ordered, set: WakeSet::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.taken >= self.limit
    }

    /// Starts a future and polls it once. Gives its value when that is the next to go out anyhow and `direct` allows.
    ///
    /// # Errors
    /// The future's failure; its slot is free again.
    #[inline]
    pub(crate) fn start<K: Settle<Fut::Output, Value = V>>(
        &mut self,
        future: Fut,
        direct: bool,
    ) -> Result<Option<V>, StreamError> {
        let at = self.free.pop().unwrap_or_else(|| self.grow());
        self.slots[at].future.as_mut().set(Some(future));
        match self.poll_slot::<K>(at) {
            Poll::Pending => {
                self.slots[at].state = State::Running;
                self.taken += 1;
                if self.ordered {
                    self.queue.push_back(at);
                }
                Ok(None)
            }
            Poll::Ready(Ok(value)) if direct && self.queue.is_empty() => {
                self.free.push(at);
                Ok(Some(value))
            }
            Poll::Ready(Ok(value)) => {
                self.slots[at].state = State::Done(value);
                self.taken += 1;
                self.queue.push_back(at);
                Ok(None)
            }
            Poll::Ready(Err(error)) => {
                self.free.push(at);
                Err(error)
            }
        }
    }

    /// Polls the futures that were woken. False: the budget is spent and the stage has been woken, or `judge` has
    /// stopped the stream.
    pub(crate) fn poll<K: Settle<Fut::Output, Value = V>>(
        &mut self,
        cx: &mut StageCx<'_, '_>,
        judge: &mut Judge<'_>,
    ) -> bool {
        // Begun also when nothing runs: a future that starts after this look must find the stage's waker.
        self.set.begin(cx.waker());
        while let Some(at) = self.set.next() {
            if !matches!(self.slots[at].state, State::Running) {
                continue;
            }
            if let Poll::Ready(outcome) = self.poll_slot::<K>(at) {
                let (state, flow) = match outcome {
                    Ok(value) => (State::Done(value), Push::Continue(())),
                    Err(error) => (State::Skipped, judge.element_failed(error)),
                };
                self.slots[at].state = state;
                if !self.ordered {
                    self.queue.push_back(at);
                }
                self.skip_failed();
                if flow.is_break() {
                    let _ = self.set.suspend();
                    return false;
                }
            }
            if !cx.spend() {
                let _ = self.set.suspend();
                return false;
            }
        }
        true
    }

    /// The next value that may go out.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<V> {
        let at = *self.queue.front()?;
        if !matches!(self.slots[at].state, State::Done(_)) {
            return None;
        }
        let state = self.release_front(at);
        self.skip_failed();
        match state {
            State::Done(value) => Some(value),
            _ => None,
        }
    }

    /// Frees the slots at the front whose failure was resumed, so that they count neither as busy nor as left.
    fn skip_failed(&mut self) {
        while let Some(&at) = self.queue.front()
            && matches!(self.slots[at].state, State::Skipped)
        {
            self.release_front(at);
        }
    }

    fn release_front(&mut self, at: usize) -> State<V> {
        self.queue.pop_front();
        self.taken -= 1;
        self.free.push(at);
        std::mem::replace(&mut self.slots[at].state, State::Free)
    }

    /// Drops every future and every value.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.free.clear();
        self.taken = 0;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            // A destructor that panics fails nothing here: the stream is ending already.
            let _ = guard(self.stage, || slot.future.as_mut().set(None));
            slot.state = State::Free;
            self.free.push(at);
        }
    }

    /// One poll of one slot. A finished future is dropped at once, and so is one that panicked.
    fn poll_slot<K: Settle<Fut::Output, Value = V>>(&mut self, at: usize) -> Poll<Result<V, StreamError>> {
        let slot = &mut self.slots[at];
        let Some(future) = slot.future.as_mut().as_pin_mut() else {
            return Poll::Pending;
        };
        let mut task = Context::from_waker(self.set.waker(at));
        let outcome = match guard(self.stage, || future.poll(&mut task)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => K::settle(self.stage, output),
            Err(error) => Err(error),
        };
        let dropped = guard(self.stage, || slot.future.as_mut().set(None));
        Poll::Ready(outcome.and_then(|value| dropped.map(|()| value)))
    }

    #[cold]
    fn grow(&mut self) -> usize {
        let at = self.slots.len();
        self.slots.push(Slot { future: Box::pin(None), state: State::Free });
        self.set.grow(at + 1);
        at
    }
}

impl<Fut, V> std::fmt::Debug for Slots<Fut, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slots")
            .field("stage", &self.stage)
            .field("taken", &self.taken)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
