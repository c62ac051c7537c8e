//! What stands in for the module `vector` on machines other than x86-64: nothing, so that all shapes are read portably.

use std::str::Utf8Error;

use super::parse::ValueSpan;
use super::shape::Step;
use crate::projected::{Field, Slot, Unescaped};

/// Never there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Avx2 {}

impl Avx2 {
    pub(super) const fn detect() -> Option<Self> {
        None
    }

    pub(super) const fn read_indexed(
        self,
        _index: &Index,
        _scratch: &mut Scratch,
        _input: &[u8],
        _fields: &[Field],
        _slots: &mut [Slot],
        _unescaped: &mut Unescaped,
    ) -> bool {
        match self {}
    }

    pub(super) const fn read(
        self,
        _steps: &[Step],
        _input: &[u8],
        _fields: &[Field],
        _slots: &mut [Slot],
        _unescaped: &mut Unescaped,
    ) -> Option<usize> {
        match self {}
    }
}

/// Never there.
#[derive(Clone, Debug)]
pub(super) enum Index {}

impl Index {
    pub(super) const fn of(_record: &[u8], _fields: &[Field], _values: &[ValueSpan]) -> Option<Self> {
        None
    }
}

#[derive(Debug, Default)]
pub(super) struct Scratch;

/// These bytes as text.
pub(crate) fn text_of(bytes: &[u8]) -> Result<&str, Utf8Error> {
    std::str::from_utf8(bytes)
}
