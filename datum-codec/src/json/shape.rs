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

//!
//! This is the hot path. Each step has a short way, inlined here, that covers what records mostly hold and answers in
//! registers; what it does not cover goes through the functions that parse in full.

use super::number::{short_f64, short_signed, short_unsigned};
use super::parse::Form;
use super::plan::Plan;
use super::skip::{skip_value, skip_white_space};
use super::text::short_string;
use super::value::read_value;
use crate::projected::{Field, Kind, Slot, SlotValue, Unescaped};

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
    literal: Literal,
    gap: Gap,
}

/// The value of a step: nobody's, or that of the wanted field with this index.
#[derive(Clone, Copy, Debug)]
enum Gap {
    Unwanted,
    Double(usize),
    Unsigned(usize),
    Signed(usize),
    Text(usize),
    Other(usize),
}

impl Gap {
    const fn of(field: Option<usize>, fields: &[Field]) -> Self {
        let Some(index) = field else { return Self::Unwanted };
        match fields[index].kind.0 {
            Kind::Double => Self::Double(index),
            Kind::Unsigned => Self::Unsigned(index),
            Kind::Signed => Self::Signed(index),
            Kind::Text => Self::Text(index),
            Kind::Wide | Kind::Single | Kind::Bool => Self::Other(index),
        }
    }
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
            let literal = Literal::new(&input[from..value.start]);
            steps.push(Step { literal, gap: Gap::of(value.field, plan.fields()) });
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
        fields: &[Field],
        slots: &mut [Slot],
        unescaped: &mut Unescaped,
    ) -> bool {
        let mut at = 0;
        for step in &self.steps {
            if !step.literal.stands_at(input, at) {
                return false;
            }
            at += step.literal.length;
            match step.gap.read(input, at, fields, slots, unescaped) {
                Some(end) => at = end,
                None => return false,
            }
        }
        if !input.get(at..).is_some_and(|rest| rest.starts_with(&self.tail)) {
            return false;
        }
        for index in &self.absent {
            slots[*index] = Slot::ABSENT;
        }
        skip_white_space(input, at + self.tail.len()) == input.len()
    }
}

impl Gap {
    /// Steps over the value at `at`, having read it if it is wanted.
    #[inline(always)]
    fn read(
        self,
        input: &[u8],
        at: usize,
        fields: &[Field],
        slots: &mut [Slot],
        unescaped: &mut Unescaped,
    ) -> Option<usize> {
        match self {
            Self::Unwanted => short_skip(input, at).or_else(|| skip_value(input, at).ok()),
            Self::Double(index) => match short_f64(input, at) {
                Some((value, end)) => fill(slots, index, at, SlotValue::Double(value), end),
                None => read_long(input, at, index, fields, slots, unescaped),
            },
            Self::Unsigned(index) => match short_unsigned(input, at) {
                Some((value, end)) => fill(slots, index, at, SlotValue::Unsigned(value), end),
                None => read_long(input, at, index, fields, slots, unescaped),
            },
            Self::Signed(index) => match short_signed(input, at) {
                Some((value, end)) => fill(slots, index, at, SlotValue::Signed(value), end),
                None => read_long(input, at, index, fields, slots, unescaped),
            },
            Self::Text(index) => match short_string(input, at) {
                Some(end) => fill(slots, index, at + 1, SlotValue::Text { end: end - 1 }, end),
                None => read_long(input, at, index, fields, slots, unescaped),
            },
            Self::Other(index) => read_long(input, at, index, fields, slots, unescaped),
        }
    }
}

#[inline(always)]
fn fill(slots: &mut [Slot], index: usize, start: usize, value: SlotValue, end: usize) -> Option<usize> {
    slots[index] = Slot { start, value };
    Some(end)
}

#[inline(never)]
fn read_long(
    input: &[u8],
    at: usize,
    index: usize,
    fields: &[Field],
    slots: &mut [Slot],
    unescaped: &mut Unescaped,
) -> Option<usize> {
    read_value(input, at, &fields[index], &mut slots[index], unescaped).ok()
}

/// Steps over a string without escapes, or an integer that is not long.
#[inline(always)]
fn short_skip(input: &[u8], at: usize) -> Option<usize> {
    match input.get(at) {
        Some(b'"') => short_string(input, at),
        Some(b'0'..=b'9') => short_unsigned(input, at).map(|(_, end)| end),
        _ => None,
    }
}

/// The bytes between two values. Of the usual length, they are compared as three words that may overlap: the first
/// eight bytes, the last eight, and eight in between.
#[derive(Clone, Debug)]
struct Literal {
    length: usize,
    middle: usize,
    words: [u64; 3],
    /// All bytes, if there are fewer than the words need or more than they cover.
    bytes: Box<[u8]>,
}

impl Literal {
    fn new(bytes: &[u8]) -> Self {
        let length = bytes.len();
        let middle = length.saturating_sub(8).min(8);
        match three_words(bytes, middle) {
            Some(words) if length <= 24 => Self { length, middle, words, bytes: Box::default() },
            _ => Self { length, middle, words: [0; 3], bytes: bytes.into() },
        }
    }

    #[inline(always)]
    fn stands_at(&self, input: &[u8], at: usize) -> bool {
        let Some(found) = input.get(at..at + self.length) else { return false };
        if !self.bytes.is_empty() {
            return *found == *self.bytes;
        }
        match three_words(found, self.middle) {
            Some([first, middle, last]) => {
                (first ^ self.words[0]) | (middle ^ self.words[1]) | (last ^ self.words[2]) == 0
            }
            None => self.length == 0,
        }
    }
}

#[inline(always)]
fn three_words(bytes: &[u8], middle: usize) -> Option<[u64; 3]> {
    let first = bytes.first_chunk()?;
    let last = bytes.last_chunk()?;
    let middle = bytes.get(middle..)?.first_chunk()?;
    Some([u64::from_le_bytes(*first), u64::from_le_bytes(*middle), u64::from_le_bytes(*last)])
}

/// A shape larger than this is not kept: eight of them must stay a small thing.
const MAX_LITERAL_BYTES: usize = 16 * 1024;
