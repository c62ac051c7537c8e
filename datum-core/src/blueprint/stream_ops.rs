//! The one hook behind every operator.

use super::{Flow, KeepLeft, Keeps, Operator};

/// What [`Source`](super::Source) and [`Flow`] have in common: something that operators can follow.
///
/// Operators are provided methods of extension traits over this one, each in the file of its operator
/// ([`crate::ops`]); the prelude brings them all into scope. A method of your own is an extension trait over
/// `StreamOps` that calls [`then`](StreamOps::then).
pub trait StreamOps: Sized {
    /// The elements so far.
    type Item: Send + 'static;
    /// The materialised value so far.
    type Mat: 'static;
    /// The same kind of thing, followed by `O`.
    type Then<O: Operator<Self::Item>, K: Keeps>: StreamOps<Item = O::Out, Mat = K::Out<Self::Mat, O::Mat>>;

    /// Appends an operator and says which materialised value to keep.
    fn then_keep<O: Operator<Self::Item>, K: Keeps>(self, operator: O, keep: K) -> Self::Then<O, K>;

    /// Appends an operator; the materialised value stays what it was.
    fn then<O: Operator<Self::Item>>(self, operator: O) -> Self::Then<O, KeepLeft> {
        self.then_keep(operator, KeepLeft)
    }

    /// Appends a flow; the materialised value stays what it was.
    fn via<O: Operator<Self::Item>>(self, flow: Flow<Self::Item, O>) -> Self::Then<O, KeepLeft> {
        self.then(flow.into_operator())
    }

    /// Appends a flow and says which materialised value to keep.
    fn via_keep<O: Operator<Self::Item>, K: Keeps>(
        self,
        flow: Flow<Self::Item, O>,
        keep: K,
    ) -> Self::Then<O, K> {
        self.then_keep(flow.into_operator(), keep)
    }
}
