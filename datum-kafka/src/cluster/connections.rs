//! The connections to a cluster's brokers, each opened when first needed and again after it broke.
//!
//! A broker gets up to two: one for data and one for its part as a coordinator, since it answers one connection's
//! requests in order and a heartbeat must not wait behind a long-polling fetch. Callers that want the same connection at
//! the same time share one dial. After a failed dial the next waits, longer each time, so that a broker that is
//! down costs an attempt per second and not a busy loop.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datum_net::{Address, AddressList, Backoff, Dialer, Rng};
use tokio::time::{Instant, sleep_until};

use crate::connection::Connection;
use crate::error::Result;
use crate::settings::ClientSettings;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Fetching, producing, asking.
    Data,
    /// Group membership, commits and transactions.
    Coordinator,
}

/// One place for a connection: held while dialling, so that others wait for the same dial.
type Slot = Arc<tokio::sync::Mutex<Place>>;

#[derive(Debug)]
struct Place {
    connection: Option<(Address, Connection)>,
    backoff: Backoff,
    not_before: Option<Instant>,
}

/// All connections of one client to one cluster.
#[derive(Debug)]
pub(super) struct Connections {
    settings: ClientSettings,
    dialer: Dialer,
    bootstrap: AddressList,
    slots: Mutex<HashMap<(i32, Purpose), Slot>>,
    rng: Mutex<Rng>,
}

/// The slot of the connection to whichever bootstrap address answered.
const BOOTSTRAP: (i32, Purpose) = (-1, Purpose::Data);

impl Connections {
    pub(super) fn new(settings: &ClientSettings) -> Result<Self> {
        Ok(Self {
            bootstrap: settings.validate()?,
            dialer: Dialer::default().attempt_timeout(settings.connect_timeout),
            settings: settings.clone(),
            slots: Mutex::default(),
            rng: Mutex::new(Rng::from_entropy()),
        })
    }

    /// The connection to this broker, opened if it is not. An open one is returned at once; a broker whose address has changed is
    /// dialled anew.
    pub(super) async fn to(&self, node: i32, purpose: Purpose, address: &Address) -> Result<Connection> {
        let slot = self.slot((node, purpose));
        let mut place = slot.lock().await;
        if let Some(open) = place.open(Some(address)) {
            return Ok(open);
        }
        self.wait_turn(&place).await;
        let opened = async {
            let stream = self.dialer.dial(address).await?;
            Connection::open(stream, address.to_string(), &self.settings).await
        };
        match opened.await {
            Ok(connection) => Ok(place.keep(address.clone(), connection)),
            Err(error) => Err(self.note_failure(&mut place, error)),
        }
    }

    /// A connection to any bootstrap address.
    pub(super) async fn to_bootstrap(&self) -> Result<Connection> {
        let slot = self.slot(BOOTSTRAP);
        let mut place = slot.lock().await;
        if let Some(open) = place.open(None) {
            return Ok(open);
        }
        self.wait_turn(&place).await;
        let opened = async {
            let mut rng = Rng::seeded(self.rng().bits());
            let (stream, address) = self.dialer.dial_any(self.bootstrap.as_slice(), &mut rng).await?;
            let connection = Connection::open(stream, address.to_string(), &self.settings).await?;
            Ok((address.clone(), connection))
        };
        match opened.await {
            Ok((address, connection)) => Ok(place.keep(address, connection)),
            Err(error) => Err(self.note_failure(&mut place, error)),
        }
    }

    /// Lets go of the bootstrap connection once brokers are known: it would be an extra one to a broker that has its own.
    pub(super) fn release_bootstrap(&self) {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner).remove(&BOOTSTRAP);
    }

    pub(super) fn rng(&self) -> std::sync::MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, key: (i32, Purpose)) -> Slot {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots
            .entry(key)
            .or_insert_with(|| Arc::new(tokio::sync::Mutex::new(Place::new(&self.settings))))
            .clone()
    }

    async fn wait_turn(&self, place: &Place) {
        if let Some(at) = place.not_before {
            sleep_until(at).await;
        }
    }

    fn note_failure<E>(&self, place: &mut Place, error: E) -> E {
        place.connection = None;
        let delay = place.backoff.next_delay(&mut self.rng());
        place.not_before = Some(Instant::now() + delay);
        error
    }
}

impl Place {
    fn new(settings: &ClientSettings) -> Self {
        Self { connection: None, backoff: Backoff::new(settings.reconnect_backoff), not_before: None }
    }

    fn open(&self, address: Option<&Address>) -> Option<Connection> {
        let (known, connection) = self.connection.as_ref()?;
        let same = address.is_none_or(|address| address == known);
        (same && !connection.is_closed()).then(|| connection.clone())
    }

    fn keep(&mut self, address: Address, connection: Connection) -> Connection {
        self.backoff.reset();
        self.not_before = None;
        self.connection = Some((address, connection.clone()));
        connection
    }
}
