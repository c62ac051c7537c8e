//! `Source::empty`: completes at once.

use super::nothing_to_close;
use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::materializer::Materializer;
use crate::stage::{Driven, Progress, Push, Stage, StageCx};
use std::marker::PhantomData;

impl Source<Unset> {
    /// No element: completes at once, without demand.
    ///
    /// - **Emits** never.
    /// - **Completes** at once.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// assert!(Source::empty::<u8>().run_with(Sink::collect())?.await?.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn empty<T: Send + 'static>() -> Source<Empty<T>> {
        Source::from_blueprint(Empty(PhantomData))
    }
}

/// The blueprint and the stage of [`Source::empty`].
#[derive(Debug)]
pub struct Empty<T>(PhantomData<fn() -> T>);

impl<T> Clone for Empty<T> {
    fn clone(&self) -> Self {
        Empty(PhantomData)
    }
}

impl<T: Send + 'static> Blueprint for Empty<T> {
    type Out = T;
    type Mat = ();
    type Stage = Self;

    fn build(self, _: &Materializer) -> Built<Self, ()> {
        Ok((self, ()))
    }
}

impl<T: Send + 'static> Stage for Empty<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, _: &mut StageCx<'_, '_>, _: P) -> Driven {
        Ok(Progress::Complete)
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Ok(Progress::Complete)
    }

    nothing_to_close!();
}
