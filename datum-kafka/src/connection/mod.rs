//! One connection to one broker: pipelined requests over one socket.
//!
//! A [`Connection`] is a cheap handle; the socket belongs to a task of its own (`driver`), which writes
//! requests in the order they were started and matches responses to them in that order. So many callers may have
//! requests open at once, up to [`max_in_flight`](crate::ClientSettings#structfield.max_in_flight), and a request behind a
//! long-polling fetch waits for it: brokers work off one connection in order. Use a second connection for what must not wait.
//!
//! # When it ends
//! The connection closes when its last handle is dropped, when the peer closes or breaks the protocol, and when a request
//! is not answered in time. It never comes back; whoever keeps connections (the cluster) opens a new one.
//!
//! # Errors
//! Each request has a deadline, so no call waits for ever. When a deadline passes, that request gets
//! [`Timeout`](crate::KafkaErrorKind::Timeout) and all others in flight [`Closed`](crate::KafkaErrorKind::Closed). A length prefix
//! beyond [`max_response_bytes`](crate::ClientSettings#structfield.max_response_bytes) is refused before anything is allocated.

mod api_versions;
mod call;
mod driver;
mod messages;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

pub use api_versions::ApiVersions;
pub use call::{Call, RawRequest};
use driver::{Command, Driver, Ending, Limits};

use crate::error::{CloseReason, KafkaError, KafkaErrorKind, ProtocolFault, Result, Subject, VersionSpan};
use crate::settings::ClientSettings;

/// A handle to one open connection. Clones share it.
#[derive(Clone, Debug)]
pub struct Connection {
    peer: Arc<str>,
    client_id: Arc<str>,
    timeout: Duration,
    commands: mpsc::Sender<Command>,
    ending: Arc<Ending>,
    versions: Arc<ApiVersions>,
}

impl Connection {
    /// Makes a connection of an open socket: starts its task and asks for the broker's versions. `peer` is
    /// how errors name the broker.
    ///
    /// # Errors
    /// Whatever befalls the first exchange; the socket is closed then.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn open<S>(socket: S, peer: impl Into<Arc<str>>, settings: &ClientSettings) -> Result<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let peer = peer.into();
        // The driver takes at most `max_in_flight`; what is beyond waits in the channel, and beyond that in its sender.
        let (commands, queue) = mpsc::channel(settings.max_in_flight);
        let ending = Arc::new(Ending::default());
        let limits =
            Limits { max_in_flight: settings.max_in_flight, max_response_bytes: settings.max_response_bytes };
        tokio::spawn(Driver::new(peer.clone(), socket, queue, limits, ending.clone()).run());
        let mut connection = Self {
            peer,
            client_id: settings.client_id.clone(),
            timeout: settings.request_timeout,
            commands,
            ending,
            versions: Arc::default(),
        };
        connection.versions = Arc::new(connection.ask_versions().await?);
        Ok(connection)
    }

    /// The broker's address as errors name it.
    pub fn peer(&self) -> &Arc<str> {
        &self.peer
    }

    /// What the broker offers.
    pub fn versions(&self) -> &ApiVersions {
        &self.versions
    }

    /// Whether the connection has ended. A request started now may still find it ended.
    pub fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    /// Sends a request and waits for its response, both in the highest version that both sides speak.
    ///
    /// # Errors
    /// [`Unsupported`](KafkaErrorKind::Unsupported) if there is no such version, [`Encode`](KafkaErrorKind::Encode), and what befalls the
    /// connection. Error codes *inside* the response are the caller's to read.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready does not recall the request: the broker may have carried it out.
    pub async fn send<C: Call>(&self, call: &C) -> Result<C::Answer> {
        self.start(call).await?.await
    }

    /// As [`send`](Self::send), but returns as soon as the request has its place in the queue. Requests started
    /// one after another reach the broker in that order.
    ///
    /// # Errors
    /// As [`send`](Self::send), but without those of the response.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, nothing was sent.
    pub async fn start<C: Call>(&self, call: &C) -> Result<Answer<C>> {
        self.start_in_version(call, self.version_of::<C>()?).await
    }

    /// As [`start`](Self::start), in this very version; for requests whose content depends on it.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    /// Dropped before it is ready, nothing was sent.
    pub async fn start_in_version<C: Call>(&self, call: &C, version: i16) -> Result<Answer<C>> {
        let mut body = Vec::new();
        call.encode(version, &mut body).map_err(|error| encode_error(C::NAME, &error))?;
        let pending = self
            .start_raw(RawRequest {
                key: C::KEY,
                name: C::NAME,
                version,
                flexible: C::flexible(version),
                body: vec![body.into()],
                waits: call.waits(),
            })
            .await?;
        Ok(Answer { peer: self.peer.clone(), version, pending, _call: std::marker::PhantomData })
    }

    /// The highest version of a request that both sides speak.
    ///
    /// # Errors
    /// [`Unsupported`](KafkaErrorKind::Unsupported).
    pub fn version_of<C: Call>(&self) -> Result<i16> {
        self.version_between(C::KEY, C::NAME, C::VERSIONS.0, C::VERSIONS.1)
    }

    /// The highest version from `min` to `max` of the request with this key that the broker speaks.
    ///
    /// # Errors
    /// [`Unsupported`](KafkaErrorKind::Unsupported).
    pub fn version_between(&self, key: i16, name: &'static str, min: i16, max: i16) -> Result<i16> {
        self.versions.best(key, min, max).ok_or_else(|| {
            KafkaErrorKind::Unsupported {
                peer: self.peer.clone(),
                api: name,
                broker: VersionSpan(self.versions.range(key)),
                ours: VersionSpan(Some((min, max))),
            }
            .into()
        })
    }

    /// Sends an encoded request and returns the body of its response, still encoded: for fetch and produce, whose records
    /// are not to be copied.
    ///
    /// # Errors
    /// What befalls the connection.
    ///
    /// # Cancel safety
    /// As [`send`](Self::send).
    pub async fn send_raw(&self, request: RawRequest) -> Result<Bytes> {
        self.start_raw(request).await?.await
    }

    /// As [`send_raw`](Self::send_raw), but returns as soon as the request has its place in the queue.
    ///
    /// # Errors
    /// What befalls the connection before the request is queued.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, nothing was sent.
    pub async fn start_raw(&self, request: RawRequest) -> Result<Pending> {
        let (reply, answer) = oneshot::channel();
        let api = request.name;
        let response_tags = request.flexible && request.key != api_versions::KEY;
        self.queue(request, Some(reply)).await?;
        Ok(Pending { peer: self.peer.clone(), api, response_tags, ending: self.ending.clone(), answer })
    }

    /// Sends an encoded request to which the broker gives no response (produce with acks 0).
    ///
    /// # Errors
    /// What befalls the connection before the request is queued; later failures are nobody's to notice.
    ///
    /// # Cancel safety
    /// Dropped before it is ready, nothing was sent.
    pub async fn send_unanswered(&self, request: RawRequest) -> Result<()> {
        self.queue(request, None).await
    }

    async fn queue(&self, request: RawRequest, reply: Option<oneshot::Sender<Result<Bytes>>>) -> Result<()> {
        let command = Command {
            api: request.name,
            timeout: self.timeout + request.waits,
            pieces: request.into_frame(&self.client_id)?,
            reply,
        };
        let api = command.api;
        self.commands.send(command).await.map_err(|_| ended(&self.ending, &self.peer, api))
    }

    async fn ask_versions(&self) -> Result<ApiVersions> {
        let mut body = Vec::new();
        let mut version = api_versions::first_request(&mut body)
            .map_err(|error| encode_error(api_versions::NAME, &error))?;
        loop {
            let answer = self
                .send_raw(RawRequest {
                    key: api_versions::KEY,
                    name: api_versions::NAME,
                    version,
                    flexible: version >= 3,
                    body: vec![std::mem::take(&mut body).into()],
                    waits: Duration::ZERO,
                })
                .await?;
            let fault = |fault| KafkaError::protocol(self.peer.clone(), api_versions::NAME, fault);
            match api_versions::read(&answer, version).map_err(|e| fault(ProtocolFault::Wire(e)))? {
                api_versions::Outcome::Versions(versions) => return Ok(versions),
                api_versions::Outcome::TooNew => version = 0,
                api_versions::Outcome::Refused(code) => {
                    return Err(KafkaError::broker(code, api_versions::NAME, Subject::Cluster));
                }
            }
        }
    }
}

/// A response on its way, still encoded. Resolves to the body behind the response header.
#[derive(Debug)]
#[must_use = "the response is lost if nobody waits for it"]
pub struct Pending {
    peer: Arc<str>,
    api: &'static str,
    response_tags: bool,
    ending: Arc<Ending>,
    answer: oneshot::Receiver<Result<Bytes>>,
}

impl Future for Pending {
    type Output = Result<Bytes>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.answer).poll(cx).map(|answer| match answer {
            Ok(answer) => call::skip_response_header(answer?, self.response_tags).map_err(|error| {
                KafkaError::protocol(self.peer.clone(), self.api, ProtocolFault::Wire(error))
            }),
            // The driver answers everything it has taken; only a runtime that shuts down drops it before.
            Err(_) => Err(ended(&self.ending, &self.peer, self.api)),
        })
    }
}

/// A response on its way. Resolves to the decoded response.
#[derive(Debug)]
#[must_use = "the response is lost if nobody waits for it"]
pub struct Answer<C> {
    peer: Arc<str>,
    version: i16,
    pending: Pending,
    _call: std::marker::PhantomData<fn() -> C>,
}

impl<C: Call> Answer<C> {
    /// The version request and response are in.
    pub fn version(&self) -> i16 {
        self.version
    }
}

impl<C: Call> Future for Answer<C> {
    type Output = Result<C::Answer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.pending).poll(cx).map(|body| {
            C::decode(self.version, body?)
                .map_err(|error| KafkaError::protocol(self.peer.clone(), C::NAME, ProtocolFault::Wire(error)))
        })
    }
}

/// The error of a request that found the connection ended.
fn ended(ending: &Ending, peer: &Arc<str>, api: &'static str) -> KafkaError {
    let reason = match ending.get().map(KafkaError::kind) {
        Some(KafkaErrorKind::Closed { reason, .. }) => *reason,
        Some(_) => CloseReason::Neighbour,
        None => CloseReason::Local,
    };
    KafkaErrorKind::Closed { peer: peer.clone(), api, reason }.into()
}

fn encode_error(api: &'static str, error: &crate::wire::WireError) -> KafkaError {
    KafkaErrorKind::Encode { api, reason: error.to_string().into() }.into()
}
