//! Parses and edits context lists (`*.context`): one resource or pattern per line.
//!
//! Users edit these files too, so an edit changes only its own lines. An invalid line is reported
//! to the user and is not an error. Implements the rules C1-C7 of `docs/formats/context-list.md`.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobMatcher};

use super::link;
use super::path::RepoPath;
use super::resource::{Artifact, Resource, is_url, relative};

// These characters make an entry a pattern, unless a backslash escapes them.
const WILD: [char; 3] = ['*', '?', '['];

/// Characters trimmed from a line.
const BLANKS: [char; 5] = ['\u{feff}', ' ', '\t', '\r', '\n'];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextList {
    /// The entries, in order and without duplicates.
    pub entries: Vec<ListEntry>,
    pub wrong: Vec<BadLine>,
}

/// A line that is not a valid entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Line number, from 1.
    pub line: usize,
    /// The entry on the line.
    pub text: String,
    /// Why it is invalid: lower case, without a full stop.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListEntry {
    /// A file, directory, web page or artifact.
    Resource(Resource),
    /// All matching files. A file with exactly this name takes precedence, see
    /// [`ListEntry::among`].
    Pattern(PathPattern),
}

/// A glob pattern: `*` and `?` don't match `/`, `**` does, and `[ab]` is a set of characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathPattern(String);

impl ListEntry {
    /// Parses an entry from a list or the command line. Returns a message on error.
    pub fn read(text: &str) -> Result<ListEntry, String> {
        let name = if text.starts_with('[') && text.ends_with(')') && text.contains("](") {
            link::read(text).map_err(|e| e.to_string())?
        } else {
            text.to_owned()
        };

        // A `?` in a URL does not make it a pattern.
        if is_url(&name) || !is_wild(&name) {
            let resource = Resource::parse(&without_escapes(&name));
            return resource.map(ListEntry::Resource).map_err(|e| e.to_string());
        }

        let pattern = PathPattern(relative(&name).to_owned());
        pattern.matcher()?;
        Ok(ListEntry::Pattern(pattern))
    }

    /// Converts a pattern to a resource if a path with exactly that name exists.
    #[must_use]
    pub fn among(self, exists: &dyn Fn(&RepoPath) -> bool) -> ListEntry {
        let namesake = match &self {
            ListEntry::Pattern(pattern) => pattern.namesake().filter(exists),
            ListEntry::Resource(_) => None,
        };
        namesake.map_or(self, |path| ListEntry::Resource(Resource::File(path)))
    }

    /// Returns the display name: a resource without escapes, a pattern verbatim.
    pub fn name(&self) -> String {
        match self {
            ListEntry::Resource(resource) => resource.to_string(),
            ListEntry::Pattern(pattern) => pattern.0.clone(),
        }
    }

    /// Returns the text for a list. A prefix `./` keeps it from being parsed as a comment or link.
    fn spelled(&self) -> String {
        let text = match self {
            ListEntry::Resource(resource @ Resource::File(_)) => escaped(&resource.to_string()),
            _ => self.name(),
        };
        let trimmed = text.trim_matches(BLANKS) != text;
        match self {
            // Blanks at the end of a line are none of the entry, but inside of a link they are.
            ListEntry::Resource(Resource::File(_)) if trimmed => link::write_path(&text),
            _ if text.starts_with(['#', '[', ' ']) => format!("./{text}"),
            _ => text,
        }
    }
}

/// Compiles a pattern. Returns a message on error.
pub fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|e| e.kind().to_string())
}

impl PathPattern {
    /// Returns the pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Compiles the pattern. Returns a message on error.
    pub fn matcher(&self) -> Result<GlobMatcher, String> {
        matcher(&self.0)
    }

    fn namesake(&self) -> Option<RepoPath> {
        match Resource::parse(&without_escapes(&self.0)) {
            Ok(Resource::File(path)) => Some(path),
            _ => None,
        }
    }
}

/// Escapes the pattern characters in a path.
pub fn escaped(path: &str) -> String {
    path.chars()
        .flat_map(|c| WILD.contains(&c).then_some('\\').into_iter().chain([c]))
        .collect()
}

/// Returns the name of an entry as commands read it in any directory of the project.
pub fn rooted(name: &str) -> String {
    match is_url(name) || Artifact::parse(name).is_some() {
        true => name.to_owned(),
        false => format!("/{name}"),
    }
}

// The inverse of `escaped`.
fn without_escapes(text: &str) -> String {
    WILD.iter().fold(text.to_owned(), |text, wild| {
        text.replace(&format!("\\{wild}"), &wild.to_string())
    })
}

fn is_wild(text: &str) -> bool {
    let mut is_escaped = false;
    text.chars().any(|c| {
        let is_wild = WILD.contains(&c) && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_wild
    })
}

pub fn read(text: &str) -> ContextList {
    let mut listed = ContextList::default();
    let mut unique = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        let Some(written) = entry_of(line) else {
            continue;
        };
        match ListEntry::read(written) {
            Ok(entry) if unique.insert(entry.clone()) => listed.entries.push(entry),
            Ok(_) => {}
            Err(reason) => listed.wrong.push(BadLine {
                line: index + 1,
                text: written.to_owned(),
                reason,
            }),
        }
    }

    listed
}

pub fn write(entries: &[ListEntry]) -> String {
    entries
        .iter()
        .map(|entry| format!("{}\n", entry.spelled()))
        .collect()
}

/// Appends an entry, unless the list has it.
pub fn add(text: &str, entry: &ListEntry) -> String {
    if read(text).entries.contains(entry) {
        return text.to_owned();
    }

    let ending = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let gap = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        ending
    };
    format!("{text}{gap}{}{ending}", entry.spelled())
}

/// Removes the entries that don't satisfy the predicate. Keeps comments, blank lines and invalid
/// lines.
pub fn retain(text: &str, stays: &dyn Fn(&ListEntry) -> bool) -> String {
    let line_stays = |line: &&str| {
        let entry = entry_of(line).and_then(|written| ListEntry::read(written).ok());
        entry.is_none_or(|entry| stays(&entry))
    };
    text.split_inclusive('\n').filter(line_stays).collect()
}

/// `None` for a blank line and a comment.
fn entry_of(line: &str) -> Option<&str> {
    let text = line.trim_matches(BLANKS);
    (!text.is_empty() && !text.starts_with('#')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the entries, followed by the invalid lines.
    fn check(text: &str, expected: &[&str]) {
        let listed = read(text);
        let wrong = listed
            .wrong
            .iter()
            .map(|bad| format!("{}: {}", bad.line, bad.reason));
        assert_eq!(
            listed
                .entries
                .iter()
                .map(ListEntry::name)
                .chain(wrong)
                .collect::<Vec<_>>(),
            expected
        );
    }

    /// Parses an entry, given that a file with this name exists.
    fn entry(text: &str) -> ListEntry {
        ListEntry::read(text)
            .expect("a good entry")
            .among(&|path| path.as_str() == text)
    }

    #[test]
    fn c1_every_line_names_one_resource() {
        check(
            "src/a.rs\n/docs/\nhttps://a.example/x?[1]\n.teddy/s/3/report.md\n/*.md\nmy file.md",
            &[
                "src/a.rs",
                "docs",
                "https://a.example/x?[1]",
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
    fn c3_order_is_kept_and_a_resource_stands_once() {
        check("b\na\n/b\n./a\n./*\n/*\n", &["b", "a", "*"]);
    }

    #[test]
    fn c4_a_line_that_names_nothing_is_reported() {
        check(
            "../x\na\nC:\\x\n[a](/b)\n*/[a\n",
            &[
                "a",
                "1: the path leaves the project with `..`",
                "3: the path has the character U+005C, which is not allowed in a path",
                "4: the link's text `a` and its destination `/b` differ",
                "5: unclosed character class; missing ']'",
            ],
        );
        check(
            &format!("{}\n", "word ".repeat(2000)),
            &["1: the path is too long"],
        );
    }

    #[test]
    fn c5_a_change_touches_its_own_line_alone() {
        let text = "# why\na\n\n/b\n../x\n# end";
        assert_eq!(add(text, &entry("c")), "# why\na\n\n/b\n../x\n# end\nc\n");
        assert_eq!(add(text, &entry("b")), text);
        assert_eq!(add("a\r\n", &entry("b")), "a\r\nb\r\n");
        let without = |name: &str| retain(text, &|entry| entry.name() != name);
        assert_eq!(without("b"), "# why\na\n\n../x\n# end");
        assert_eq!(without("c"), text);
    }

    #[test]
    fn c6_what_is_written_is_read_again() {
        let all: Vec<ListEntry> = [
            "#a",
            "[a](/b).md",
            "[a](/b)/[id]/*.md",
            "a b",
            "https://a.example/[x]",
            ".teddy/s/1/plan.md",
            "**/*.rs",
            "src/[ab]?/\\*.rs",
        ]
        .map(|text| ListEntry::read(&format!("./{text}").replace("./https", "https")))
        .map(|entry| entry.expect("a good entry"))
        .into();
        let added = all
            .iter()
            .fold(String::new(), |list, entry| add(&list, entry));
        assert_eq!(added, write(&all));
        assert_eq!(read(&added).entries, all);
    }

    #[test]
    fn promise_d3_c7_a_pattern_that_a_file_has_for_its_name_is_that_file() {
        for name in [
            "app/[id]/page.tsx",
            "*.md",
            "what?",
            "a/[...slug]/+page.svelte",
        ] {
            let path = RepoPath::parse(name).expect("a good path");
            let file = ListEntry::Resource(Resource::File(path));
            assert_eq!(entry(name), file);
            assert!(
                matches!(ListEntry::read(name), Ok(ListEntry::Pattern(_))),
                "{name}"
            );

            let list = write(std::slice::from_ref(&file));
            assert_eq!(read(&list).entries, [file], "{list}");
        }
        assert_eq!(write(&[entry("app/[id]/*.tsx")]), "app/\\[id]/\\*.tsx\n");
        check("app/\\[id]/page.tsx\n", &["app/[id]/page.tsx"]);
    }

    #[test]
    fn promise_d3_c7_what_is_escaped_in_a_pattern_fits_as_it_is() {
        let fits = |pattern: &str, path: &str| {
            let Ok(ListEntry::Pattern(pattern)) = ListEntry::read(pattern) else {
                panic!("{pattern} is not a pattern")
            };
            pattern.matcher().expect("a good pattern").is_match(path)
        };
        assert!(fits("app/\\[id]/*.tsx", "app/[id]/page.tsx"));
        assert!(!fits("app/\\[id]/*.tsx", "app/d/page.tsx"));
        assert!(fits("app/[id]/*.tsx", "app/d/page.tsx"));
        assert!(!fits("src/*.rs", "src/x/a.rs") && fits("src/**/*.rs", "src/x/a.rs"));
    }
}
