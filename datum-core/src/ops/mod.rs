//! Operators, one concept per file: its blueprint, its stage, its method on [`StreamOps`](crate::blueprint::StreamOps),
//! its docs with the four lines.
//!
//! # Adding one
//! Write one file: the blueprint struct with its closure or settings; `linear_operator!` or an
//! [`Operator`](crate::blueprint::Operator) impl; the [`Stage`](crate::stage::Stage); an extension trait with the
//! method. Name it in the list below, with its trait. The conformance rig of the test kit does the rest.
//!
//! # What holds for all of them, unless their docs say otherwise
//! They emit once per element, backpressure when downstream does, complete when their upstream completes, fail at once
//! when it fails (dropping what they hold), and cancel their upstream with the cause that they were cancelled with.

/// Declares the operators' files, re-exports what they hold, and puts their traits where the prelude finds them.
macro_rules! operators {
    ($($file:ident: $($ops:ident),+;)*) => {
        $(mod $file; pub use $file::*;)*

        /// The extension traits alone: what the prelude brings into scope.
        pub mod traits {
            $(pub use super::$file::{$($ops),+};)*
        }
    };
}

operators! {
    async_boundary: AsyncBoundaryOps;
    buffer: BufferOps;
    concat: ConcatOps;
    concat_lazy: ConcatLazyOps;
    conflate: ConflateOps;
    drop: DropOps, DropWhileOps;
    filter: FilterOps, FilterMapOps;
    fold: FoldOps, ReduceOps;
    grouped: GroupedOps;
    grouped_within: GroupedWithinOps;
    inspect: InspectOps;
    interleave: InterleaveOps;
    kill_switch: KillSwitchOps;
    map: MapOps, TryMapOps;
    map_async: MapAsyncOps;
    map_concat: MapConcatOps;
    merge: MergeOps;
    or_else: OrElseOps;
    recover: RecoverOps;
    scan: ScanOps;
    sliding: SlidingOps;
    take: TakeOps;
    take_while: TakeWhileOps;
    throttle: ThrottleOps;
    timeouts: TimeoutOps;
    watch_termination: WatchTerminationOps;
    zip: ZipOps;
}

mod fan_in;
pub(crate) mod slots;

pub use slots::{Fallible, Infallible, Settle};

/// Implements [`Operator`](crate::blueprint::Operator) for a blueprint without a materialised value:
/// `linear_operator!([generics] Blueprint, In => Out, StageType<..>, |blueprint, up, materializer| stage)`.
/// The stage type takes the upstream as its first parameter.
#[macro_export]
#[doc(hidden)]
macro_rules! linear_operator {
    ([$($generics:tt)*] $op:ty, $in:ty => $out:ty, $stage:ident<$($arg:ty),*>, |$s:ident, $up:ident, $m:ident| $body:expr) => {
        impl<$($generics)*> $crate::blueprint::Operator<$in> for $op {
            type Out = $out;
            type Mat = ();
            type Stage<U: $crate::stage::Stage<Out = $in>> = $stage<U, $($arg),*>;

            fn attach<U: $crate::stage::Stage<Out = $in>>(
                self,
                $up: U,
                $m: &$crate::materializer::Materializer,
            ) -> $crate::blueprint::Built<Self::Stage<U>, ()> {
                let $s = self;
                Ok(($body, ()))
            }
        }
    };
}

/// The `tend`, `cancel` and `poll_closed` of a stage with one upstream `self.up` and nothing of its own to do in them.
#[macro_export]
#[doc(hidden)]
macro_rules! forward {
    (tend $($rest:ident)*) => {
        fn tend(&mut self, cx: &mut $crate::stage::StageCx<'_, '_>) -> $crate::stage::Driven {
            self.up.tend(cx)
        }
        $crate::forward!($($rest)*);
    };
    (cancel $($rest:ident)*) => {
        fn cancel(&mut self, cause: $crate::stage::CancelCause, cx: &mut $crate::stage::StageCx<'_, '_>) {
            self.up.cancel(cause, cx);
        }
        $crate::forward!($($rest)*);
    };
    (poll_closed $($rest:ident)*) => {
        fn poll_closed(&mut self, cx: &mut $crate::stage::StageCx<'_, '_>) -> ::std::task::Poll<()> {
            self.up.poll_closed(cx)
        }
        $crate::forward!($($rest)*);
    };
    () => {};
}
