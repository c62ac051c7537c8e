//! The bounded single-producer single-consumer hand-over in chunks.
//!
//! A [`Writer`] and a [`Reader`] each keep a local chunk and meet at one lock once per chunk, not once per element.
//!
//! # What is promised
//! - **Bound.** At most `window` elements are put and not yet taken, both local chunks included. At window 0 the
//!   writer may put exactly one element after the reader has asked for it.
//! - **Nothing waits in a chunk.** The writer's owner calls [`Writer::flush`] before it sleeps; a partial chunk is
//!   never held back while its producer would otherwise sleep.
//! - **One wake per chunk.** The reader is woken when a chunk arrives at an empty queue, the writer when room for a
//!   chunk has come back.
//! - **Order at the end.** What was put before an end is taken before the end is seen. An end is seen once.
//! - **Cancellation.** [`Reader::cancel`] drops what is held and tells the writer, with a cause, at its next turn.
//! - **Dropped halves.** A writer dropped before its end shows as [`End::Dropped`], a reader dropped before its end
//!   or cancellation as [`Cancelled::Dropped`].
//!
//! # Use
//! One task owns the writer, one the reader; they may be the same task (the edges of a graph). Calls that register a
//! waker say so; a wake may be spurious.
//!
//! # Allocation
//! Two deques that swap places; they grow to the chunk's size once and are reused.

use crate::sync::{Arc, Mutex, lock};
use std::collections::VecDeque;
use std::mem;
use std::task::{Poll, Waker};

/// How a writer ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End<E> {
    /// All elements were put.
    Complete,
    /// The producer failed.
    Failed(E),
    /// The writer was dropped before it said anything.
    Dropped,
}

/// Why a reader wants no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cancelled<C> {
    /// It said so.
    Cause(C),
    /// It was dropped before the end.
    Dropped,
}

/// Makes a connected pair.
///
/// `window` bounds what is in flight; `chunk` is how much changes hands at once: half the window where both sides run
/// at the same time, all of it where they take turns in one task. A chunk of 0 counts as 1.
#[must_use]
pub fn handover<T, E, C>(window: usize, chunk: usize) -> (Writer<T, E, C>, Reader<T, E, C>) {
    let shared = Arc::new(Mutex::new(Shared {
        queue: VecDeque::new(),
        in_flight: 0,
        asked: false,
        room_wanted: false,
        end: None,
        cancelled: None,
        closed: false,
        reader: None,
        writer: None,
    }));
    let chunk = chunk.max(1);
    let writer = Writer {
        shared: shared.clone(),
        local: VecDeque::new(),
        credit: window,
        window,
        chunk,
        ended: false,
    };
    let reader = Reader { shared, local: VecDeque::new(), taken: 0, window, chunk, end: None, over: false };
    (writer, reader)
}

struct Shared<T, E, C> {
    /// Handed over and not yet with the reader.
    queue: VecDeque<T>,
    /// Handed over and not yet given back as room.
    in_flight: usize,
    /// Window 0: the reader wants one.
    asked: bool,
    /// The writer found no room and sleeps on it.
    room_wanted: bool,
    end: Option<End<E>>,
    cancelled: Option<Cancelled<C>>,
    /// The writer's side has released everything it held.
    closed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// The producing half. See the [module page](self).
pub struct Writer<T, E, C> {
    shared: Arc<Mutex<Shared<T, E, C>>>,
    local: VecDeque<T>,
    credit: usize,
    window: usize,
    chunk: usize,
    ended: bool,
}

/// The consuming half. See the [module page](self).
pub struct Reader<T, E, C> {
    shared: Arc<Mutex<Shared<T, E, C>>>,
    local: VecDeque<T>,
    /// Taken and not yet given back as room.
    taken: usize,
    window: usize,
    chunk: usize,
    /// Seen behind the local chunk.
    end: Option<End<E>>,
    over: bool,
}

impl<T, E, C: Clone> Writer<T, E, C> {
    /// Hands over what was put and says how many more may be put before the next call; registers the waker when
    /// there is no room.
    ///
    /// # Errors
    /// The reader's cancellation.
    pub fn poll_room(&mut self, waker: &Waker) -> Poll<Result<usize, Cancelled<C>>> {
        let mut shared = lock(&self.shared);
        let reader = hand_over(&mut self.local, &mut shared);
        self.credit = match self.window {
            0 => usize::from(shared.asked && shared.queue.is_empty()),
            window => window - shared.in_flight,
        };
        let answer = match &shared.cancelled {
            Some(cancelled) => Poll::Ready(Err(cancelled.clone())),
            None if self.credit > 0 => Poll::Ready(Ok(self.credit.min(self.chunk))),
            None => {
                shared.room_wanted = true;
                register(&mut shared.writer, waker);
                Poll::Pending
            }
        };
        drop(shared);
        wake(reader);
        answer
    }

    /// Puts one element into the local chunk.
    ///
    /// # Panics
    /// When more are put than [`poll_room`](Writer::poll_room) granted.
    #[inline]
    pub fn put(&mut self, element: T) {
        self.credit = self.credit.checked_sub(1).expect("put without room");
        self.local.push_back(element);
    }

    /// Hands over what was put and registers the waker for a cancellation; call it before going to sleep.
    pub fn flush(&mut self, waker: &Waker) -> Option<Cancelled<C>> {
        let mut shared = lock(&self.shared);
        let reader = hand_over(&mut self.local, &mut shared);
        register(&mut shared.writer, waker);
        let cancelled = shared.cancelled.clone();
        drop(shared);
        wake(reader);
        cancelled
    }

    /// Ends the stream behind what was put. `closed`: nothing is left to release on this side.
    pub fn end(&mut self, end: Result<(), E>, closed: bool) {
        let end = match end {
            Ok(()) => End::Complete,
            Err(error) => End::Failed(error),
        };
        let mut shared = lock(&self.shared);
        let reader = hand_over(&mut self.local, &mut shared).or_else(|| shared.reader.take());
        self.ended = true;
        shared.end = Some(end);
        shared.closed |= closed;
        drop(shared);
        wake(reader);
    }
}

impl<T, E, C> Writer<T, E, C> {
    /// Says that this side has released everything: [`Reader::poll_closed`] becomes ready.
    pub fn closed(&mut self) {
        self.ended = true;
        let mut shared = lock(&self.shared);
        shared.closed = true;
        let reader = shared.reader.take();
        drop(shared);
        wake(reader);
    }
}

impl<T, E, C> Drop for Writer<T, E, C> {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        if !self.ended {
            shared.end = Some(End::Dropped);
        }
        shared.closed = true;
        let reader = shared.reader.take();
        drop(shared);
        wake(reader);
    }
}

impl<T, E, C> Reader<T, E, C> {
    /// How many elements can be taken before the next [`refill`](Reader::refill).
    #[inline]
    #[must_use]
    pub fn ready(&self) -> usize {
        self.local.len().min(self.chunk - self.taken)
    }

    /// Takes one element of the local chunk, if [`ready`](Reader::ready) says there is one.
    #[inline]
    pub fn take(&mut self) -> Option<T> {
        if self.taken == self.chunk {
            return None;
        }
        let element = self.local.pop_front()?;
        self.taken += 1;
        Some(element)
    }

    /// Gives back the room of what was taken and fetches the next chunk when the local one is empty; registers the
    /// waker when nothing came. `ask` is demand: at window 0 only an asked-for element is produced.
    pub fn refill(&mut self, waker: &Waker, ask: bool) {
        let mut shared = lock(&self.shared);
        shared.in_flight -= self.taken;
        self.taken = 0;
        if self.local.is_empty() {
            mem::swap(&mut shared.queue, &mut self.local);
            if shared.end.is_some() {
                self.end = shared.end.take();
            }
            if self.local.is_empty() && self.end.is_none() {
                shared.asked |= ask;
                register(&mut shared.reader, waker);
            }
        }
        let room = match self.window {
            0 => shared.asked,
            window => shared.in_flight <= window.saturating_sub(self.chunk),
        };
        let writer = if shared.room_wanted && room {
            shared.room_wanted = false;
            shared.writer.take()
        } else {
            None
        };
        drop(shared);
        wake(writer);
    }

    /// The end, once everything before it was taken. Given once.
    pub fn take_end(&mut self) -> Option<End<E>> {
        if !self.local.is_empty() {
            return None;
        }
        let end = self.end.take()?;
        self.over = true;
        Some(end)
    }

    /// Wants no more: drops what is held and tells the writer why.
    pub fn cancel(&mut self, cause: C) {
        self.gone(Cancelled::Cause(cause));
    }

    /// Ready once the writer's side has released everything; registers the waker otherwise.
    pub fn poll_closed(&mut self, waker: &Waker) -> Poll<()> {
        let mut shared = lock(&self.shared);
        if shared.closed {
            return Poll::Ready(());
        }
        register(&mut shared.reader, waker);
        Poll::Pending
    }

    fn gone(&mut self, cancelled: Cancelled<C>) {
        self.over = true;
        let local = mem::take(&mut self.local);
        let mut shared = lock(&self.shared);
        shared.cancelled = Some(cancelled);
        let queue = mem::take(&mut shared.queue);
        let writer = shared.writer.take();
        drop(shared);
        wake(writer);
        // The elements' destructors are foreign code: they run outside the lock.
        drop((local, queue));
    }
}

impl<T, E, C> Drop for Reader<T, E, C> {
    fn drop(&mut self) {
        if !self.over {
            self.gone(Cancelled::Dropped);
        }
    }
}

impl<T, E, C> std::fmt::Debug for Writer<T, E, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer")
            .field("window", &self.window)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

impl<T, E, C> std::fmt::Debug for Reader<T, E, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader")
            .field("window", &self.window)
            .field("over", &self.over)
            .finish_non_exhaustive()
    }
}

/// Moves the local chunk into the shared queue. The waker it gives must be woken, outside the lock.
#[must_use]
fn hand_over<T, E, C>(local: &mut VecDeque<T>, shared: &mut Shared<T, E, C>) -> Option<Waker> {
    if local.is_empty() {
        return None;
    }
    shared.asked = false;
    if shared.cancelled.is_some() {
        // Nobody will take them, and nobody gives their room back. They are dropped by the owner's next turn.
        return None;
    }
    shared.in_flight += local.len();
    if shared.queue.is_empty() {
        mem::swap(&mut shared.queue, local);
    } else {
        shared.queue.append(local);
    }
    shared.reader.take()
}

fn register(slot: &mut Option<Waker>, waker: &Waker) {
    if !slot.as_ref().is_some_and(|w| w.will_wake(waker)) {
        *slot = Some(waker.clone());
    }
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
