//! A boxed source that can be cloned and shared.

use super::{Blueprint, BoxStage, Built, Source};
use crate::materializer::Materializer;
use std::fmt;
use std::sync::Arc;

/// A boxed [`Source`] that is `Clone` and `Sync`.
pub type SharedSource<T, M = ()> = Source<SharedBlueprint<T, M>>;

type Build<T, M> = dyn Fn(&Materializer) -> Built<BoxStage<T>, M> + Send + Sync;

/// The blueprint inside a [`SharedSource`]. Each build clones the blueprint it was made from: runs share no state.
pub struct SharedBlueprint<T, M>(Arc<Build<T, M>>);

impl<T: Send + 'static, M: 'static> SharedBlueprint<T, M> {
    /// Shares a blueprint.
    pub fn new<B: Blueprint<Out = T, Mat = M> + Clone + Sync>(blueprint: B) -> Self {
        SharedBlueprint(Arc::new(move |materializer| {
            let (stage, mat) = blueprint.clone().build(materializer)?;
            Ok((BoxStage::new(stage), mat))
        }))
    }
}

impl<T: Send + 'static, M: 'static> Blueprint for SharedBlueprint<T, M> {
    type Out = T;
    type Mat = M;
    type Stage = BoxStage<T>;

    fn build(self, materializer: &Materializer) -> Built<BoxStage<T>, M> {
        (self.0)(materializer)
    }
}

impl<T, M> Clone for SharedBlueprint<T, M> {
    fn clone(&self) -> Self {
        SharedBlueprint(self.0.clone())
    }
}

impl<T, M> fmt::Debug for SharedBlueprint<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedBlueprint")
    }
}
