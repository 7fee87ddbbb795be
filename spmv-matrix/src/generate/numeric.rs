//! Elementary functions out of operations that IEEE 754 rounds the same everywhere. They are good to about
//! 14 digits, which is more than drawing a row's length needs.

/// eˣ.
pub(super) fn exp(x: f64) -> f64 {
    // e^x = (e^(x/2^k))^(2^k), with |x|/2^k small enough for a short series.
    let mut scaled = x;
    let mut squarings = 0;
    while scaled.abs() > 0.125 {
        scaled /= 2.0;
        squarings += 1;
    }
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..12 {
        term *= scaled / f64::from(n);
        sum += term;
    }
    for _ in 0..squarings {
        sum *= sum;
    }
    sum
}

/// The natural logarithm of a positive number.
pub(super) fn ln(x: f64) -> f64 {
    let (mut mantissa, mut exponent) = (x, 0);
    while mantissa >= std::f64::consts::SQRT_2 {
        mantissa /= 2.0;
        exponent += 1;
    }
    while mantissa < std::f64::consts::FRAC_1_SQRT_2 {
        mantissa *= 2.0;
        exponent -= 1;
    }
    // ln m = 2·artanh((m − 1)/(m + 1))
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let (square, mut power, mut sum) = (t * t, t, 0.0);
    for n in 0..12 {
        sum += power / f64::from(2 * n + 1);
        power *= square;
    }
    2.0 * sum + f64::from(exponent) * std::f64::consts::LN_2
}

/// xʸ for positive x.
pub(super) fn pow(x: f64, y: f64) -> f64 {
    exp(y * ln(x))
}

#[cfg(test)]
mod tests {
    #[test]
    fn functions_agree_with_the_system() {
        for x in [1e-9, 0.1, 0.5, 0.99, 1.0, 1.5, 2.0, 3.7, 1e3, 1e12] {
            assert!((super::ln(x) - x.ln()).abs() <= 1e-13 * x.ln().abs().max(1.0), "ln {x}");
            for y in [-2.5, -0.3, 0.0, 0.7, 1.9] {
                assert!((super::pow(x, y) / x.powf(y) - 1.0).abs() < 1e-11, "{x}^{y}");
            }
        }
        for x in [-30.0, -1.0, 0.0, 0.1, 5.0, 32.0] {
            assert!((super::exp(x) / x.exp() - 1.0).abs() < 1e-12, "exp {x}");
        }
    }
}
