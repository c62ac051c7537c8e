//! The derive macro of datum-codec.
