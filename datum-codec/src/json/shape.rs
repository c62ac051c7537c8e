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
//! On x86-64 with AVX2 most records are read at once, by what the module `index` adds to a shape, and the others by
//! its steps, in the module `walk`. What stands here is the way of all other machines. Each step has a short way,
//! inlined, that covers what records mostly hold and answers in registers; what it does not cover goes through the
//! functions that parse in full. All ways fit the same records.

use super::number::{short_f64, short_signed, short_unsigned};
use super::parse::{Form, ValueSpan};
use super::plan::Plan;
use super::skip::{skip_value, skip_white_space};
use super::text::short_string;
use super::value::read_value;
use super::vector::{Avx2, Index, Scratch};
use crate::projected::{Field, Kind, Slot, SlotValue, Unescaped};

/// What records of one form have in common.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The last one, or the last few, have no value behind them.
    steps: Box<[Step]>,
    /// The wanted fields that such a record does not have.
    absent: Box<[usize]>,
    /// For reading at once; made when the shape has come back.
    index: Option<Box<Index>>,
    /// How many records in a row did fit, but were not seen to by the index.
    doubts: u32,
}

/// Some bytes, then a value.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) literal: Literal,
    pub(super) gap: Gap,
    /// The first byte of the next literal. None can be part of a number, so a number that it follows is complete.
    #[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "read by the module `walk`"))]
    pub(super) behind: u8,
}

/// The value of a step: none, since the literal goes on; nobody's; or that of the wanted field with this index.
#[derive(Clone, Copy, Debug)]
pub(super) enum Gap {
    Nothing,
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

impl Gap {
    const fn field(self) -> Option<usize> {
        match self {
            Self::Nothing | Self::Unwanted => None,
            Self::Double(field)
            | Self::Unsigned(field)
            | Self::Signed(field)
            | Self::Text(field)
            | Self::Other(field) => Some(field),
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
        let mut steps = Vec::with_capacity(values.len() + 1);
        for value in values {
            let gap = Gap::of(value.field, plan.fields());
            push_literal(&mut steps, &input[from..value.start], gap, input[value.end]);
            from = value.end;
        }
        push_literal(&mut steps, &input[from..form.end], Gap::Nothing, 0);
        let found = |index| values.iter().any(|value| value.field == Some(index));
        Some(Self {
            steps: steps.into(),
            index: None,
            doubts: 0,
            absent: (0..plan.fields().len()).filter(|index| !found(*index)).collect(),
        })
    }

    /// Fills the slots if the record fits; leaves them in any state if it does not.
    #[inline]
    pub(super) fn read(
        &mut self,
        way: &mut Way,
        input: &[u8],
        fields: &[Field],
        slots: &mut [Slot],
        unescaped: &mut Unescaped,
    ) -> bool {
        if let (Some(index), Way::Vectors(avx2, scratch)) = (&self.index, &mut *way)
            && (self.doubts < PATIENCE || self.doubts.is_multiple_of(RETRY_EVERY))
        {
            let scratch = scratch.get_or_insert_default();
            if avx2.read_indexed(index, scratch, input, fields, slots, unescaped) {
                self.doubts = 0;
                self.clear_absent(slots);
                return true;
            }
            unescaped.clear();
        }
        self.walk(way, input, fields, slots, unescaped)
    }

    /// The same by steps.
    #[inline(never)]
    pub(super) fn walk(
        &mut self,
        way: &Way,
        input: &[u8],
        fields: &[Field],
        slots: &mut [Slot],
        unescaped: &mut Unescaped,
    ) -> bool {
        let end = match way {
            Way::Vectors(avx2, _) => avx2.read(&self.steps, input, fields, slots, unescaped),
            Way::Portable => read_portably(&self.steps, input, fields, slots, unescaped),
        };
        let Some(end) = end else { return false };
        if end != input.len() && skip_white_space(input, end) != input.len() {
            return false;
        }
        self.clear_absent(slots);
        self.doubts = self.doubts.wrapping_add(1);
        if self.doubts == PROVEN && self.index.is_none() && matches!(way, Way::Vectors(..)) {
            self.add_index(input, end, fields);
        }
        true
    }

    /// Makes the index, which is not worth its cost for a shape that does not come back, from a record that fits.
    #[cold]
    fn add_index(&mut self, input: &[u8], end: usize, fields: &[Field]) {
        let mut values = Vec::with_capacity(self.steps.len());
        let mut at = 0;
        for step in &self.steps {
            let start = at + step.literal.len();
            at = start;
            if !matches!(step.gap, Gap::Nothing) {
                let Some(end) = skip_long(input, start) else { return };
                values.push(ValueSpan { start, end, field: step.gap.field() });
                at = end;
            }
        }
        self.index = Index::of(&input[..end], fields, &values).map(Box::new);
    }

    /// Whether the last record that did fit was read by the index.
    #[cfg(test)]
    pub(super) const fn is_trusted(&self) -> bool {
        self.doubts == 0
    }

    #[inline]
    fn clear_absent(&self, slots: &mut [Slot]) {
        for index in &self.absent {
            slots[*index] = Slot::ABSENT;
        }
    }
}

/// By which way records are read.
#[derive(Debug)]
pub(super) enum Way {
    Portable,
    /// With vector instructions, and what reading at once works on, made when there is need.
    Vectors(Avx2, Option<Box<Scratch>>),
}

impl Way {
    /// By vectors if they are here.
    pub(super) const fn new(vectors: Option<Avx2>) -> Self {
        match vectors {
            Some(avx2) => Self::Vectors(avx2, None),
            None => Self::Portable,
        }
    }
}

impl Clone for Way {
    fn clone(&self) -> Self {
        match self {
            Self::Portable => Self::Portable,
            Self::Vectors(avx2, _) => Self::Vectors(*avx2, None),
        }
    }
}

/// Appends a literal, in as many steps as it needs, the last of which has the gap.
fn push_literal(steps: &mut Vec<Step>, bytes: &[u8], gap: Gap, behind: u8) {
    let mut rest = bytes;
    while let Some((first, more)) = rest.split_at_checked(MAX_LENGTH)
        && !more.is_empty()
    {
        steps.push(Step { literal: Literal::new(first), gap: Gap::Nothing, behind: 0 });
        rest = more;
    }
    steps.push(Step { literal: Literal::new(rest), gap, behind });
}

/// Where the record ends, if it fits.
fn read_portably(
    steps: &[Step],
    input: &[u8],
    fields: &[Field],
    slots: &mut [Slot],
    unescaped: &mut Unescaped,
) -> Option<usize> {
    let mut at = 0;
    for step in steps {
        if !step.literal.stands_at(input, at) {
            return None;
        }
        at = step.gap.read(input, at + step.literal.len(), fields, slots, unescaped)?;
    }
    Some(at)
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
            Self::Nothing => Some(at),
            Self::Unwanted => short_skip(input, at).or_else(|| skip_long(input, at)),
            Self::Double(index) => match short_f64(input, at) {
                Some((value, end)) => Some(fill(slots, index, at, SlotValue::Double(value), end)),
                None => read_long(input, at, index, fields, slots, unescaped),
            },
            Self::Unsigned(index) => match short_unsigned(input, at) {
                Some((value, end)) => Some(fill(slots, index, at, SlotValue::Unsigned(value), end)),
                None => read_long(input, at, index, fields, slots, unescaped),
            },
            Self::Signed(index) => match short_signed(input, at) {
                Some((value, end)) => Some(fill(slots, index, at, SlotValue::Signed(value), end)),
                None => read_long(input, at, index, fields, slots, unescaped),
            },
            Self::Text(index) => match short_string(input, at) {
                Some(end) => Some(fill(slots, index, at + 1, SlotValue::Text { end: end - 1 }, end)),
                None => read_long(input, at, index, fields, slots, unescaped),
            },
            Self::Other(index) => read_long(input, at, index, fields, slots, unescaped),
        }
    }
}

#[inline(always)]
pub(super) fn fill(slots: &mut [Slot], index: usize, start: usize, value: SlotValue, end: usize) -> usize {
    slots[index] = Slot { start, value };
    end
}

#[inline(never)]
pub(super) fn read_long(
    input: &[u8],
    at: usize,
    index: usize,
    fields: &[Field],
    slots: &mut [Slot],
    unescaped: &mut Unescaped,
) -> Option<usize> {
    read_value(input, at, &fields[index], &mut slots[index], unescaped).ok()
}

#[inline(never)]
pub(super) fn skip_long(input: &[u8], at: usize) -> Option<usize> {
    skip_value(input, at).ok()
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

/// Bytes between two values, [`MAX_LENGTH`] at most.
#[derive(Clone, Debug)]
pub(super) struct Literal {
    /// The bytes, then zeros.
    pub(super) bytes: [u8; 32],
    pub(super) length: u8,
}

impl Literal {
    fn new(bytes: &[u8]) -> Self {
        let mut padded = [0; 32];
        padded[..bytes.len()].copy_from_slice(bytes);
        Self { bytes: padded, length: u8::try_from(bytes.len()).expect("a literal is split before") }
    }

    fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// Of the usual length, the bytes are compared as three words that may overlap: the first eight bytes, the last
    /// eight, and eight in between.
    #[inline(always)]
    fn stands_at(&self, input: &[u8], at: usize) -> bool {
        let length = self.len();
        let Some(found) = input.get(at..at + length) else { return false };
        let expected = &self.bytes[..length];
        match (three_words(found), three_words(expected)) {
            (Some([a, b, c]), Some([x, y, z])) => (a ^ x) | (b ^ y) | (c ^ z) == 0,
            _ => found == expected,
        }
    }
}

#[inline(always)]
fn three_words(bytes: &[u8]) -> Option<[u64; 3]> {
    let first = bytes.first_chunk()?;
    let last = bytes.last_chunk()?;
    let middle = bytes.get((bytes.len() - 8).min(8)..)?.first_chunk()?;
    Some([u64::from_le_bytes(*first), u64::from_le_bytes(*middle), u64::from_le_bytes(*last)])
}

/// How many bytes the three words cover. Longer literals are compared piece by piece.
pub(super) const MAX_LENGTH: usize = 24;

/// The record of a shape, after the one that it was learnt from, that makes its index.
const PROVEN: u32 = 2;

/// After how many records in a row that were read by steps alone the index is not asked any more ...
const PATIENCE: u32 = 32;

/// ... except for one record in so many.
const RETRY_EVERY: u32 = 16;

/// A shape larger than this is not kept: eight of them must stay a small thing.
const MAX_LITERAL_BYTES: usize = 16 * 1024;
