//! Extracts documents from a model's answer.

use crate::text::fence;

/// Removes a fence around the whole answer and normalizes line ends. The result ends with one
/// newline.
pub fn unwrap_answer(text: &str) -> String {
    let text = text.trim_start_matches('\u{feff}').trim();
    let inner = fenced_content(text).unwrap_or(text);
    format!("{}\n", inner.trim_end().replace("\r\n", "\n"))
}

fn fenced_content(text: &str) -> Option<&str> {
    let (first, tail) = text.split_once('\n')?;
    let (body, last) = tail.rsplit_once('\n')?;
    let (open, close) = (fence::read(first)?, fence::read(last)?);
    let info = first.trim_start_matches(['`', '~', ' ']).trim();
    let wraps = matches!(info, "" | "markdown" | "md" | "xml" | "text")
        && open.len == close.len
        && last.trim().len() == close.len;

    // A document can legitimately begin and end with a code block. Unwrap only what begins like one
    // of our documents.
    let begins = body.trim_start().starts_with(['#', '<']);
    (wraps && begins).then_some(body)
}

/// Returns the paths and contents of all `<file path="...">` blocks, and ignores the text around
/// them.
pub fn files_in_answer(text: &str) -> Vec<(String, String)> {
    let mut files: Vec<(String, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        match file_path_of(line) {
            Some(path) => files.push((path.to_owned(), Vec::new())),
            None => {
                if let Some((_, lines)) = files.last_mut() {
                    lines.push(line);
                }
            }
        }
    }

    files
        .into_iter()
        .map(|(path, lines)| (path, unwrap_answer(&lines_before_end(&lines))))
        .collect()
}

// Only the last `</file>` ends a block, so a document can contain that line.
fn lines_before_end(lines: &[&str]) -> String {
    let end = lines
        .iter()
        .rposition(|line| line.trim() == "</file>")
        .unwrap_or(lines.len());
    lines[..end].join("\n")
}

fn file_path_of(line: &str) -> Option<&str> {
    line.trim()
        .strip_prefix("<file path=\"")?
        .strip_suffix("\">")
}

/// Returns the text of a review, without `<review>` tags around the whole of it.
pub fn review_text(text: &str) -> String {
    let text = unwrap_answer(text);
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
            unwrap_answer("```markdown\n# A\n\n```sh\nx\n```\n\nb\n```\n"),
            "# A\n\n```sh\nx\n```\n\nb\n"
        );
        assert_eq!(unwrap_answer("# A\r\n\r\nb"), "# A\n\nb\n");
        assert_eq!(
            unwrap_answer("```rust\nfn a() {}\n```"),
            "```rust\nfn a() {}\n```\n"
        );
    }

    #[test]
    fn files_are_told_apart_by_their_tags() {
        let text = "Here they are:\n<file path=\"proposal.md\">\n# A\n</file>\n\n<file path=\"specs/a.md\">\n```md\n# B\n</file>\n```\n</file>\nbye\n";
        let expected = [("proposal.md", "# A\n"), ("specs/a.md", "# B\n</file>\n")];
        assert_eq!(
            files_in_answer(text),
            expected.map(|(path, text)| (path.to_owned(), text.to_owned()))
        );
        assert_eq!(files_in_answer("# no files\n"), []);
    }

    #[test]
    fn tags_around_a_review_are_taken_off() {
        assert_eq!(
            review_text("<review status=\"approved\">\n## Verdict\nAPPROVED\n</review>\n"),
            "## Verdict\nAPPROVED\n"
        );
        assert_eq!(
            review_text("## Verdict\nAPPROVED\n"),
            "## Verdict\nAPPROVED\n"
        );
    }
}
