//! What the simulated world sees published.

use std::collections::BTreeSet;

use datum_window::Window;

use crate::ids::Id;

/// One thing published.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Out {
    Pane { window: Window, key: u8, ids: BTreeSet<Id> },
    Late(Id),
    Dead(Id),
    Ahead(Id),
}
