//! `filter` and `filter_map`: elements that are dropped.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::stage::{Driven, Judge, Push, Stage, StageCx, Supervision, Up, guard};
use crate::{forward, linear_operator};

/// Adds [`filter`](FilterOps::filter).
pub trait FilterOps: StreamOps {
    /// Lets pass the elements for which `keep` is true.
    ///
    /// A panic in `keep` is supervised: `Resume` and `Restart` drop the element.
    ///
    /// - **Emits** when `keep` is true.
    /// - **Backpressures** when downstream does and an element passes.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let even = Source::from_iter(1..=6).filter(|x| x % 2 == 0).run_with(Sink::collect())?.await?;
    /// assert_eq!(even, [2, 4, 6]);
    /// # Ok(())
    /// # }
    /// ```
    fn filter<F>(self, keep: F) -> Self::Then<Filter<F>, KeepLeft>
    where
        F: FnMut(&Self::Item) -> bool + Send + 'static,
    {
        self.then(Filter(keep))
    }
}

impl<S: StreamOps> FilterOps for S {}

/// The operator of [`filter`](FilterOps::filter).
#[derive(Clone, Debug)]
pub struct Filter<F>(F);

/// The stage of [`filter`](FilterOps::filter).
#[derive(Debug)]
pub struct FilterStage<U, F> {
    up: Up<U>,
    keep: F,
    supervision: Supervision,
}

linear_operator!([In: Send + 'static, F: FnMut(&In) -> bool + Send + 'static] Filter<F>,
    In => In, FilterStage<F>, |op, up, m| FilterStage { up: Up::new(up), keep: op.0, supervision: m.supervision() });

impl<U: Stage, F: FnMut(&U::Out) -> bool + Send + 'static> Stage for FilterStage<U, F> {
    type Out = U::Out;

    #[inline]
    fn drive<P: FnMut(U::Out) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (keep, mut judge) = (&mut self.keep, Judge::new(&self.supervision));
        let answer = self.up.drive(cx, |x| match guard("filter", || keep(&x)) {
            Ok(true) => push(x),
            Ok(false) => Push::Continue(()),
            Err(error) => judge.element_failed(error),
        });
        judge.conclude(answer, &mut self.up, cx)
    }

    forward!(tend cancel poll_closed);
}

/// Adds [`filter_map`](FilterMapOps::filter_map).
pub trait FilterMapOps: StreamOps {
    /// Turns each element into another, or drops it.
    ///
    /// A panic in `f` is supervised: `Resume` and `Restart` drop the element.
    ///
    /// - **Emits** when `f` has returned `Some`.
    /// - **Backpressures** when downstream does and an element passes.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let numbers = Source::from_iter(["1", "x", "3"])
    ///     .filter_map(|s| s.parse::<u32>().ok())
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(numbers, [1, 3]);
    /// # Ok(())
    /// # }
    /// ```
    fn filter_map<T, F>(self, f: F) -> Self::Then<FilterMap<F>, KeepLeft>
    where
        T: Send + 'static,
        F: FnMut(Self::Item) -> Option<T> + Send + 'static,
    {
        self.then(FilterMap(f))
    }
}

impl<S: StreamOps> FilterMapOps for S {}

/// The operator of [`filter_map`](FilterMapOps::filter_map).
#[derive(Clone, Debug)]
pub struct FilterMap<F>(F);

/// The stage of [`filter_map`](FilterMapOps::filter_map).
#[derive(Debug)]
pub struct FilterMapStage<U, F> {
    up: Up<U>,
    f: F,
    supervision: Supervision,
}

linear_operator!([In: Send + 'static, T: Send + 'static, F: FnMut(In) -> Option<T> + Send + 'static] FilterMap<F>,
    In => T, FilterMapStage<F>, |op, up, m| FilterMapStage { up: Up::new(up), f: op.0, supervision: m.supervision() });

impl<U: Stage, T: Send + 'static, F: FnMut(U::Out) -> Option<T> + Send + 'static> Stage
    for FilterMapStage<U, F>
{
    type Out = T;

    #[inline]
    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let (f, mut judge) = (&mut self.f, Judge::new(&self.supervision));
        let answer = self.up.drive(cx, |x| match guard("filter_map", || f(x)) {
            Ok(Some(y)) => push(y),
            Ok(None) => Push::Continue(()),
            Err(error) => judge.element_failed(error),
        });
        judge.conclude(answer, &mut self.up, cx)
    }

    forward!(tend cancel poll_closed);
}
