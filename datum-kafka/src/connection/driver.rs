//! The task that owns one socket.
//!
//! It writes requests in the order they were queued, reads responses, and matches each to the *oldest* open request:
//! a broker answers one connection's requests in order, so a queue is all the bookkeeping there is, and a response whose
//! correlation id is not the expected one means that the two ends no longer agree.
//!
//! # When it ends
//! - the last handle is dropped and nothing is in flight any more;
//! - the peer closes, the socket fails, a response breaks the protocol or announces more bytes than permitted;
//! - a request's deadline passes. Its late answer must not meet the next request, so the connection goes with it.
//!
//! However it ends, everything in flight and everything still queued is answered with an error; nothing is left waiting.
//!
//! # Costs
//! One frame allocation per response, made only after its length was checked; responses are handed over as `Bytes`, not
//! copied. Reading and writing never wait for each other.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::error::{CloseReason, KafkaError, KafkaErrorKind, ProtocolFault, Result};

/// A request on its way to the driver: header and body without the length prefix and without the correlation id, which the
/// driver puts behind api key and version.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) api: &'static str,
    /// The frame from the api key on, in pieces that are written one after another without being joined.
    pub(super) pieces: Vec<Bytes>,
    pub(super) timeout: Duration,
    /// `None`: the broker sends no response (a produce request with acks 0).
    pub(super) reply: Option<oneshot::Sender<Result<Bytes>>>,
}

/// What the driver tells its handles when it has ended.
#[derive(Debug, Default)]
pub(super) struct Ending(OnceLock<KafkaError>);

impl Ending {
    pub(super) fn get(&self) -> Option<&KafkaError> {
        self.0.get()
    }
}

/// An open request.
struct Open {
    api: &'static str,
    correlation: i32,
    deadline: Instant,
    timeout: Duration,
    reply: Option<oneshot::Sender<Result<Bytes>>>,
}

/// Bytes of the frame before its body: length (4), api key (2), version (2), correlation id (4).
const PREFIX: usize = 12;

pub(super) struct Driver<S> {
    peer: Arc<str>,
    socket: S,
    commands: mpsc::Receiver<Command>,
    queue_open: bool,
    max_in_flight: usize,
    open: VecDeque<Open>,
    next_correlation: i32,
    out: VecDeque<Bytes>,
    frame: FrameReader,
    timer: Pin<Box<Sleep>>,
    ending: Arc<Ending>,
}

/// Limits of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) max_in_flight: usize,
    pub(super) max_response_bytes: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    pub(super) fn new(
        peer: Arc<str>,
        socket: S,
        commands: mpsc::Receiver<Command>,
        limits: Limits,
        ending: Arc<Ending>,
    ) -> Self {
        Self {
            peer,
            socket,
            commands,
            queue_open: true,
            max_in_flight: limits.max_in_flight,
            open: VecDeque::new(),
            next_correlation: 0,
            out: VecDeque::new(),
            frame: FrameReader::new(limits.max_response_bytes),
            timer: Box::pin(sleep_until(Instant::now())),
            ending,
        }
    }

    /// Runs until the connection ends; then everybody who waits has been told.
    pub(super) async fn run(mut self) {
        let end = poll_fn(|cx| self.poll_run(cx)).await;
        tracing::debug!(peer = %self.peer, in_flight = self.open.len(), ?end, "connection ended");
        self.fail_all(&end);
    }

    /// Ready when the connection has ended.
    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            self.take_commands(cx);
            if let Poll::Ready(Err(error)) = self.poll_write(cx) {
                return Poll::Ready(self.io(error));
            }
            match self.poll_read(cx) {
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                // A place in flight is free: perhaps a command waits for it.
                Poll::Ready(None) => continue,
                Poll::Pending => {}
            }
            if let Poll::Ready(end) = self.poll_deadline(cx) {
                return Poll::Ready(end);
            }
            if !self.queue_open && self.open.is_empty() && self.out.is_empty() {
                return Poll::Ready(End::Local);
            }
            return Poll::Pending;
        }
    }

    fn take_commands(&mut self, cx: &mut Context<'_>) {
        while self.queue_open && self.open.len() < self.max_in_flight {
            match self.commands.poll_recv(cx) {
                Poll::Ready(Some(command)) => self.queue(command),
                Poll::Ready(None) => self.queue_open = false,
                Poll::Pending => break,
            }
        }
    }

    fn queue(&mut self, command: Command) {
        let correlation = self.next_correlation;
        self.next_correlation = self.next_correlation.wrapping_add(1) & i32::MAX;
        let mut pieces = command.pieces.into_iter();
        let mut head = BytesMut::with_capacity(PREFIX);
        let mut first = pieces.next().unwrap_or_default();
        let length = 4 + first.len() + pieces.as_slice().iter().map(Bytes::len).sum::<usize>();
        // Encoding checked that a request fits into a frame; see `RawRequest::into_frame`.
        head.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
        head.extend_from_slice(&first.split_to(4));
        head.extend_from_slice(&correlation.to_be_bytes());
        self.out.push_back(head.freeze());
        self.out.extend(std::iter::once(first).chain(pieces).filter(|piece| !piece.is_empty()));
        if command.reply.is_some() {
            self.open.push_back(Open {
                api: command.api,
                correlation,
                deadline: Instant::now() + command.timeout,
                timeout: command.timeout,
                reply: command.reply,
            });
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        const MOST: usize = 32;
        while !self.out.is_empty() {
            let slices: Vec<io::IoSlice<'_>> =
                self.out.iter().take(MOST).map(|piece| io::IoSlice::new(piece)).collect();
            let mut written = ready!(Pin::new(&mut self.socket).poll_write_vectored(cx, &slices))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            while written > 0 {
                let Some(piece) = self.out.front_mut() else { break };
                let step = written.min(piece.len());
                piece.advance(step);
                written -= step;
                if piece.is_empty() {
                    self.out.pop_front();
                }
            }
        }
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    /// Ready with `None` when a response was handed over, with an ending when there will be no more.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Option<End>> {
        Poll::Ready(match ready!(self.frame.poll_frame(&mut self.socket, cx)) {
            Ok(frame) => self.answer(frame).err(),
            Err(FrameError::Closed) => Some(End::Peer),
            Err(FrameError::MidFrame { missing }) => Some(End::MidResponse { missing }),
            Err(FrameError::Oversize { announced }) => Some(End::Fault(
                KafkaErrorKind::Oversize { peer: self.peer.clone(), announced, limit: self.frame.limit }
                    .into(),
            )),
            Err(FrameError::Io(error)) => Some(self.io(error)),
        })
    }

    fn io(&self, error: io::Error) -> End {
        End::Io(KafkaErrorKind::Io { peer: self.peer.clone(), error }.into())
    }

    fn answer(&mut self, mut frame: Bytes) -> Result<(), End> {
        let peer = self.peer.clone();
        let fault = |api, fault| End::Fault(KafkaError::protocol(peer, api, fault));
        let Some(open) = self.open.front_mut() else {
            return Err(fault("nothing", ProtocolFault::Unasked));
        };
        if frame.len() < 4 {
            return Err(fault(open.api, ProtocolFault::Short { length: frame.len() }));
        }
        let got = frame.get_i32();
        if got != open.correlation {
            return Err(fault(open.api, ProtocolFault::Correlation { expected: open.correlation, got }));
        }
        if let Some(reply) = open.reply.take() {
            // The caller may have stopped waiting; its answer is then of no use to anybody.
            let _ = reply.send(Ok(frame));
        }
        self.open.pop_front();
        Ok(())
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        let Some(next) = self.open.iter().min_by_key(|open| open.deadline) else { return Poll::Pending };
        if self.timer.deadline() != next.deadline {
            self.timer.as_mut().reset(next.deadline);
        }
        ready!(self.timer.as_mut().poll(cx));
        let error = KafkaErrorKind::Timeout { peer: self.peer.clone(), api: next.api, after: next.timeout };
        Poll::Ready(End::Deadline { correlation: next.correlation, error: error.into() })
    }

    /// Tells everybody who waits: the culprit its own error, the others that the connection closed.
    fn fail_all(&mut self, end: &End) {
        let peer = self.peer.clone();
        let closed = |api, reason| KafkaErrorKind::Closed { peer: peer.clone(), api, reason }.into();
        // First, so that whoever is told of a failure and looks finds the connection closed.
        let _ =
            self.ending.0.set(end.error().cloned().unwrap_or_else(|| closed("a request", end.reason(false))));
        self.commands.close();
        let mut oldest = true;
        for open in self.open.drain(..) {
            let own = match end {
                End::Io(error) => error.clone(),
                End::Fault(error) if oldest => error.clone(),
                End::Deadline { correlation, error } if *correlation == open.correlation => error.clone(),
                _ => closed(open.api, end.reason(oldest)),
            };
            oldest = false;
            if let Some(reply) = open.reply {
                let _ = reply.send(Err(own));
            }
        }
        while let Ok(command) = self.commands.try_recv() {
            if let Some(reply) = command.reply {
                let _ = reply.send(Err(closed(command.api, end.reason(false))));
            }
        }
    }
}

/// How the connection ended.
#[derive(Debug)]
enum End {
    /// No handle is left and nothing is in flight.
    Local,
    /// The peer closed between two responses.
    Peer,
    /// The peer closed within a response.
    MidResponse { missing: usize },
    /// The socket failed.
    Io(KafkaError),
    /// The response due to the oldest open request broke the protocol.
    Fault(KafkaError),
    /// A request's deadline passed.
    Deadline { correlation: i32, error: KafkaError },
}

impl End {
    fn error(&self) -> Option<&KafkaError> {
        match self {
            Self::Io(error) | Self::Fault(error) | Self::Deadline { error, .. } => Some(error),
            Self::Local | Self::Peer | Self::MidResponse { .. } => None,
        }
    }

    /// Why a request that is not itself to blame was not answered.
    fn reason(&self, oldest: bool) -> CloseReason {
        match self {
            Self::Local => CloseReason::Local,
            Self::MidResponse { missing } if oldest => CloseReason::MidResponse { missing: *missing },
            Self::Peer | Self::MidResponse { .. } => CloseReason::Peer,
            Self::Io(_) | Self::Fault(_) | Self::Deadline { .. } => CloseReason::Neighbour,
        }
    }
}

/// Reads length-prefixed frames.
struct FrameReader {
    limit: usize,
    header: [u8; 4],
    filled: usize,
    body: BytesMut,
    /// Length of the frame being read, once its prefix is known.
    length: Option<usize>,
}

enum FrameError {
    Closed,
    MidFrame { missing: usize },
    Oversize { announced: i32 },
    Io(io::Error),
}

impl FrameReader {
    fn new(limit: usize) -> Self {
        Self { limit, header: [0; 4], filled: 0, body: BytesMut::new(), length: None }
    }

    /// The next whole frame without its prefix.
    fn poll_frame<S: AsyncRead + Unpin>(
        &mut self,
        socket: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Bytes, FrameError>> {
        let length = match self.length {
            Some(length) => length,
            None => ready!(self.poll_length(socket, cx))?,
        };
        while self.body.len() < length {
            let mut rest = (&mut self.body).limit_to(length);
            let read = pin!(socket.read_buf(&mut rest));
            match ready!(read.poll(cx)) {
                Ok(0) => return Poll::Ready(Err(FrameError::MidFrame { missing: length - self.body.len() })),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(FrameError::Io(error))),
            }
        }
        self.length = None;
        self.filled = 0;
        Poll::Ready(Ok(std::mem::take(&mut self.body).freeze()))
    }

    fn poll_length<S: AsyncRead + Unpin>(
        &mut self,
        socket: &mut S,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, FrameError>> {
        while self.filled < 4 {
            let read = pin!(socket.read(&mut self.header[self.filled..]));
            match ready!(read.poll(cx)) {
                Ok(0) if self.filled == 0 => return Poll::Ready(Err(FrameError::Closed)),
                Ok(0) => return Poll::Ready(Err(FrameError::MidFrame { missing: 4 - self.filled })),
                Ok(n) => self.filled += n,
                Err(error) => return Poll::Ready(Err(FrameError::Io(error))),
            }
        }
        let announced = i32::from_be_bytes(self.header);
        match usize::try_from(announced) {
            Ok(length) if length <= self.limit => {
                self.body.reserve(length);
                self.length = Some(length);
                Poll::Ready(Ok(length))
            }
            _ => Poll::Ready(Err(FrameError::Oversize { announced })),
        }
    }
}

/// A `BytesMut` that takes no byte beyond a frame's end.
trait LimitTo {
    fn limit_to(self, length: usize) -> bytes::buf::Limit<Self>
    where
        Self: Sized;
}

impl LimitTo for &mut BytesMut {
    fn limit_to(self, length: usize) -> bytes::buf::Limit<Self> {
        let left = length - self.len();
        bytes::BufMut::limit(self, left)
    }
}
