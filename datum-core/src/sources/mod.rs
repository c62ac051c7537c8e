//! Sources, one concept per file. The constructors are functions of `Source<Unset>`: `Source::from_iter(..)`.
//!
//! A source's stage is a leaf: it spends the budget per element where it can be always ready, and ends at a graceful
//! shutdown (wrapped in a [`Leaf`](crate::stage::Leaf), or by itself when it holds accepted elements).

mod from_iter;

pub use from_iter::{FromIter, IterStage};
