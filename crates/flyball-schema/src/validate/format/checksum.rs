//! Numbers that carry a check digit: books and credit cards.

use super::pattern;
use crate::pattern::Pattern;
use std::sync::LazyLock;

static CREDIT_CARD: LazyLock<Pattern> = LazyLock::new(|| {
    pattern(concat!(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}",
        r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})$",
    ))
});

pub(super) fn is_isbn10(text: &str) -> bool {
    let characters = without_separators(text);
    let [first @ .., last] = characters.as_slice() else {
        return false;
    };
    let last = if *last == 'X' { Some(10) } else { last.to_digit(10) };
    let digits: Option<Vec<u32>> = first.iter().map(|digit| digit.to_digit(10)).chain([last]).collect();
    let weighted = |digits: Vec<u32>| digits.iter().zip(1..).map(|(digit, weight)| digit * weight).sum::<u32>();
    characters.len() == 10 && digits.is_some_and(|digits| weighted(digits) % 11 == 0)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let digits: Option<Vec<u32>> = without_separators(text).iter().map(|digit| digit.to_digit(10)).collect();
    let weighted = |digits: Vec<u32>| digits.iter().zip([1, 3].into_iter().cycle()).map(|(a, b)| a * b).sum::<u32>();
    digits.is_some_and(|digits| digits.len() == 13 && weighted(digits) % 10 == 0)
}

fn without_separators(text: &str) -> Vec<char> {
    text.chars()
        .filter(|character| !matches!(character, ' ' | '\t' | '\n' | '\x0c' | '\r' | '-'))
        .collect()
}

pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let doubled = |digit: u32| if digit > 4 { digit * 2 - 9 } else { digit * 2 };
    let sum: u32 = digits
        .chars()
        .rev()
        .filter_map(|digit| digit.to_digit(10))
        .enumerate()
        .map(|(index, digit)| if index % 2 == 1 { doubled(digit) } else { digit })
        .sum();
    CREDIT_CARD.is_match(&digits) && sum.is_multiple_of(10)
}
