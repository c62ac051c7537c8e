//! What the fields of a struct say about where their values are.

use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Error, Fields, Ident, LitStr, Result, Type};

/// A field of the struct and the path of its value.
pub(crate) struct WantedField<'a> {
    pub(crate) name: &'a Ident,
    pub(crate) of_type: &'a Type,
    pub(crate) path: Vec<String>,
}

impl WantedField<'_> {
    /// What errors call the field.
    pub(crate) fn dotted(&self) -> String {
        self.path.join(".")
    }
}

/// The fields of the struct, or all that is wrong with them.
pub(crate) fn wanted_fields(input: &DeriveInput) -> Result<Vec<WantedField<'_>>> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new(input.ident.span(), "only a struct can be a projection"));
    };
    let Fields::Named(named) = &data.fields else {
        return Err(Error::new(
            input.ident.span(),
            "the fields of a projection must be named, since their names are the record's keys",
        ));
    };
    let mut errors = Errors::default();
    let mut wanted: Vec<WantedField<'_>> = Vec::new();
    for field in &named.named {
        let name = field.ident.as_ref().expect("a named field");
        match path_of(name, &field.attrs) {
            Ok(path) => {
                if let Some(other) = wanted.iter().find(|other| overlaps(&other.path, &path)) {
                    errors.add(conflict(name, &path, other));
                }
                wanted.push(WantedField { name, of_type: &field.ty, path });
            }
            Err(error) => errors.add(error),
        }
    }
    if named.named.is_empty() {
        errors.add(Error::new(input.ident.span(), "a projection names at least one field"));
    }
    errors.finish()?;
    Ok(wanted)
}

/// Whether both paths are one, or one leads through the other.
fn overlaps(left: &[String], right: &[String]) -> bool {
    let common = left.len().min(right.len());
    left[..common] == right[..common]
}

fn conflict(name: &Ident, path: &[String], other: &WantedField<'_>) -> Error {
    let (this, that) = (path.join("."), other.dotted());
    let message = if path == other.path {
        format!("`{this}` is already read into the field `{}`", other.name)
    } else {
        format!(
            "the paths `{this}` and `{that}` (field `{}`) exclude each other: the shorter one would have to be a \
             value and an object at once",
            other.name
        )
    };
    Error::new(name.span(), message)
}

fn path_of(name: &Ident, attributes: &[syn::Attribute]) -> Result<Vec<String>> {
    let mut path: Option<Vec<String>> = None;
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("projected")) {
        attribute.parse_nested_meta(|meta| {
            let found = if meta.path.is_ident("path") {
                split_path(&meta.value()?.parse()?)?
            } else if meta.path.is_ident("rename") {
                vec![meta.value()?.parse::<LitStr>()?.value()]
            } else {
                return Err(
                    meta.error("unknown attribute: a field takes `path = \"a.b\"` or `rename = \"key\"`")
                );
            };
            match path.replace(found) {
                None => Ok(()),
                Some(_) => {
                    Err(Error::new(meta.path.span(), "a field takes one `path` or one `rename`, not both"))
                }
            }
        })?;
    }
    Ok(path.unwrap_or_else(|| vec![plain_name(name)]))
}

fn split_path(path: &LitStr) -> Result<Vec<String>> {
    let keys: Vec<String> = path.value().split('.').map(str::to_owned).collect();
    if keys.iter().any(String::is_empty) {
        let message =
            "a path is keys joined by dots, none of them empty; use `rename` for a key that holds dots";
        return Err(Error::new(path.span(), message));
    }
    if keys.len() > MAX_KEYS {
        return Err(Error::new(path.span(), format!("a path may have {MAX_KEYS} keys at most")));
    }
    Ok(keys)
}

/// The key a field is read from by default: its name, without `r#`.
fn plain_name(name: &Ident) -> String {
    let name = name.to_string();
    name.strip_prefix("r#").map(str::to_owned).unwrap_or(name)
}

/// Collects errors, so that all are shown at once.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }

    fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The decoder recurses once per key of a path, and other parsers refuse records much deeper than this.
const MAX_KEYS: usize = 64;
