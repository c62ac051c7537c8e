//! `conflate` and `conflate_with_seed`: merges what comes while nobody asks.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::stage::{CancelCause, Driven, Judge, Progress, Push, Stage, StageCx, Supervision, Up, guard};
use crate::{forward, linear_operator};

/// Adds [`conflate`](ConflateOps::conflate) and [`conflate_with_seed`](ConflateOps::conflate_with_seed).
pub trait ConflateOps: StreamOps {
    /// Merges elements that arrive while downstream is busy into one; never holds its upstream up.
    ///
    /// While there is demand elements pass as they are. A consumer that is slower than its producer so sees
    /// every element, as part of an aggregate.
    ///
    /// A panic in `merge` is supervised: `Resume` drops the element and keeps the aggregate, `Restart` drops both. A
    /// decider costs one clone of the aggregate per merged element.
    ///
    /// - **Emits** when downstream asks and an aggregate is held, or an element comes.
    /// - **Backpressures** never.
    /// - **Completes** when upstream has completed and the last aggregate was emitted. A failure drops it.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let sums = Source::from_iter(1..=100)
    ///     .conflate(|sum, x| sum + x)
    ///     .map_async(1, |sum| async move {
    ///         tokio::task::yield_now().await;
    ///         sum
    ///     })
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(sums.iter().sum::<i32>(), 5050);
    /// # Ok(())
    /// # }
    /// ```
    fn conflate<F>(self, merge: F) -> Self::Then<Conflate<Same, F>, KeepLeft>
    where
        Self::Item: Clone,
        F: FnMut(Self::Item, Self::Item) -> Self::Item + Send + 'static,
    {
        self.then(Conflate { seed: Same, merge })
    }

    /// As [`conflate`](ConflateOps::conflate), with an aggregate of another type: `seed` makes one of an element,
    /// `merge` adds an element to one.
    ///
    /// A panic in `seed` drops the element under `Resume` and `Restart`.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let batches = Source::from_iter(1..=100)
    ///     .conflate_with_seed(
    ///         |x| vec![x],
    ///         |mut all, x| {
    ///             all.push(x);
    ///             all
    ///         },
    ///     )
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(batches.concat(), (1..=100).collect::<Vec<_>>());
    /// # Ok(())
    /// # }
    /// ```
    fn conflate_with_seed<A, S, F>(self, seed: S, merge: F) -> Self::Then<Conflate<Seed<S>, F>, KeepLeft>
    where
        A: Clone + Send + 'static,
        S: FnMut(Self::Item) -> A + Send + 'static,
        F: FnMut(A, Self::Item) -> A + Send + 'static,
    {
        self.then(Conflate { seed: Seed(seed), merge })
    }
}

impl<S: StreamOps> ConflateOps for S {}

/// How an aggregate begins.
pub trait Seeds<In>: Send + 'static {
    /// The aggregate.
    type Aggregate: Clone + Send + 'static;

    /// One of an element.
    fn seed(&mut self, x: In) -> Self::Aggregate;
}

/// An element is an aggregate of itself.
#[derive(Clone, Copy, Debug)]
pub struct Same;

/// A closure makes one.
#[derive(Clone, Debug)]
pub struct Seed<S>(S);

impl<In: Clone + Send + 'static> Seeds<In> for Same {
    type Aggregate = In;

    #[inline]
    fn seed(&mut self, x: In) -> In {
        x
    }
}

impl<In, A: Clone + Send + 'static, S: FnMut(In) -> A + Send + 'static> Seeds<In> for Seed<S> {
    type Aggregate = A;

    #[inline]
    fn seed(&mut self, x: In) -> A {
        (self.0)(x)
    }
}

/// The operator of [`conflate`](ConflateOps::conflate).
#[derive(Clone, Debug)]
pub struct Conflate<S, F> {
    seed: S,
    merge: F,
}

/// The stage of [`conflate`](ConflateOps::conflate).
#[derive(Debug)]
pub struct ConflateStage<U, S, F, A> {
    up: Up<U>,
    seed: S,
    merge: F,
    held: Option<A>,
    supervision: Supervision,
}

linear_operator!(
    [In: Send + 'static, S: Seeds<In>, F: FnMut(S::Aggregate, In) -> S::Aggregate + Send + 'static]
    Conflate<S, F>, In => S::Aggregate, ConflateStage<S, F, S::Aggregate>,
    |op, up, m| ConflateStage {
        up: Up::new(up), seed: op.seed, merge: op.merge, held: None, supervision: m.supervision() });

impl<U, S, F> Stage for ConflateStage<U, S, F, S::Aggregate>
where
    U: Stage,
    S: Seeds<U::Out>,
    F: FnMut(S::Aggregate, U::Out) -> S::Aggregate + Send + 'static,
{
    type Out = S::Aggregate;

    fn drive<P: FnMut(S::Aggregate) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.up.settle(cx);
        if let Some(held) = self.held.take()
            && push(held).is_break()
        {
            return Ok(if self.up.live() { Progress::Stopped } else { Progress::Complete });
        }
        if !self.up.live() {
            return Ok(Progress::Complete);
        }
        let (seed, mut judge) = (&mut self.seed, Judge::new(&self.supervision));
        let answer = self.up.drive(cx, |x| match guard(STAGE, || seed.seed(x)) {
            Ok(one) => push(one),
            Err(error) => judge.element_failed(error),
        });
        judge.conclude(answer, &mut self.up, cx)
    }

    /// Merges what comes.
    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        if self.up.live() {
            let ConflateStage { up, seed, merge, held, supervision } = self;
            let (mut judge, keeps) = (Judge::new(supervision), supervision.decides());
            let answer = up.drive(cx, |x| {
                let backup = match guard(STAGE, || if keeps { held.clone() } else { None }) {
                    Ok(backup) => backup,
                    Err(error) => return judge.element_failed(error),
                };
                let added = match held.take() {
                    None => guard(STAGE, || seed.seed(x)),
                    Some(so_far) => guard(STAGE, || merge(so_far, x)),
                };
                match added {
                    Ok(aggregate) => {
                        *held = Some(aggregate);
                        Push::Continue(())
                    }
                    Err(error) => {
                        *held = backup;
                        judge.state_failed(error, || *held = None)
                    }
                }
            });
            if let Err(error) = judge.conclude(answer, up, cx) {
                self.held = None;
                return Err(error);
            }
        }
        let over = self.held.is_none() && !self.up.live();
        Ok(if over { Progress::Complete } else { Progress::Pending })
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.held = None;
        self.up.cancel(cause, cx);
    }

    forward!(poll_closed);
}

const STAGE: &str = "conflate";
