//! `Source::from_iter`: the elements of an iterator.

use super::nothing_to_close;
use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::materializer::Materializer;
use crate::stage::{Driven, Leaf, Progress, Push, Stage, StageCx, guard};

impl Source<Unset> {
    /// The elements of an iterator. What is cloned is the `IntoIterator`: each run iterates anew.
    ///
    /// A panic in the iterator fails the stream. An iterator whose size hint says that it is exhausted completes the
    /// stream together with its last element.
    ///
    /// - **Emits** on demand.
    /// - **Completes** when the iterator ends.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let all = Source::from_iter(vec!['a', 'b']).run_with(Sink::collect())?.await?;
    /// assert_eq!(all, ['a', 'b']);
    /// # Ok(())
    /// # }
    /// ```
    #[allow(clippy::should_implement_trait, reason = "FromIterator cannot name the blueprint's type")]
    pub fn from_iter<I>(iter: I) -> Source<FromIter<I>>
    where
        I: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + Send + 'static,
    {
        Source::from_blueprint(FromIter(iter))
    }
}

/// The blueprint of [`Source::from_iter`].
#[derive(Clone, Debug)]
pub struct FromIter<I>(I);

impl<I> Blueprint for FromIter<I>
where
    I: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + Send + 'static,
{
    type Out = I::Item;
    type Mat = ();
    type Stage = Leaf<IterStage<I::IntoIter>>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, ()> {
        let iter = guard("from_iter", || self.0.into_iter())?;
        Ok((Leaf::new(IterStage(iter), materializer), ()))
    }
}

/// The stage of [`Source::from_iter`].
#[derive(Debug)]
pub struct IterStage<I>(I);

impl<I: Iterator> IterStage<I> {
    /// Whether its size hint says so. A hint that panics says nothing; the iterator's next turn shows what is wrong.
    fn exhausted(&self) -> bool {
        guard("from_iter", || self.0.size_hint().1 == Some(0)).unwrap_or(false)
    }
}

impl<I: Iterator<Item: Send + 'static> + Send + 'static> Stage for IterStage<I> {
    type Out = I::Item;

    #[inline]
    fn drive<P: FnMut(I::Item) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let mut left = cx.budget();
        let answer = loop {
            // One subtraction that also is the comparison.
            let Some(rest) = left.checked_sub(1) else {
                cx.wake();
                break Ok(Progress::Pending);
            };
            left = rest;
            match guard("from_iter", || self.0.next()) {
                Ok(Some(x)) => {
                    if push(x).is_break() {
                        break Ok(if self.exhausted() { Progress::Complete } else { Progress::Stopped });
                    }
                }
                Ok(None) => break Ok(Progress::Complete),
                Err(error) => break Err(error),
            }
        };
        cx.set_budget(left);
        answer
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Ok(if self.exhausted() { Progress::Complete } else { Progress::Pending })
    }

    nothing_to_close!();
}
