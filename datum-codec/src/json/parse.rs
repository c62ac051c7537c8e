//! Parsing a record in full: any order, white space, escapes in keys, nesting, `null`s.
//!
//! Notes on the way where each value lies, which is what a shape is made from.

use super::fault::Fault;
use super::plan::{Node, Plan, Target};
use super::skip::{Next, closing, end_of_element, expect_word, skip_colon, skip_value, skip_white_space};
use super::text::{scan_string, unescape};
use super::value::read_value;
use super::vector::text_of;
use crate::error::{DecodeError, DecodeReason};
use crate::projected::{Slot, Unescaped};

/// Where the values of one record lie, between which is its shape. Kept by the decoder and filled anew, so that a full
/// parse allocates nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Form {
    pub(super) values: Vec<ValueSpan>,
    /// Just behind the record's closing bracket.
    pub(super) end: usize,
    /// Whether an array stood for an object, or there were very many values; such records teach nothing.
    pub(super) unusual: bool,
    /// Which wanted keys were seen.
    seen: Vec<bool>,
}

impl Form {
    fn clear(&mut self, keys: usize) {
        self.values.clear();
        self.unusual = false;
        self.seen.clear();
        self.seen.resize(keys, false);
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ValueSpan {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The index of the wanted field it belongs to.
    pub(super) field: Option<usize>,
}

/// One pass over one record.
pub(super) struct Parser<'p, 'b> {
    input: &'b [u8],
    plan: &'p Plan,
    slots: &'p mut [Slot],
    unescaped: &'p mut Unescaped,
    key: Vec<u8>,
    form: &'p mut Form,
    /// The field a fault would belong to.
    path: Option<&'static str>,
}

impl<'p, 'b> Parser<'p, 'b> {
    pub(super) fn new(
        input: &'b [u8],
        plan: &'p Plan,
        slots: &'p mut [Slot],
        unescaped: &'p mut Unescaped,
        form: &'p mut Form,
    ) -> Self {
        form.clear(plan.keys());
        Self { input, plan, slots, unescaped, key: Vec::new(), form, path: None }
    }

    /// Fills the slots, or says what is wrong with the record. Missing fields are left for their types to judge.
    pub(super) fn parse(mut self) -> Result<(), DecodeError> {
        self.slots.fill(Slot::ABSENT);
        match self.record() {
            Ok(end) => {
                self.form.end = end;
                Ok(())
            }
            Err(fault) => Err(fault.in_field(self.path)),
        }
    }

    fn record(&mut self) -> Result<usize, Fault> {
        let plan = self.plan;
        let end = self.node(plan.node(0), skip_white_space(self.input, 0))?;
        let rest = skip_white_space(self.input, end);
        if rest < self.input.len() {
            return Err(Fault::new(DecodeReason::TrailingCharacters, rest));
        }
        Ok(end)
    }

    /// Recurses once per key of a path, which the derive limits; never by what the record holds.
    fn node(&mut self, node: &Node, at: usize) -> Result<usize, Fault> {
        match self.input.get(at) {
            Some(b'{') => self.object(node, at + 1),
            Some(b'[') => self.positional(node, at + 1),
            Some(b'n') if node.optional => expect_word(self.input, at, b"null"),
            Some(_) => Err(Fault::new(DecodeReason::ExpectedObject, at)),
            None => Err(Fault::end(self.input)),
        }
    }

    fn object(&mut self, node: &Node, at: usize) -> Result<usize, Fault> {
        let mut at = skip_white_space(self.input, at);
        if self.input.get(at) == Some(&closing(true)) {
            return Ok(at + 1);
        }
        loop {
            at = self.member(node, at)?;
            match end_of_element(self.input, at, true)? {
                Next::Element(next) => at = next,
                Next::Closed(end) => return Ok(end),
            }
        }
    }

    fn member(&mut self, node: &Node, at: usize) -> Result<usize, Fault> {
        let (child, end) = self.key(node, at)?;
        let value = skip_colon(self.input, end)?;
        let Some(index) = child else {
            let end = skip_value(self.input, value)?;
            self.note(value, end, None);
            return Ok(end);
        };
        let child = &node.children[index];
        if std::mem::replace(&mut self.form.seen[child.id], true) {
            self.path = Some(self.name_of(child.target));
            return Err(Fault::new(DecodeReason::DuplicateField, at));
        }
        self.target(child.target, value)
    }

    /// The child that the key names, if any, and where the key ends.
    fn key(&mut self, node: &Node, at: usize) -> Result<(Option<usize>, usize), Fault> {
        match self.input.get(at) {
            Some(b'"') => {}
            Some(_) => return Err(Fault::new(DecodeReason::ExpectedKey, at)),
            None => return Err(Fault::end(self.input)),
        }
        let token = scan_string(self.input, at + 1)?;
        let raw = at + 1..token.end - 1;
        let key = if token.escaped {
            self.key.clear();
            unescape(self.input, raw.start, raw.end, &mut self.key)?;
            &self.key
        } else {
            &self.input[raw]
        };
        let Ok(key) = text_of(key) else {
            return Err(Fault::new(DecodeReason::InvalidUtf8, at + 1));
        };
        Ok((node.children.iter().position(|child| child.key == key), token.end))
    }

    fn target(&mut self, target: Target, at: usize) -> Result<usize, Fault> {
        let outer = self.path.replace(self.name_of(target));
        let end = match target {
            Target::Field(index) => {
                let field = &self.plan.fields()[index];
                let end = read_value(self.input, at, field, &mut self.slots[index], self.unescaped)?;
                self.note(at, end, Some(index));
                end
            }
            Target::Node(index) => {
                let plan = self.plan;
                self.node(plan.node(index), at)?
            }
        };
        self.path = outer;
        Ok(end)
    }

    /// An array in place of an object: the elements in the order of the struct, all of them, no more.
    fn positional(&mut self, node: &Node, at: usize) -> Result<usize, Fault> {
        self.form.unusual = true;
        let mut at = skip_white_space(self.input, at);
        if self.input.get(at) == Some(&closing(false)) {
            return Err(Fault::new(DecodeReason::WrongArrayLength, at));
        }
        for (i, child) in node.children.iter().enumerate() {
            let last = i + 1 == node.children.len();
            let element = at;
            let end = self.target(child.target, element)?;
            match end_of_element(self.input, end, false)? {
                Next::Closed(end) if last => return Ok(end),
                Next::Element(next) if !last => at = next,
                _ => return Err(Fault::new(DecodeReason::WrongArrayLength, end)),
            }
        }
        Err(Fault::new(DecodeReason::WrongArrayLength, at))
    }

    fn note(&mut self, start: usize, end: usize, field: Option<usize>) {
        if self.form.values.len() == MAX_VALUES {
            self.form.unusual = true;
        } else {
            self.form.values.push(ValueSpan { start, end, field });
        }
    }

    /// The name of a field, or of the first field below a node.
    fn name_of(&self, target: Target) -> &'static str {
        match target {
            Target::Field(index) => self.plan.fields()[index].name,
            Target::Node(index) => self.name_of(self.plan.node(index).children[0].target),
        }
    }
}

/// A shape of more values than this is not worth keeping.
const MAX_VALUES: usize = 512;
