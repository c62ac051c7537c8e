//! Which materialised value a composition keeps.

/// The choices: [`Keep::left`], [`Keep::right`], [`Keep::both`], [`Keep::none`].
#[derive(Clone, Copy, Debug)]
pub struct Keep;

#[allow(non_upper_case_globals, reason = "they read as functions do elsewhere: `Keep::left`")]
impl Keep {
    /// The value of the first part.
    pub const left: KeepLeft = KeepLeft;
    /// The value of the second part.
    pub const right: KeepRight = KeepRight;
    /// A pair of both.
    pub const both: KeepBoth = KeepBoth;
    /// `()`.
    pub const none: KeepNone = KeepNone;
}

/// A choice. The outcome is an associated type of the choice alone: with a bound that names both sides instead,
/// provided trait methods could not chain (E0276).
pub trait Keeps: Clone + Send + 'static {
    /// What is kept of `L` and `R`.
    type Out<L: 'static, R: 'static>: 'static;

    /// Keeps it.
    fn combine<L: 'static, R: 'static>(self, left: L, right: R) -> Self::Out<L, R>;
}

macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident: |$l:ident, $r:ident| $value:expr => $out:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Keeps for $name {
            type Out<L: 'static, R: 'static> = $out;

            fn combine<L: 'static, R: 'static>(self, $l: L, $r: R) -> $out {
                $value
            }
        }
    )*};
}

choices! {
    /// See [`Keep::left`].
    KeepLeft: |left, _right| left => L;
    /// See [`Keep::right`].
    KeepRight: |_left, right| right => R;
    /// See [`Keep::both`].
    KeepBoth: |left, right| (left, right) => (L, R);
    /// See [`Keep::none`].
    KeepNone: |_left, _right| () => ();
}
