//! A payload that is the set of its records, so that the oracle can ask where each one went.

use std::collections::{BTreeMap, BTreeSet};

use datum_job::Payload;
use datum_window::{RecordPosition, Window};

pub type Id = (u32, i64);

#[derive(Clone, Debug, Default)]
pub struct Ids(BTreeMap<Window, BTreeMap<u8, BTreeSet<Id>>>);

impl Payload for Ids {
    type Input<'a> = u8;
    type Side = ();
    type Closed = Vec<(u8, BTreeSet<Id>)>;

    fn add(&mut self, at: RecordPosition, window: Window, key: u8) {
        let fresh =
            self.0.entry(window).or_default().entry(key).or_default().insert((at.partition, at.offset));
        assert!(fresh, "{at:?} added twice to {window:?}");
    }

    fn close(&mut self, window: Window) -> Self::Closed {
        self.0.remove(&window).expect("only windows with records close").into_iter().collect()
    }
}
