//! Lines of a text with the bytes that end them.

/// A line without its end, and the end: `\n`, `\r\n`, or nothing for the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line<'a> {
    pub text: &'a [u8],
    pub end: &'a [u8],
}

/// Splits a text into its lines. A text without bytes has none.
pub fn lines(text: &[u8]) -> Vec<Line<'_>> {
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines
        .map(|line| {
            let length = match line {
                [.., b'\r', b'\n'] => 2,
                [.., b'\n'] => 1,
                _ => 0,
            };
            let (text, end) = line.split_at(line.len() - length);
            Line { text, end }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_keeps_the_bytes_of_its_end() {
        let split: Vec<(&[u8], &[u8])> = lines(b"a\r\n\nb\r\r\n\r")
            .iter()
            .map(|line| (line.text, line.end))
            .collect();
        let expected: [(&[u8], &[u8]); 4] = [
            (b"a", b"\r\n"),
            (b"", b"\n"),
            (b"b\r", b"\r\n"),
            (b"\r", b""),
        ];
        assert_eq!(split, expected);
        assert_eq!(lines(b""), []);
    }
}
