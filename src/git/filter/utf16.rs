//! UTF-16 files (`working-tree-encoding`). gix decodes them, but writes UTF-8 on checkout.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Utf16 {
    /// Little-endian byte order.
    little: bool,
    /// Whether the file starts with a byte order mark.
    mark: bool,
    /// Whether the mark of an existing file determines its byte order.
    either: bool,
}

const BYTE_ORDER_MARK: char = '\u{feff}';
/// It, where the higher byte comes first.
pub(super) const BIG_ENDIAN_MARK: [u8; 2] = [0xfe, 0xff];

impl Utf16 {
    /// Returns the encoding that git means by a name; `None` if it is not UTF-16.
    pub(super) fn from_name(name: &[u8]) -> Option<Utf16> {
        let name = name.to_ascii_uppercase();
        let (little, mark) = match name.as_slice() {
            // The system's byte order, as in iconv.
            b"UTF-16" | b"UTF16" => (cfg!(target_endian = "little"), true),
            b"UTF-16LE" | b"UTF16LE" => (true, false),
            b"UTF-16BE" | b"UTF16BE" => (false, false),
            b"UTF-16LE-BOM" => (true, true),
            b"UTF-16BE-BOM" => (false, true),
            _ => return None,
        };
        let either = mark && !name.ends_with(b"-BOM");
        Some(Utf16 {
            little,
            mark,
            either,
        })
    }

    /// Encodes a text. Content that is not UTF-8 is returned unchanged.
    pub(super) fn encode(self, text: Vec<u8>) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(&text) else {
            return text;
        };
        let mark = self
            .mark
            .then_some(BYTE_ORDER_MARK)
            .filter(|_| !text.is_empty());
        let mut buffer = [0; 2];
        let mut bytes = Vec::with_capacity(2 * text.len() + 2);
        for character in mark.into_iter().chain(text.chars()) {
            for unit in character.encode_utf16(&mut buffer) {
                bytes.extend(match self.little {
                    true => unit.to_le_bytes(),
                    false => unit.to_be_bytes(),
                });
            }
        }
        bytes
    }

    /// Returns the text of a file's bytes and the form that they have, `None` if they are not valid text.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<(String, Utf16)> {
        let (little, mark) = match bytes {
            [0xff, 0xfe, ..] => (true, true),
            [0xfe, 0xff, ..] => (false, true),
            _ => (self.little, false),
        };
        let bytes = if mark { &bytes[2..] } else { bytes };
        let units = bytes.chunks_exact(2);
        if !units.remainder().is_empty() {
            return None;
        }
        let unit = |pair: &[u8]| match little {
            true => u16::from_le_bytes([pair[0], pair[1]]),
            false => u16::from_be_bytes([pair[0], pair[1]]),
        };
        let units: Vec<u16> = units.map(unit).collect();
        let form = Utf16 {
            little,
            mark,
            either: false,
        };
        Some((String::from_utf16(&units).ok()?, form))
    }

    /// Puts the lower byte of each unit first, which is how gix reads a file of either order.
    pub(super) fn turned(self, mut bytes: Vec<u8>) -> Vec<u8> {
        if self.either && bytes.starts_with(&BIG_ENDIAN_MARK) {
            bytes.chunks_exact_mut(2).for_each(<[u8]>::reverse);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[u8]) {
        let encoding = Utf16::from_name(name.as_bytes()).unwrap();
        assert_eq!(encoding.encode(text.into()), expected, "{name}");
    }

    #[test]
    fn a_text_is_encoded_as_git_names_it() {
        check("utf-16le", "a\u{10000}", b"a\0\0\xd8\0\xdc");
        check("UTF-16BE", "a\u{e9}", b"\0a\0\xe9");
        check("UTF-16LE-BOM", "a", b"\xff\xfea\0");
        check("UTF-16BE-BOM", "a", b"\xfe\xff\0a");
        #[cfg(target_endian = "little")]
        check("UTF-16", "a", b"\xff\xfea\0");
        check("UTF-16", "", b"");
        assert_eq!(Utf16::from_name(b"ISO-8859-1"), None);
    }

    #[test]
    fn a_text_is_encoded_in_the_form_that_it_had() {
        let encoding = Utf16::from_name(b"UTF-16").unwrap();
        for bytes in [&b"\xff\xfea\0"[..], b"\xfe\xff\0a", b"a\0"] {
            let (text, form) = encoding.decode(bytes).unwrap();
            assert_eq!(
                (text.as_str(), form.encode(text.clone().into())),
                ("a", bytes.to_vec())
            );
        }
        assert!(encoding.decode(b"abc").is_none());
    }

    #[test]
    fn what_is_no_text_stays() {
        let encoding = Utf16::from_name(b"UTF-16LE").unwrap();
        assert_eq!(encoding.encode(b"h\0\xff\xfe".to_vec()), b"h\0\xff\xfe");
    }

    #[test]
    fn a_mark_says_which_byte_comes_first() {
        let either = Utf16::from_name(b"UTF-16").unwrap();
        assert_eq!(either.turned(b"\xfe\xff\0a".to_vec()), b"\xff\xfea\0");
        assert_eq!(either.turned(b"\xff\xfea\0".to_vec()), b"\xff\xfea\0");
        let big = Utf16::from_name(b"UTF-16BE").unwrap();
        assert_eq!(big.turned(b"\xfe\xff\0a".to_vec()), b"\xfe\xff\0a");
    }
}
