//! One connection: reads a request, answers it, reads the next.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncWriteExt, BufReader};
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
    if let Err(error) = served.await {
        tracing::debug!(node, %peer, %error, "connection closed");
    }
}

fn count(counts: &[(i32, u64)], node: i32) -> u64 {
    counts.iter().find(|(id, _)| *id == node).map_or(0, |(_, count)| *count)
}

async fn answer_all(mut socket: TcpStream, peer: SocketAddr, node: i32, shared: &Shared) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let limit = shared.with(|locked, _| locked.core.settings.max_request);
    let (reader, mut writer) = socket.split();
    let mut reader = BufReader::new(reader);
    while let Some(frame) = frame::read(&mut reader, limit).await? {
        let request = Request::read(frame)?;
        let actions = shared.faults.meet(request.api, node);
        let mut forced = None;
        for action in &actions {
            match action {
                Action::Delay(by) => shared.clock.sleep_until(shared.clock.now_ms() + millis(*by)).await,
                Action::Error(code) => forced = Some(*code),
                Action::Disconnect => return Ok(()),
                Action::DisconnectAfter | Action::Truncate | Action::Length(_) => {}
            }
        }
        let host = peer.ip().to_string();
        let Some(mut answer) = dispatch::answer(shared, request, node, host, forced).await? else { continue };
        for action in &actions {
            match action {
                Action::DisconnectAfter => return Ok(()),
                Action::Truncate => {
                    writer.write_all(&answer[..answer.len() / 2]).await?;
                    return Ok(());
                }
                Action::Length(length) => set_length(&mut answer, *length),
                Action::Delay(_) | Action::Error(_) | Action::Disconnect => {}
            }
        }
        writer.write_all(&answer).await?;
    }
    Ok(())
}

fn set_length(answer: &mut BytesMut, length: i32) {
    answer[..frame::LENGTH].copy_from_slice(&length.to_be_bytes());
}
