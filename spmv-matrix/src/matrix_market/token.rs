//! Numbers in text. Each function takes text that ends with a newline and a position in it, and moves the
//! position behind what it takes.

use super::header::Field;
use crate::Entry;

/// Whether a byte separates words.
#[inline(always)]
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c)
}

/// Passes over blanks other than the newline.
#[inline(always)]
pub(super) fn blanks(text: &[u8], at: &mut usize) {
    while text[*at] != b'\n' && is_blank(text[*at]) {
        *at += 1;
    }
}

/// Passes over at least one blank other than the newline.
#[inline(always)]
pub(super) fn separator(text: &[u8], at: &mut usize) -> Option<()> {
    let start = *at;
    blanks(text, at);
    (*at > start).then_some(())
}

/// The eight bytes at a position as a number of eight digits, and how many of them are digits.
#[inline(always)]
fn eight_digits(bytes: [u8; 8]) -> (u64, usize) {
    let bytes = u64::from_le_bytes(bytes) ^ 0x3030_3030_3030_3030;
    let others = (bytes.wrapping_add(0x7676_7676_7676_7676) | bytes) & 0x8080_8080_8080_8080;
    let digits = others.trailing_zeros() as usize / 8;
    if digits == 0 {
        return (0, 0);
    }
    // Leading zeros take the place of the bytes that are no digits; then neighbours are joined in pairs.
    let pairs = bytes << (64 - 8 * digits);
    let pairs = pairs.wrapping_mul(10).wrapping_add(pairs >> 8);
    let mask = 0x0000_00ff_0000_00ff;
    let high = (pairs & mask).wrapping_mul(0x000f_4240_0000_0064);
    let low = ((pairs >> 16) & mask).wrapping_mul(0x0000_2710_0000_0001);
    (high.wrapping_add(low) >> 32, digits)
}

/// A whole number of at most 19 digits without a sign.
#[inline(always)]
pub(super) fn index(text: &[u8], at: &mut usize) -> Option<u64> {
    let Some(&bytes) = text[*at..].first_chunk::<8>() else {
        return digits(text, at, 0, 0);
    };
    let (number, count) = eight_digits(bytes);
    *at += count;
    match count {
        0 => None,
        8 => digits(text, at, number, 8),
        _ => Some(number),
    }
}

/// The digits of a number of which `count` have been taken.
fn digits(text: &[u8], at: &mut usize, mut number: u64, mut count: usize) -> Option<u64> {
    while let Some(digit) = text.get(*at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        count += 1;
        if count > 19 {
            return None;
        }
        number = number * 10 + u64::from(digit);
        *at += 1;
    }
    (count > 0).then_some(number)
}

/// A word that is a whole number and nothing else.
pub(super) fn whole_number(word: &[u8]) -> Option<u64> {
    let mut at = 0;
    let number = digits(word, &mut at, 0, 0)?;
    (at == word.len()).then_some(number)
}

/// A value of a field. A pattern takes no text.
#[inline(always)]
pub(super) fn value<V: Entry>(text: &[u8], at: &mut usize, field: Field) -> Option<V> {
    let zero = V::Real::default();
    match field {
        Field::Real => Some(V::from_parts(decimal(text, at)?, zero)),
        Field::Integer => Some(V::from_parts(integer(text, at)?, zero)),
        Field::Complex => {
            let re = decimal(text, at)?;
            separator(text, at)?;
            Some(V::from_parts(re, decimal(text, at)?))
        }
        Field::Pattern => Some(V::from_parts(one(), zero)),
    }
}

/// A decimal number, rounded to nearest; none where it is beyond the largest value.
#[inline(always)]
pub(super) fn decimal<R: crate::Value>(text: &[u8], at: &mut usize) -> Option<R> {
    let (number, len) = R::parse_prefix(&text[*at..])?;
    let end = *at + len;
    if !is_blank(text[end]) {
        return fortran(text, at);
    }
    if !number.to_f64().is_finite() && is_number(text[end - 1]) {
        return None;
    }
    *at = end;
    Some(number)
}

/// Whether a word that is not finite was written in digits, by its last byte.
fn is_number(last: u8) -> bool {
    last.is_ascii_digit() || last == b'.'
}

/// A decimal number with Fortran's exponent, as in `1.5D-03`.
#[cold]
fn fortran<R: crate::Value>(text: &[u8], at: &mut usize) -> Option<R> {
    let rest = &text[*at..];
    let len = rest.iter().position(|&byte| is_blank(byte))?;
    let mut word = rest[..len].to_vec();
    let letters = word.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let exponent = word.iter_mut().find(|byte| matches!(byte, b'd' | b'D'))?;
    *exponent = b'e';
    let (number, taken) = R::parse_prefix(&word)?;
    if letters != 1 || taken != len || !number.to_f64().is_finite() {
        return None;
    }
    *at += len;
    Some(number)
}

/// A whole number with or without a sign, rounded to nearest.
#[inline(always)]
fn integer<R: crate::Value>(text: &[u8], at: &mut usize) -> Option<R> {
    if !R::FRACTIONS {
        let (number, len) = R::parse_prefix(&text[*at..])?;
        *at += len;
        return is_blank(text[*at]).then_some(number);
    }
    let start = *at;
    let negative = text[start] == b'-';
    let mut end = start + usize::from(negative || text[start] == b'+');
    match index(text, &mut end) {
        // Up to 15 digits are exact in double precision.
        Some(number) if end - start <= 15 => {
            let number = R::from_f64(number as f64);
            if !number.to_f64().is_finite() {
                return None;
            }
            *at = end;
            Some(if negative { number.negated() } else { number })
        }
        _ => long_integer(text, at),
    }
}

#[cold]
fn long_integer<R: crate::Value>(text: &[u8], at: &mut usize) -> Option<R> {
    let rest = &text[*at..];
    let len = rest.iter().position(|&byte| is_blank(byte))?;
    let unsigned = rest[..len].strip_prefix(b"-").or(rest[..len].strip_prefix(b"+")).unwrap_or(&rest[..len]);
    if unsigned.is_empty() || !unsigned.iter().all(u8::is_ascii_digit) {
        return None;
    }
    decimal(text, at)
}

fn one<R: crate::Value>() -> R {
    R::from_f64(1.0)
}
