//! What the derive refuses, and what it says about it. `TRYBUILD=overwrite` writes the expected texts anew.

#[test]
fn misuse_is_explained() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile/accepted.rs");
    cases.compile_fail("tests/compile/refused_*.rs");
}
