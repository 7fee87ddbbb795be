//! Misuse is an error at the user's token, all errors at once; what is right compiles without a warning.

#[test]
fn ui() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/pass/*.rs");
    cases.compile_fail("tests/ui/*.rs");
}
