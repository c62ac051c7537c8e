//! `map_value`, `filter_value`, `filter_map_value`: what becomes of a record's value, with its acknowledgement kept in order.
//!
//! # What is left out
//! The offset that is committed never passes a record that is not acknowledged, and a record that is merely dropped is not: a plain `filter`
//! over committable records holds the committed offset back until the partition is given up. Dropping cannot count as done, since a
//! stream that fails or is cancelled drops what was under way, too. So the decision to leave a record out is what acknowledges
//! it: these operators do at the moment of that decision, and so does `decode` where its policy leaves a record out.
//!
//! A record whose function panics is not acknowledged, also where supervision goes on without it.

use datum_core::{
    blueprint::{KeepLeft, StreamOps},
    forward, linear_operator,
    stage::{Driven, Judge, Push, Stage, StageCx, Supervision, Up, guard},
};

use super::Committable;

/// Adds operators on the values of committable records.
///
/// ```no_run
/// use datum_core::prelude::*;
/// use datum_kafka::{ConsumerSettings, ProducerSettings, producer::ProducerRecord};
/// use datum_kafka::stages::{CommittableOps, KafkaSinks, KafkaSources};
/// # async fn run() -> Result<(), StreamError> {
/// Source::kafka(ConsumerSettings::new("localhost:9092").group("long").topic("orders"))
///     .filter_value(|value| value.len() > 1_000)
///     .map_value(|value| ProducerRecord::new("long-orders", value))
///     .run_with(Sink::kafka(ProducerSettings::new("localhost:9092")))?
///     .await?;
/// # Ok(())
/// # }
/// ```
pub trait CommittableOps<T: Send + 'static>: StreamOps<Item = Committable<T>> {
    /// Turns each value into another. Emits, backpressures, completes and cancels as
    /// [`map`](datum_core::ops::MapOps::map) does.
    fn map_value<V, F>(
        self,
        mut f: F,
    ) -> Self::Then<FilterMapValue<impl FnMut(T) -> Option<V> + Send + 'static>, KeepLeft>
    where
        V: Send + 'static,
        F: FnMut(T) -> V + Send + 'static,
    {
        self.then(FilterMapValue { name: "map_value", f: move |value| Some(f(value)) })
    }

    /// Lets pass the records for whose value `keep` is true; the others are acknowledged.
    ///
    /// A panic in `keep` is supervised: `Resume` and `Restart` drop the record, unacknowledged.
    ///
    /// - **Emits** when `keep` is true.
    /// - **Backpressures** when downstream does and a record passes.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    fn filter_value<F>(
        self,
        mut keep: F,
    ) -> Self::Then<FilterMapValue<impl FnMut(T) -> Option<T> + Send + 'static>, KeepLeft>
    where
        F: FnMut(&T) -> bool + Send + 'static,
    {
        self.then(FilterMapValue { name: "filter_value", f: move |value| keep(&value).then_some(value) })
    }

    /// Turns each value into another, or leaves the record out and acknowledges it.
    ///
    /// A panic in `f` is supervised: `Resume` and `Restart` drop the record, unacknowledged.
    ///
    /// - **Emits** when `f` has returned `Some`.
    /// - **Backpressures** when downstream does and a record passes.
    /// - **Completes** when upstream completes.
    /// - **Cancels** when downstream cancels.
    fn filter_map_value<V, F>(self, f: F) -> Self::Then<FilterMapValue<F>, KeepLeft>
    where
        V: Send + 'static,
        F: FnMut(T) -> Option<V> + Send + 'static,
    {
        self.then(FilterMapValue { name: "filter_map_value", f })
    }
}

impl<T: Send + 'static, S: StreamOps<Item = Committable<T>>> CommittableOps<T> for S {}

/// The operator of [`filter_map_value`](CommittableOps::filter_map_value) and its like.
#[derive(Clone, Debug)]
pub struct FilterMapValue<F> {
    name: &'static str,
    f: F,
}

/// The stage of [`filter_map_value`](CommittableOps::filter_map_value).
#[derive(Debug)]
pub struct FilterMapValueStage<U, F> {
    up: Up<U>,
    op: FilterMapValue<F>,
    supervision: Supervision,
}

linear_operator!([T: Send + 'static, V: Send + 'static, F: FnMut(T) -> Option<V> + Send + 'static] FilterMapValue<F>,
    Committable<T> => Committable<V>, FilterMapValueStage<F>,
    |op, up, m| FilterMapValueStage { up: Up::new(up), op, supervision: m.supervision() });

impl<T, V, F, U> Stage for FilterMapValueStage<U, F>
where
    T: Send + 'static,
    V: Send + 'static,
    F: FnMut(T) -> Option<V> + Send + 'static,
    U: Stage<Out = Committable<T>>,
{
    type Out = Committable<V>;

    #[inline]
    fn drive<P: FnMut(Committable<V>) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        let FilterMapValue { name, f } = &mut self.op;
        let mut judge = Judge::new(&self.supervision);
        let answer = self.up.drive(cx, |record| match guard(name, || record.filter_map(&mut *f)) {
            Ok(Some(record)) => push(record),
            Ok(None) => Push::Continue(()),
            Err(error) => judge.element_failed(error),
        });
        judge.conclude(answer, &mut self.up, cx)
    }

    forward!(tend cancel poll_closed);
}
