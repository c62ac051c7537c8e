//! The thin shell: sockets, tasks and waiting around the machines.
//!
//! One task accepts per node, one serves each connection (its requests are answered in their order), one lets time pass.
//! All share one lock, held only while a machine is called and never across an await.

mod connection;
mod dispatch;
mod frame;
mod listener;
mod shared;
mod ticker;

pub(crate) use listener::serve;
pub(crate) use shared::Shared;
pub(crate) use ticker::run as tick;
