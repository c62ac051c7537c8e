//! How messages name a topic: older versions by name, newer ones by id (KIP-516).

use std::sync::Arc;

/// A topic's id; all zeros where there is none.
pub type TopicId = [u8; 16];

/// A topic's two names. Which one is sent depends on the version, so a request carries both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TopicRef {
    /// The name.
    pub name: Arc<str>,
    /// The id, all zeros if it is not known.
    pub id: TopicId,
}

impl TopicRef {
    /// By name and id.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, id: TopicId) -> Self {
        Self { name: name.into(), id }
    }

    /// Whether the topic can be named by id.
    #[must_use]
    pub fn has_id(&self) -> bool {
        self.id != TopicId::default()
    }
}

/// How an answer names a topic: by name up to some version, by id from then on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TopicKey {
    /// By name.
    Name(Arc<str>),
    /// By id.
    Id(TopicId),
}

impl TopicKey {
    /// Whether this names `topic`.
    #[must_use]
    pub fn is(&self, topic: &TopicRef) -> bool {
        match self {
            Self::Name(name) => *name == topic.name,
            Self::Id(id) => *id == topic.id,
        }
    }
}
