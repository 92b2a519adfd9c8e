//! Parses and validates `proposal.md`, according to the rules P1-P6 of `docs/formats/proposal.md`.
//!
//! Models write the fields in several forms, so reading is lenient. Validation names the line.

use super::finding::Findings;
use super::id::is_id;
use super::section::{self, DocumentSection};
use super::{review, spec};

pub const FILE: &str = "proposal.md";
pub const MAX_SPECS: usize = 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeProposal {
    /// First line.
    pub summary: String,
    /// Ids of the affected specs.
    pub specs: Vec<String>,
    /// Paths of the affected files.
    pub files: Vec<String>,
}

/// Missing parts are empty.
pub fn read(text: &str) -> ChangeProposal {
    let body = body(text);
    let sections = section::read(&body);
    let summary = section::find(&sections, 2, "summary")
        .map(DocumentSection::own)
        .unwrap_or_default();
    let impact = section::find(&sections, 2, "impact");
    let list = |key: &str| {
        impact
            .and_then(|impact| names(impact, key))
            .map(|(_, names)| names)
            .unwrap_or_default()
    };

    ChangeProposal {
        summary: summary
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty())
            .unwrap_or_default()
            .to_owned(),
        specs: list("affected specs"),
        files: list("affected files"),
    }
}

/// Also checks its reviews.
pub(super) fn check(text: &str, sections: &[DocumentSection], findings: &mut Findings<'_>) {
    if let Some(impact) = section::find(sections, 2, "impact") {
        specs(impact, findings);
    }

    review::check(text, findings);
}

fn specs(impact: &DocumentSection, findings: &mut Findings<'_>) {
    let Some((line, names)) = names(impact, "affected specs") else {
        return findings.high(
            impact.line,
            "`## Impact` has no `- **Affected specs:**`; write `none` if there are none",
        );
    };

    for name in names.iter().filter(|name| !is_id(name)) {
        findings.high(
            line,
            format!(
                "`{}` is not a valid spec id: use lower-case letters, digits and single hyphens",
                crate::text::sanitize::sanitize_line(name)
            ),
        );
    }

    if names.len() > MAX_SPECS {
        findings.high(
            line,
            format!(
                "{} specs are affected; one change has at most {MAX_SPECS}",
                names.len()
            ),
        );
    }
}

/// The names can be on the line of the field or in a list below it.
fn names(section: &DocumentSection, key: &str) -> Option<(usize, Vec<String>)> {
    let (line, value) = section::field(&section.body, key).or_else(|| {
        // Models also write `**Affected Specs**` without a colon, as a heading for the list.
        let lines = section::prose(&section.body);
        let at = lines
            .iter()
            .position(|line| section::plain(line).trim().eq_ignore_ascii_case(key))?;
        Some((at + 1, String::new()))
    })?;
    let mut names = list(&value);
    if value.is_empty() {
        let following = section
            .body
            .lines()
            .skip(line)
            .take_while(|l| l.trim().is_empty() || is_item_of_a_name(l));
        names = following
            .flat_map(|l| list(l.trim().trim_start_matches(['-', '*'])))
            .collect();
    }

    Some((section.first + line - 1, names))
}

/// A line with a colon is the next field.
fn is_item_of_a_name(line: &str) -> bool {
    let line = line.trim();
    line.starts_with(['-', '*']) && !line.starts_with("**") && !line.contains(':')
}

/// Accepts backticks, brackets and plain names. Drops `none` and `n/a`.
fn list(value: &str) -> Vec<String> {
    let value = value.trim().trim_start_matches('[').trim_end_matches(']');
    let mut names: Vec<String> = if value.contains('`') {
        value
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    } else {
        value
            .split(',')
            .map(|name| {
                name.trim()
                    .trim_matches(['"', '\''])
                    .trim_end_matches('.')
                    .to_owned()
            })
            .collect()
    };

    names.retain(|name| {
        !matches!(
            name.to_ascii_lowercase().as_str(),
            "" | "none" | "n/a" | "-"
        )
    });
    for name in &mut names {
        // Models write paths of specs too.
        let path = name.strip_prefix(spec::DIR).unwrap_or(name);
        if let Some(id) = path.strip_suffix(".md").filter(|id| is_id(id)) {
            *name = id.to_owned();
        }
    }

    let mut unique = std::collections::BTreeSet::new();
    names.retain(|name| unique.insert(name.clone()));
    names
}

/// Removes reviews, and the `<proposal>` tags that another tool writes. Line numbers stay the same.
pub(super) fn body(text: &str) -> String {
    let (body, _) = review::split(text);
    let tag = |line: &str| matches!(line.trim(), "<proposal>" | "</proposal>");
    body.lines()
        .map(|line| {
            if tag(line) {
                "\n".to_owned()
            } else {
                format!("{line}\n")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::id::ChangeId;
    use crate::change::shape::DocumentKind;

    /// A valid proposal.
    const GOOD: &str = "# Change: greet\n\n## Summary\nGreet people by name.\n\n## Why\nThe program says the same to everybody, which nobody likes any more.\n\n\
        ## What Changes\n- greet.sh takes a name\n\n## Impact\n- **Affected specs:** `greeting`, `names`\n- **Affected files:** `greet.sh`\n";

    fn check(text: &str, expected: &[&str]) {
        let id = ChangeId::parse("greet").unwrap();
        let actual: Vec<String> = DocumentKind::Proposal
            .check(&id, FILE, text)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(actual, expected, "for {text:?}");
    }

    #[test]
    fn p1_the_title_names_the_change() {
        check(GOOD, &[]);
        check(
            &GOOD.replace("# Change: greet", "# Change: meet"),
            &["proposal.md:1: error: the title is `# Change: meet`, not `# Change: greet`"],
        );
    }

    #[test]
    fn p2_every_section_is_there_and_says_something() {
        check(
            &GOOD.replace("## Why", "## Reason"),
            &["proposal.md:1: error: has no section `## Why`"],
        );
        check(
            &GOOD.replace("Greet people by name.", "Greet."),
            &["proposal.md:3: error: `## Summary` has fewer than 10 characters"],
        );
    }

    #[test]
    fn p3_the_specs_are_named_in_any_usual_way() {
        for line in [
            "- **Affected specs:** greeting, names",
            "- Affected specs: [\"greeting\", \"names\"]",
            "- **Affected Specs**\n  - `greeting`\n  - `names`",
            "- **Affected specs:**\n  - specs/greeting.md\n  - specs/names.md",
        ] {
            let text = GOOD.replace("- **Affected specs:** `greeting`, `names`", line);
            assert_eq!(read(&text).specs, ["greeting", "names"], "{line}");
            check(&text, &[]);
        }
        for none in ["none", "[]", "n/a", "None."] {
            assert_eq!(
                read(&GOOD.replace("`greeting`, `names`", none)).specs,
                Vec::<String>::new(),
                "{none}"
            );
        }
    }

    #[test]
    fn p4_a_spec_that_is_no_id_is_a_mistake_at_its_line() {
        check(
            &GOOD.replace("`names`", "`../names`"),
            &[
                "proposal.md:13: error: `../names` is not a valid spec id: use lower-case letters, digits and single hyphens",
            ],
        );
        let line = "proposal.md:12: error: `## Impact` has no `- **Affected specs:**`; write `none` if there are none";
        check(
            &GOOD.replace("- **Affected specs:** `greeting`, `names`\n", ""),
            &[line],
        );
    }

    #[test]
    fn p5_reviews_are_no_part_of_the_proposal_but_are_checked() {
        let review = |status: &str| {
            format!(
                "{GOOD}\n<review iteration=\"1\" reviewer=\"c\" status=\"{status}\">\n\n## Impact\nnone\n\n</review>\n"
            )
        };
        check(&review("approved"), &[]);
        assert_eq!(read(&review("approved")), read(GOOD));
        check(
            &review("fine"),
            &[
                "proposal.md:16: error: the review has no verdict: its verdict says \"fine\", which is none of APPROVED, NEEDS_REVISION, REJECTED",
            ],
        );
        check(
            &review("approved").replace("</review>", ""),
            &["proposal.md:16: error: the review has no `</review>`"],
        );
    }

    #[test]
    fn p6_the_tags_of_another_tool_are_passed_over() {
        check(&format!("<proposal>\n{GOOD}</proposal>\n"), &[]);
    }

    #[test]
    fn what_the_workflow_needs_is_read() {
        let expected = ChangeProposal {
            summary: "Greet people by name.".into(),
            specs: vec!["greeting".into(), "names".into()],
            files: vec!["greet.sh".into()],
        };
        assert_eq!(read(GOOD), expected);
    }
}
