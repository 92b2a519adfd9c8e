//! Resolves paths that the user types, relative to the current directory.
//!
//! Purely lexical: a path does not have to exist.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;

use crate::git::repository::Repository;
use crate::text::context_list::escaped;
use crate::text::resource::{Artifact, is_url};

const EVERYTHING: &str = "**";

/// For example from an unset variable in a script. Refused, because it would select everything.
#[derive(Debug, thiserror::Error)]
#[error("a path is empty")]
pub struct EmptyPath;

/// Relative to the project's root. Returns an empty list, which selects everything, if there are no
/// paths or one of them is the root.
pub fn resolve_paths(
    repository: &Repository,
    dir: &Path,
    paths: &[String],
) -> anyhow::Result<Vec<String>> {
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let prefix = prefix(repository, dir)?;
    let mut resolved = Vec::new();

    for path in paths {
        anyhow::ensure!(!path.is_empty(), EmptyPath);
        let inside = relative(repository.workdir(), &prefix, Path::new(path))
            .with_context(|| format!("`{path}` is outside the project"))?;
        if inside.is_empty() {
            return Ok(Vec::new());
        }
        resolved.push(inside);
    }

    Ok(resolved)
}

/// At or below one of the paths, or if there are none.
pub fn is_below(file: &str, paths: &[String]) -> bool {
    let is_at = |path: &String| {
        let suffix = file.strip_prefix(path.as_str());
        suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('/'))
    };
    paths.is_empty() || paths.iter().any(is_at)
}

/// Resolves entries of a context list. A leading `/` means the root. Entries of other kinds, and
/// paths that lead outside, stay as they are, so that the list refuses the latter.
pub fn entries(
    repository: &Repository,
    dir: &Path,
    texts: &[String],
) -> anyhow::Result<Vec<String>> {
    let prefix = prefix(repository, dir)?;
    Ok(texts.iter().map(|text| entry(&prefix, text)).collect())
}

/// Returns a path of the project as seen from a directory of it, so that a command that is run there
/// can have it.
pub fn seen_from(dir: &Path, path: &str) -> String {
    let path = Path::new(path);
    let pairs = dir.components().zip(path.components());
    let common = pairs.take_while(|pair| pair.0 == pair.1).count();
    let up = dir.components().skip(common).map(|_| OsStr::new(".."));
    let down = path.components().skip(common);
    let seen: PathBuf = up.chain(down.map(Component::as_os_str)).collect();
    if seen.as_os_str().is_empty() {
        return ".".to_owned();
    }
    seen.to_string_lossy().into_owned()
}

/// Path of a directory in the project. Empty if it is outside.
pub fn prefix(repository: &Repository, dir: &Path) -> anyhow::Result<PathBuf> {
    let dir = dir
        .canonicalize()
        .with_context(|| format!("`{}` is gone", dir.display()))?;
    let inside = dir.strip_prefix(repository.workdir());
    Ok(inside.unwrap_or(Path::new("")).to_owned())
}

fn entry(prefix: &Path, text: &str) -> String {
    if prefix.as_os_str().is_empty() && matches!(text, "." | "./") {
        return EVERYTHING.to_owned();
    }

    if prefix.as_os_str().is_empty()
        || text.starts_with('/')
        || is_url(text)
        || Artifact::parse(text).is_some()
    {
        return text.to_owned();
    }

    // The directory's own name is literal; only the typed text is a pattern.
    let prefix = escaped(&prefix.to_string_lossy());
    match relative(Path::new("/"), Path::new(&prefix), Path::new(text)) {
        Some(path) if path.is_empty() => EVERYTHING.to_owned(),
        Some(path) => path,
        None => text.to_owned(),
    }
}

/// `None` if the path leads outside the root.
fn relative(root: &Path, prefix: &Path, path: &Path) -> Option<String> {
    let path = if path.is_absolute() {
        path.strip_prefix(root).ok()?.to_owned()
    } else {
        prefix.join(path)
    };

    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir if clean.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }

    Some(clean.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_from_the_folder_in_use() {
        let check = |prefix: &str, path: &str, expected: Option<&str>| {
            assert_eq!(
                relative(Path::new("/p"), Path::new(prefix), Path::new(path)).as_deref(),
                expected,
                "{prefix} {path}"
            );
        };
        check("src", "a.rs", Some("src/a.rs"));
        check("src", "../b", Some("b"));
        check("src", "../../b", None);
        check("", ".", Some(""));
        check("", "/p/x", Some("x"));
        check("", "/q/x", None);
    }

    #[test]
    fn a_path_is_shown_as_its_command_takes_it() {
        let check = |dir: &str, path: &str, expected: &str| {
            let seen = seen_from(Path::new(dir), path);
            assert_eq!(seen, expected, "{dir} {path}");
            let taken = relative(Path::new("/p"), Path::new(dir), Path::new(&seen));
            assert_eq!(taken.as_deref(), Some(path), "{dir} {seen}");
        };
        check("", "lib/a", "lib/a");
        check("lib", "lib/a", "a");
        check("lib", "a", "../a");
        check("lib", "lib2/a", "../lib2/a");
        check("lib/one", "lib/two/a", "../two/a");
        check("lib/one", "lib", "..");
        check("lib", "lib", ".");
    }

    #[test]
    fn an_entry_is_taken_from_the_folder_in_use() {
        let check = |prefix: &str, text: &str, expected: &str| {
            assert_eq!(entry(Path::new(prefix), text), expected, "{prefix} {text}")
        };
        check("", "src/", "src/");
        check("src", "a.rs", "src/a.rs");
        check("src", "./a.rs", "src/a.rs");
        check("src", "../b/*.md", "b/*.md");
        check("src", "/b", "/b");
        check(
            "src",
            "https://example.org/../x",
            "https://example.org/../x",
        );
        check(
            "src",
            ".teddy/demo/01/report.md",
            ".teddy/demo/01/report.md",
        );
        check("app/[id]", "*.tsx", "app/\\[id]/*.tsx");
        check("app/[id]", "../x", "app/x");
        check("src", "../../b", "../../b");
        check("src", ".", "src");
        check("src", "..", "**");
        check("", ".", "**");
        check("", "./", "**");
    }
}
