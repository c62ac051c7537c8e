//! `Source::single`: one element.

use super::nothing_to_close;
use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::materializer::Materializer;
use crate::stage::{Driven, Leaf, Progress, Push, Stage, StageCx};

impl Source<Unset> {
    /// One element, and completion in the same step.
    ///
    /// - **Emits** the element at the first demand.
    /// - **Completes** with it.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert_eq!(Source::single(7).run_with(Sink::collect())?.await?, [7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn single<T: Send + 'static>(element: T) -> Source<Single<T>> {
        Source::from_blueprint(Single(element))
    }
}

/// The blueprint of [`Source::single`].
#[derive(Clone, Debug)]
pub struct Single<T>(T);

/// The stage of [`Source::single`].
#[derive(Debug)]
pub struct SingleStage<T>(Option<T>);

impl<T: Send + 'static> Blueprint for Single<T> {
    type Out = T;
    type Mat = ();
    type Stage = Leaf<SingleStage<T>>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, ()> {
        Ok((Leaf::new(SingleStage(Some(self.0)), materializer), ()))
    }
}

impl<T: Send + 'static> Stage for SingleStage<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, _: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        if let Some(element) = self.0.take() {
            // Whether more is wanted makes no difference: there is no more.
            let _ = push(element);
        }
        Ok(Progress::Complete)
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Ok(if self.0.is_some() { Progress::Pending } else { Progress::Complete })
    }

    nothing_to_close!();
}
