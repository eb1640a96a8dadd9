//! Protobuf's own grammar: tags, numbers of variable length, and bytes with their length in front.

use super::DecodeError;

/// A field as it is written, before its type is known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32,
    Group,
}

impl<'a> Written<'a> {
    /// The bytes of a string or a message.
    pub(super) fn bytes(self, field: &str) -> Result<&'a [u8], DecodeError> {
        match self {
            Written::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong(field)),
        }
    }

    /// A string; what is no UTF-8 becomes U+FFFD, as where Go writes it in JSON.
    pub(super) fn text(self, field: &str) -> Result<String, DecodeError> {
        self.bytes(field).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// A number of variable length.
    pub(super) fn varint(self, field: &str) -> Result<u64, DecodeError> {
        match self {
            Written::Varint(number) => Ok(number),
            _ => Err(self.wrong(field)),
        }
    }

    pub(super) fn wrong(self, field: &str) -> DecodeError {
        let found = match self {
            Written::Varint(_) => 0,
            Written::Fixed64(_) => 1,
            Written::Bytes(_) => 2,
            Written::Group => 3,
            Written::Fixed32 => 5,
        };
        let field = match field {
            "metadata" => "objectMeta",
            field => field,
        };
        let mut letters = field.chars();
        let field =
            letters.next().map_or(String::new(), |first| first.to_ascii_uppercase().to_string()) + letters.as_str();
        DecodeError::WrongWireType { found, field }
    }
}

/// Calls `take` with the number and the value of each field of a message.
pub(super) fn each_field<'a>(
    bytes: &'a [u8],
    message: &str,
    mut take: impl FnMut(u32, Written<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let tag = varint(&mut rest)?;
        if tag & 7 == 4 {
            return Err(DecodeError::EndGroup(message.to_owned()));
        }
        // Go keeps the low 32 bits.
        let number = (tag >> 3) as i32;
        let Ok(positive @ 1..) = u32::try_from(number) else {
            return Err(DecodeError::Tag { message: message.to_owned(), number, tag });
        };
        take(positive, written(&mut rest, tag)?)?;
    }
    Ok(())
}

fn written<'a>(rest: &mut &'a [u8], tag: u64) -> Result<Written<'a>, DecodeError> {
    match tag & 7 {
        0 => varint(rest).map(Written::Varint),
        1 => {
            let (number, after) = rest.split_first_chunk().ok_or(DecodeError::End)?;
            *rest = after;
            Ok(Written::Fixed64(u64::from_le_bytes(*number)))
        }
        2 => length_delimited(rest).map(Written::Bytes),
        3 => {
            skip_group(rest)?;
            Ok(Written::Group)
        }
        5 => {
            *rest = rest.get(4..).ok_or(DecodeError::End)?;
            Ok(Written::Fixed32)
        }
        other => Err(DecodeError::WireType(other as u8)),
    }
}

/// Skips what stands between the beginning and the end of a group; groups may lie in each other.
fn skip_group(rest: &mut &[u8]) -> Result<(), DecodeError> {
    let mut open = 1_usize;
    while open > 0 {
        let tag = varint(rest)?;
        match tag & 7 {
            3 => open += 1,
            4 => open -= 1,
            _ => {
                written(rest, tag)?;
            }
        }
    }
    Ok(())
}

fn length_delimited<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let length = varint(rest)?;
    let length = i64::try_from(length).map_err(|_| DecodeError::Length)?;
    let length = usize::try_from(length).map_err(|_| DecodeError::Length)?;
    let (bytes, after) = rest.split_at_checked(length).ok_or(DecodeError::End)?;
    *rest = after;
    Ok(bytes)
}

/// Reads a number of variable length.
pub(super) fn varint(rest: &mut &[u8]) -> Result<u64, DecodeError> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, after) = rest.split_first().ok_or(DecodeError::End)?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    Err(DecodeError::Overflow)
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes a field that is a number of variable length.
pub(super) fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number) << 3);
    put_varint(out, value);
}

/// Writes a field of eight bytes.
pub(super) fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a field that is a string or bytes.
pub(super) fn put_bytes(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    put_varint(out, u64::from(number) << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Writes a field that is a message: what `write` appends, with its length in front.
pub(super) fn delimited<E>(
    out: &mut Vec<u8>,
    number: u32,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    put_varint(out, u64::from(number) << 3 | 2);
    // Most messages are short: one byte is kept for the length, and more are made room for when it is known.
    let at = out.len();
    out.push(0);
    write(out)?;
    let length = out.len() - at - 1;
    if length < 0x80 {
        out[at] = length as u8;
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(10);
    put_varint(&mut bytes, length as u64);
    out.splice(at..=at, bytes);
    Ok(())
}
