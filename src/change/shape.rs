//! The kinds of documents of a change, and the table of what each must contain.

use super::finding::{Finding, Findings};
use super::id::ChangeId;
use super::section::{self, DocumentSection};
use super::{proposal, review, spec, tasks};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    Proposal,
    Spec,
    Tasks,
    /// Reviews of the implementation.
    Review,
}

enum DocumentTitle {
    /// Not checked.
    Any,
    Some(&'static str),
    /// `Change: <id>`.
    OfChange,
}

struct DocumentShape {
    title: DocumentTitle,
    /// Of level 2, with their minimum length in characters.
    sections: &'static [(&'static str, usize)],
    /// Rules of this kind alone.
    rules: fn(&str, &[DocumentSection], &mut Findings<'_>),
}

impl DocumentKind {
    /// `None` if the path is not that of a document.
    pub fn of(path: &str) -> Option<DocumentKind> {
        match path {
            proposal::FILE => Some(DocumentKind::Proposal),
            tasks::FILE => Some(DocumentKind::Tasks),
            review::FILE => Some(DocumentKind::Review),
            _ => spec::id_of(path).map(|_| DocumentKind::Spec),
        }
    }

    /// Whether the author and the user can write it.
    pub fn is_written(self) -> bool {
        self != DocumentKind::Review
    }

    fn shape(self) -> DocumentShape {
        match self {
            DocumentKind::Proposal => DocumentShape {
                title: DocumentTitle::OfChange,
                sections: &[
                    ("Summary", 10),
                    ("Why", 50),
                    ("What Changes", 1),
                    ("Impact", 1),
                ],
                rules: proposal::check,
            },
            DocumentKind::Spec => DocumentShape {
                title: DocumentTitle::Some("Spec: ..."),
                sections: &[
                    ("Overview", 50),
                    ("Requirements", 0),
                    ("Acceptance Criteria", 0),
                ],
                rules: spec::check,
            },
            DocumentKind::Tasks => DocumentShape {
                title: DocumentTitle::Any,
                sections: &[],
                rules: tasks::check,
            },
            DocumentKind::Review => DocumentShape {
                title: DocumentTitle::Any,
                sections: &[],
                rules: |text, _, findings| review::check(text, findings),
            },
        }
    }

    /// By line.
    pub fn check(self, id: &ChangeId, path: &str, text: &str) -> Vec<Finding> {
        let shape = self.shape();
        let mut findings = Findings::of(path);
        let sections = match self {
            DocumentKind::Proposal => section::read(&proposal::body(text)),
            _ => section::read(text),
        };
        let title = sections.iter().find(|section| section.level == 1);
        let of_change = format!("Change: {id}");
        match (shape.title, title) {
            (DocumentTitle::Some(expected), None) => {
                findings.high(1, format!("has no title `# {expected}`"))
            }
            (DocumentTitle::OfChange, None) => {
                findings.high(1, format!("has no title `# {of_change}`"))
            }
            (DocumentTitle::OfChange, Some(title)) if title.title.replace('`', "") != of_change => {
                findings.high(
                    title.line,
                    format!("the title is `# {}`, not `# {of_change}`", title.title),
                )
            }
            _ => {}
        }

        for (name, least) in shape.sections {
            match section::find(&sections, 2, name) {
                None => findings.high(1, format!("has no section `## {name}`")),
                Some(section) if section.body.trim().chars().count() < *least => findings.high(
                    section.line,
                    format!("`## {name}` has fewer than {least} characters"),
                ),
                Some(_) => {}
            }
        }

        (shape.rules)(text, &sections, &mut findings);
        findings.into_sorted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_documents() {
        use DocumentKind::{Proposal, Review, Spec, Tasks};

        let names = [
            "proposal.md",
            "tasks.md",
            "review.md",
            "specs/a.md",
            "specs/_a.md",
            "base/specs/a.md",
            "STATE.yaml",
        ];
        let kinds = [Some(Proposal), Some(Tasks), Some(Review), Some(Spec)];
        assert_eq!(names.map(DocumentKind::of)[..4], kinds);
        assert_eq!(names.map(DocumentKind::of)[4..], [None; 3]);
    }
}
