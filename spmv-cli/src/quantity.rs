//! Numbers as people read them.

use std::time::Duration;

/// `33111` as `33,111`.
pub fn count(number: usize) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap_or("")).collect();
    groups.join(",")
}

/// `33111` as `32.3 KiB`.
pub fn bytes(number: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if number < 1024 {
        return format!("{number} B");
    }
    let mut scaled = number as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", significant(scaled), UNITS[unit])
}

/// A number of bytes as people write it: 67108864, 64M, 1G.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        Some((at, 't' | 'T')) => (&text[..at], 1 << 40),
        _ => (text, 1),
    };
    match digits.parse::<u64>() {
        Ok(number) => number.checked_mul(unit).ok_or_else(|| "allowed are fewer than 2^64 bytes".to_owned()),
        Err(_) => Err("allowed is a number of bytes, or one with K, M, G or T behind it".to_owned()),
    }
}

/// A number, and what is allowed where it is none or too large.
pub fn parse_number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(_) => Err(format!("allowed are finite numbers, up to {:e}", f64::MAX)),
        Err(_) => Err("allowed is a number, as 2, -0.5 or 1e-3".to_owned()),
    }
}

/// A whole number of a type without signs, and what is allowed where it is none.
pub fn parse_whole<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    between(0, u64::MAX >> (u64::BITS - 8 * size_of::<T>() as u32))(text)
}

/// Reads a whole number from `least` to `most`, and says what is allowed where it is none.
pub fn between<T: TryFrom<u64>>(least: u64, most: u64) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
        let number = number.and_then(|number| number.try_into().ok());
        number.ok_or_else(|| format!("allowed are whole numbers from {least} to {most}"))
    }
}

/// Milliseconds as `12.3 µs`, `4.56 ms` or `1.23 s`.
pub fn milliseconds(ms: f64) -> String {
    if ms < 1.0 {
        format!("{} µs", significant(ms * 1e3))
    } else if ms < 1e3 {
        format!("{} ms", significant(ms))
    } else {
        format!("{} s", significant(ms / 1e3))
    }
}

/// Three significant digits, without an exponent for what is usual.
pub fn significant(number: f64) -> String {
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-3..1e6).contains(&magnitude) {
        return format!("{number:.2e}");
    }
    let digits = if magnitude >= 100.0 {
        0
    } else if magnitude >= 10.0 {
        1
    } else if magnitude >= 1.0 || magnitude == 0.0 {
        2
    } else {
        2 + magnitude.log10().floor().abs() as usize
    };
    format!("{number:.digits$}")
}

/// A duration in milliseconds.
pub fn in_ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!(
            ["0", "999", "1,000", "33,111", "1,234,567"],
            [0, 999, 1000, 33111, 1_234_567].map(count)[..]
        );
        assert_eq!(
            ["0 B", "1023 B", "1.00 KiB", "32.3 KiB", "1.00 GiB"],
            [0, 1023, 1024, 33111, 1 << 30].map(bytes)[..]
        );
        assert_eq!(
            ["12.3 µs", "0.500 µs", "4.56 ms", "1.23 s"],
            [0.01234, 0.0005, 4.56, 1234.0].map(milliseconds)[..]
        );
        assert_eq!(
            ["0.00", "0.0123", "1.23", "123", "12346", "1.00e-9", "1.20e7", "NaN", "inf"],
            [0.0, 0.0123, 1.234, 123.4, 12345.6, 1e-9, 1.2e7, f64::NAN, f64::INFINITY].map(significant)[..]
        );
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_bytes("67108864"), Ok(64 << 20));
        assert_eq!(parse_bytes("64M"), Ok(64 << 20));
        assert_eq!(parse_bytes("1g"), Ok(1 << 30));
        for wrong in ["", "M", "-1", "1P", "99999999999G", "1é"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
