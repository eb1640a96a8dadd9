//! Decimal numbers of any size: digits and an exponent. Just what quantities need.

use std::cmp::Ordering;

#[derive(Clone, Debug)]
pub(super) struct Decimal {
    pub(super) negative: bool,
    /// The digits, the most significant first, without leading zeros; none for zero.
    digits: Vec<u8>,
    pub(super) exponent: i32,
}

impl Decimal {
    pub(super) fn new(negative: bool, digits: &str, exponent: i32) -> Decimal {
        let digits = digits.trim_start_matches('0').bytes().map(|byte| byte - b'0').collect();
        Decimal { negative, digits, exponent }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The nearest floating-point number.
    pub(super) fn approximate(&self) -> f64 {
        let digits: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}0{digits}e{}", self.exponent).parse().unwrap_or(f64::INFINITY)
    }

    /// Multiplies by a power of two.
    pub(super) fn double(&mut self, times: i32) {
        for _ in 0..times {
            let mut carry = 0;
            for digit in self.digits.iter_mut().rev() {
                let doubled = *digit * 2 + carry;
                *digit = doubled % 10;
                carry = doubled / 10;
            }
            if carry > 0 {
                self.digits.insert(0, carry);
            }
        }
    }

    /// Rounds away from zero to a multiple of a power of ten.
    pub(super) fn round_up(&mut self, exponent: i32) {
        let excess = i64::from(exponent) - i64::from(self.exponent);
        if self.is_zero() || excess <= 0 {
            return;
        }
        let kept = self.digits.len().saturating_sub(usize::try_from(excess).unwrap_or(usize::MAX));
        let lost = self.digits.split_off(kept);
        self.exponent = exponent;
        if lost.iter().any(|digit| *digit != 0) {
            self.increment();
        }
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
    }

    /// Makes the size at most this.
    pub(super) fn cap(&mut self, most: u64) {
        let most = Decimal::new(self.negative, &most.to_string(), 0);
        if self.cmp_size(&most) == Ordering::Greater {
            *self = most;
        }
    }

    /// Whether the size is between zero and one.
    pub(super) fn is_fraction(&self) -> bool {
        !self.is_zero() && self.magnitude() <= 0
    }

    /// How many digits stand before the point.
    fn magnitude(&self) -> i64 {
        self.digits.len() as i64 + i64::from(self.exponent)
    }

    /// The size as an integer, if it is one of at most 38 digits.
    pub(super) fn as_integer(&self) -> Option<u128> {
        let (digits, exponent) = self.stripped();
        if exponent < 0 || self.magnitude() > 38 {
            return None;
        }
        let value = digits.iter().fold(0_u128, |value, digit| value * 10 + u128::from(*digit));
        Some(value * 10_u128.pow(exponent.unsigned_abs()))
    }

    /// The digits and the exponent, which is a multiple of three.
    pub(super) fn by_thousands(&self) -> (String, i32) {
        let (digits, mut exponent) = self.stripped();
        let mut text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        while exponent % 3 != 0 {
            text.push('0');
            exponent -= 1;
        }
        (text, exponent)
    }

    fn stripped(&self) -> (&[u8], i32) {
        let zeros = self.digits.iter().rev().take_while(|digit| **digit == 0).count();
        (&self.digits[..self.digits.len() - zeros], self.exponent.saturating_add(zeros as i32))
    }

    /// The sum of two sizes that have one sign, if their digits lie near each other.
    pub(super) fn plus(&self, other: &Decimal) -> Option<Decimal> {
        let (one, another, exponent) = self.aligned(other)?;
        let (mut digits, mut carry) = (Vec::new(), 0);
        for place in 0..one.len().max(another.len()) {
            let sum = one.get(place).unwrap_or(&0) + another.get(place).unwrap_or(&0) + carry;
            digits.push(sum % 10);
            carry = sum / 10;
        }
        digits.extend((carry > 0).then_some(carry));
        digits.reverse();
        Some(Decimal { negative: self.negative, digits, exponent })
    }

    /// The difference to a smaller number, neither of them negative, if their digits lie near each other.
    pub(super) fn minus(&self, other: &Decimal) -> Option<Decimal> {
        let (one, another, exponent) = self.aligned(other)?;
        let (mut digits, mut borrow) = (Vec::new(), 0);
        for (place, digit) in one.iter().enumerate() {
            let taken = another.get(place).unwrap_or(&0) + borrow;
            borrow = u8::from(*digit < taken);
            digits.push(digit + 10 * borrow - taken);
        }
        while digits.last() == Some(&0) {
            digits.pop();
        }
        digits.reverse();
        Some(Decimal { negative: false, digits, exponent })
    }

    /// The digits of both numbers, the least significant first, and their common exponent.
    fn aligned(&self, other: &Decimal) -> Option<(Vec<u8>, Vec<u8>, i32)> {
        const FARTHEST: i32 = 64;
        let exponent = self.exponent.min(other.exponent);
        let shifted = |number: &Decimal| {
            let zeros = number.exponent.checked_sub(exponent).filter(|zeros| *zeros <= FARTHEST)?;
            let mut digits = number.digits.clone();
            digits.extend((0..zeros).map(|_| 0));
            digits.reverse();
            Some(digits)
        };
        Some((shifted(self)?, shifted(other)?, exponent))
    }

    fn cmp_size(&self, other: &Decimal) -> Ordering {
        match (self.is_zero(), other.is_zero()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Equal magnitudes align the first digits, so the digits compare as text does.
            _ => self
                .magnitude()
                .cmp(&other.magnitude())
                .then_with(|| self.stripped().0.cmp(other.stripped().0)),
        }
    }

    pub(super) fn cmp(&self, other: &Decimal) -> Ordering {
        let sign = |number: &Decimal| match (number.is_zero(), number.negative) {
            (true, _) => 0,
            (_, true) => -1,
            _ => 1,
        };
        sign(self).cmp(&sign(other)).then_with(|| match sign(self) {
            -1 => other.cmp_size(self),
            _ => self.cmp_size(other),
        })
    }
}
