//! The documents of a change: finds missing and invalid ones, and parses answers that contain some.

use std::collections::BTreeMap;

use super::finding::{Finding, Severity};
use super::id::ChangeId;
use super::{proposal, review, spec, tasks};
use crate::text::fence;

pub const REVIEW: &str = "review.md";

/// By path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Documents(pub BTreeMap<String, String>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingDocument {
    Proposal,
    /// Id.
    Spec(String),
    Tasks,
}

impl Documents {
    pub fn is_one(path: &str) -> bool {
        matches!(path, proposal::FILE | tasks::FILE | REVIEW) || spec::id_of(path).is_some()
    }

    /// Empty if it does not exist.
    pub fn text(&self, path: &str) -> &str {
        self.0.get(path).map_or("", String::as_str)
    }

    pub fn insert(&mut self, path: &str, text: impl Into<String>) {
        self.0.insert(path.to_owned(), text.into());
    }

    pub fn specs(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0
            .iter()
            .filter(|(path, _)| spec::id_of(path).is_some())
    }

    /// The proposal, then each spec that it names, then the tasks.
    pub fn missing(&self) -> Option<MissingDocument> {
        let Some(proposal) = self.0.get(proposal::FILE) else {
            return Some(MissingDocument::Proposal);
        };
        let specs = proposal::read(proposal).specs;
        if let Some(id) = specs
            .into_iter()
            .find(|id| !self.0.contains_key(&spec::path(id)))
        {
            return Some(MissingDocument::Spec(id));
        }

        (!self.0.contains_key(tasks::FILE)).then_some(MissingDocument::Tasks)
    }

    pub fn check(&self, id: &ChangeId) -> Vec<Finding> {
        let high = |file: &str, message: String| Finding {
            file: file.to_owned(),
            line: 1,
            severity: Severity::High,
            message,
        };
        let mut findings = Vec::new();
        match self.0.get(proposal::FILE) {
            Some(text) => findings.extend(proposal::check(id, text)),
            None => findings.push(high(proposal::FILE, "is missing".to_owned())),
        }

        let specs = proposal::read(self.text(proposal::FILE)).specs;
        for name in specs
            .iter()
            .map(|id| spec::path(id))
            .filter(|path| !self.0.contains_key(path))
        {
            findings.push(high(
                &name,
                "is missing, and the proposal names it".to_owned(),
            ));
        }

        for (path, text) in self.specs() {
            findings.extend(spec::check(path, text));
            if !specs.iter().any(|id| spec::path(id) == *path) {
                findings.push(Finding {
                    severity: Severity::Low,
                    ..high(
                        path,
                        "the proposal does not name it among its affected specs".to_owned(),
                    )
                });
            }
        }

        match self.0.get(tasks::FILE) {
            Some(text) => findings.extend(tasks::check(text)),
            None => findings.push(high(tasks::FILE, "is missing".to_owned())),
        }

        for review in review::read(self.text(REVIEW)) {
            if let Err(error) = review.verdict() {
                findings.push(Finding {
                    line: review.line,
                    ..high(REVIEW, format!("the review has no verdict: {error}"))
                });
            }
        }

        findings
    }

    pub fn check_one(id: &ChangeId, path: &str, text: &str) -> Vec<Finding> {
        match path {
            proposal::FILE => proposal::check(id, text),
            tasks::FILE => tasks::check(text),
            _ => spec::check(path, text),
        }
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
    fn documents_are_missing_in_the_order_in_which_they_are_written() {
        let mut documents = Documents::default();
        assert_eq!(documents.missing(), Some(MissingDocument::Proposal));
        documents.insert(
            "proposal.md",
            "# Change: a\n\n## Impact\n- Affected specs: `one`, `two`\n",
        );
        assert_eq!(
            documents.missing(),
            Some(MissingDocument::Spec("one".to_owned()))
        );
        documents.insert("specs/one.md", "");
        assert_eq!(
            documents.missing(),
            Some(MissingDocument::Spec("two".to_owned()))
        );
        documents.insert("specs/two.md", "");
        assert_eq!(documents.missing(), Some(MissingDocument::Tasks));
        documents.insert("tasks.md", "");
        assert_eq!(documents.missing(), None);
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

    #[test]
    fn only_our_names_are_documents() {
        let names = [
            "proposal.md",
            "tasks.md",
            "review.md",
            "specs/a.md",
            "specs/_a.md",
            "base/specs/a.md",
            "STATE.yaml",
        ];
        assert_eq!(
            names.map(Documents::is_one),
            [true, true, true, true, false, false, false]
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
