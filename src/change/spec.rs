//! Validates `specs/<id>.md`, according to the rules S1-S5 of `docs/formats/spec.md`.

use std::collections::BTreeSet;

use super::finding::{Finding, Findings};
use super::id::is_id;
use super::section::{self, DocumentSection};

/// In a change and in the project.
pub const DIR: &str = "specs/";
/// In characters.
pub const MIN_OVERVIEW: usize = 50;

pub fn path(id: &str) -> String {
    format!("{DIR}{id}.md")
}

/// `None` if the path is not that of a spec.
pub fn id_of(path: &str) -> Option<&str> {
    path.strip_prefix(DIR)?
        .strip_suffix(".md")
        .filter(|id| is_id(id))
}

pub fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Findings::of(path);
    let sections = section::read(text);
    if !sections.iter().any(|section| section.level == 1) {
        findings.high(1, "has no title `# Spec: ...`");
    }

    match section::find(&sections, 2, "overview") {
        None => findings.high(1, "has no section `## Overview`"),
        Some(section) if section.body.trim().chars().count() < MIN_OVERVIEW => {
            findings.high(
                section.line,
                format!("`## Overview` has fewer than {MIN_OVERVIEW} characters"),
            );
        }
        Some(_) => {}
    }

    requirements(&sections, &mut findings);
    scenarios(&sections, &mut findings);
    findings.into_sorted()
}

/// Of level 3, with line numbers of the whole document.
fn subsections(section: &DocumentSection) -> Vec<DocumentSection> {
    let inner = section::read(&section.body)
        .into_iter()
        .filter(|inner| inner.level == 3);
    inner
        .map(|inner| DocumentSection {
            line: inner.line + section.first - 1,
            first: inner.first + section.first - 1,
            ..inner
        })
        .collect()
}

fn requirements(sections: &[DocumentSection], findings: &mut Findings<'_>) {
    let Some(all) = section::find(sections, 2, "requirements") else {
        return findings.high(1, "has no section `## Requirements`");
    };
    let (mut numbers, mut count) = (BTreeSet::new(), 0);
    for section in subsections(all) {
        count += 1;
        match number(&section.title) {
            None => findings.high(
                section.line,
                format!(
                    "`### {}` is not a requirement: write `### R1: Title`",
                    section.title
                ),
            ),
            Some(number) if !numbers.insert(number) => findings.high(
                section.line,
                format!("there are two requirements R{number}"),
            ),
            Some(number) if section.body.trim().is_empty() => {
                findings.high(section.line, format!("requirement R{number} says nothing"))
            }
            Some(_) => {}
        }
    }

    if count == 0 {
        findings.high(all.line, "`## Requirements` has no `### R1: Title`");
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

fn scenarios(sections: &[DocumentSection], findings: &mut Findings<'_>) {
    let Some(all) = section::find(sections, 2, "acceptance criteria") else {
        return findings.high(1, "has no section `## Acceptance Criteria`");
    };
    let (mut names, mut count) = (BTreeSet::new(), 0);
    for section in subsections(all) {
        let Some(name) = section
            .title
            .strip_prefix("Scenario:")
            .map(str::trim)
            .filter(|name| !name.is_empty())
        else {
            findings.high(
                section.line,
                format!(
                    "`### {}` is not a scenario: write `### Scenario: Name`",
                    section.title
                ),
            );
            continue;
        };

        count += 1;
        for word in ["WHEN", "THEN"] {
            if !section::prose(&section.body)
                .iter()
                .any(|line| has_keyword(line, word))
            {
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

    if count == 0 {
        findings.high(
            all.line,
            "`## Acceptance Criteria` has no `### Scenario: Name`",
        );
    }
}

/// `- **WHEN** ...`, with text after the keyword.
fn has_keyword(line: &str, word: &str) -> bool {
    let plain = line
        .trim()
        .trim_start_matches(['-', '*', ' '])
        .replace("**", "");
    plain.strip_prefix(word).is_some_and(|tail| {
        tail.starts_with([' ', ':']) && !tail.trim_matches([' ', ':']).is_empty()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valid spec.
    const GOOD: &str = "# Spec: Greeting\n\n## Overview\nThe program greets whoever it is told to greet, and the world otherwise.\n\n\
        ## Requirements\n\n### R1: Name\nIt takes a name.\n\n### R2: World\nWithout one it greets the world.\n\n\
        ## Acceptance Criteria\n\n### Scenario: Ada\n- **WHEN** `greet.sh Ada` runs\n- **THEN** it prints `Hello, Ada!`\n";

    fn check(text: &str, expected: &[&str]) {
        let actual: Vec<String> = super::check("specs/greeting.md", text)
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
            &GOOD.replace("The program greets whoever it is told to greet, and ", ""),
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
            &["specs/greeting.md:8: error: requirement R1 says nothing"],
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
