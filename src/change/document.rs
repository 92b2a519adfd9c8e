//! The documents of a change: finds missing and invalid ones, and parses answers that contain some.

use std::collections::BTreeMap;

use super::finding::{Finding, Severity};
use super::id::ChangeId;
use super::shape::DocumentKind;
use super::{proposal, review, spec, tasks};
use crate::text::fence;

/// By path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Documents(pub BTreeMap<String, String>);

impl Documents {
    /// Empty if it does not exist.
    pub fn text(&self, path: &str) -> &str {
        self.0.get(path).map_or("", String::as_str)
    }

    pub fn insert(&mut self, path: &str, text: impl Into<String>) {
        self.0.insert(path.to_owned(), text.into());
    }

    pub fn specs(&self) -> impl Iterator<Item = &String> {
        self.0.keys().filter(|path| spec::id_of(path).is_some())
    }

    /// Paths of the specs that the proposal names.
    pub fn named_specs(&self) -> Vec<String> {
        let specs = proposal::read(self.text(proposal::FILE)).specs;
        specs.iter().map(|id| spec::path(id)).collect()
    }

    /// In the order in which they are written.
    pub fn missing(&self) -> Vec<String> {
        let mut paths = vec![proposal::FILE.to_owned()];
        paths.extend(self.named_specs());
        paths.push(tasks::FILE.to_owned());
        paths.retain(|path| !self.0.contains_key(path));
        paths
    }

    /// Number of completed tasks, and of all tasks.
    pub fn progress(&self) -> (usize, usize) {
        let tasks = tasks::read(self.text(tasks::FILE));
        let done = tasks.iter().filter(|task| task.is_done).count();
        (done, tasks.len())
    }

    pub fn check(&self, id: &ChangeId) -> Vec<Finding> {
        let specs = self.named_specs();
        let finding = |file: &str, severity, message: &str| Finding {
            file: file.to_owned(),
            line: 1,
            severity,
            message: message.to_owned(),
        };
        let mut findings: Vec<Finding> = self
            .missing()
            .into_iter()
            .map(|path| {
                let named = specs.contains(&path);
                let message = if named {
                    "is missing, and the proposal names it"
                } else {
                    "is missing"
                };
                finding(&path, Severity::High, message)
            })
            .collect();

        for (path, text) in &self.0 {
            let Some(kind) = DocumentKind::of(path) else {
                continue;
            };
            findings.extend(kind.check(id, path, text));
            if kind == DocumentKind::Spec && !specs.contains(path) {
                let message = "the proposal does not name it among its affected specs";
                findings.push(finding(path, Severity::Low, message));
            }
        }

        findings
    }
}

/// Removes a fence around the whole answer and normalizes line ends. Ends with one newline.
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

/// The `<file path="...">` blocks of an answer, without the text around them.
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

/// Removes `<review>` tags around the whole text.
pub fn review_text(text: &str) -> String {
    let text = unwrap_answer(text);
    let lines: Vec<&str> = text.trim().lines().collect();
    match lines.as_slice() {
        [first, body @ .., last] if review::is_start(first) && review::is_end(last) => {
            format!("{}\n", body.join("\n").trim())
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_missing_in_the_order_in_which_they_are_written() {
        let mut documents = Documents::default();
        assert_eq!(documents.missing(), ["proposal.md", "tasks.md"]);
        documents.insert(
            "proposal.md",
            "# Change: a\n\n## Impact\n- Affected specs: `one`, `two`\n",
        );
        assert_eq!(
            documents.missing(),
            ["specs/one.md", "specs/two.md", "tasks.md"]
        );
        documents.insert("specs/one.md", "");
        assert_eq!(documents.missing(), ["specs/two.md", "tasks.md"]);
        documents.insert("specs/two.md", "");
        documents.insert("tasks.md", "");
        assert!(documents.missing().is_empty());
    }

    #[test]
    fn what_is_missing_and_what_nobody_names_is_found() {
        let id = ChangeId::parse("a").unwrap();
        let actual: Vec<String> = Documents::default()
            .check(&id)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            actual,
            [
                "proposal.md:1: error: is missing",
                "tasks.md:1: error: is missing"
            ]
        );
        let mut documents = Documents::default();
        documents.insert(
            "proposal.md",
            "# Change: a\n\n## Impact\n- Affected specs: `one`\n",
        );
        documents.insert("specs/two.md", "");
        let actual: Vec<String> = documents
            .check(&id)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(
            actual.contains(
                &"specs/one.md:1: error: is missing, and the proposal names it".to_owned()
            ),
            "{actual:?}"
        );
        assert!(
            actual.contains(
                &"specs/two.md:1: warning: the proposal does not name it among its affected specs"
                    .to_owned()
            ),
            "{actual:?}"
        );
    }
}

#[cfg(test)]
mod answer_tests {
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
