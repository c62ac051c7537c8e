//! Ownership, fencing and the transaction, as machines.
//!
//! [`driver`] walks one owner from its assignment to its end: producer, committed offsets, start, transactions, changed
//! generations, unknown outcomes. [`assignment`] is what the members of a job's group tell each other. Neither has a
//! socket or a clock: requests come out, answers and time go in.

pub mod assignment;
pub mod driver;

pub use assignment::{Assignment, AssignmentError, Role, Subscription};
pub use driver::{Answer, Delivery, Driver, DriverSettings, Ended, Ending, Lost, Next, Request, Ticket};
