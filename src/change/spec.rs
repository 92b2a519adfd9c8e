//! Validates the requirements and scenarios of `specs/<id>.md`, according to the rules S2-S5 of
//! `docs/formats/spec.md`.

use std::collections::BTreeSet;

use super::finding::Findings;
use super::id::is_id;
use super::section::{self, DocumentSection};

/// In a change and in the project.
pub const DIR: &str = "specs/";

/// A section whose subsections all have the same form.
struct ItemList<T> {
    section: &'static str,
    noun: &'static str,
    form: &'static str,
    parse_title: fn(&str) -> Option<T>,
}

const REQUIREMENTS: ItemList<u32> = ItemList {
    section: "Requirements",
    noun: "requirement",
    form: "R1: Title",
    parse_title: number,
};

const SCENARIOS: ItemList<String> = ItemList {
    section: "Acceptance Criteria",
    noun: "scenario",
    form: "Scenario: Name",
    parse_title: scenario,
};

pub fn path(id: &str) -> String {
    format!("{DIR}{id}.md")
}

/// `None` if the path is not that of a spec.
pub fn id_of(path: &str) -> Option<&str> {
    path.strip_prefix(DIR)?
        .strip_suffix(".md")
        .filter(|id| is_id(id))
}

impl<T> ItemList<T> {
    /// The items of the right form, with line numbers of the whole document. Reports the others.
    fn items(
        &self,
        sections: &[DocumentSection],
        findings: &mut Findings<'_>,
    ) -> Vec<(T, DocumentSection)> {
        let Some(list) = section::find(sections, 2, self.section) else {
            return Vec::new();
        };
        let mut all = section::read(&list.body);
        all.retain(|item| item.level == 3);
        if all.is_empty() {
            findings.high(
                list.line,
                format!("`## {}` has no `### {}`", self.section, self.form),
            );
        }

        let mut items = Vec::new();
        for mut item in all {
            item.line += list.first - 1;
            match (self.parse_title)(&item.title) {
                Some(parsed) => items.push((parsed, item)),
                None => findings.high(
                    item.line,
                    format!(
                        "`### {}` is not a {}: write `### {}`",
                        item.title, self.noun, self.form
                    ),
                ),
            }
        }

        items
    }
}

pub(super) fn check(_: &str, sections: &[DocumentSection], findings: &mut Findings<'_>) {
    let mut numbers = BTreeSet::new();
    for (number, section) in REQUIREMENTS.items(sections, findings) {
        if !numbers.insert(number) {
            findings.high(
                section.line,
                format!("there are two requirements R{number}"),
            );
        } else if section.body.trim().is_empty() {
            findings.high(section.line, format!("requirement R{number} has no text"));
        }
    }

    let mut names = BTreeSet::new();
    for (name, section) in SCENARIOS.items(sections, findings) {
        let lines = section::prose(&section.body);
        for word in ["WHEN", "THEN"] {
            if !lines.iter().any(|line| has_keyword(line, word)) {
                findings.high(
                    section.line,
                    format!("scenario \"{name}\" has no `- **{word}** ...`"),
                );
            }
        }

        if !names.insert(name.to_lowercase()) {
            findings.low(section.line, format!("there are two scenarios \"{name}\""));
        }
    }
}

/// `R1: Title` or `R1 - Title`
fn number(title: &str) -> Option<u32> {
    let tail = title.strip_prefix('R')?;
    let digits = tail.bytes().take_while(u8::is_ascii_digit).count();
    let title = tail[digits..]
        .trim_start()
        .strip_prefix([':', '-', '–', '—'])?;

    if title.trim().is_empty() {
        None
    } else {
        tail[..digits].parse().ok()
    }
}

fn scenario(title: &str) -> Option<String> {
    let name = title.strip_prefix("Scenario:")?.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

/// `- **WHEN** ...`, with text after the keyword.
fn has_keyword(line: &str, word: &str) -> bool {
    section::plain(line).strip_prefix(word).is_some_and(|tail| {
        tail.starts_with([' ', ':']) && !tail.trim_matches([' ', ':']).is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::id::ChangeId;
    use crate::change::shape::DocumentKind;

    const GOOD: &str = "# Spec: Greeting\n\n## Overview\nThe program greets the person that you name, and the world otherwise.\n\n\
        ## Requirements\n\n### R1: Name\nIt takes a name.\n\n### R2: World\nWithout one it greets the world.\n\n\
        ## Acceptance Criteria\n\n### Scenario: Ada\n- **WHEN** `greet.sh Ada` runs\n- **THEN** it prints `Hello, Ada!`\n";

    fn check(text: &str, expected: &[&str]) {
        let id = ChangeId::parse("greet").unwrap();
        let actual: Vec<String> = DocumentKind::Spec
            .check(&id, "specs/greeting.md", text)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(actual, expected, "for {text:?}");
    }

    #[test]
    fn s1_a_spec_has_a_title_and_an_overview() {
        check(GOOD, &[]);
        check(
            &GOOD.replace("# Spec: Greeting\n", "\n"),
            &["specs/greeting.md:1: error: has no title `# Spec: ...`"],
        );
        check(
            &GOOD.replace("The program greets the person that you name, and ", ""),
            &["specs/greeting.md:3: error: `## Overview` has fewer than 50 characters"],
        );
    }

    #[test]
    fn s2_a_requirement_has_a_number_of_its_own_and_a_title() {
        check(
            &GOOD.replace("### R2: World", "### World"),
            &[
                "specs/greeting.md:11: error: `### World` is not a requirement: write `### R1: Title`",
            ],
        );
        check(
            &GOOD.replace("R2: World", "R1: World"),
            &["specs/greeting.md:11: error: there are two requirements R1"],
        );
        check(
            &GOOD.replace("It takes a name.\n", ""),
            &["specs/greeting.md:8: error: requirement R1 has no text"],
        );
        check(&GOOD.replace("R1: Name", "R1 - Name"), &[]);
    }

    #[test]
    fn s3_a28_a_scenario_has_when_and_then() {
        check(
            &GOOD.replace("- **THEN** it prints `Hello, Ada!`\n", ""),
            &["specs/greeting.md:16: error: scenario \"Ada\" has no `- **THEN** ...`"],
        );
        check(
            &GOOD.replace("- **WHEN** `greet.sh Ada` runs", "- **WHEN**"),
            &["specs/greeting.md:16: error: scenario \"Ada\" has no `- **WHEN** ...`"],
        );
        let error =
            "specs/greeting.md:14: error: `## Acceptance Criteria` has no `### Scenario: Name`";
        check(GOOD.split_once("### Scenario").unwrap().0, &[error]);
    }

    #[test]
    fn s4_what_stands_in_a_code_block_is_not_counted() {
        let text = GOOD.replace(
            "- **THEN** it prints `Hello, Ada!`\n",
            "\n```\n- **THEN** no\n### Scenario: no\n```\n",
        );
        check(
            &text,
            &["specs/greeting.md:16: error: scenario \"Ada\" has no `- **THEN** ...`"],
        );
    }

    #[test]
    fn s5_only_a_file_whose_name_is_an_id_is_a_spec() {
        let others = [
            "specs/_a.md",
            "specs/a/b.md",
            "specs/..md",
            "specs/A.md",
            "specs/a\u{202e}.md",
            "specs/a.txt",
            "a.md",
        ];
        assert_eq!(
            (id_of("specs/a-1.md"), others.map(id_of)),
            (Some("a-1"), [None; 7])
        );
    }
}
