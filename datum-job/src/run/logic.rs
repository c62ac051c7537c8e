//! What differs between jobs.

use std::error::Error;

use datum_kafka::producer::ProducerRecord;
use datum_kafka::wire::batch::Record;
use datum_window::RecordPosition;

use crate::machine::{Content, Cut, Payload};

/// The cut of a logic's payload.
pub type LogicCut<L> =
    Cut<<<L as JobLogic>::Payload as Payload>::Closed, <<L as JobLogic>::Payload as Payload>::Side>;

/// How a job reads records, what its windows hold, and what it writes.
pub trait JobLogic: Send + 'static {
    /// What the windows hold.
    type Payload: Payload<Side: Send, Closed: Send> + Send;
    /// Why a record ends the job.
    type Error: Into<Box<dyn Error + Send + Sync>>;

    /// Makes what makes empty windows, at each start.
    fn payloads(&self) -> impl FnMut() -> Self::Payload + Send + 'static;

    /// Reads one record, lends what it is to `then`, once, and returns its answer: so an input may borrow from the record, or
    /// from a value that lives no longer than the call, and nothing is moved on the way. Called for every record, in offset order per partition, and again for what is replayed after
    /// a restart: it must give the same answer each time.
    ///
    /// # Errors
    /// Under a policy that fails: why it cannot be read. The job ends.
    fn read<U>(
        &mut self,
        at: RecordPosition,
        record: &Record<'_>,
        then: impl for<'a> FnMut(Content<<Self::Payload as Payload>::Input<'a>>) -> U,
    ) -> Result<U, Self::Error>;

    /// The bytes of the group key, as the producers of the input hash them: checked in co-partitioned mode, where every
    /// key has to live in the partition that murmur2 gives. `None` leaves it unchecked.
    fn key_bytes<'a>(input: &'a <Self::Payload as Payload>::Input<'_>) -> Option<&'a [u8]>;

    /// What is kept of a record that leaves beside the panes.
    fn side(record: &Record<'_>) -> <Self::Payload as Payload>::Side;

    /// Writes the output of a cut: panes and side records. The job adds headers that name it.
    fn write(&mut self, cut: &LogicCut<Self>, out: &mut Vec<ProducerRecord>)
    where
        Self: Sized;

    /// The cut has taken effect: its output is visible.
    fn committed(&mut self, cut: &LogicCut<Self>)
    where
        Self: Sized,
    {
        let _ = cut;
    }
}
