//! Text of files in an encoding other than UTF-8, for display.
//!
//! Decodes what the bytes prove: UTF-16 with a byte order mark. Other bytes are shown as numbers,
//! because every 8-bit encoding would fit them.

use std::borrow::Cow;

/// Text of a file, as it is displayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisplayText<'a> {
    pub text: Cow<'a, str>,
    /// What the reader has to know about the encoding. `None` for UTF-8.
    pub note: Option<&'static str>,
}

/// Returns the text of a file. `None` if it is binary: it contains a NUL and no mark of UTF-16.
pub fn display_text(bytes: &[u8]) -> Option<DisplayText<'_>> {
    if let Some(text) = utf16_text(bytes) {
        return Some(DisplayText {
            text: Cow::Owned(text),
            note: Some("the encoding is UTF-16"),
        });
    }
    if bytes.contains(&0) {
        return None;
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Some(DisplayText {
            text: Cow::Borrowed(text),
            note: None,
        });
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Some(DisplayText {
        text: Cow::Owned(text),
        note: Some("the encoding is not UTF-8: bytes outside of it are shown as \\x.."),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The order that a byte order mark names.
    pub fn of(bytes: &[u8]) -> Option<ByteOrder> {
        match bytes {
            [0xff, 0xfe, ..] => Some(ByteOrder::Little),
            [0xfe, 0xff, ..] => Some(ByteOrder::Big),
            _ => None,
        }
    }

    /// Encodes a text without a mark.
    pub fn encode(self, text: &str) -> Vec<u8> {
        let units = text.encode_utf16();
        units
            .flat_map(|unit| match self {
                ByteOrder::Little => unit.to_le_bytes(),
                ByteOrder::Big => unit.to_be_bytes(),
            })
            .collect()
    }
}

/// Decodes UTF-16 with a byte order mark, without the mark. `None` if it has none or is damaged.
pub fn utf16_text(bytes: &[u8]) -> Option<String> {
    let order = ByteOrder::of(bytes)?;
    let bytes = &bytes[2..];
    let units: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| match order {
            ByteOrder::Little => u16::from_le_bytes([pair[0], pair[1]]),
            ByteOrder::Big => u16::from_be_bytes([pair[0], pair[1]]),
        })
        .collect();
    let is_whole = bytes.len().is_multiple_of(2);
    is_whole.then(|| String::from_utf16(&units).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_bytes_prove_is_decoded() {
        let check = |bytes: &[u8], expected: Option<&str>| {
            let text = display_text(bytes).map(|shown| shown.text.into_owned());
            assert_eq!(text.as_deref(), expected, "{bytes:?}");
        };
        check("é\n".as_bytes(), Some("é\n"));
        check(b"caf\xe9\n", Some("caf\\xe9\n"));
        check(b"\xff\xfea\0\n\0", Some("a\n"));
        check(b"\xfe\xff\0a", Some("a"));
        // UTF-16 without a mark is not guessed.
        check(b"a\0\n\0", None);
        // Shift-JIS and Latin-1 have the same bytes.
        check(b"\x83\x41\n", Some("\\x83A\n"));
        check(b"\xff\xfea", Some("\\xff\\xfea"));
    }
}
