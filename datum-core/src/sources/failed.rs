//! `Source::failed`: fails at once.

use super::nothing_to_close;
use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::error::{BoxError, StreamError};
use crate::materializer::Materializer;
use crate::stage::{Driven, Push, Stage, StageCx};
use std::marker::PhantomData;

impl Source<Unset> {
    /// Fails at once, without demand. A [`StreamError`] stays what it is.
    ///
    /// - **Emits** never.
    /// - **Completes** never; fails at once.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let failed = Source::failed::<u8>("out of order").run_with(Sink::collect())?.await;
    /// assert!(failed.unwrap_err().to_string().contains("out of order"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn failed<T: Send + 'static>(error: impl Into<BoxError>) -> Source<Failed<T>> {
        Source::from_blueprint(Failed { error: StreamError::failed("failed", error), elements: PhantomData })
    }
}

/// The blueprint and the stage of [`Source::failed`].
#[derive(Debug)]
pub struct Failed<T> {
    error: StreamError,
    elements: PhantomData<fn() -> T>,
}

impl<T> Clone for Failed<T> {
    fn clone(&self) -> Self {
        Failed { error: self.error.clone(), elements: PhantomData }
    }
}

impl<T: Send + 'static> Blueprint for Failed<T> {
    type Out = T;
    type Mat = ();
    type Stage = Self;

    fn build(self, _: &Materializer) -> Built<Self, ()> {
        Ok((self, ()))
    }
}

impl<T: Send + 'static> Stage for Failed<T> {
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, _: &mut StageCx<'_, '_>, _: P) -> Driven {
        Err(self.error.clone())
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Err(self.error.clone())
    }

    nothing_to_close!();
}
