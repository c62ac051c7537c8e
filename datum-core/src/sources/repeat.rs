//! `Source::repeat`: the same element for ever.

use super::nothing_to_close;
use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::materializer::Materializer;
use crate::stage::{Driven, Leaf, Progress, Push, Stage, StageCx, guard};

impl Source<Unset> {
    /// Clones of one element, for ever.
    ///
    /// - **Emits** on demand.
    /// - **Completes** never, except at a graceful shutdown.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(Source::repeat('x').take(3).run_with(Sink::collect())?.await?, ['x', 'x', 'x']);
    /// # Ok(())
    /// # }
    /// ```
    pub fn repeat<T: Clone + Send + 'static>(element: T) -> Source<Repeat<T>> {
        Source::from_blueprint(Repeat(element))
    }
}

/// The blueprint of [`Source::repeat`].
#[derive(Clone, Debug)]
pub struct Repeat<T>(T);

/// The stage of [`Source::repeat`].
#[derive(Debug)]
pub struct RepeatStage<T>(T);

impl<T: Clone + Send + 'static> Blueprint for Repeat<T> {
    type Out = T;
    type Mat = ();
    type Stage = Leaf<RepeatStage<T>>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, ()> {
        Ok((Leaf::new(RepeatStage(self.0), materializer), ()))
    }
}

impl<T: Clone + Send + 'static> Stage for RepeatStage<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        loop {
            if !cx.spend() {
                return Ok(Progress::Pending);
            }
            if push(guard("repeat", || self.0.clone())?).is_break() {
                return Ok(Progress::Stopped);
            }
        }
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Ok(Progress::Pending)
    }

    nothing_to_close!();
}
