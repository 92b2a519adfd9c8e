//! `RepoPath`: a validated path, the only form in which plans, context lists and prompts name
//! files.
//!
//! A `RepoPath` is relative to the project's root, normalized, and outside `.git` and `.teddy`,
//! even on file systems that ignore case or certain characters. It implies nothing about the file
//! system: links are checked when a file is opened (`host::file`).

use std::borrow::Borrow;
use std::fmt;

use unicode_normalization::UnicodeNormalization;

/// Maximum length in bytes.
pub const MAX_PATH: usize = 4000;
/// Maximum length of a component in bytes.
pub const MAX_COMPONENT: usize = 255;

/// A path of a file or directory of the project: relative, normal, UTF-8, outside `.git` and `.teddy`.
///
/// It can be any name that a tree has, also one that a person could misread. Whether a plan can make
/// a file of this name is [`RepoPath::fit_for_new`]'s business, and every name goes through
/// `text::sanitize` before it is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct RepoPath(String);

/// Why a text is not a valid [`RepoPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("the path is empty")]
    Empty,
    #[error("the path must be relative to the project's root")]
    Absolute,
    #[error("the path leaves the project with `..`")]
    Traversal,
    #[error("the path has an empty or `.` component")]
    NotNormal,
    #[error("`{0}` is git's own")]
    GitInternal(String),
    #[error("`{0}` is where another version control system keeps its own")]
    ForeignControl(String),
    #[error("`{0}` must be a file for git, so nothing can be in it")]
    GitFile(String),
    #[error("`{0}` is TeDDy's own")]
    TeddyInternal(String),
    /// It has a control character or a backslash; for a new name, also a direction mark or an
    /// invisible character.
    #[error("the path has the character U+{0:04X}, which is not allowed in a path")]
    Character(u32),
    #[error("`{0}` ends with a dot or a space")]
    Trailing(String),
    /// A component exceeds [`MAX_COMPONENT`], or the whole path [`MAX_PATH`].
    #[error("the path is too long")]
    TooLong,
}

impl RepoPath {
    /// Checks a path that is relative to the project's root, without a leading `/`. Fails with the
    /// first error that applies, from left to right.
    pub fn parse(text: &str) -> Result<RepoPath, PathError> {
        check_whole(text)?;
        for (position, component) in text.split('/').enumerate() {
            check_component(component, position == 0)?;
        }
        let dirs = text.rsplit_once('/').map_or("", |(dirs, _)| dirs);
        if let Some(file) = dirs.split('/').find(|dir| must_be_file(dir)) {
            return Err(PathError::GitFile(file.to_owned()));
        }
        Ok(RepoPath(text.to_owned()))
    }

    /// Checks that the components behind the first `existing` bytes can be the name of something new:
    /// nothing that a person could misread, or that means something else to a shell or on another
    /// system.
    pub fn fit_for_new(&self, existing: usize) -> Result<(), PathError> {
        let new = self.0[existing..].trim_start_matches('/');
        if let Some(bad) = new.chars().find(|&c| is_deceptive(c)) {
            return Err(PathError::Character(bad as u32));
        }

        let drive = new.as_bytes().get(1) == Some(&b':') && new.as_bytes()[0].is_ascii_alphabetic();
        if existing == 0 && (new == "~" || new.starts_with("~/") || drive) {
            return Err(PathError::Absolute);
        }

        match new.split('/').find(|name| name.ends_with(['.', ' '])) {
            Some(name) => Err(PathError::Trailing(name.to_owned())),
            None => Ok(()),
        }
    }

    /// Returns the path as text, with `/` between components.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Returns the parent directories, nearest first: `a/b/c` has `a/b` and `a`.
    pub fn ancestors(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.rmatch_indices('/').map(|(at, _)| &self.0[..at])
    }

    /// Like [`RepoPath::ancestors`], as paths.
    pub fn parents(&self) -> impl DoubleEndedIterator<Item = RepoPath> {
        self.ancestors().map(|dir| RepoPath(dir.to_owned()))
    }
}

fn check_whole(text: &str) -> Result<(), PathError> {
    if text.is_empty() {
        return Err(PathError::Empty);
    }

    if text.len() > MAX_PATH {
        return Err(PathError::TooLong);
    }

    if let Some(bad) = text.chars().find(|&c| c == '\\' || c.is_control()) {
        return Err(PathError::Character(bad as u32));
    }

    let drive =
        text.as_bytes().get(1..3) == Some(b":/") && text.as_bytes()[0].is_ascii_alphabetic();
    if text.starts_with('/') || drive {
        return Err(PathError::Absolute);
    }

    Ok(())
}

fn check_component(component: &str, first: bool) -> Result<(), PathError> {
    if component == ".." {
        return Err(PathError::Traversal);
    }

    if component.is_empty() || component == "." {
        return Err(PathError::NotNormal);
    }

    if component.len() > MAX_COMPONENT {
        return Err(PathError::TooLong);
    }

    // A checkout can be on any file system, so compare like the most lenient one.
    let folded = fold_component(component);
    let reserved = match component.to_owned() {
        name if is_git(&folded) => PathError::GitInternal(name),
        name if is_foreign_control_dir(folded.as_bytes()) => PathError::ForeignControl(name),
        name if first && is_teddy_dir(component) => PathError::TeddyInternal(name),
        _ => return Ok(()),
    };
    // More helpful than a name that looks like another one.
    let hidden = component.chars().find(|&c| is_deceptive(c));
    Err(hidden.map_or(reserved, |c| PathError::Character(c as u32)))
}

/// Control directories of Jujutsu, Mercurial and Sapling, which can share a directory with git.
pub const FOREIGN_CONTROL_DIRS: [&str; 3] = [".jj", ".hg", ".sl"];

/// Returns whether a name is that of the control directory of another version control system.
pub fn is_foreign_control_dir(name: &[u8]) -> bool {
    FOREIGN_CONTROL_DIRS
        .iter()
        .any(|other| other.as_bytes() == name)
}

/// Returns whether some file system takes a name for `.teddy`, which is reserved at the root.
pub fn is_teddy_dir(name: &str) -> bool {
    let folded = fold_component(name);
    folded == ".teddy" || is_short(&folded, "teddy")
}

fn is_git(folded: &str) -> bool {
    folded == ".git" || is_short(folded, "git")
}

/// A file that git reads from trees, and requires to be sound in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitFile {
    /// `.gitattributes`
    Attributes,
    /// `.gitmodules`
    Modules,
}

/// Returns whether git refuses a directory of this name in a tree (`git fsck --strict`): `.gitattributes` and
/// `.gitmodules` in any spelling that some file system takes for one of them.
pub fn must_be_file(name: &str) -> bool {
    git_file(name).is_some()
}

/// Returns which of git's files a name is for some file system.
pub fn git_file(name: &str) -> Option<GitFile> {
    let folded = fold_component(name);
    [
        (GitFile::Attributes, "gitattributes", "gi7d29"),
        (GitFile::Modules, "gitmodules", "gi7eba"),
    ]
    .iter()
    .find(|(_, word, hashed)| {
        folded.strip_prefix('.') == Some(word)
            || is_short(&folded, &word[..6])
            || is_hashed_short(&folded, hashed)
    })
    .map(|(file, ..)| *file)
}

/// Returns whether a folded component may be the short name that NTFS makes with a hash if too many files
/// want the plain short name: its start, `~`, and digits, 8 characters in all.
fn is_hashed_short(folded: &str, hashed: &str) -> bool {
    folded.len() == 8
        && folded
            .split_once('~')
            .is_some_and(|(head, _)| hashed.starts_with(head) && is_short(folded, head))
}

/// Returns whether a folded component may be the short name that NTFS gives to a dot and this word.
fn is_short(folded: &str, word: &str) -> bool {
    let number = folded
        .strip_prefix(word)
        .and_then(|suffix| suffix.strip_prefix('~'));
    number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Folds a component like the most lenient file system: removes characters that HFS+ ignores, an
/// NTFS stream, and trailing dots and spaces, and folds case.
fn fold_component(component: &str) -> String {
    let compatible = component.nfkc().flat_map(char::to_lowercase).nfkc();
    let visible: String = compatible.filter(|&c| !is_ignorable(c)).collect();
    let stem = visible.split(':').next().unwrap_or_default();
    stem.trim_end_matches(['.', ' ']).to_owned()
}

/// Returns the form of a path, or of the start of one, in which two that some file system takes
/// for one are equal: canonically composed and lower case. Compatible characters (`ﬁ` and `fi`) are
/// different everywhere.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfc().flat_map(char::to_lowercase).nfc().collect()
}

// HFS+ ignores these characters in comparisons.
fn is_ignorable(c: char) -> bool {
    matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

/// Returns `true` for characters that can deceive a reader: control characters, line separators,
/// direction marks, invisible and private-use characters.
pub fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{8e2}'
            | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{e0fff}' | '\u{f0000}'..='\u{10ffff}')
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for RepoPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Converts paths for display.
pub fn lossy_paths(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|path| lossy(path)).collect()
}

/// Converts a path for display. Invalid UTF-8 is replaced.
pub fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let actual = RepoPath::parse(text).map_or_else(|e| e.to_string(), |_| "ok".to_owned());
        assert_eq!(actual, expected, "for {text:?}");
    }

    #[test]
    fn ordinary_names_are_accepted() {
        for name in [
            "a",
            "src/main.rs",
            ".gitignore",
            ".github/x.yml",
            "a b/ü.md",
            "__main__.py",
            ".teddyignore",
            "a/.teddy",
            "git~x",
        ] {
            check(name, "ok");
        }
    }

    #[test]
    fn a_path_stays_inside_the_project() {
        check("", "the path is empty");
        check(
            "/etc/passwd",
            "the path must be relative to the project's root",
        );
        check("C:/x", "the path must be relative to the project's root");
        check("a/../b", "the path leaves the project with `..`");
        check("./a", "the path has an empty or `.` component");
        check("a//b", "the path has an empty or `.` component");
        check("a/", "the path has an empty or `.` component");
    }

    #[test]
    fn nothing_is_in_what_git_requires_to_be_a_file() {
        for name in [
            ".gitattributes",
            ".gitmodules",
            ".GitModules",
            ".gitmodules .",
            "gitmod~1",
            "gitatt~12",
            "gi7eba~1",
            "gi7d2~10",
        ] {
            assert!(must_be_file(name), "{name}");
        }
        for name in [".gitignore", ".gitmodule", "gitmodules", "gitmod", "gi7eba"] {
            assert!(!must_be_file(name), "{name}");
        }
        check(".gitmodules", "ok");
        check("a/.gitattributes", "ok");
        check(
            ".gitattributes/x",
            "`.gitattributes` must be a file for git, so nothing can be in it",
        );
        check(
            "a/.gitmodules/b/c",
            "`.gitmodules` must be a file for git, so nothing can be in it",
        );
    }

    #[test]
    fn every_spelling_of_the_git_directory_is_refused() {
        for name in [
            ".git",
            ".GIT",
            ".git.",
            ".git ",
            "git~1",
            "GIT~2",
            ".g\u{200c}it",
            ".git::$INDEX_ALLOCATION",
            "\u{ff0e}git",
            "sub/.Git/config",
        ] {
            assert!(RepoPath::parse(name).is_err(), "{name:?} was accepted");
        }
    }

    #[test]
    fn the_tools_own_folder_is_refused_at_the_root_only() {
        check(".teddy/config.yaml", "`.teddy` is TeDDy's own");
        check(".TEDDY/x", "`.TEDDY` is TeDDy's own");
        check("teddy~1/x", "`teddy~1` is TeDDy's own");
        check("docs/.teddy/x", "ok");
    }

    #[test]
    fn deceptive_characters_are_named() {
        check(
            "a\\b",
            "the path has the character U+005C, which is not allowed in a path",
        );
        check(
            "a\nb",
            "the path has the character U+000A, which is not allowed in a path",
        );
    }

    #[test]
    fn p43_what_a_tree_can_have_can_be_named_and_not_made_anew() {
        for (name, expected) in [
            ("~", "the path must be relative to the project's root"),
            ("~/x", "the path must be relative to the project's root"),
            ("s:1", "the path must be relative to the project's root"),
            ("a.", "`a.` ends with a dot or a space"),
            ("a /b", "`a ` ends with a dot or a space"),
            (
                "a\u{202e}b",
                "the path has the character U+202E, which is not allowed in a path",
            ),
            (
                "می\u{200c}خواهم.md",
                "the path has the character U+200C, which is not allowed in a path",
            ),
            (
                "a\u{ad}b/c",
                "the path has the character U+00AD, which is not allowed in a path",
            ),
        ] {
            check(name, "ok");
            let path = RepoPath::parse(name).expect("a path of a tree");
            let fit = path.fit_for_new(0).map_err(|error| error.to_string());
            assert_eq!(fit, Err(expected.to_owned()), "for {name:?}");
        }

        let path = RepoPath::parse("a\u{ad}b/c").expect("a path of a tree");
        assert_eq!(path.fit_for_new("a\u{ad}b".len()), Ok(()));
        assert_eq!(path.fit_for_new(path.as_str().len()), Ok(()));
    }

    #[test]
    fn p43_the_same_name_is_a_canonical_one_or_one_in_another_case() {
        assert_eq!(fold("E\u{301}.md"), fold("é.md"));
        for (one, other) in [("ﬁle", "file"), ("１", "1"), ("ª", "a"), ("x²", "x2")] {
            assert_ne!(fold(one), fold(other));
        }
    }

    #[test]
    fn ancestors_are_listed_nearest_first() {
        let path = RepoPath::parse("a/b/c").expect("a plain path");
        assert_eq!(path.ancestors().collect::<Vec<_>>(), ["a/b", "a"]);
    }
}
