//! The derive macro of datum-codec.
//!
//! Use it through `datum_codec::Projected` (or the facade's `datum::codec::Projected`), where the trait of the same
//! name documents the attributes and the types that fields may have.

mod expand;
mod fields;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `datum_codec::Projected` for a struct with named fields: it says which fields of a record the
/// struct's fields are read from.
///
/// `#[projected(path = "a.b")]` names a nested field, `#[projected(rename = "key")]` a key that is not the field's
/// name. A struct may have one lifetime, which is then that of the record it borrows from.
///
/// The generated code calls the crate `datum_codec` or, where only the facade is a dependency, `datum::codec`,
/// under the name that the manifest gives it.
///
/// # Errors
/// Does not compile for enums, unions, tuple and unit structs, type parameters, more than one lifetime, a path that
/// is named twice or leads through another field, and a type that does not implement `datum_codec::FieldType`.
#[proc_macro_derive(Projected, attributes(projected))]
pub fn derive_projected(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::projected(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
