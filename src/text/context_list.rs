//! Context lists (`*.context`): one resource, or one pattern, on each line.
//!
//! The user edits these files too, so a change touches its own line alone. A line that names
//! nothing is a value for who reports it, never a failure. Which files there are is asked of the
//! caller. Rules C1-C7 of `docs/formats/context-list.md`.

use std::collections::HashSet;

use globset::{GlobBuilder, GlobMatcher};

use super::link;
use super::path::RepoPath;
use super::resource::{Resource, is_url};

/// The characters that make an entry a pattern; a backslash before one takes its meaning away.
const WILD: [char; 3] = ['*', '?', '['];

/// What stands around the entry of a line.
const BLANKS: [char; 5] = ['\u{feff}', ' ', '\t', '\r', '\n'];

/// What a list holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextList {
    /// The entries in order, each once.
    pub entries: Vec<ListEntry>,
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

/// What a line names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListEntry {
    /// A file, a folder, a page, an artifact.
    Resource(Resource),
    /// Every file that fits, unless one has the pattern for its name.
    Pattern(PathPattern),
}

/// A pattern: `*` and `?` stay inside a folder, `**` does not, `[ab]` is one character.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PathPattern(String);

impl ListEntry {
    /// Reads an entry as it stands in a list or as a person types it.
    ///
    /// # Errors
    /// Why it names nothing.
    pub fn read(text: &str) -> Result<ListEntry, String> {
        let name = if text.starts_with('[') && text.ends_with(')') && text.contains("](") {
            link::read(text).map_err(|e| e.to_string())?
        } else {
            text.to_owned()
        };

        if is_url(&name) || !is_wild(&name) {
            let resource = Resource::parse(&without_escapes(&name));
            return resource.map(ListEntry::Resource).map_err(|e| e.to_string());
        }

        let pattern = PathPattern(relative(&name).to_owned());
        pattern.matcher()?;
        Ok(ListEntry::Pattern(pattern))
    }

    /// Returns the entry as what it is where these files and folders exist: a pattern that one of
    /// them has for its name is that one.
    #[must_use]
    pub fn among(self, exists: &dyn Fn(&RepoPath) -> bool) -> ListEntry {
        let named = match &self {
            ListEntry::Pattern(pattern) => pattern.namesake().filter(exists),
            ListEntry::Resource(_) => None,
        };
        named.map_or(self, |path| ListEntry::Resource(Resource::File(path)))
    }

    /// Returns what a person knows it by: a resource without escapes, a pattern as it is written.
    pub fn name(&self) -> String {
        match self {
            ListEntry::Resource(resource) => resource.to_string(),
            ListEntry::Pattern(pattern) => pattern.0.clone(),
        }
    }

    /// Writes it so that it is read as the same, and is no comment, no link and no other path.
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

/// Returns what tells which paths fit a pattern.
///
/// # Errors
/// Why it is no pattern.
pub fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(pattern)
        .literal_separator(true)
        .backslash_escape(true)
        .build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|e| e.kind().to_string())
}

impl PathPattern {
    /// Returns it as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns what tells which paths fit.
    ///
    /// # Errors
    /// Why it is no pattern.
    pub fn matcher(&self) -> Result<GlobMatcher, String> {
        matcher(&self.0)
    }

    /// Returns the path that is called just like the pattern.
    fn namesake(&self) -> Option<RepoPath> {
        match Resource::parse(&without_escapes(&self.0)) {
            Ok(Resource::File(path)) => Some(path),
            _ => None,
        }
    }
}

/// Returns a path, or the start of one, so that no character of it makes a pattern.
pub fn escaped(path: &str) -> String {
    path.chars()
        .flat_map(|c| WILD.contains(&c).then_some('\\').into_iter().chain([c]))
        .collect()
}

/// Returns a text without the backslashes that [`escaped`] puts into one.
fn without_escapes(text: &str) -> String {
    WILD.iter().fold(text.to_owned(), |text, wild| {
        text.replace(&format!("\\{wild}"), &wild.to_string())
    })
}

/// Returns whether a text has a character in it that makes it a pattern.
fn is_wild(text: &str) -> bool {
    let mut is_escaped = false;
    text.chars().any(|c| {
        let is_wild = WILD.contains(&c) && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_wild
    })
}

/// Returns a path without what says that it starts at the project's root.
fn relative(path: &str) -> &str {
    path.strip_prefix("./")
        .or_else(|| path.strip_prefix('/'))
        .unwrap_or(path)
}

/// Reads a list.
pub fn read(text: &str) -> ContextList {
    let mut listed = ContextList::default();
    let mut seen = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        let Some(written) = entry_of(line) else {
            continue;
        };
        match ListEntry::read(written) {
            Ok(entry) if seen.insert(entry.clone()) => listed.entries.push(entry),
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

/// Writes a list.
pub fn write(entries: &[ListEntry]) -> String {
    entries
        .iter()
        .map(|entry| format!("{}\n", entry.spelled()))
        .collect()
}

/// Returns the list with an entry at its end; as it was if the entry is in it.
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

/// Returns the list without the lines whose entry is not to stay.
pub fn retain(text: &str, stays: &dyn Fn(&ListEntry) -> bool) -> String {
    let line_stays = |line: &&str| {
        let entry = entry_of(line).and_then(|written| ListEntry::read(written).ok());
        entry.is_none_or(|entry| stays(&entry))
    };
    text.split_inclusive('\n').filter(line_stays).collect()
}

/// Returns the entry of a line as it is written; `None` for a blank line and a comment.
fn entry_of(line: &str) -> Option<&str> {
    let text = line.trim_matches(BLANKS);
    (!text.is_empty() && !text.starts_with('#')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares what a list holds: its entries, then its wrong lines.
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

    /// Makes an entry, where a file of this very name exists.
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
                panic!("{pattern} is no pattern")
            };
            pattern.matcher().expect("a good pattern").is_match(path)
        };
        assert!(fits("app/\\[id]/*.tsx", "app/[id]/page.tsx"));
        assert!(!fits("app/\\[id]/*.tsx", "app/d/page.tsx"));
        assert!(fits("app/[id]/*.tsx", "app/d/page.tsx"));
        assert!(!fits("src/*.rs", "src/x/a.rs") && fits("src/**/*.rs", "src/x/a.rs"));
    }
}
