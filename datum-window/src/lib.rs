//! Event time, watermarks, keyed windows and aggregates.
//!
//! This crate holds what a windowed, keyed job computes, and nothing of how it is stored or committed:
//!
//! - [`Tumbling`] describes windows, [`TumblingWindows`] is the checked arithmetic over them;
//! - [`Watermark`] is how far one partition's event time has come;
//! - [`Aggregates`] composes named aggregates into one accumulator with static types;
//! - [`Panes`] and [`PartitionedPanes`] hold open accumulators by window and key;
//! - [`KeyedWindows`] puts these together for input that lives in memory;
//! - [`stages`] are `key_by`, `window` and `aggregate` on streams;
//! - [`mod@format`] writes published panes as JSON, CSV or a table.
//!
//! # What the answer is
//! A record belongs to its window unless an earlier record of the *same partition* had already reached the
//! window's end plus grace. Panes are the aggregates of exactly those records, whatever the interleaving of the
//! partitions. A window is published when the smallest of the partitions' watermarks has reached its end plus
//! grace, so a slow partition holds windows open and never makes a record of its own late.
//!
//! Partial accumulators are kept per partition and merged in partition order when the window closes. So a pane is
//! a function of the partitions' contents alone: two runs over the same records give the same bits, floats included.
//!
//! Nothing here reads a clock or does I/O.

pub mod aggregate;
pub mod format;
pub mod stages;

mod duration;
mod group_key;
mod key;
mod keyed;
mod pane;
mod partitioned;
mod position;
mod row;
mod tumbling;
mod value;
mod watermark;

pub use aggregate::{Aggregate, Aggregates, AggregatesError, check_names};
pub use duration::{millis, secs};
pub use group_key::GroupKey;
pub use key::{Key, KeyRef};
pub use keyed::{KeyedWindows, Placement};
pub use pane::{Pane, Panes};
pub use partitioned::PartitionedPanes;
pub use position::RecordPosition;
pub use row::{Name, Row};
pub use tumbling::{Tumbling, TumblingError, TumblingWindows, Window};
pub use value::Value;
pub use watermark::Watermark;

/// Event time in milliseconds since 1970-01-01T00:00:00Z; negative before it.
pub type Millis = i64;
