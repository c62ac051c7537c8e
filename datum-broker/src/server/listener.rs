//! One node: accepts connections and looks after their tasks.

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::server::{Shared, connection};

/// Accepts until the broker stops; then ends every connection of the node.
pub(crate) async fn serve(listener: TcpListener, node: i32, shared: Arc<Shared>) {
    let mut stopping = shared.stopping.subscribe();
    let mut connections = JoinSet::new();
    loop {
        if *stopping.borrow_and_update() {
            break;
        }
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((socket, peer)) => {
                    let shared = Arc::clone(&shared);
                    connections.spawn(connection::serve(socket, peer, node, shared));
                }
                Err(error) => {
                    tracing::warn!(node, %error, "a connection could not be accepted");
                    tokio::time::sleep(connection::PAUSE).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = stopping.changed() => {}
        }
    }
    connections.shutdown().await;
}
