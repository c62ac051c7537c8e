//! Record batches, format 2: how records travel in Produce and Fetch and lie in the log.
//!
//! ```text
//!  0  base offset         i64  │ the broker's: may be rewritten
//!  8  length              i32  │ bytes after this field      │ without
//! 12  leader epoch        i32  │ the broker's: may be rewritten │ CRC
//! 16  magic               i8   │ 2                           │
//! 17  crc                 u32  │ CRC-32C of all that follows
//! 21  attributes          i16    codec, timestamp type, transactional, control
//! 23  last offset delta   i32    next offset = base + this + 1, always
//! 27  base timestamp      i64
//! 35  max timestamp       i64
//! 43  producer id         i64    -1 = none
//! 51  producer epoch      i16
//! 53  base sequence       i32
//! 57  record count        i32
//! 61  records                    compressed as one block if the attributes say so
//! ```
//!
//! - [`BatchHeader`] reads the header alone and checks a batch without decoding it: what a broker needs, and what a
//!   consumer needs to know the next offset;
//! - [`BatchSet`] walks the batches of a Fetch answer, whose last one may be cut off;
//! - [`BatchDecoder`] checks, decompresses and indexes a batch; [`RecordBatch`] shows its records without copying them;
//! - [`BatchBuilder`] writes records as they come and closes them into a batch;
//! - [`AbortedTransactions`] says which batches `read_committed` must not see;
//! - [`control`] builds and reads transaction markers.
//!
//! Source: KIP-98 (format), <https://kafka.apache.org/documentation/#recordbatch>.

pub mod control;

mod attributes;
mod build;
mod checksum;
mod decode;
mod error;
mod header;
mod isolation;
mod pool;
mod record;
mod set;

pub use attributes::{Attributes, Codec, TimestampType};
pub use build::{BatchBuilder, NewHeader, NewRecord, Producer, Seal};
pub use decode::BatchDecoder;
pub use error::{BatchError, ControlFault, RecordFault};
pub use header::{BatchHeader, HEADER_LEN, add_sequence};
pub use isolation::{AbortedTransaction, AbortedTransactions, Visibility};
pub use record::{Header, Headers, Record, RecordBatch, Records};
pub use set::{BatchSet, RawBatch, Tail};
