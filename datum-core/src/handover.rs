//! The hand-over between stages that are not in one line: async boundaries, substreams, the edges of a graph.
//!
//! An [`Inlet`] is a stage that reads what a [`Pump`] puts. In between is the bounded chunked hand-over of
//! [`datum_sync::handover`]; what was put before a failure is delivered before it.

use crate::error::{ErrorKind, StreamError};
use crate::materializer::{Materializer, Runnable};
use crate::stage::{CancelCause, Driven, Progress, Push, Stage, StageCx, Up};
use datum_sync::handover::{Cancelled, End, Reader, Writer, handover};
use std::task::{Poll, Waker};

/// Makes a connected pair: an [`Inlet`] to drive and an [`OutletWriter`] to pump into. `window` and `chunk` as for
/// [`handover`]; `wait_closed`: the inlet has closed only when the producing side has.
#[must_use]
pub fn connect<T: Send + 'static>(
    window: usize,
    chunk: usize,
    wait_closed: bool,
) -> (OutletWriter<T>, Inlet<T>) {
    let (writer, reader) = handover(window, chunk);
    (OutletWriter(writer), Inlet { reader, wait_closed })
}

/// The writing half: one [`Outlet`].
#[derive(Debug)]
pub struct OutletWriter<T>(Writer<T, StreamError, CancelCause>);

/// The reading half: a stage.
#[derive(Debug)]
pub struct Inlet<T> {
    reader: Reader<T, StreamError, CancelCause>,
    wait_closed: bool,
}

/// Where a [`Pump`] puts its elements: one writer, or a junction over several.
pub trait Outlet<T>: Send + 'static {
    /// Hands over what was put and says how many more may be put now; registers the waker when there is no room.
    ///
    /// # Errors
    /// The reader's cancellation.
    fn poll_room(&mut self, waker: &Waker) -> Poll<Result<usize, CancelCause>>;
    /// Puts one element, of the room granted.
    fn put(&mut self, element: T);
    /// Hands over what was put before sleeping; the waker is told of a cancellation.
    fn flush(&mut self, waker: &Waker) -> Option<CancelCause>;
    /// Ends behind what was put. `closed`: nothing is left to release on this side.
    fn end(&mut self, end: Result<(), StreamError>, closed: bool);
    /// This side has released everything.
    fn closed(&mut self);
}

impl<T: Send + 'static> Outlet<T> for OutletWriter<T> {
    fn poll_room(&mut self, waker: &Waker) -> Poll<Result<usize, CancelCause>> {
        self.0.poll_room(waker).map_err(cause)
    }

    #[inline]
    fn put(&mut self, element: T) {
        self.0.put(element);
    }

    fn flush(&mut self, waker: &Waker) -> Option<CancelCause> {
        self.0.flush(waker).map(cause)
    }

    fn end(&mut self, end: Result<(), StreamError>, closed: bool) {
        self.0.end(end, closed);
    }

    fn closed(&mut self) {
        self.0.closed();
    }
}

impl<T: Send + 'static> Inlet<T> {
    /// The answer of an end whose elements have all been taken.
    fn ended(&mut self) -> Option<Driven> {
        Some(match self.reader.take_end()? {
            End::Complete => Ok(Progress::Complete),
            End::Failed(error) => Err(error),
            End::Dropped => Err(ErrorKind::Aborted.into()),
        })
    }
}

impl<T: Send + 'static> Stage for Inlet<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let mut left = cx.budget();
        let answer = loop {
            let mut broke = false;
            while left > 0
                && let Some(element) = self.reader.take()
            {
                left -= 1;
                if push(element).is_break() {
                    broke = true;
                    break;
                }
            }
            if broke {
                break self.ended().unwrap_or(Ok(Progress::Stopped));
            }
            if left == 0 {
                cx.wake();
                break Ok(Progress::Pending);
            }
            self.reader.refill(cx.waker(), true);
            if self.reader.ready() == 0 {
                break self.ended().unwrap_or(Ok(Progress::Pending));
            }
        };
        cx.set_budget(left);
        answer
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.reader.refill(cx.waker(), false);
        self.ended().unwrap_or(Ok(Progress::Pending))
    }

    fn cancel(&mut self, cause: CancelCause, _: &mut StageCx<'_, '_>) {
        self.reader.cancel(cause);
    }

    fn poll_closed(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        if self.wait_closed { self.reader.poll_closed(cx.waker()) } else { Poll::Ready(()) }
    }
}

/// Drives a stage into an outlet: the producing side of a boundary.
#[derive(Debug)]
pub struct Pump<U, O> {
    up: Up<U>,
    outlet: O,
    state: State,
}

#[derive(Debug)]
enum State {
    Running,
    Closing,
}

impl<U: Stage, O: Outlet<U::Out>> Pump<U, O> {
    /// A pump from `up` into `outlet`.
    pub fn new(up: U, outlet: O) -> Self {
        Pump { up: Up::new(up), outlet, state: State::Running }
    }

    /// Runs until the upstream has ended (with what) or was cancelled (with nothing).
    fn run(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<Option<Result<(), StreamError>>> {
        let Pump { up, outlet, .. } = self;
        loop {
            let answer = match outlet.poll_room(cx.waker()) {
                Poll::Ready(Ok(mut room)) => up.drive(cx, |element| {
                    outlet.put(element);
                    room -= 1;
                    if room == 0 { Push::Break(()) } else { Push::Continue(()) }
                }),
                Poll::Ready(Err(cause)) => {
                    up.cancel(cause, cx);
                    return Poll::Ready(None);
                }
                Poll::Pending => up.tend(cx),
            };
            match answer {
                Ok(Progress::Stopped) => {}
                Ok(Progress::Pending) => match outlet.flush(cx.waker()) {
                    None => return Poll::Pending,
                    Some(cause) => {
                        up.cancel(cause, cx);
                        return Poll::Ready(None);
                    }
                },
                Ok(Progress::Complete) => return Poll::Ready(Some(Ok(()))),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}

impl<U: Stage, O: Outlet<U::Out>> Runnable for Pump<U, O> {
    fn poll_run(&mut self, cx: &mut StageCx<'_, '_>) -> Poll<()> {
        if let State::Running = self.state {
            let Poll::Ready(end) = self.run(cx) else {
                return Poll::Pending;
            };
            self.state = State::Closing;
            let closed = self.up.poll_closed(cx).is_ready();
            if let Some(end) = end {
                self.outlet.end(end, closed);
            }
        }
        if self.up.poll_closed(cx).is_pending() {
            return Poll::Pending;
        }
        self.outlet.closed();
        Poll::Ready(())
    }
}

/// Cuts a line: `up` becomes an island of its own that runs ahead by at most `window` elements.
pub fn boundary<U: Stage>(up: U, window: usize, materializer: &Materializer) -> Inlet<U::Out> {
    let window = window.max(1);
    let (outlet, inlet) = connect(window, window.div_ceil(2), true);
    materializer.defer(Pump::new(up, outlet));
    inlet
}

fn cause(cancelled: Cancelled<CancelCause>) -> CancelCause {
    match cancelled {
        Cancelled::Cause(cause) => cause,
        Cancelled::Dropped => CancelCause::Failure(ErrorKind::Aborted.into()),
    }
}
