//! A model's answer, made a document: a fence around the whole taken off, files told apart.

use crate::text::fence;

/// Returns an answer without a fence around the whole of it, and ending with one newline.
pub fn unwrap(text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}').trim();
    let inner = inside(text).unwrap_or(text);
    format!("{}\n", inner.trim_end().replace("\r\n", "\n"))
}

/// Returns what is inside of a fence that opens in the first line and closes in the last.
fn inside(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    let (body, last) = rest.rsplit_once('\n')?;
    let (open, close) = (fence::read(first)?, fence::read(last)?);
    let info = first.trim_start_matches(['`', '~', ' ']).trim();
    let wraps = matches!(info, "" | "markdown" | "md" | "xml" | "text")
        && open.len == close.len
        && last.trim().len() == close.len;

    // A document that begins with a block of its own is not wrapped.
    let begins = body.trim_start().starts_with(['#', '<']);
    (wraps && begins).then_some(body)
}

/// Returns the files of an answer of `<file path="...">` blocks; text outside of them is left
/// aside.
pub fn files(text: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match path_of(line) {
            Some(path) => found.push((path.to_owned(), Vec::new())),
            None => {
                if let Some((_, lines)) = found.last_mut() {
                    lines.push(line);
                }
            }
        }
    }

    found
        .into_iter()
        .map(|(path, lines)| (path, unwrap(&before_end(&lines))))
        .collect()
}

/// Returns the lines before the last `</file>`, so that one inside of a document ends nothing.
fn before_end(lines: &[&str]) -> String {
    let end = lines
        .iter()
        .rposition(|line| line.trim() == "</file>")
        .unwrap_or(lines.len());
    lines[..end].join("\n")
}

/// Reads `<file path="...">`.
fn path_of(line: &str) -> Option<&str> {
    line.trim()
        .strip_prefix("<file path=\"")?
        .strip_suffix("\">")
}

/// Returns a review's text without the tags that a model put around it.
pub fn review(text: &str) -> String {
    let text = unwrap(text);
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines
        .iter()
        .position(|line| !line.trim().is_empty())
        .filter(|&at| super::review::is_start(lines[at]));
    let ends = lines
        .iter()
        .rposition(|line| !line.trim().is_empty())
        .filter(|&at| super::review::is_end(lines[at]));

    match (starts, ends) {
        (Some(first), Some(last)) if first < last => {
            format!("{}\n", lines[first + 1..last].join("\n").trim())
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_around_the_whole_answer_is_taken_off() {
        assert_eq!(
            unwrap("```markdown\n# A\n\n```sh\nx\n```\n\nb\n```\n"),
            "# A\n\n```sh\nx\n```\n\nb\n"
        );
        assert_eq!(unwrap("# A\r\n\r\nb"), "# A\n\nb\n");
        assert_eq!(
            unwrap("```rust\nfn a() {}\n```"),
            "```rust\nfn a() {}\n```\n"
        );
    }

    #[test]
    fn files_are_told_apart_by_their_tags() {
        let text = "Here they are:\n<file path=\"proposal.md\">\n# A\n</file>\n\n<file path=\"specs/a.md\">\n```md\n# B\n</file>\n```\n</file>\nbye\n";
        let expected = [("proposal.md", "# A\n"), ("specs/a.md", "# B\n</file>\n")];
        assert_eq!(
            files(text),
            expected.map(|(path, text)| (path.to_owned(), text.to_owned()))
        );
        assert_eq!(files("# no files\n"), []);
    }

    #[test]
    fn tags_around_a_review_are_taken_off() {
        assert_eq!(
            review("<review status=\"approved\">\n## Verdict\nAPPROVED\n</review>\n"),
            "## Verdict\nAPPROVED\n"
        );
        assert_eq!(review("## Verdict\nAPPROVED\n"), "## Verdict\nAPPROVED\n");
    }
}
