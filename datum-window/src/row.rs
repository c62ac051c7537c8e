//! The named outputs of one pane.

use std::borrow::Cow;
use std::sync::Arc;

use crate::Value;

/// The name of an output.
pub type Name = Cow<'static, str>;

/// Values with their names, in the order in which the aggregates were declared. The names are shared by all rows of
/// one [`Aggregates`](crate::Aggregates).
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    names: Arc<[Name]>,
    values: Vec<Value>,
}

impl Row {
    /// A row from its names and values.
    ///
    /// # Panics
    /// When there are not as many values as names.
    #[must_use]
    pub fn new(names: Arc<[Name]>, values: Vec<Value>) -> Self {
        assert_eq!(names.len(), values.len(), "a row has one value for each name");
        Self { names, values }
    }

    /// The names.
    #[must_use]
    pub fn names(&self) -> &[Name] {
        &self.names
    }

    /// The values.
    #[must_use]
    pub fn values(&self) -> &[Value] {
        &self.values
    }

    /// The value called `name`, if there is one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.names.iter().position(|n| n == name).map(|i| &self.values[i])
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.names.iter().map(AsRef::as_ref).zip(&self.values)
    }
}
