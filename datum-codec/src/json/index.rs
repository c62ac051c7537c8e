//! A shape, prepared for reading a whole record at once.
//!
//! Where the module `vector` walks from value to value, each of which it must have measured before it knows where the
//! next begins, an index tells in advance where all values lie. It rests on what is behind every key: a quote and a
//! colon. Within a string these two can stand together only as its first byte and the quote before it. So the places
//! of all `":` in a record, found in one pass, tell where each literal of the shape must begin:
//!
//! ```text
//! {"id":7,"host":"a1","load":0.25}
//!     ^        ^           ^             the places
//! ------ ---------   --------    -       the literals, of known length before and behind their place
//!       7         a1         0.25        the values: what is left
//! ```
//!
//! That is a guess, which must be proven. A record is of the shape if
//!
//! 1. every literal stands where it is guessed, the first at the record's start and the last at its end, and none
//!    begins before the one in front of it has ended: then the record is literals and values in turn;
//! 2. it has as many quotes as the literals together, and no backslash or control character: then each value that
//!    lies between quotes of its literals is a string, complete and without escapes;
//! 3. each other value is one from its first byte to its last.
//!
//! No step needs the outcome of another, so the processor works on many at once. What fails here is read by steps,
//! which decides.

use super::parse::ValueSpan;
use crate::projected::{Field, Kind};

/// What is compared and read, in lists by kind, so that each is gone through without asking.
#[derive(Clone, Debug)]
pub(super) struct Index {
    /// How many `":` a record has.
    pub(super) places: usize,
    /// Which of them belongs to each literal but the last; none if that is each in turn.
    pub(super) ordinals: Option<Box<[u16]>>,
    /// How many quotes the literals hold.
    pub(super) quotes: u64,
    /// The literals, the last one's place being the record's end, in groups of lanes.
    pub(super) groups: Box<[Group]>,
    /// The first bytes of each literal.
    pub(super) patterns: Box<[Pattern]>,
    /// What literals have beyond that.
    pub(super) pieces: Box<[Piece]>,
    pub(super) doubles: Box<[Wanted]>,
    pub(super) unsigned: Box<[Wanted]>,
    pub(super) signed: Box<[Wanted]>,
    pub(super) texts: Box<[Wanted]>,
    pub(super) others: Box<[Wanted]>,
    /// The literals before numbers that nobody wants.
    pub(super) numbers: Box<[u16]>,
    /// The same for `true`, `false` and `null`.
    pub(super) words: Box<[u16]>,
}

/// Sixteen literals.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// How many bytes each has before its place.
    pub(super) before: [u16; LANES],
    /// How many it has from its place on.
    pub(super) after: [u16; LANES],
    /// How many the literal behind it has before its place.
    pub(super) before_next: [u16; LANES],
    /// All bits of a lane, if another literal follows.
    pub(super) followed: [u16; LANES],
}

/// Bytes to be found.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// Zeros where any byte will do.
    pub(super) bytes: [u8; PATTERN],
    /// All bits of the others.
    pub(super) care: [u8; PATTERN],
}

/// A part of a long literal.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) literal: u16,
    /// How far behind the literal's first byte the part begins.
    pub(super) offset: u16,
    pub(super) pattern: Pattern,
}

/// A value to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// The literal before it.
    pub(super) literal: u16,
    pub(super) field: u16,
}

impl Index {
    /// The index for records like this one, with these values; none if they must be walked through: those with nested
    /// values that nobody wants, white space other than blanks, or escapes in keys.
    pub(super) fn of(record: &[u8], fields: &[Field], values: &[ValueSpan]) -> Option<Self> {
        let mut draft = Draft::default();
        let mut from = 0;
        for value in values {
            let start = draft.value(record, value, fields)?;
            draft.literal(&record[from..start], false)?;
            from = value.end - (start - value.start);
        }
        draft.literal(&record[from..], true)?;
        Some(draft.finish())
    }
}

#[derive(Default)]
struct Draft {
    places: usize,
    ordinals: Vec<u16>,
    quotes: u64,
    lengths: Vec<(u16, u16)>,
    patterns: Vec<Pattern>,
    pieces: Vec<Piece>,
    doubles: Vec<Wanted>,
    unsigned: Vec<Wanted>,
    signed: Vec<Wanted>,
    texts: Vec<Wanted>,
    others: Vec<Wanted>,
    numbers: Vec<u16>,
    words: Vec<u16>,
}

impl Draft {
    /// Takes a value, of which the literal before it has not been taken yet; says where it begins, without its quote.
    fn value(&mut self, record: &[u8], value: &ValueSpan, fields: &[Field]) -> Option<usize> {
        let literal = u16::try_from(self.lengths.len()).ok()?;
        let first = record[value.start];
        let Some(field) = value.field else {
            match first {
                b'"' => return Some(value.start + 1),
                b'{' | b'[' => return None,
                b'-' | b'0'..=b'9' => self.numbers.push(literal),
                _ => self.words.push(literal),
            }
            return Some(value.start);
        };
        let wanted = Wanted { literal, field: u16::try_from(field).ok()? };
        let number = first == b'-' || first.is_ascii_digit();
        match (fields[field].kind.0, first) {
            (Kind::Double, _) if number => self.doubles.push(wanted),
            (Kind::Unsigned, _) if number => self.unsigned.push(wanted),
            (Kind::Signed, _) if number => self.signed.push(wanted),
            (Kind::Text, b'"') => {
                self.texts.push(wanted);
                return Some(value.start + 1);
            }
            _ => self.others.push(wanted),
        }
        Some(value.start)
    }

    fn literal(&mut self, bytes: &[u8], last: bool) -> Option<()> {
        if bytes.iter().any(|byte| matches!(byte, b'\\' | ..0x20)) {
            return None;
        }
        let place = bytes.windows(2).rposition(|pair| pair == b"\":");
        let before = match place {
            Some(_) if last => return None,
            Some(place) => place,
            None if last => bytes.len(),
            None => return None,
        };
        self.places += bytes.windows(2).filter(|pair| pair == b"\":").count();
        self.quotes += bytes.iter().filter(|byte| **byte == b'"').count() as u64;
        if !last {
            self.ordinals.push(u16::try_from(self.places - 1).ok()?);
        }
        let literal = u16::try_from(self.lengths.len()).ok()?;
        self.lengths.push((u16::try_from(before).ok()?, u16::try_from(bytes.len()).ok()?));
        self.patterns.push(Pattern::new(&bytes[..bytes.len().min(PATTERN)]));
        for (i, piece) in bytes.chunks(PATTERN).enumerate().skip(1) {
            let offset = u16::try_from(i * PATTERN).ok()?;
            self.pieces.push(Piece { literal, offset, pattern: Pattern::new(piece) });
        }
        (self.lengths.len() <= MOST && self.places <= MOST).then_some(())
    }

    fn finish(self) -> Index {
        let count = self.lengths.len();
        let mut groups = vec![Group::default(); count.div_ceil(LANES)];
        for (i, (before, length)) in self.lengths.iter().enumerate() {
            let (group, lane) = (&mut groups[i / LANES], i % LANES);
            group.before[lane] = *before;
            group.after[lane] = length - before;
            if let Some((before, _)) = self.lengths.get(i + 1) {
                group.before_next[lane] = *before;
                group.followed[lane] = u16::MAX;
            }
        }
        let in_turn = self.ordinals.iter().enumerate().all(|(i, ordinal)| i == usize::from(*ordinal));
        Index {
            places: self.places,
            ordinals: (!in_turn).then(|| self.ordinals.into()),
            quotes: self.quotes,
            groups: groups.into(),
            patterns: self.patterns.into(),
            pieces: self.pieces.into(),
            doubles: self.doubles.into(),
            unsigned: self.unsigned.into(),
            signed: self.signed.into(),
            texts: self.texts.into(),
            others: self.others.into(),
            numbers: self.numbers.into(),
            words: self.words.into(),
        }
    }
}

impl Pattern {
    fn new(bytes: &[u8]) -> Self {
        let mut pattern = Self { bytes: [0; PATTERN], care: [0; PATTERN] };
        pattern.bytes[..bytes.len()].copy_from_slice(bytes);
        pattern.care[..bytes.len()].fill(0xFF);
        pattern
    }
}

/// How many literals a group has.
pub(super) const LANES: usize = 16;

/// How many bytes are compared at once.
pub(super) const PATTERN: usize = 32;

/// How many literals, and how many `":`, an index may have.
pub(super) const MOST: usize = 512;
