//! `Source::unfold`: elements computed from a state.

use super::nothing_to_close;
use crate::blueprint::{Blueprint, Built, Source, Unset};
use crate::materializer::Materializer;
use crate::stage::{Driven, Leaf, Progress, Push, Stage, StageCx, guard};

impl Source<Unset> {
    /// Computes the next state and element from the state, until `f` gives `None`.
    ///
    /// A panic in `f` fails the stream: the state went with it.
    ///
    /// - **Emits** on demand, what `f` gives.
    /// - **Completes** when `f` gives `None`.
    ///
    /// ```
    /// use datum_core::prelude::*;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), StreamError> {
    /// let powers = Source::unfold(1u32, |x| x.checked_mul(10).map(|next| (next, x)));
    /// assert_eq!(powers.take(3).run_with(Sink::collect())?.await?, [1, 10, 100]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unfold<S, T, F>(state: S, f: F) -> Source<Unfold<S, F>>
    where
        S: Send + 'static,
        T: Send + 'static,
        F: FnMut(S) -> Option<(S, T)> + Send + 'static,
    {
        Source::from_blueprint(Unfold { state, f })
    }
}

/// The blueprint of [`Source::unfold`].
#[derive(Clone, Debug)]
pub struct Unfold<S, F> {
    state: S,
    f: F,
}

/// The stage of [`Source::unfold`].
#[derive(Debug)]
pub struct UnfoldStage<S, F> {
    /// `None` once `f` has ended the stream.
    state: Option<S>,
    f: F,
}

impl<S, T, F> Blueprint for Unfold<S, F>
where
    S: Send + 'static,
    T: Send + 'static,
    F: FnMut(S) -> Option<(S, T)> + Send + 'static,
{
    type Out = T;
    type Mat = ();
    type Stage = Leaf<UnfoldStage<S, F>>;

    fn build(self, materializer: &Materializer) -> Built<Self::Stage, ()> {
        let stage = UnfoldStage { state: Some(self.state), f: self.f };
        Ok((Leaf::new(stage, materializer), ()))
    }
}

impl<S, T, F> Stage for UnfoldStage<S, F>
where
    S: Send + 'static,
    T: Send + 'static,
    F: FnMut(S) -> Option<(S, T)> + Send + 'static,
{
    type Out = T;

    fn drive<P: FnMut(T) -> Push>(&mut self, cx: &mut StageCx<'_, '_>, mut push: P) -> Driven {
        while let Some(state) = self.state.take() {
            if !cx.spend() {
                self.state = Some(state);
                return Ok(Progress::Pending);
            }
            let Some((next, element)) = guard("unfold", || (self.f)(state))? else {
                break;
            };
            self.state = Some(next);
            if push(element).is_break() {
                return Ok(Progress::Stopped);
            }
        }
        Ok(Progress::Complete)
    }

    fn tend(&mut self, _: &mut StageCx<'_, '_>) -> Driven {
        Ok(Progress::Pending)
    }

    nothing_to_close!();
}
