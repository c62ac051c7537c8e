//! Opening a TCP connection to whichever of several addresses answers.
//!
//! A name is resolved at every dial and *each* of its addresses is tried, in the resolver's order; with several bootstrap
//! addresses the dialler starts at a random one, so that a fleet does not lean on the first of the list. Each attempt, and
//! each look-up, has its own deadline: a black hole costs one timeout and not the operating system's two minutes.
//!
//! Ends with a connected stream (`TCP_NODELAY` set) or with a [`DialError`] that lists every attempt and why it failed.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::{Address, Rng};

/// Dials addresses under one set of limits. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub struct Dialer {
    attempt_timeout: Duration,
}

impl Default for Dialer {
    /// Ten seconds per attempt, Kafka's `socket.connection.setup.timeout.ms`.
    fn default() -> Self {
        Self { attempt_timeout: Duration::from_secs(10) }
    }
}

impl Dialer {
    /// How long one look-up or one connection attempt may take. Shorter finds a living address sooner; too short fails
    /// on a slow link that would have answered.
    pub fn attempt_timeout(mut self, limit: Duration) -> Self {
        self.attempt_timeout = limit;
        self
    }

    /// Connects to `address`, trying every address its name resolves to.
    ///
    /// # Errors
    /// [`DialError`] with one [`Attempt`] per address tried, or one for the look-up that failed.
    ///
    /// # Cancel safety
    /// Dropping the future closes whatever it had opened.
    pub async fn dial(&self, address: &Address) -> Result<TcpStream, DialError> {
        let mut failed = Vec::new();
        self.try_one(address, &mut failed).await.ok_or_else(|| DialError::new(failed))
    }

    /// Connects to any of `addresses`, starting at a random one and going round. Also says which one answered.
    ///
    /// # Errors
    /// [`DialError`] when none of them answered; it is empty only if `addresses` was.
    ///
    /// # Cancel safety
    /// Dropping the future closes whatever it had opened.
    pub async fn dial_any<'a>(
        &self,
        addresses: &'a [Address],
        rng: &mut Rng,
    ) -> Result<(TcpStream, &'a Address), DialError> {
        let mut failed = Vec::new();
        let start = rng.below(addresses.len());
        for address in addresses[start..].iter().chain(&addresses[..start]) {
            if let Some(stream) = self.try_one(address, &mut failed).await {
                return Ok((stream, address));
            }
        }
        Err(DialError::new(failed))
    }

    async fn try_one(&self, address: &Address, failed: &mut Vec<Attempt>) -> Option<TcpStream> {
        let mut note = |socket, error| failed.push(Attempt { address: address.clone(), socket, error });
        let found = match timeout(self.attempt_timeout, lookup_host((address.host(), address.port()))).await {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => {
                note(None, error);
                return None;
            }
            Err(_) => {
                note(None, timed_out(self.attempt_timeout));
                return None;
            }
        };
        for socket in found {
            let error = match timeout(self.attempt_timeout, connect(socket)).await {
                Ok(Ok(stream)) => return Some(stream),
                Ok(Err(error)) => error,
                Err(_) => timed_out(self.attempt_timeout),
            };
            tracing::debug!(%address, %socket, %error, "dial failed");
            note(Some(socket), error);
        }
        None
    }
}

/// One address that was tried in vain.
#[derive(Debug)]
pub struct Attempt {
    /// What the user or the cluster named.
    pub address: Address,
    /// What it resolved to; `None` if the name itself could not be resolved.
    pub socket: Option<SocketAddr>,
    /// Why it failed.
    pub error: io::Error,
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.socket {
            Some(socket) => write!(f, "{} ({socket}): {}", self.address, self.error),
            None => write!(f, "{}: {}", self.address, self.error),
        }
    }
}

/// No address answered. Cheap to clone.
#[derive(Clone, Debug, Error)]
#[error("no address answered ({}): check that the service runs, and the names and ports given", list(.attempts))]
pub struct DialError {
    attempts: Arc<[Attempt]>,
}

impl DialError {
    fn new(attempts: Vec<Attempt>) -> Self {
        Self { attempts: attempts.into() }
    }

    /// Every attempt in the order made.
    pub fn attempts(&self) -> &[Attempt] {
        &self.attempts
    }
}

async fn connect(socket: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(socket).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn timed_out(limit: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {limit:?}"))
}

fn list(attempts: &[Attempt]) -> String {
    attempts.iter().map(Attempt::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::TcpListener;

    use super::*;

    async fn listening() -> (TcpListener, Address) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        (listener, Address::new("127.0.0.1", port))
    }

    async fn refusing() -> Address {
        listening().await.1 // its listener is dropped here
    }

    #[tokio::test]
    async fn goes_round_the_list_until_one_answers() {
        let (_listener, good) = listening().await;
        let addresses = [refusing().await, good.clone(), refusing().await];
        for seed in 0..8 {
            let (_, who) = Dialer::default().dial_any(&addresses, &mut Rng::seeded(seed)).await.unwrap();
            assert_eq!(*who, good);
        }
    }

    #[tokio::test]
    async fn names_every_attempt_when_none_answers() {
        let addresses = [refusing().await, Address::new("name.invalid", 1)];
        let error = Dialer::default().dial_any(&addresses, &mut Rng::seeded(1)).await.unwrap_err();
        assert_eq!(error.attempts().len(), 2, "{error}");
        let text = error.to_string();
        assert!(text.contains(&addresses[0].to_string()) && text.contains("name.invalid:1"), "{text}");
    }

    #[tokio::test]
    async fn tries_all_addresses_of_a_name() {
        // `localhost` may stand for ::1 first; the listener is on 127.0.0.1 only.
        let (_listener, good) = listening().await;
        let stream = Dialer::default().dial(&Address::new("localhost", good.port())).await.unwrap();
        assert!(stream.nodelay().unwrap());
    }

    #[tokio::test]
    async fn an_empty_list_is_an_error_without_attempts() {
        let error = Dialer::default().dial_any(&[], &mut Rng::seeded(1)).await.unwrap_err();
        assert!(error.attempts().is_empty());
    }
}
