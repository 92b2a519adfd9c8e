//! Reads an agent's transcript for a turn: truncated, redacted, and named by its format.

use std::path::Path;

use anyhow::Context as _;

use crate::host::file::{FileEnd, Root, read_end};
use crate::text::secret::redact;

/// In bytes. The end of a longer transcript is kept.
pub const MAX_TRANSCRIPT: u64 = 2 << 20;
const LOOKED_AT: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcript {
    pub name: &'static str,
    pub text: String,
}

/// Refuses symlinks and special files.
pub fn read(path: &Path) -> anyhow::Result<Transcript> {
    let describe = || format!("cannot read the transcript `{}`", path.display());
    let name = path.file_name().with_context(describe)?;
    let dir = path.parent().unwrap_or(Path::new(""));
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };

    let root = Root::open(dir)?;
    let end = read_end(&root, Path::new(name), 0, MAX_TRANSCRIPT)?;
    Ok(transcript(&name.to_string_lossy(), end))
}

/// If the content does not determine the format, the file name does.
pub fn transcript(name: &str, end: FileEnd) -> Transcript {
    let FileEnd { bytes, left_out } = end;
    let text = String::from_utf8_lossy(&bytes);
    let text = match text.split_once('\n') {
        // The first line is cut in half.
        Some((_, tail)) if left_out > 0 => tail,
        _ => &text,
    };

    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_markdown = ["md", "markdown"].contains(&ending.to_ascii_lowercase().as_str());
    let (name, mark) = if is_json_lines(text) {
        ("transcript.jsonl", format!("{{\"left_out\":{left_out}}}\n"))
    } else if is_markdown {
        (
            "transcript.md",
            format!("*({left_out} bytes left out)*\n\n"),
        )
    } else {
        ("transcript.txt", format!("({left_out} bytes left out)\n"))
    };

    let mark = if left_out > 0 { mark } else { String::new() };
    Transcript {
        name,
        text: mark + &redact(text),
    }
}

fn is_json_lines(text: &str) -> bool {
    let mut lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(LOOKED_AT)
        .peekable();
    let is_object = |line: &str| {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(line).is_ok()
    };
    lines.peek().is_some() && lines.all(is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, bytes: &[u8], left_out: u64, expected: (&str, &str)) {
        let end = FileEnd {
            bytes: bytes.to_vec(),
            left_out,
        };
        let actual = transcript(file, end);
        assert_eq!((actual.name, actual.text.as_str()), expected);
    }

    #[test]
    fn a_transcript_is_named_by_what_it_is() {
        let lines = "{\"a\":1}\n\n{}\n";
        check("a.md", lines.as_bytes(), 0, ("transcript.jsonl", lines));
        check("a.jsonl", b"{\"a\n", 0, ("transcript.txt", "{\"a\n"));
        check("A.MD", b"# Hello\n", 0, ("transcript.md", "# Hello\n"));
        check("a", b"", 0, ("transcript.txt", ""));
        check("a", b"\xff\n", 0, ("transcript.txt", "\u{fffd}\n"));
    }

    #[test]
    fn what_is_left_out_is_said() {
        let cut = b"1}\n{\"b\":2}\n";
        let expected = "{\"left_out\":9}\n{\"b\":2}\n";
        check("a", cut, 9, ("transcript.jsonl", expected));
        check(
            "a.md",
            b"x\ny",
            9,
            ("transcript.md", "*(9 bytes left out)*\n\ny"),
        );
        check("a", b"x\ny", 9, ("transcript.txt", "(9 bytes left out)\ny"));
    }

    #[test]
    fn keys_are_taken_out() {
        let key = format!("sk-ant-{}", "aB3dE5gH7j".repeat(4));
        let actual = transcript(
            "a",
            FileEnd {
                bytes: format!("{{\"k\":\"{key}\"}}\n").into_bytes(),
                left_out: 0,
            },
        );
        assert!(!actual.text.contains(&key), "{}", actual.text);
    }
}
