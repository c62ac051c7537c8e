//! `map` and `try_map`: one element in, one out.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::error::{BoxError, StreamError};
use crate::stage::{Driven, Judge, Push, Stage, StageCx, Supervision, Up, guard};
use crate::{forward, linear_operator};

/// Adds [`map`](MapOps::map).
pub trait MapOps: StreamOps {
    /// Turns each element into another.
    ///
    /// A panic in `f` is supervised: `Resume` and `Restart` drop the element.
    ///
    /// - **Emits** when `f` has returned.
    /// - **Backpressures** when downstream does; `f` runs once per demanded element, never ahead.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let doubled = Source::from_iter(1..=3).map(|x| x * 2).run_with(Sink::collect())?.await?;
    /// assert_eq!(doubled, [2, 4, 6]);
    /// # Ok(())
    /// # }
    /// ```
    fn map<T, F>(self, f: F) -> Self::Then<Map<F>, KeepLeft>
    where
        T: Send + 'static,
        F: FnMut(Self::Item) -> T + Send + 'static,
    {
        self.then(Map(f))
    }
}

impl<S: StreamOps> MapOps for S {}

/// The operator of [`map`](MapOps::map).
#[derive(Clone, Debug)]
pub struct Map<F>(F);

/// The stage of [`map`](MapOps::map).
#[derive(Debug)]
pub struct MapStage<U, F> {
    up: Up<U>,
    f: F,
    supervision: Supervision,
}

linear_operator!([In: Send + 'static, T: Send + 'static, F: FnMut(In) -> T + Send + 'static] Map<F>,
    In => T, MapStage<F>, |op, up, m| MapStage { up: Up::new(up), f: op.0, supervision: m.supervision() });

impl<U: Stage, T: Send + 'static, F: FnMut(U::Out) -> T + Send + 'static> Stage for MapStage<U, F> {
    type Out = T;

    #[inline]
    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (f, mut judge) = (&mut self.f, Judge::new(&self.supervision));
        let answer = self.up.drive(cx, |x| match guard("map", || f(x)) {
            Ok(y) => push(y),
            Err(error) => judge.element_failed(error),
        });
        judge.conclude(answer, &mut self.up, cx)
    }

    forward!(tend cancel poll_closed);
}

/// Adds [`try_map`](TryMapOps::try_map).
pub trait TryMapOps: StreamOps {
    /// Turns each element into another, or fails.
    ///
    /// An error and a panic are supervised alike: `Resume` and `Restart` drop the element; by default the stream fails
    /// with an error in which [`StreamError::downcast_ref`] finds the one that `f` gave.
    ///
    /// - **Emits** when `f` has returned `Ok`.
    /// - **Backpressures** when downstream does; `f` runs once per demanded element, never ahead.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let parsed = Source::from_iter(["1", "x", "3"])
    ///     .try_map(|s| s.parse::<u32>())
    ///     .with_attributes(Attributes::new().supervision(Supervision::resume()))
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(parsed, [1, 3]);
    /// # Ok(())
    /// # }
    /// ```
    fn try_map<T, E, F>(self, f: F) -> Self::Then<TryMap<F>, KeepLeft>
    where
        T: Send + 'static,
        E: Into<BoxError> + 'static,
        F: FnMut(Self::Item) -> Result<T, E> + Send + 'static,
    {
        self.then(TryMap(f))
    }
}

impl<S: StreamOps> TryMapOps for S {}

/// The operator of [`try_map`](TryMapOps::try_map).
#[derive(Clone, Debug)]
pub struct TryMap<F>(F);

/// The stage of [`try_map`](TryMapOps::try_map).
#[derive(Debug)]
pub struct TryMapStage<U, F> {
    up: Up<U>,
    f: F,
    supervision: Supervision,
}

linear_operator!(
    [In: Send + 'static, T: Send + 'static, E: Into<BoxError> + 'static, F: FnMut(In) -> Result<T, E> + Send + 'static]
    TryMap<F>, In => T, TryMapStage<F>,
    |op, up, m| TryMapStage { up: Up::new(up), f: op.0, supervision: m.supervision() });

impl<U, T, E, F> Stage for TryMapStage<U, F>
where
    U: Stage,
    T: Send + 'static,
    E: Into<BoxError> + 'static,
    F: FnMut(U::Out) -> Result<T, E> + Send + 'static,
{
    type Out = T;

    #[inline]
    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (f, mut judge) = (&mut self.f, Judge::new(&self.supervision));
        let answer = self.up.drive(cx, |x| match guard("try_map", || f(x)) {
            Ok(Ok(y)) => push(y),
            Ok(Err(error)) => judge.element_failed(StreamError::failed("try_map", error)),
            Err(error) => judge.element_failed(error),
        });
        judge.conclude(answer, &mut self.up, cx)
    }

    forward!(tend cancel poll_closed);
}
