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
    /// `value * 10^scale`
    Scaled { value: i64, scale: i32 },
    /// `unscaled / 10^places`, up to the largest number there is.
    Decimal { unscaled: i128, places: i32 },
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
        let (unscaled, places) = self.decimal();
        let billionths = raise(unscaled, 9 - places).unwrap_or_else(|| saturated(unscaled));
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
        one(args, |quantity| Ok(Value::Int(quantity.decimal().0.signum() as i64)))
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
        let unscaled = if negative { -billionths } else { billionths };
        Ok(Quantity {
            amount: Amount::Decimal { unscaled, places: 9 },
            computed: false,
        })
    }

    /// The number without its decimal places, and how many there are.
    fn decimal(&self) -> (i128, i32) {
        match self.amount {
            Amount::Decimal { unscaled, places } => (unscaled, places),
            Amount::Scaled { value, scale } => (value.into(), scale.saturating_neg()),
        }
    }

    fn compare(&self, other: &Quantity) -> Ordering {
        let (one, places) = self.decimal();
        let (other, other_places) = other.decimal();
        let most = places.max(other_places);
        match (raise(one, most.saturating_sub(places)), raise(other, most.saturating_sub(other_places))) {
            (Some(one), Some(other)) => one.cmp(&other),
            // A number that does not fit with so many places exceeds one that does.
            (None, _) => one.cmp(&0),
            (_, None) => 0.cmp(&other),
        }
    }

    fn integer(&self) -> Option<i64> {
        match self.amount {
            Amount::Scaled { value, scale } => {
                let factor = 10i64.checked_pow(u32::try_from(scale).ok()?)?;
                value.checked_mul(factor)
            }
            Amount::Decimal { .. } => None,
        }
    }

    fn approximate(&self) -> f64 {
        let (unscaled, places) = self.decimal();
        match places {
            0 => unscaled as f64,
            places => unscaled as f64 * power_of_ten(places.saturating_neg()),
        }
    }

    fn add(&self, other: &Quantity) -> Quantity {
        let scaled = match (self.amount, other.amount) {
            (Amount::Scaled { value, scale }, Amount::Scaled { value: added, scale: other }) => {
                scaled_sum((value, scale), (added, other))
            }
            _ => None,
        };
        self.sum(scaled, other.decimal())
    }

    fn sub(&self, other: &Quantity) -> Quantity {
        let scaled = match (self.amount, other.amount) {
            (Amount::Scaled { value, scale }, Amount::Scaled { value: subtracted, scale: other }) => {
                // The least integer stays negative, as in Go.
                scaled_sum((value, scale), (subtracted.wrapping_neg(), other))
            }
            _ => None,
        };
        let (unscaled, places) = other.decimal();
        self.sum(scaled, (unscaled.saturating_neg(), places))
    }

    /// The sum in short form if there is one, otherwise with as many places as the longer of the two.
    fn sum(&self, scaled: Option<Amount>, (other, other_places): (i128, i32)) -> Quantity {
        let amount = scaled.unwrap_or_else(|| {
            let (one, places) = self.decimal();
            let most = places.max(other_places);
            let raised = |unscaled: i128, places: i32| {
                raise(unscaled, most.saturating_sub(places)).unwrap_or_else(|| saturated(unscaled))
            };
            let unscaled = raised(one, places).saturating_add(raised(other, other_places));
            Amount::Decimal { unscaled, places: most }
        });
        Quantity { amount, computed: true }
    }
}

/// The sum of two amounts in the smaller scale of the two, if it fits (int64Amount.Add).
fn scaled_sum((one, scale): (i64, i32), (other, other_scale): (i64, i32)) -> Option<Amount> {
    if other == 0 {
        return Some(Amount::Scaled { value: one, scale });
    }
    if one == 0 {
        return Some(Amount::Scaled { value: other, scale: other_scale });
    }
    let least = scale.min(other_scale);
    let raised = |value: i64, scale: i32| {
        let factor = 10i64.checked_pow(u32::try_from(i64::from(scale) - i64::from(least)).ok()?)?;
        value.checked_mul(factor)
    };
    let value = raised(one, scale)?.checked_add(raised(other, other_scale)?)?;
    Some(Amount::Scaled { value, scale: least })
}

/// A number with more decimal places, if it fits.
fn raise(unscaled: i128, places: i32) -> Option<i128> {
    if unscaled == 0 {
        return Some(0);
    }
    10i128
        .checked_pow(u32::try_from(places).ok()?)
        .and_then(|factor| unscaled.checked_mul(factor))
}

fn saturated(unscaled: i128) -> i128 {
    i128::MAX.saturating_mul(unscaled.signum())
}

/// `10^exponent`, rounded as Go's `math.Pow10` rounds it.
fn power_of_ten(exponent: i32) -> f64 {
    let exact = |exponent: u32| format!("1e{exponent}").parse::<f64>().unwrap_or(f64::INFINITY);
    let (high, low) = (exponent.unsigned_abs() / 32 * 32, exponent.unsigned_abs() % 32);
    match exponent {
        309.. => f64::INFINITY,
        0..309 => exact(high) * exact(low),
        -323..0 => format!("1e-{high}").parse::<f64>().unwrap_or(0.0) / exact(low),
        _ => 0.0,
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
