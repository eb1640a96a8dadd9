//! Objects of one kind resemble each other. What a text shares with a template is kept as a reference to it: a fraction of the
//! memory, for a few copies when it is read.

/// Shorter likenesses are not worth a reference.
const WINDOW: usize = 8;
/// Longer texts are not used as templates.
const MAX_TEMPLATE_BYTES: usize = 32 * 1_024;

/// A text, and where in it each window of eight bytes is found.
pub(crate) struct Template {
    text: Box<[u8]>,
    /// A place and one, by the hash of the window that begins there; zero where there is none.
    places: Box<[u16]>,
}

impl Template {
    /// Makes a text a template, unless it is too long.
    pub(crate) fn new(text: &str) -> Option<Template> {
        if text.len() > MAX_TEMPLATE_BYTES {
            return None;
        }
        let text: Box<[u8]> = text.as_bytes().into();
        let mut places = vec![0; text.len().next_power_of_two() * 2].into_boxed_slice();
        for (place, window) in (1..).zip(text.windows(WINDOW)) {
            let known = &mut places[slot(window, places.len())];
            if *known == 0 {
                *known = place;
            }
        }
        Some(Template { text, places })
    }

    /// How much memory it takes, about.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.places)
    }

    /// A text as its difference to the template.
    pub(crate) fn pack(&self, text: &str) -> Vec<u8> {
        let text = text.as_bytes();
        let mut packed = Vec::with_capacity(text.len() / 4);
        // From `literal` to `at` nothing was found; had it been the same as in the template, `expected` would be next.
        let (mut literal, mut at, mut expected) = (0, 0, 0);
        while at < text.len() {
            let Some((place, length)) = self.find(&text[at..], expected) else {
                (at, expected) = (at + 1, expected + 1);
                continue;
            };
            write_literal(&mut packed, &text[literal..at]);
            write_number(&mut packed, length << 1 | 1);
            write_number(&mut packed, place);
            at += length;
            (literal, expected) = (at, place + length);
        }
        write_literal(&mut packed, &text[literal..]);
        packed
    }

    /// Where the template is like a text for longest, and for how long.
    fn find(&self, text: &[u8], expected: usize) -> Option<(usize, usize)> {
        let window = text.get(..WINDOW)?;
        let hashed = self.places[slot(window, self.places.len())];
        let hashed = usize::from(hashed).checked_sub(1);
        let places = hashed.into_iter().chain([expected]);
        let found = places.map(|place| (place, likeness(text, self.text.get(place..).unwrap_or_default())));
        found.filter(|(_, length)| *length >= WINDOW).max_by_key(|(_, length)| *length)
    }

    /// The text of which this is the difference.
    pub(crate) fn unpack(&self, mut packed: &[u8]) -> String {
        let mut text = Vec::with_capacity(self.text.len() + packed.len());
        while !packed.is_empty() {
            let number = read_number(&mut packed);
            let length = number >> 1;
            if number & 1 == 1 {
                let place = read_number(&mut packed);
                text.extend_from_slice(&self.text[place..place + length]);
            } else {
                let (literal, rest) = packed.split_at(length);
                text.extend_from_slice(literal);
                packed = rest;
            }
        }
        String::from_utf8(text).expect("packed from a text")
    }
}

fn slot(window: &[u8], slots: usize) -> usize {
    let window = u64::from_le_bytes(window.try_into().expect("a window is eight bytes"));
    // Fibonacci hashing: the highest bits are the best ones.
    (window.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - slots.trailing_zeros())) as usize
}

/// For how many bytes two texts are the same.
fn likeness(one: &[u8], other: &[u8]) -> usize {
    let words = one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0);
    let same = words.take_while(|(one, other)| one == other).count() * 8;
    let rest = one[same..].iter().zip(&other[same..]);
    same + rest.take_while(|(one, other)| one == other).count()
}

fn write_literal(packed: &mut Vec<u8>, literal: &[u8]) {
    if !literal.is_empty() {
        write_number(packed, literal.len() << 1);
        packed.extend_from_slice(literal);
    }
}

/// Seven bits a byte, the lowest first.
fn write_number(packed: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        packed.push(number as u8 | 0x80);
        number >>= 7;
    }
    packed.push(number as u8);
}

fn read_number(packed: &mut &[u8]) -> usize {
    let (mut number, mut shift) = (0, 0);
    while let Some((byte, rest)) = packed.split_first() {
        *packed = rest;
        number |= usize::from(byte & 0x7F) << shift;
        shift += 7;
        if *byte < 0x80 {
            break;
        }
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::{BuildHasher, RandomState};

    #[test]
    fn a_text_is_the_same_after_it_was_packed() {
        let template = Template::new(r#"{"kind":"Thing","metadata":{"name":"ada","größe":"riesig"}}"#).unwrap();
        for text in [
            "",
            "{",
            r#"{"kind":"Thing","metadata":{"name":"ada","größe":"riesig"}}"#,
            r#"{"kind":"Thing","metadata":{"name":"grace","größe":"rüstig"}}"#,
            r#"{"metadata":{"name":"ada"},"kind":"Thing"}"#,
            &"nothing of it ".repeat(100),
        ] {
            assert_eq!(template.unpack(&template.pack(text)), text);
        }
    }

    #[test]
    fn any_text_is_the_same_after_it_was_packed() {
        let seed = RandomState::new().hash_one("seed");
        let mut state = seed;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut text = |length: usize| -> String { (0..length).map(|_| ['a', 'b', '"', 'ü'][random(4)]).collect() };
        for round in 0..500 {
            let template = text(round);
            let packed = Template::new(&template).unwrap();
            for other in [
                text(round),
                template[..].replace("ab", "ba"),
                format!("{}{template}", text(9)),
            ] {
                assert_eq!(packed.unpack(&packed.pack(&other)), other, "seed {seed}");
            }
        }
    }

    #[test]
    fn what_is_like_the_template_takes_little() {
        let text = |number: usize| {
            let settings =
                (0..20).map(|index| format!(r#"{{"name":"SETTING_{index}","value":"{index} of a thing's"}}"#));
            let settings: Vec<_> = settings.collect();
            format!(r#"{{"metadata":{{"name":"thing-{number}"}},"spec":[{}]}}"#, settings.join(","))
        };
        let template = Template::new(&text(1)).unwrap();
        assert!(template.pack(&text(1)).len() < 8);
        assert!(template.pack(&text(77_777)).len() < text(77_777).len() / 8);
    }

    #[test]
    fn what_is_very_long_is_no_template() {
        assert!(Template::new(&"x".repeat(MAX_TEMPLATE_BYTES + 1)).is_none());
    }
}
