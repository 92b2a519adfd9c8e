//! UTF-16 and UTF-32 in files, with the byte order marks that git requires, refuses or writes.

const BYTE_ORDER_MARK: char = '\u{feff}';

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wide {
    unit: Unit,
    little: bool,
    /// Whether a checkout writes a byte order mark.
    mark: bool,
    reads: Reads,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Two,
    Four,
}

/// Which files git stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reads {
    WithMark,
    WithoutMark,
    Both,
    /// git passes the name to iconv, which does not know it. A checkout writes these files.
    Empty,
}

impl Wide {
    /// Returns the encoding that git means by a name; `None` if it is another one.
    pub(super) fn from_name(name: &[u8]) -> Option<Wide> {
        // The system's byte order, as in iconv.
        const NATIVE: bool = cfg!(target_endian = "little");

        let name = name.to_ascii_uppercase();
        let name = name.strip_prefix(b"UTF")?;
        let (unit, little, mark, reads) = match name.strip_prefix(b"-").unwrap_or(name) {
            b"16" => (Unit::Two, NATIVE, true, Reads::WithMark),
            b"16LE" => (Unit::Two, true, false, Reads::WithoutMark),
            b"16BE" => (Unit::Two, false, false, Reads::WithoutMark),
            b"16LE-BOM" => (Unit::Two, true, true, Reads::Both),
            b"16BE-BOM" => (Unit::Two, false, true, Reads::Empty),
            b"32" => (Unit::Four, NATIVE, true, Reads::WithMark),
            b"32LE" => (Unit::Four, true, false, Reads::WithoutMark),
            b"32BE" => (Unit::Four, false, false, Reads::WithoutMark),
            _ => return None,
        };
        Some(Wide {
            unit,
            little,
            mark,
            reads,
        })
    }

    /// Encodes a text. Content that is not UTF-8 is returned unchanged, as git writes it.
    pub(super) fn encode(self, text: Vec<u8>) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(&text) else {
            return text;
        };
        let mark = self
            .mark
            .then_some(BYTE_ORDER_MARK)
            .filter(|_| !text.is_empty());
        let mut bytes = Vec::with_capacity(2 * text.len() + 4);
        for character in mark.into_iter().chain(text.chars()) {
            self.push(&mut bytes, character);
        }
        bytes
    }

    fn push(self, bytes: &mut Vec<u8>, character: char) {
        match (self.unit, self.little) {
            (Unit::Two, little) => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    bytes.extend(match little {
                        true => unit.to_le_bytes(),
                        false => unit.to_be_bytes(),
                    });
                }
            }
            (Unit::Four, true) => bytes.extend(u32::from(character).to_le_bytes()),
            (Unit::Four, false) => bytes.extend(u32::from(character).to_be_bytes()),
        }
    }

    /// Returns the text, and the encoding with the byte order and mark of these bytes. `None` if git
    /// refuses them.
    pub(super) fn decode(self, bytes: &[u8]) -> Option<(String, Wide)> {
        if bytes.is_empty() {
            return Some((String::new(), self));
        }
        let found = [true, false].into_iter().find_map(|little| {
            let mut mark = Vec::new();
            Wide { little, ..self }.push(&mut mark, BYTE_ORDER_MARK);
            Some((little, bytes.strip_prefix(mark.as_slice())?))
        });
        let (little, text) = match (self.reads, found) {
            (Reads::WithMark | Reads::Both, Some(found)) => found,
            (Reads::WithoutMark | Reads::Both, None) => (self.little, bytes),
            _ => return None,
        };
        let form = Wide {
            little,
            mark: found.is_some(),
            ..self
        };
        Some((form.decode_unmarked(text)?, form))
    }

    fn decode_unmarked(self, bytes: &[u8]) -> Option<String> {
        match self.unit {
            Unit::Two => {
                let (units, rest) = bytes.as_chunks();
                let unit = match self.little {
                    true => u16::from_le_bytes,
                    false => u16::from_be_bytes,
                };
                let units: Vec<u16> = units.iter().copied().map(unit).collect();
                String::from_utf16(&units).ok().filter(|_| rest.is_empty())
            }
            Unit::Four => {
                let (units, rest) = bytes.as_chunks();
                let unit = match self.little {
                    true => u32::from_le_bytes,
                    false => u32::from_be_bytes,
                };
                let text = units.iter().map(|bytes| char::from_u32(unit(*bytes)));
                text.collect::<Option<String>>().filter(|_| rest.is_empty())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Wide {
        Wide::from_name(name.as_bytes()).unwrap()
    }

    #[track_caller]
    fn check(name: &str, text: &str, expected: &[u8]) {
        assert_eq!(named(name).encode(text.into()), expected, "{name}");
    }

    #[test]
    fn a_text_is_encoded_as_git_names_it() {
        check("utf-16le", "a\u{10000}", b"a\0\0\xd8\0\xdc");
        check("UTF-16BE", "a\u{e9}", b"\0a\0\xe9");
        check("UTF-16LE-BOM", "a", b"\xff\xfea\0");
        check("UTF-16BE-BOM", "a", b"\xfe\xff\0a");
        check("utf32le", "\u{1f600}", b"\0\xf6\x01\0");
        check("UTF-32BE", "a", b"\0\0\0a");
        #[cfg(target_endian = "little")]
        {
            check("UTF-16", "a", b"\xff\xfea\0");
            check("UTF-32", "a", b"\xff\xfe\0\0a\0\0\0");
        }
        check("UTF-16", "", b"");
        for other in ["ISO-8859-1", "UTF-8", "UTF-7", "UTF-32LE-BOM"] {
            assert_eq!(Wide::from_name(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_text_is_encoded_in_the_form_that_it_had() {
        let forms: [(&str, &[u8]); 7] = [
            ("UTF-16", b"\xff\xfea\0"),
            ("UTF-16", b"\xfe\xff\0a"),
            ("UTF-16LE-BOM", b"a\0"),
            ("UTF-16LE-BOM", b"\xfe\xff\0a"),
            ("UTF-32", b"\xff\xfe\0\0a\0\0\0"),
            ("UTF-32", b"\0\0\xfe\xff\0\0\0a"),
            ("UTF-32BE", b"\0\0\0a"),
        ];
        for (name, bytes) in forms {
            let (text, form) = named(name).decode(bytes).unwrap();
            assert_eq!(
                (text.as_str(), form.encode(text.clone().into())),
                ("a", bytes.to_vec()),
                "{name}"
            );
        }
    }

    #[test]
    fn what_is_no_text_stays() {
        assert_eq!(
            named("UTF-16LE").encode(b"h\0\xff\xfe".to_vec()),
            b"h\0\xff\xfe"
        );
    }
}
