//! The shape of a record: the bytes between its values.
//!
//! ```text
//! {"id":7,"host":"a1","load":0.25}
//! ------ --------    --------    -     compared byte by byte
//!       7         "a1"       0.25     read if wanted, else stepped over and checked
//! ```
//!
//! A record fits a shape if those bytes are the same and a well-formed value stands in each gap. Since JSON is read
//! from left to right without looking back, such a record parses exactly as the one the shape was taken from: the
//! same keys, at the same depth, in the same order. So what holds for the one (known keys once, required ones
//! present, keys in UTF-8) holds for the other.

use super::parse::Form;
use super::plan::Plan;
use super::skip::{skip_value, skip_white_space};
use super::value::read_value;
use crate::projected::{Slot, Unescaped};

/// What records of one form have in common.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    steps: Box<[Step]>,
    tail: Box<[u8]>,
    /// The wanted fields that such a record does not have.
    absent: Box<[usize]>,
}

/// Some bytes, then a value.
#[derive(Clone, Debug)]
struct Step {
    literal: Box<[u8]>,
    /// The index of the wanted field the value belongs to.
    field: Option<usize>,
}

impl Shape {
    /// The shape of a record that has been parsed in full; none if it is not worth keeping.
    pub(super) fn of(input: &[u8], plan: &Plan, form: &Form) -> Option<Self> {
        let values = &form.values;
        let value_bytes: usize = values.iter().map(|value| value.end - value.start).sum();
        if form.unusual || form.end - value_bytes > MAX_LITERAL_BYTES {
            return None;
        }
        let mut from = 0;
        let mut steps = Vec::with_capacity(values.len());
        for value in values {
            steps.push(Step { literal: input[from..value.start].into(), field: value.field });
            from = value.end;
        }
        let found = |index| values.iter().any(|value| value.field == Some(index));
        Some(Self {
            steps: steps.into(),
            tail: input[from..form.end].into(),
            absent: (0..plan.fields().len()).filter(|index| !found(*index)).collect(),
        })
    }

    /// Fills the slots if the record fits; leaves them in any state if it does not.
    pub(super) fn read(
        &self,
        input: &[u8],
        plan: &Plan,
        slots: &mut [Slot],
        unescaped: &mut Unescaped,
    ) -> bool {
        let fields = plan.fields();
        let mut at = 0;
        for step in &self.steps {
            if !starts_with(input, at, &step.literal) {
                return false;
            }
            at += step.literal.len();
            let end = match step.field {
                Some(index) => read_value(input, at, &fields[index], &mut slots[index], unescaped),
                None => skip_value(input, at),
            };
            match end {
                Ok(end) => at = end,
                Err(_) => return false,
            }
        }
        if !starts_with(input, at, &self.tail) {
            return false;
        }
        for index in &self.absent {
            slots[*index] = Slot::ABSENT;
        }
        skip_white_space(input, at + self.tail.len()) == input.len()
    }
}

#[inline]
fn starts_with(input: &[u8], at: usize, literal: &[u8]) -> bool {
    input.get(at..at + literal.len()) == Some(literal)
}

/// A shape larger than this is not kept: eight of them must stay a small thing.
const MAX_LITERAL_BYTES: usize = 16 * 1024;
