//! The attribute's arguments and the item under it, as they were written.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, Ident, Literal, Punct, Spacing, TokenStream, TokenTree};
use spmv_codegen::FUNCTION_KEYS;
use syn::parse::{ParseStream, Parser};
use syn::{Attribute, Data, DeriveInput, Error, Fields, Lit, Visibility};

/// One `key = value`.
pub(crate) struct Setting {
    pub(crate) key: Ident,
    pub(crate) value: Value,
}

/// What follows a key.
pub(crate) struct Value {
    /// Where an error about the value points: the value, or what stands in its place.
    pub(crate) tokens: TokenStream,
    /// What is meant, as [`KernelConfigBuilder::set`](spmv_codegen::KernelConfigBuilder::set) reads it.
    pub(crate) text: Option<String>,
    /// Why it cannot stay as it is written even where the text is right.
    pub(crate) misspelling: Option<Misspelling>,
    /// Of a function, the bytes of the text that each token is, in order.
    pub(crate) places: Vec<(Range<usize>, TokenTree)>,
}

impl Value {
    /// The tokens at these bytes of a function's text; the last one where there are none, and all of them where it is no
    /// function.
    pub(crate) fn at(&self, range: &Range<usize>) -> TokenStream {
        let overlaps = |place: &Range<usize>| place.start < range.end && range.start < place.end;
        let found = self.places.iter().filter(|(place, _)| overlaps(place)).map(|(_, token)| token.clone());
        let found: TokenStream = found.collect();
        match self.places.last() {
            _ if !found.is_empty() => found,
            Some((_, last)) => last.clone().into(),
            None => self.tokens.clone(),
        }
    }
}

/// How a value is written that can be understood but is not accepted.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Misspelling {
    NotAssigned,
    Quoted,
    Suffixed,
    NotOneToken,
}

impl Misspelling {
    /// The rule that it breaks.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Misspelling::NotAssigned => "a setting is written `name = value`",
            Misspelling::Quoted => "values are written without quotes",
            Misspelling::Suffixed => "integers are written without a suffix",
            Misspelling::NotOneToken => "a value is one name or one integer",
        }
    }
}

/// Every setting of the attribute, and what is not one.
pub(crate) fn settings(arguments: TokenStream) -> (Vec<Setting>, Vec<Error>) {
    let mut settings = Vec::new();
    let mut errors = Vec::new();
    let tokens = ungrouped(arguments);
    for argument in split_arguments(&tokens) {
        match argument {
            [comma] if is_punct(comma, ",") => {
                errors.push(Error::new(comma.span(), "expected `name = value`, found `,`"))
            }
            [argument @ .., comma] if is_punct(comma, ",") => {
                argument_settings(argument, &mut settings, &mut errors)
            }
            argument => argument_settings(argument, &mut settings, &mut errors),
        }
    }
    (settings, errors)
}

/// At commas, which stay behind what they end; those between the parameters of a function part nothing.
fn split_arguments(tokens: &[TokenTree]) -> Vec<&[TokenTree]> {
    let mut arguments = Vec::new();
    let (mut start, mut in_parameters) = (0, false);
    for (at, token) in tokens.iter().enumerate() {
        if is_punct(token, "|") {
            let opens = at > 0 && is_punct(&tokens[at - 1], "=") && !in_parameters;
            in_parameters = opens;
        } else if is_punct(token, ",") && !in_parameters {
            arguments.push(&tokens[start..=at]);
            start = at + 1;
        }
    }
    if start < tokens.len() {
        arguments.push(&tokens[start..]);
    }
    arguments
}

/// The setting between two commas; more than one where a comma is missing.
fn argument_settings(argument: &[TokenTree], settings: &mut Vec<Setting>, errors: &mut Vec<Error>) {
    let [TokenTree::Ident(key), rest @ ..] = argument else {
        let message = format!("expected `name = value`, found `{}`", joined(argument));
        return errors.push(Error::new_spanned(stream(argument), message));
    };
    // A name and `=` right behind a value.
    let next = (2..rest.len()).find(|&at| {
        matches!(&rest[at - 2..at], [value, TokenTree::Ident(_)] if !matches!(value, TokenTree::Punct(_)))
            && is_punct(&rest[at], "=")
            && !matches!(&rest[at], TokenTree::Punct(equals) if equals.spacing() == Spacing::Joint)
    });
    let (rest, next) = rest.split_at(next.map_or(rest.len(), |at| at - 1));
    settings.push(Setting { key: key.clone(), value: value(key, rest) });
    if let [first, ..] = next {
        errors.push(Error::new(first.span(), format!("expected `,` before `{first}`")));
        argument_settings(next, settings, errors);
    }
}

fn value(key: &Ident, rest: &[TokenTree]) -> Value {
    let (written, assigned) = match rest {
        [equals, written @ ..]
            if is_punct(equals, "=") && !written.first().is_some_and(|t| is_punct(t, "=>")) =>
        {
            (written.to_vec(), true)
        }
        [TokenTree::Group(group)] => (ungrouped(group.stream()), false),
        _ => (rest.iter().skip_while(|token| is_punct(token, ":=>")).cloned().collect(), false),
    };
    let mut places = Vec::new();
    let is_function = FUNCTION_KEYS.iter().any(|function| key == function.name);
    let (text, misspelling) = match &written[..] {
        [] => (None, None),
        [TokenTree::Ident(name)] => (Some(name.to_string()), None),
        [TokenTree::Literal(number)] => literal(number),
        [minus, TokenTree::Literal(number)] if is_punct(minus, "-") => {
            let (text, misspelling) = literal(number);
            (text.map(|text| format!("-{text}")), misspelling)
        }
        several if is_function => {
            let mut text = String::new();
            render(several, &mut text, &mut places);
            (Some(text.trim_end().to_owned()), None)
        }
        several => (Some(joined(several)), Some(Misspelling::NotOneToken)),
    };
    let tokens = match (written.is_empty(), assigned, rest) {
        (false, true, _) => stream(&written),
        (_, _, []) => TokenTree::from(key.clone()).into(),
        (_, _, rest) => stream(rest),
    };
    let misspelling = if assigned { misspelling } else { Some(Misspelling::NotAssigned) };
    Value { tokens, text, misspelling, places }
}

/// Appends tokens as text, and which bytes of it each of them is.
fn render(tokens: &[TokenTree], text: &mut String, places: &mut Vec<(Range<usize>, TokenTree)>) {
    fn push(text: &mut String, places: &mut Vec<(Range<usize>, TokenTree)>, word: &str, token: TokenTree) {
        let start = text.len();
        text.push_str(word);
        places.push((start..text.len(), token));
    }
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("( ", ") "),
                    Delimiter::Brace => ("{ ", "} "),
                    Delimiter::Bracket => ("[ ", "] "),
                    Delimiter::None => ("", ""),
                };
                // A delimiter is no token of its own; a mark with its span stands for it.
                let mark = |span| {
                    let mut mark = Punct::new('.', Spacing::Alone);
                    mark.set_span(span);
                    TokenTree::Punct(mark)
                };
                push(text, places, open, mark(group.span_open()));
                render(&group.stream().into_iter().collect::<Vec<_>>(), text, places);
                push(text, places, close, mark(group.span_close()));
            }
            other => {
                push(text, places, &other.to_string(), other.clone());
                let is_joint = matches!(other, TokenTree::Punct(punct) if punct.spacing() == Spacing::Joint);
                text.push_str(if is_joint { "" } else { " " });
            }
        }
    }
}

fn literal(literal: &Literal) -> (Option<String>, Option<Misspelling>) {
    match Lit::new(literal.clone()) {
        Lit::Int(number) => {
            let suffixed = !number.suffix().is_empty();
            (Some(number.base10_digits().to_owned()), suffixed.then_some(Misspelling::Suffixed))
        }
        Lit::Str(string) => (Some(string.value()), Some(Misspelling::Quoted)),
        _ => (Some(literal.to_string()), None),
    }
}

/// The struct, or whatever else could be a type, and what keeps it from being a unit struct.
pub(crate) fn declaration(item: TokenStream) -> (Option<DeriveInput>, Vec<Error>) {
    let Ok(mut declaration) = syn::parse2::<DeriveInput>(item.clone()) else {
        let error = match keyword.parse2(item) {
            Ok(found) => {
                Error::new(found.span(), format!("expected `struct`, found `{found}`; {UNIT_STRUCT}"))
            }
            Err(error) => error,
        };
        return (None, vec![error]);
    };
    let mut errors = Vec::new();
    let mut refuse = |tokens: &dyn quote::ToTokens, what: &str| {
        errors.push(Error::new_spanned(tokens.to_token_stream(), format!("{what}; {UNIT_STRUCT}")));
    };
    match &declaration.data {
        Data::Struct(data) => match &data.fields {
            Fields::Unit => {}
            fields => refuse(fields, "a kernel has no fields"),
        },
        Data::Enum(data) => refuse(&data.enum_token, "expected `struct`, found `enum`"),
        Data::Union(data) => refuse(&data.union_token, "expected `struct`, found `union`"),
    }
    if !declaration.generics.params.is_empty() {
        refuse(&declaration.generics, "a kernel has no generic parameters");
    }
    if let Some(clause) = &declaration.generics.where_clause {
        refuse(clause, "a kernel has no `where` clause");
    }
    declaration.attrs.retain(|attribute| {
        let again = attribute.path().segments.last().is_some_and(|segment| segment.ident == "spmv_kernel");
        if again {
            refuse(attribute, "a struct declares one kernel");
        }
        !again
    });
    (Some(declaration), errors)
}

const UNIT_STRUCT: &str = "`#[spmv_kernel]` goes on a unit struct, `pub struct Name;`";

/// The first token after attributes and visibility.
fn keyword(input: ParseStream) -> syn::Result<TokenTree> {
    Attribute::parse_outer(input)?;
    input.parse::<Visibility>()?;
    let keyword = input.parse()?;
    input.parse::<TokenStream>()?;
    Ok(keyword)
}

/// Without the invisible groups in which `macro_rules!` passes on `$value:literal` and the like; those that hold an expression
/// of several parts have parentheses instead.
fn ungrouped(tokens: TokenStream) -> Vec<TokenTree> {
    let visible = |token| match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::None => match ungrouped(group.stream()) {
            one if is_one_value(&one) => one,
            several => vec![regrouped(&group, Delimiter::Parenthesis, several)],
        },
        TokenTree::Group(group) if holds_invisible(group.stream()) => {
            let inside = ungrouped(group.stream());
            vec![regrouped(&group, group.delimiter(), inside)]
        }
        token => vec![token],
    };
    tokens.into_iter().flat_map(visible).collect()
}

/// Whether tokens stay together without parentheses: one, a negative number, or a function, which is nothing's part.
fn is_one_value(tokens: &[TokenTree]) -> bool {
    match tokens {
        [] | [_] => true,
        [minus, TokenTree::Literal(_)] if is_punct(minus, "-") => true,
        [first, ..] => is_punct(first, "|"),
    }
}

fn holds_invisible(tokens: TokenStream) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::None || holds_invisible(group.stream()),
        _ => false,
    })
}

fn regrouped(group: &Group, delimiter: Delimiter, tokens: Vec<TokenTree>) -> TokenTree {
    let mut regrouped = Group::new(delimiter, tokens.into_iter().collect());
    regrouped.set_span(group.span());
    TokenTree::Group(regrouped)
}

fn is_punct(token: &TokenTree, any_of: &str) -> bool {
    matches!(token, TokenTree::Punct(punct) if any_of.contains(punct.as_char()))
}

fn stream(tokens: &[TokenTree]) -> TokenStream {
    tokens.iter().cloned().collect()
}

fn joined(tokens: &[TokenTree]) -> String {
    tokens.iter().map(TokenTree::to_string).collect()
}
