//! Stepping over values that nobody wants, checking them on the way.

use super::fault::Fault;
use super::number::scan_number;
use super::text::scan_string;
use crate::error::DecodeReason;

/// Steps over the value at `at`, which is not white space; says where it ends.
#[inline]
pub(super) fn skip_value(input: &[u8], at: usize) -> Result<usize, Fault> {
    match input.get(at) {
        Some(b'"') => Ok(scan_string(input, at + 1)?.end),
        Some(b'-' | b'0'..=b'9') => Ok(scan_number(input, at)?.end),
        _ => skip_other(input, at),
    }
}

fn skip_other(input: &[u8], at: usize) -> Result<usize, Fault> {
    match input.get(at) {
        Some(b't') => expect_word(input, at, b"true"),
        Some(b'f') => expect_word(input, at, b"false"),
        Some(b'n') => expect_word(input, at, b"null"),
        Some(b'{' | b'[') => skip_nested(input, at),
        Some(_) => Err(Fault::new(DecodeReason::ExpectedValue, at)),
        None => Err(Fault::end(input)),
    }
}

/// Steps over `word`, whose first letter is known to stand at `at`.
pub(super) fn expect_word(input: &[u8], at: usize, word: &'static [u8]) -> Result<usize, Fault> {
    for (i, letter) in word.iter().enumerate() {
        match input.get(at + i) {
            Some(found) if found == letter => {}
            Some(_) => return Err(Fault::new(DecodeReason::ExpectedValue, at + i)),
            None => return Err(Fault::end(input)),
        }
    }
    Ok(at + word.len())
}

/// Steps over an object or array, however deep, without recursion: a record cannot exhaust the stack, and depth costs
/// a bit per level.
fn skip_nested(input: &[u8], mut at: usize) -> Result<usize, Fault> {
    let mut open = Brackets::default();
    loop {
        // A value is expected at `at`.
        match input.get(at) {
            Some(bracket @ (b'{' | b'[')) => {
                let object = *bracket == b'{';
                let inside = skip_white_space(input, at + 1);
                if input.get(inside) == Some(&closing(object)) {
                    at = inside + 1;
                } else {
                    open.push(object);
                    at = if object { skip_key(input, inside)? } else { inside };
                    continue;
                }
            }
            _ => at = skip_value(input, at)?,
        }
        // A value has ended at `at`: close what ends here, or go on to the next value.
        loop {
            let Some(object) = open.top() else { return Ok(at) };
            match end_of_element(input, at, object)? {
                Next::Element(next) => {
                    at = if object { skip_key(input, next)? } else { next };
                    break;
                }
                Next::Closed(next) => {
                    at = next;
                    open.pop();
                }
            }
        }
    }
}

/// Steps over a key and its colon, up to the value.
fn skip_key(input: &[u8], at: usize) -> Result<usize, Fault> {
    match input.get(at) {
        Some(b'"') => skip_colon(input, scan_string(input, at + 1)?.end),
        Some(_) => Err(Fault::new(DecodeReason::ExpectedKey, at)),
        None => Err(Fault::end(input)),
    }
}

/// Steps over the colon behind a key and the white space around it.
pub(super) fn skip_colon(input: &[u8], at: usize) -> Result<usize, Fault> {
    let colon = skip_white_space(input, at);
    match input.get(colon) {
        Some(b':') => Ok(skip_white_space(input, colon + 1)),
        Some(_) => Err(Fault::new(DecodeReason::ExpectedColon, colon)),
        None => Err(Fault::end(input)),
    }
}

/// What follows an element of an object or array.
pub(super) enum Next {
    /// Another element, or its key, begins here.
    Element(usize),
    /// The object or array has ended here.
    Closed(usize),
}

/// Steps over the comma, or the closing bracket, behind an element that ends at `at`.
pub(super) fn end_of_element(input: &[u8], at: usize, object: bool) -> Result<Next, Fault> {
    let at = skip_white_space(input, at);
    match input.get(at) {
        Some(b',') => {
            let next = skip_white_space(input, at + 1);
            if input.get(next) == Some(&closing(object)) {
                return Err(Fault::new(DecodeReason::TrailingComma, at));
            }
            Ok(Next::Element(next))
        }
        Some(bracket) if *bracket == closing(object) => Ok(Next::Closed(at + 1)),
        Some(_) => Err(Fault::new(DecodeReason::ExpectedCommaOrEnd, at)),
        None => Err(Fault::end(input)),
    }
}

pub(super) const fn closing(object: bool) -> u8 {
    if object { b'}' } else { b']' }
}

/// JSON's white space: space, tab, line feed, carriage return.
pub(super) const fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\t' | b'\r')
}

/// Steps over white space.
#[inline]
pub(super) fn skip_white_space(input: &[u8], mut at: usize) -> usize {
    while input.get(at).is_some_and(|byte| is_white_space(*byte)) {
        at += 1;
    }
    at
}

/// The open brackets, a bit each: set for an object. The innermost 64 at most lie in `bits`, the others in `outer`.
#[derive(Debug, Default)]
struct Brackets {
    bits: u64,
    depth: usize,
    outer: Vec<u64>,
}

impl Brackets {
    fn push(&mut self, object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.bits);
        }
        self.bits = (self.bits << 1) | u64::from(object);
        self.depth += 1;
    }

    fn top(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.bits & 1 == 1)
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.bits >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.bits = self.outer.pop().expect("64 brackets were put there when the next was opened");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Brackets, skip_value};

    #[test]
    fn depth_is_not_limited() {
        let deep = [b"[".repeat(200_000), b"{}".to_vec(), b"]".repeat(200_000)].concat();
        assert_eq!(skip_value(&deep, 0), Ok(deep.len()));
        assert!(skip_value(&deep[..deep.len() - 1], 0).is_err());
    }

    #[test]
    fn brackets_are_a_stack() {
        let mut brackets = Brackets::default();
        let kind = |i: usize| i.is_multiple_of(3) || i.is_multiple_of(7);
        for i in 0..1_000 {
            brackets.push(kind(i));
        }
        for i in (0..1_000).rev() {
            assert_eq!(brackets.top(), Some(kind(i)), "{i}");
            brackets.pop();
        }
        assert_eq!(brackets.top(), None);
    }
}
