//! One connection: reads a request, answers it, reads the next.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::clock::millis;
use crate::faults::Action;
use crate::server::dispatch::{self, Request};
use crate::server::{Shared, frame};

/// How long a node waits after it could not accept.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// Serves a connection until the client, a script or the end of the broker closes it.
pub(crate) async fn serve(socket: TcpStream, peer: SocketAddr, node: i32, shared: Arc<Shared>) {
    let mut closed = shared.closed.subscribe();
    let before = count(&closed.borrow_and_update(), node);
    let served = async {
        tokio::select! {
            outcome = answer_all(socket, peer, node, &shared) => outcome,
            _ = closed.wait_for(|counts| count(counts, node) != before) => Ok(()),
        }
    };
    shared.connections.fetch_add(1, Ordering::AcqRel);
    let outcome = served.await;
    shared.connections.fetch_sub(1, Ordering::AcqRel);
    if let Err(error) = outcome {
        tracing::debug!(node, %peer, %error, "connection closed");
    }
}

fn count(counts: &[(i32, u64)], node: i32) -> u64 {
    counts.iter().find(|(id, _)| *id == node).map_or(0, |(_, count)| *count)
}

async fn answer_all(mut socket: TcpStream, peer: SocketAddr, node: i32, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let (limit, idle, patience) = shared.with(|locked, _| {
        let settings = &locked.core.settings;
        (settings.max_request, settings.idle_timeout, settings.write_timeout)
    });
    let (reader, mut writer) = socket.split();
    let mut reader = BufReader::new(reader);
    loop {
        let Some(frame) = within(idle, "no request came", frame::read(&mut reader, limit)).await? else {
            return Ok(());
        };
        let request = Request::read(frame)?;
        let actions = shared.faults.meet(request.api, node);
        let mut forced = None;
        for action in &actions {
            match action {
                Action::Delay(by) => shared.clock.sleep_until(shared.clock.now_ms() + millis(*by)).await,
                Action::Error(code) => forced = Some(*code),
                Action::Disconnect => return Ok(()),
                Action::Silence => return until_closed(&mut reader).await,
                _ => {}
            }
        }
        let host = peer.ip().to_string();
        let Some(mut answer) = dispatch::answer(shared, request, node, host, forced).await? else { continue };
        let mut last = false;
        for action in &actions {
            match action {
                Action::DisconnectAfter => return Ok(()),
                Action::Truncate => answer.truncate(answer.len() / 2),
                Action::Cut(bytes) => answer.truncate(*bytes),
                Action::Length(length) => set(&mut answer, 0, *length),
                Action::Correlation(id) => set(&mut answer, frame::LENGTH, *id),
                Action::Delay(_) | Action::Error(_) | Action::Disconnect | Action::Silence => {}
            }
            last |= matches!(action, Action::Truncate | Action::Cut(_));
        }
        within(patience, "the client does not read its answers", writer.write_all(&answer)).await?;
        if last {
            return Ok(());
        }
    }
}

/// # Errors
/// [`io::ErrorKind::TimedOut`] when it takes longer than `limit`.
async fn within<T>(limit: Duration, why: &str, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, format!("{why} for {limit:?}"));
    tokio::time::timeout(limit, step).await.map_err(late)?
}

/// Reads and drops until the client closes.
async fn until_closed(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    tokio::io::copy(reader, &mut tokio::io::sink()).await.map(drop)
}

fn set(answer: &mut BytesMut, at: usize, number: i32) {
    answer[at..at + 4].copy_from_slice(&number.to_be_bytes());
}
