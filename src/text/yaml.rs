//! Checks the size and nesting of a YAML text before it is parsed.
//!
//! The parser rejects deep nesting only after quadratic time: 400 kB of `[` take it minutes. This
//! check takes one pass over the bytes.

/// Maximum nesting.
pub const MAX_DEPTH: usize = 64;

/// Why a text is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    #[error("the file has {size} bytes; at most {limit} are read")]
    TooLarge { size: usize, limit: usize },
    #[error("line {line} is nested more than {MAX_DEPTH} deep")]
    TooDeep {
        /// Line number, from 1.
        line: usize,
    },
}

/// Checks that a YAML text is small and flat enough to be parsed quickly.
pub fn guard(text: &str, max_bytes: usize) -> Result<(), YamlError> {
    if text.len() > max_bytes {
        return Err(YamlError::TooLarge {
            size: text.len(),
            limit: max_bytes,
        });
    }

    let mut flow = 0_usize;
    let mut indents: Vec<usize> = Vec::new();
    let lines = text.split('\n').flat_map(|line| line.split('\r'));
    for (index, line) in lines.enumerate() {
        let depth = block_depth(line, &mut indents);
        flow = flow_depth(line, flow);
        if depth > MAX_DEPTH || flow > MAX_DEPTH {
            return Err(YamlError::TooDeep { line: index + 1 });
        }
    }

    Ok(())
}

/// Returns an upper bound for the block nesting of a line: its enclosing indentations plus the
/// markers at its start.
fn block_depth(line: &str, indents: &mut Vec<usize>) -> usize {
    let body = line.trim_start_matches(' ');
    if body.is_empty() {
        return 0;
    }

    let indent = line.len() - body.len();
    while indents.last().is_some_and(|&above| above >= indent) {
        indents.pop();
    }

    indents.push(indent);
    let markers = body
        .split([' ', '\t'])
        .take_while(|word| matches!(*word, "-" | "?" | ":" | ""))
        .filter(|word| !word.is_empty())
        .count();
    indents.len() + markers
}

/// Returns an upper bound for the flow nesting at the end of a line, or a value above [`MAX_DEPTH`]
/// if it is exceeded inside the line.
fn flow_depth(line: &str, open: usize) -> usize {
    if open == 0 && !line.contains('[') && !line.contains('{') {
        return 0;
    }

    let mut depth = open;
    let mut before = b' ';
    for &byte in line.as_bytes() {
        match byte {
            // A bracket inside a word does not start a collection.
            b'[' | b'{'
                if matches!(
                    before,
                    b' ' | b'\t' | b'[' | b'{' | b',' | b':' | b'-' | b'?'
                ) =>
            {
                depth += 1
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }

        if depth > MAX_DEPTH {
            break;
        }

        before = byte;
    }

    depth
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the error. Empty if the text is accepted.
    fn check(text: &str, expected: &str) {
        let actual = guard(text, 1 << 20)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert_eq!(actual, expected);
    }

    #[test]
    fn ordinary_files_are_let_through() {
        check(
            "a:\n  - b: [c, {d: e}]\n    f: |\n      text [ with ( brackets\n",
            "",
        );
        check(&"- see [x] and a[1] {y}\n".repeat(1000), "");
        check(&"- one [ open\n- a[0\n".repeat(30), "");
        check("", "");
    }

    #[test]
    fn deep_nesting_is_refused_at_its_line() {
        check(
            &format!("a: 1\nb: {}", "[".repeat(100_000)),
            "line 2 is nested more than 64 deep",
        );
        check(
            &"[\n".repeat(100_000),
            "line 65 is nested more than 64 deep",
        );
        check(&"- ".repeat(65), "line 1 is nested more than 64 deep");
        check(&"{a: ".repeat(65), "line 1 is nested more than 64 deep");
        let stairs: String = (0..100).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
        check(&stairs, "line 65 is nested more than 64 deep");
    }

    #[test]
    fn a_large_file_is_refused() {
        assert_eq!(
            guard("abc", 2),
            Err(YamlError::TooLarge { size: 3, limit: 2 })
        );
    }
}
