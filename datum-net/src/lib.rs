//! Dialling, backoff and reconnection, shared by every room that opens sockets.
//!
//! - [`Address`] and [`AddressList`]: `host:port` as users write it, IPv6 literals in brackets.
//! - [`Dialer`]: opens a TCP connection to the first address that answers. A name stands for *all* its addresses, and a
//!   list of bootstrap addresses for all their names; every attempt has a deadline of its own.
//! - [`Backoff`]: exponential delays with jitter. It draws from a random source and never looks at a clock: both are
//!   passed in, so protocols that use it can be tested in virtual time with a printed seed.
//!
//! Nothing here knows a protocol, and nothing here depends on another room.

mod address;
mod backoff;
mod dial;

pub use address::{Address, AddressError, AddressList};
pub use backoff::{Backoff, BackoffPolicy, Rng};
pub use dial::{Attempt, DialError, Dialer};
