//! Context lists (`*.context`): one resource on each line.
//!
//! The user edits these files too, so a change touches its own line alone. A line that names
//! nothing is a value for who reports it, never a failure. Rules C1-C6 of
//! `docs/formats/context-list.md`.

use std::collections::HashSet;

use super::link;
use super::resource::Resource;

/// What a list holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Listed {
    /// The resources in order, each once.
    pub resources: Vec<Resource>,
    /// The lines that name nothing.
    pub wrong: Vec<BadLine>,
}

/// A line that names nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, from 1.
    pub line: usize,
    /// What it says.
    pub text: String,
    /// Why it names nothing, lower case, without a full stop.
    pub reason: String,
}

/// Returns the entries of a list as they are written, without comments and blank lines.
pub fn entries(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(trimmed)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Reads a list.
pub fn read(text: &str) -> Listed {
    let mut listed = Listed::default();
    let mut seen = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        match entry(line) {
            None => {}
            Some(Ok(resource)) if seen.insert(resource.clone()) => listed.resources.push(resource),
            Some(Ok(_)) => {}
            Some(Err(reason)) => listed.wrong.push(BadLine {
                line: index + 1,
                text: line.trim().to_owned(),
                reason,
            }),
        }
    }
    listed
}

/// Returns the list with a resource at its end; as it was if the resource is in it.
pub fn add(text: &str, resource: &Resource) -> String {
    if read(text).resources.contains(resource) {
        return text.to_owned();
    }
    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        ending
    };
    format!("{text}{gap}{}{ending}", spelled(resource))
}

/// Reads a line; `None` for a blank one and a comment.
fn entry(line: &str) -> Option<Result<Resource, String>> {
    let text = trimmed(line);
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    let name = if text.starts_with('[') && text.contains("](") {
        link::read(text).map_err(|e| e.to_string())
    } else {
        Ok(text.to_owned())
    };
    Some(name.and_then(|name| Resource::parse(&name).map_err(|e| e.to_string())))
}

/// Returns a line without blanks and a byte order mark around it.
fn trimmed(line: &str) -> &str {
    line.trim_matches(['\u{feff}', ' ', '\t', '\r', '\n'])
}

/// Writes a resource so that it is no comment, no link and no other path.
fn spelled(resource: &Resource) -> String {
    let text = resource.to_string();
    if text.starts_with(['#', '[', ' ']) {
        format!("./{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what a list holds: its resources, then its wrong lines.
    fn check(text: &str, expected: &[&str]) {
        let listed = read(text);
        let wrong = listed
            .wrong
            .iter()
            .map(|bad| format!("{}: {}", bad.line, bad.reason));
        assert_eq!(
            listed
                .resources
                .iter()
                .map(ToString::to_string)
                .chain(wrong)
                .collect::<Vec<_>>(),
            expected
        );
    }

    /// Makes a resource.
    fn resource(text: &str) -> Resource {
        Resource::parse(text).expect("a good name")
    }

    #[test]
    fn c1_every_line_names_one_resource() {
        check(
            "src/a.rs\n/docs/\nhttps://a.example/x\n.teddy/s/3/report.md\n*.md\nmy file.md",
            &[
                "src/a.rs",
                "docs",
                "https://a.example/x",
                ".teddy/s/03/report.md",
                "*.md",
                "my file.md",
            ],
        );
        check("[src/a.rs](/src/a.rs)\n", &["src/a.rs"]);
    }

    #[test]
    fn c2_comments_and_blank_lines_name_nothing() {
        check("\u{feff}# head\r\n\r\n  \na\r\n  # more\n", &["a"]);
        check("", &[]);
    }

    #[test]
    fn c2_entries_are_given_as_they_are_written() {
        assert_eq!(
            entries("# head\n /a \n\n./a\n").collect::<Vec<_>>(),
            ["/a", "./a"]
        );
    }

    #[test]
    fn c3_order_is_kept_and_a_resource_stands_once() {
        check("b\na\n/b\n./a\n", &["b", "a"]);
    }

    #[test]
    fn c4_a_line_that_names_nothing_is_reported() {
        check(
            "../x\na\nC:\\x\n[a](/b)\n",
            &[
                "a",
                "1: the path leaves the project with `..`",
                "3: the path has the character U+005C, which is not allowed in a path",
                "4: the link's text `a` and its destination `/b` differ",
            ],
        );
        check(
            &format!("{}\n", "word ".repeat(2000)),
            &["1: the path is too long"],
        );
    }

    #[test]
    fn c5_a_change_touches_its_own_line_alone() {
        let text = "# why\na\n\n/b\n# end";
        assert_eq!(add(text, &resource("c")), "# why\na\n\n/b\n# end\nc\n");
        assert_eq!(add(text, &resource("b")), text);
        assert_eq!(add("a\r\n", &resource("b")), "a\r\nb\r\n");
    }

    #[test]
    fn c6_what_is_written_is_read_again() {
        let all: Vec<Resource> = [
            "#a",
            "[a](/b).md",
            "a b",
            "https://a.example",
            ".teddy/s/1/plan.md",
        ]
        .map(|t| resource(&format!("./{t}").replace("./https", "https")))
        .into();
        let list = all
            .iter()
            .fold(String::new(), |list, resource| add(&list, resource));
        assert_eq!(read(&list).resources, all);
    }
}
