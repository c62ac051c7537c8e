//! The code that the derive writes.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{DeriveInput, Error, GenericParam, Ident, Lifetime, Result};

use crate::fields::wanted_fields;

pub(crate) fn projected(input: &DeriveInput) -> Result<TokenStream> {
    let lifetime = only_lifetime(input)?;
    let fields = wanted_fields(input)?;
    let codec = codec_crate();
    let name = &input.ident;
    let generics = &input.generics;
    let (_, of_self, clause) = generics.split_for_impl();
    let of_record = lifetime.map(|_| quote!(<'__record>));

    let described = fields.iter().map(|field| {
        let (of_type, path, dotted) = (field.of_type, &field.path, field.dotted());
        // At the type's span, so that an unsupported type is underlined.
        quote_spanned!(of_type.span()=> #codec::Field::new::<#of_type>(&[#(#path),*], #dotted))
    });
    let built = fields.iter().enumerate().map(|(index, field)| {
        let field = field.name;
        quote!(#field: record.get(#index)?)
    });
    let owned = lifetime.is_none().then(|| {
        quote! {
            #[automatically_derived]
            impl #generics #codec::OwnedProjected for #name #of_self #clause {}
        }
    });
    Ok(quote! {
        #[automatically_derived]
        impl #generics #codec::Projected for #name #of_self #clause {
            type Of<'__record> = #name #of_record;

            const FIELDS: &'static [#codec::Field] = &[#(#described),*];

            #[inline]
            fn build<'__record>(
                record: &#codec::Record<'__record>,
            ) -> ::core::result::Result<#name #of_record, #codec::DecodeError> {
                ::core::result::Result::Ok(#name { #(#built),* })
            }
        }
        #owned
    })
}

/// The struct's lifetime, if it has one. Anything else it may be generic over is refused.
fn only_lifetime(input: &DeriveInput) -> Result<Option<&Lifetime>> {
    let mut lifetime = None;
    for parameter in &input.generics.params {
        let GenericParam::Lifetime(found) = parameter else {
            return Err(Error::new(parameter.span(), "a projection has no type or const parameters"));
        };
        if lifetime.replace(&found.lifetime).is_some() {
            return Err(Error::new(
                found.span(),
                "a projection borrows from one record: one lifetime at most",
            ));
        }
    }
    Ok(lifetime)
}

/// How the crate that calls the macro can name datum-codec: itself, or through the facade.
fn codec_crate() -> TokenStream {
    let named = |name: &str| Ident::new(name, Span::call_site());
    match (crate_name("datum-codec"), crate_name("datum")) {
        (Ok(FoundCrate::Name(name)), _) => {
            let name = named(&name);
            quote!(::#name)
        }
        // Tests, examples and documentation of the facade see it from outside, as `datum`.
        (Err(_), Ok(FoundCrate::Itself)) => quote!(::datum::codec),
        (Err(_), Ok(FoundCrate::Name(name))) => {
            let name = named(&name);
            quote!(::#name::codec)
        }
        _ => quote!(::datum_codec),
    }
}
