//! Kubernetes' resource quantities: amounts with a decimal or binary suffix.

use crate::decl::{Entry, entry};
use crate::eval::EvalError;
use crate::typing::Type;
use crate::value::{Opaque, Value};
use std::cmp::Ordering;

type Outcome<'a> = Result<Value<'a>, EvalError>;

const PATTERN: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// The largest amount with a binary suffix, in billionths.
const MAX_BINARY: i128 = (i64::MAX as i128) * BILLION;
const BILLION: i128 = 1_000_000_000;
/// The most digits that upstream's short form of an amount has.
const MAX_DIGITS: i32 = 18;

/// An amount. As upstream, it is a number with a decimal scale as long as that fits, and a plain decimal otherwise; only the
/// former is ever an integer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    amount: Amount,
    /// Whether it is the result of a calculation. Upstream compares such a one on the right-hand side with nothing.
    computed: bool,
}

#[derive(Clone, Copy, Debug)]
enum Amount {
    Scaled {
        value: i64,
        scale: i32,
    },
    /// Billionths, up to the largest number there is.
    Decimal(i128),
}

impl Opaque for Quantity {
    fn type_of(&self) -> Type {
        Type::object("kubernetes.Quantity")
    }

    fn equals(&self, other: &dyn Opaque) -> Result<bool, EvalError> {
        match other.downcast_ref::<Quantity>() {
            Some(other) if !other.computed => Ok(self.compare(other) == Ordering::Equal),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    fn show(&self) -> String {
        let billionths = self.billionths();
        let (whole, rest) = (billionths / BILLION, (billionths % BILLION).unsigned_abs());
        let sign = if billionths < 0 && whole == 0 { "-" } else { "" };
        match rest {
            0 => format!("{sign}{whole}"),
            rest => format!("{sign}{whole}.{}", format!("{rest:09}").trim_end_matches('0')),
        }
    }
}

pub(super) const FUNCTIONS: [Entry; 13] = [
    entry("quantity", "string_to_quantity", "(string) -> kubernetes.Quantity", |args| match args {
        [Value::String(text)] => Quantity::parse(text).map(Value::opaque).map_err(EvalError::new),
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("isQuantity", "is_quantity_string", "(string) -> bool", |args| match args {
        [Value::String(text)] => Ok(Value::Bool(Quantity::parse(text).is_ok())),
        _ => Err(EvalError::no_such_overload()),
    }),
    entry("sign", "quantity_sign", "(kubernetes.Quantity) -> int", |args| {
        one(args, |quantity| Ok(Value::Int(quantity.billionths().signum() as i64)))
    }),
    entry(
        "isGreaterThan",
        "quantity_is_greater_than",
        "kubernetes.Quantity.(kubernetes.Quantity) -> bool",
        |args| two(args, |one, other| Value::Bool(one.compare(other).is_gt())),
    ),
    entry(
        "isLessThan",
        "quantity_is_less_than",
        "kubernetes.Quantity.(kubernetes.Quantity) -> bool",
        |args| two(args, |one, other| Value::Bool(one.compare(other).is_lt())),
    ),
    entry(
        "compareTo",
        "quantity_compare_to",
        "kubernetes.Quantity.(kubernetes.Quantity) -> int",
        |args| two(args, |one, other| Value::Int(one.compare(other) as i64)),
    ),
    entry("asApproximateFloat", "quantity_get_float", "kubernetes.Quantity.() -> double", |args| {
        one(args, |quantity| Ok(Value::Double(quantity.approximate())))
    }),
    entry("asInteger", "quantity_get_int", "kubernetes.Quantity.() -> int", |args| {
        one(args, |quantity| {
            quantity
                .integer()
                .map(Value::Int)
                .ok_or_else(|| EvalError::new("cannot convert value to integer"))
        })
    }),
    entry("isInteger", "quantity_is_integer", "kubernetes.Quantity.() -> bool", |args| {
        one(args, |quantity| Ok(Value::Bool(quantity.integer().is_some())))
    }),
    entry(
        "add",
        "quantity_add",
        "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity",
        |args| two(args, |one, other| Value::opaque(one.add(other))),
    ),
    entry("add", "quantity_add_int", "kubernetes.Quantity.(int) -> kubernetes.Quantity", |args| {
        with_int(args, |one, other| one.add(&other))
    }),
    entry(
        "sub",
        "quantity_sub",
        "kubernetes.Quantity.(kubernetes.Quantity) -> kubernetes.Quantity",
        |args| two(args, |one, other| Value::opaque(one.sub(other))),
    ),
    entry("sub", "quantity_sub_int", "kubernetes.Quantity.(int) -> kubernetes.Quantity", |args| {
        with_int(args, |one, other| one.sub(&other))
    }),
];

fn one<'a>(args: &[Value<'a>], with: impl Fn(&Quantity) -> Outcome<'a>) -> Outcome<'a> {
    match args[0].downcast::<Quantity>() {
        Some(quantity) => with(quantity),
        None => Err(EvalError::no_such_overload()),
    }
}

fn two<'a>(args: &[Value<'a>], with: impl Fn(&Quantity, &Quantity) -> Value<'a>) -> Outcome<'a> {
    match (args[0].downcast::<Quantity>(), args[1].downcast::<Quantity>()) {
        (Some(one), Some(other)) => Ok(with(one, other)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn with_int<'a>(args: &[Value<'a>], with: impl Fn(&Quantity, Quantity) -> Quantity) -> Outcome<'a> {
    match (args[0].downcast::<Quantity>(), &args[1]) {
        (Some(quantity), Value::Int(number)) => {
            let other = Quantity {
                amount: Amount::Scaled { value: *number, scale: 0 },
                computed: false,
            };
            Ok(Value::opaque(with(quantity, other)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

impl Quantity {
    /// Reads a number and its suffix (resource.ParseQuantity).
    fn parse(text: &str) -> Result<Quantity, String> {
        let (negative, unsigned) = match text.as_bytes().first() {
            None => return Err(PATTERN.into()),
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
        };
        let split = |text: &'_ str| text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let whole_end = split(unsigned);
        let (whole, mut rest) = unsigned.split_at(whole_end);
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            (fraction, rest) = after.split_at(split(after));
        }
        let suffix = suffix(rest)?;
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        if let Some(amount) = scaled(negative, whole, fraction, &suffix) {
            return Ok(Quantity { amount, computed: false });
        }
        let billionths = billionths(whole, fraction, &suffix);
        let billionths = if negative { -billionths } else { billionths };
        Ok(Quantity { amount: Amount::Decimal(billionths), computed: false })
    }

    fn billionths(&self) -> i128 {
        match self.amount {
            Amount::Decimal(billionths) => billionths,
            Amount::Scaled { value, scale } => {
                let factor = u32::try_from(scale + 9).ok().and_then(|exponent| 10i128.checked_pow(exponent));
                factor.map_or(i128::MAX * i128::from(value.signum()), |factor| i128::from(value).saturating_mul(factor))
            }
        }
    }

    fn compare(&self, other: &Quantity) -> Ordering {
        self.billionths().cmp(&other.billionths())
    }

    fn integer(&self) -> Option<i64> {
        match self.amount {
            Amount::Scaled { value, scale } => {
                let factor = 10i64.checked_pow(u32::try_from(scale).ok()?)?;
                value.checked_mul(factor)
            }
            Amount::Decimal(_) => None,
        }
    }

    fn approximate(&self) -> f64 {
        match self.amount {
            Amount::Scaled { value, scale: 0 } => value as f64,
            Amount::Scaled { value, scale } => value as f64 * 10f64.powi(scale),
            Amount::Decimal(billionths) => billionths as f64 * 1e-9,
        }
    }

    fn add(&self, other: &Quantity) -> Quantity {
        let scaled = match (self.amount, other.amount) {
            (Amount::Scaled { .. }, Amount::Scaled { value: 0, .. }) => Some(self.amount),
            (Amount::Scaled { value: 0, .. }, Amount::Scaled { .. }) => Some(other.amount),
            (Amount::Scaled { value, scale }, Amount::Scaled { value: added, scale: other }) => {
                let least = scale.min(other);
                let raise = |value: i64, scale: i32| {
                    let factor = 10i64.checked_pow(u32::try_from(scale - least).ok()?)?;
                    value.checked_mul(factor)
                };
                let sum = raise(value, scale)
                    .zip(raise(added, other))
                    .and_then(|(one, other)| one.checked_add(other));
                sum.map(|value| Amount::Scaled { value, scale: least })
            }
            _ => None,
        };
        let decimal = || Amount::Decimal(self.billionths().saturating_add(other.billionths()));
        Quantity { amount: scaled.unwrap_or_else(decimal), computed: true }
    }

    fn sub(&self, other: &Quantity) -> Quantity {
        let amount = match other.amount {
            Amount::Scaled { value, scale } => match value.checked_neg() {
                Some(value) => Amount::Scaled { value, scale },
                None => Amount::Decimal(other.billionths().saturating_neg()),
            },
            Amount::Decimal(billionths) => Amount::Decimal(billionths.saturating_neg()),
        };
        self.add(&Quantity { amount, computed: false })
    }
}

enum Suffix {
    /// A power of ten.
    Decimal(i64),
    /// A power of two.
    Binary(u32),
}

fn suffix(text: &str) -> Result<Suffix, String> {
    let letters = text.find(|letter: char| !"eEinumkKMGTP".contains(letter)).unwrap_or(text.len());
    let (_, rest) = text.split_at(letters);
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(PATTERN.into());
    }
    let decimal = |exponent: i64| Ok(Suffix::Decimal(exponent));
    match text {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => Ok(Suffix::Binary(10)),
        "Mi" => Ok(Suffix::Binary(20)),
        "Gi" => Ok(Suffix::Binary(30)),
        "Ti" => Ok(Suffix::Binary(40)),
        "Pi" => Ok(Suffix::Binary(50)),
        "Ei" => Ok(Suffix::Binary(60)),
        other => match other.strip_prefix(['e', 'E']).map(str::parse::<i64>) {
            Some(Ok(exponent)) => decimal(exponent),
            _ => Err("unable to parse quantity's suffix".into()),
        },
    }
}

/// The short form, if the digits and the scale allow it.
fn scaled(negative: bool, whole: &str, fraction: &str, suffix: &Suffix) -> Option<Amount> {
    let digits = whole.len() as i32 + fraction.len() as i32;
    let (exponent, factor) = match suffix {
        Suffix::Decimal(exponent) if MAX_DIGITS - digits >= 0 => (i32::try_from(*exponent).ok()?, 1i64),
        Suffix::Binary(exponent) if fraction.is_empty() => {
            let precision = 15 - digits - (*exponent as f32 * 3.0 / 10.0) as i32 - 1;
            (0, (precision >= 0).then(|| 1i64 << exponent)?)
        }
        _ => return None,
    };
    let scale = exponent.checked_sub(fraction.len() as i32).filter(|scale| *scale >= -9)?;
    let value: i64 = format!("{whole}{fraction}").parse().ok()?;
    let value = value.checked_mul(factor)?;
    Some(Amount::Scaled { value: if negative { -value } else { value }, scale })
}

/// The amount in billionths, rounded up; as much as fits.
fn billionths(whole: &str, fraction: &str, suffix: &Suffix) -> i128 {
    let digits: String = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    let (exponent, factor) = match suffix {
        Suffix::Decimal(exponent) => (*exponent, 1),
        Suffix::Binary(exponent) => (0, 1i128 << exponent),
    };
    let shift = exponent.saturating_add(9).saturating_sub(fraction.len() as i64);
    let value = match shift {
        shift if shift >= 0 => {
            let factor = u32::try_from(shift).ok().and_then(|shift| 10i128.checked_pow(shift));
            let digits: Option<i128> = digits.parse().ok();
            digits
                .zip(factor)
                .and_then(|(digits, factor)| digits.checked_mul(factor))
                .unwrap_or(i128::MAX)
        }
        shift => {
            let dropped = usize::try_from(-shift).unwrap_or(usize::MAX).min(digits.len());
            let (kept, rest) = digits.split_at(digits.len() - dropped);
            let kept: i128 = if kept.is_empty() {
                0
            } else {
                kept.parse().unwrap_or(i128::MAX)
            };
            let up = rest.bytes().any(|byte| byte != b'0') || dropped < usize::try_from(-shift).unwrap_or(usize::MAX);
            kept.saturating_add(i128::from(up))
        }
    };
    match suffix {
        Suffix::Binary(_) => value.saturating_mul(factor).min(MAX_BINARY),
        Suffix::Decimal(_) => value,
    }
}
