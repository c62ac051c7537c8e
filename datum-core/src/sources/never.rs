//! `Source::never`: waits for ever.

use super::nothing_to_close;
use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::materializer::Materializer;
use crate::stage::{Driven, Leaf, Progress, Push, Stage, StageCx};
use std::marker::PhantomData;

impl Source<Unset> {
    /// No element and no end, until the stream is cancelled or shut down.
    ///
    /// - **Emits** never.
    /// - **Completes** never.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let mut never = Source::never::<u8>().run_with(Sink::collect())?;
    /// assert!(never.try_get().is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn never<T: Send + 'static>() -> Source<Never<T>> {
        Source::from_blueprint(Never(PhantomData))
    }
}

/// The blueprint and the stage of [`Source::never`].
#[derive(Debug)]
pub struct Never<T>(PhantomData<fn() -> T>);

impl<T> Clone for Never<T> {
    fn clone(&self) -> Self {
        Never(PhantomData)
    }
}

impl<T: Send + 'static> Blueprint for Never<T> {
    type Out = T;
    type Mat = ();
    type Stage = Leaf<Self>;

    fn build(self, materializer: &Materializer) -> Built<Leaf<Self>, ()> {
        Ok((Leaf::new(self, materializer), ()))
    }
}

impl<T: Send + 'static> Stage for Never<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, _: &mut StageCx<'_, '_>, _: P) -> Driven {
        Ok(Progress::Pending)
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Ok(Progress::Pending)
    }

    nothing_to_close!();
}
