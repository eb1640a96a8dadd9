//! `resource.Quantity`: `500m`, `1.5Gi`, `12e6`. Parsed, compared, printed as Kubernetes prints it.
// apimachinery/pkg/api/resource/quantity.go

mod decimal;

use decimal::Decimal;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// An amount of something, with the notation in which it was written.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Decimal,
    notation: Notation,
    /// What was written, where Kubernetes takes it to be canonical and keeps it.
    written: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// `12e6`
    Exponent,
    /// `12M`
    Decimal,
    /// `12Mi`
    Binary,
}

/// Why a text is no quantity, in Kubernetes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// It is not a number followed by a suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The suffix is not known.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The parts of a text: sign, digits before and after the point, suffix.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// The most digits that Go's fast path takes.
const MOST_DIGITS: i32 = 18;
const NANO: i32 = -9;

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Quantity, ParseQuantityError> {
        let parts = split(text)?;
        let (base, exponent, mut notation) = interpret(parts.suffix).ok_or(ParseQuantityError::Suffix)?;
        let digits = format!("{}{}", parts.whole, parts.fraction);
        let shift = -i32::try_from(parts.fraction.len()).map_err(|_| ParseQuantityError::Format)?;
        let mut amount = Decimal::new(parts.negative, &digits, shift);
        if base == 2 {
            amount.double(exponent);
        } else {
            amount.exponent = amount.exponent.saturating_add(exponent);
        }
        let fast = is_fast(&parts, notation, exponent);
        if !fast {
            amount.round_up(NANO);
            if notation == Notation::Binary {
                amount.cap(i64::MAX as u64);
                if amount.is_fraction() {
                    notation = Notation::Decimal;
                }
            }
        }
        let kept = fast && is_kept(&digits, notation, exponent, exponent + shift);
        Ok(Quantity { amount, notation, written: kept.then(|| text.into()) })
    }
}

/// Whether Go would hold the amount in 64 bits; then it neither rounds nor caps.
fn is_fast(parts: &Parts<'_>, notation: Notation, exponent: i32) -> bool {
    let (whole, fraction) = (parts.whole.len() as i32, parts.fraction.len() as i32);
    match notation {
        Notation::Binary => fraction == 0 && 15 - whole - exponent * 3 / 10 > 0,
        _ => whole.saturating_add(fraction) <= MOST_DIGITS && exponent.saturating_sub(fraction) >= NANO,
    }
}

/// Whether Go takes what was written to be canonical.
fn is_kept(digits: &str, notation: Notation, exponent: i32, scale: i32) -> bool {
    match notation {
        Notation::Binary => exponent % 10 == 0 && digits.parse::<i64>().is_ok_and(|value| value & 7 != 0),
        _ => scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0'),
    }
}

fn split(text: &str) -> Result<Parts<'_>, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text).trim_start_matches('0');
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (whole, rest) = unsigned.split_at(digits(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let exponent = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(ParseQuantityError::Format);
    }
    Ok(Parts {
        negative,
        whole: if whole.is_empty() { "0" } else { whole },
        fraction,
        suffix,
    })
}

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

fn interpret(suffix: &str) -> Option<(u32, i32, Notation)> {
    let exponent_in = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, value)| *value);
    if let Some(exponent) = exponent_in(&DECIMAL) {
        return Some((10, exponent, Notation::Decimal));
    }
    if let Some(exponent) = exponent_in(&BINARY) {
        return Some((2, exponent, Notation::Binary));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    // Go keeps the low 32 bits.
    Some((10, exponent as i32, Notation::Exponent))
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(written) = &self.written {
            return formatter.write_str(written);
        }
        if self.amount.is_zero() {
            return formatter.write_str("0");
        }
        let sign = if self.amount.negative { "-" } else { "" };
        let whole = (self.notation == Notation::Binary).then(|| self.amount.as_integer()).flatten();
        if let Some(mut whole) = whole.filter(|whole| *whole >= 1024) {
            let mut suffix = "";
            for (name, _) in BINARY {
                if whole % 1024 != 0 {
                    break;
                }
                whole /= 1024;
                suffix = name;
            }
            return write!(formatter, "{sign}{whole}{suffix}");
        }
        let (digits, exponent) = self.amount.by_thousands();
        if self.notation == Notation::Exponent && exponent != 0 {
            return write!(formatter, "{sign}{digits}e{exponent}");
        }
        let suffix = DECIMAL.iter().find(|(_, value)| *value == exponent).map_or("", |(name, _)| name);
        write!(formatter, "{sign}{digits}{suffix}")
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Quantity) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Quantity) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Quantity) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl Quantity {
    /// Whether it has no fraction.
    pub fn is_whole(&self) -> bool {
        self.amount.is_zero() || self.amount.as_integer().is_some()
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.amount.is_zero()
    }

    /// Both together, in the notation of the first that is something. What no sum is known of stays the larger one.
    pub fn plus(&self, other: &Quantity) -> Quantity {
        if other.is_zero() && !self.is_zero() {
            return Quantity { written: None, ..self.clone() };
        }
        if self.is_zero() {
            return Quantity { written: None, ..other.clone() };
        }
        let same_sign = self.amount.negative == other.amount.negative;
        match self.amount.plus(&other.amount).filter(|_| same_sign) {
            Some(amount) => Quantity { amount, notation: self.notation, written: None },
            None => self.max(other).clone(),
        }
    }

    /// The difference to an amount that is not negative; nothing if that is larger.
    pub fn minus_at_most(&self, other: &Quantity) -> Quantity {
        if other.is_zero() {
            return Quantity { written: None, ..self.clone() };
        }
        let nothing = Decimal::new(false, "", 0);
        let amount = if self > other {
            self.amount.minus(&other.amount)
        } else {
            Some(nothing)
        };
        match amount {
            Some(amount) => Quantity { amount, notation: self.notation, written: None },
            None => self.clone(),
        }
    }

    /// The next integer that is not less.
    pub fn whole(mut self) -> Quantity {
        if !self.is_whole() {
            self.amount.round_up(0);
            self.written = None;
        }
        self
    }

    /// Whether it is so many times another, wholly.
    pub(crate) fn is_multiple_of(&self, other: &Quantity) -> bool {
        match (self.amount.as_integer(), other.amount.as_integer()) {
            (_, Some(0) | None) => false,
            (Some(amount), Some(unit)) => amount % unit == 0,
            (None, _) => self.is_zero(),
        }
    }

    /// The amount in billionths, which are exact; none if there are more than an `i128` holds.
    pub fn nanos(&self) -> Option<i128> {
        if self.is_zero() {
            return Some(0);
        }
        let mut amount = self.amount.clone();
        amount.exponent = amount.exponent.checked_sub(NANO)?;
        let nanos = i128::try_from(amount.as_integer()?).ok()?;
        Some(if self.amount.negative { -nanos } else { nanos })
    }

    /// The nearest floating-point number, for ratios.
    pub fn approximate(&self) -> f64 {
        self.amount.approximate()
    }

    /// Whether it is less than nothing.
    pub fn is_negative(&self) -> bool {
        self.amount.negative && !self.amount.is_zero()
    }
}
