//! `map_concat`: one element in, the items of an iterator out.

use crate::blueprint::{KeepLeft, StreamOps};
use crate::stage::{CancelCause, Driven, Judge, Progress, Push, Stage, StageCx, Supervision, Up, guard};
use crate::{forward, linear_operator};

/// Adds [`map_concat`](MapConcatOps::map_concat).
pub trait MapConcatOps: StreamOps {
    /// Turns each element into the items of an iterator, in order. The iterator may be infinite: its items are made
    /// one per demanded item, and the stage yields to its neighbours after a budget of them.
    ///
    /// A panic in `f` or in the iterator is supervised: `Resume` and `Restart` drop the element, for a panicking
    /// iterator with whatever it had not given yet. A failure of the upstream drops the items not given yet.
    ///
    /// - **Emits** when an iterator has an item.
    /// - **Backpressures** when downstream does or the last iterator has items left.
    /// - **Completes** when upstream has completed and all items were emitted; together with the last one when the
    ///   iterator's size hint tells that it is the last.
    /// - **Cancels** when downstream cancels.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let words = Source::from_iter(["a b", "c"])
    ///     .map_concat(|line| line.split(' '))
    ///     .run_with(Sink::collect())?
    ///     .await?;
    /// assert_eq!(words, ["a", "b", "c"]);
    /// # Ok(())
    /// # }
    /// ```
    fn map_concat<I, F>(self, f: F) -> Self::Then<MapConcat<F>, KeepLeft>
    where
        I: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
        F: FnMut(Self::Item) -> I + Send + 'static,
    {
        self.then(MapConcat(f))
    }
}

impl<S: StreamOps> MapConcatOps for S {}

/// The operator of [`map_concat`](MapConcatOps::map_concat).
#[derive(Clone, Debug)]
pub struct MapConcat<F>(F);

/// The stage of [`map_concat`](MapConcatOps::map_concat).
#[derive(Debug)]
pub struct MapConcatStage<U, F, I> {
    up: Up<U>,
    f: F,
    /// What is left of the last element's items.
    rest: Option<I>,
    supervision: Supervision,
}

linear_operator!(
    [In: Send + 'static, I: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static> + 'static,
     F: FnMut(In) -> I + Send + 'static]
    MapConcat<F>, In => I::Item, MapConcatStage<F, I::IntoIter>,
    |op, up, m| MapConcatStage { up: Up::new(up), f: op.0, rest: None, supervision: m.supervision() });

/// Why pouring an iterator out has stopped.
enum Poured {
    /// Nothing is left of it.
    Dry,
    /// `push` broke.
    Broke,
    /// The turns are used up.
    Tired,
    /// Its failure stops the stream.
    Failed,
}

/// Pushes the items of `rest` until one of the reasons to stop; counts `turns` down by one per item.
#[inline]
fn pour<I: Iterator>(
    rest: &mut Option<I>,
    turns: &mut u32,
    judge: &mut Judge<'_>,
    push: &mut impl FnMut(I::Item) -> Push,
) -> Poured {
    while let Some(iter) = rest {
        if *turns == 0 {
            return Poured::Tired;
        }
        *turns -= 1;
        match guard("map_concat", || (iter.next(), iter.size_hint().1 == Some(0))) {
            Ok((Some(item), last)) => {
                let flow = push(item);
                if last {
                    *rest = None;
                }
                if flow.is_break() {
                    return Poured::Broke;
                }
            }
            Ok((None, _)) => *rest = None,
            Err(error) => {
                *rest = None;
                if judge.element_failed(error).is_break() {
                    return Poured::Failed;
                }
            }
        }
    }
    Poured::Dry
}

impl<U, I, F> Stage for MapConcatStage<U, F, I::IntoIter>
where
    U: Stage,
    I: IntoIterator<Item: Send + 'static, IntoIter: Send + 'static>,
    F: FnMut(U::Out) -> I + Send + 'static,
{
    type Out = I::Item;

    #[inline]
    fn drive<P: FnMut(I::Item) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        self.up.settle(cx);
        loop {
            let MapConcatStage { up, f, rest, supervision } = self;
            let mut judge = Judge::new(supervision);
            let mut turns = cx.budget();
            let mut poured = pour(rest, &mut turns, &mut judge, &mut push);
            cx.set_budget(turns);
            let mut answer = Ok(if up.live() { Progress::Stopped } else { Progress::Complete });
            if let Poured::Dry = poured {
                if !up.live() {
                    return answer;
                }
                // The leaf pays for an element, and so for its first item; the other items are paid for here.
                let mut turns = cx.budget();
                answer = up.drive(cx, |x| {
                    match guard("map_concat", || f(x).into_iter()) {
                        Ok(iter) => *rest = Some(iter),
                        Err(error) => return judge.element_failed(error),
                    }
                    turns = turns.saturating_add(1);
                    poured = pour(rest, &mut turns, &mut judge, &mut push);
                    if let Poured::Dry = poured { Push::Continue(()) } else { Push::Break(()) }
                });
                cx.set_budget(cx.budget().min(turns));
            }
            if let Some(error) = judge.stopped_by() {
                self.rest = None;
                return self.up.fail(error, cx);
            }
            match (answer, poured) {
                (Err(error), _) => {
                    self.rest = None;
                    return Err(error);
                }
                (Ok(_), Poured::Broke) => {
                    let over = self.rest.is_none() && !self.up.live();
                    return Ok(if over { Progress::Complete } else { Progress::Stopped });
                }
                (Ok(_), Poured::Tired) => {
                    cx.wake();
                    return self.tend(cx);
                }
                (Ok(Progress::Pending), _) => return Ok(Progress::Pending),
                // The upstream has ended, or user code failed and was resumed: look again.
                (Ok(_), _) => {}
            }
        }
    }

    fn tend(&mut self, cx: &mut StageCx<'_, '_>) -> Driven {
        self.up.settle(cx);
        if self.up.live()
            && let Err(error) = self.up.tend(cx)
        {
            self.rest = None;
            return Err(error);
        }
        Ok(if self.rest.is_none() && !self.up.live() { Progress::Complete } else { Progress::Pending })
    }

    fn cancel(&mut self, cause: CancelCause, cx: &mut StageCx<'_, '_>) {
        self.rest = None;
        self.up.cancel(cause, cx);
    }

    forward!(poll_closed);
}
