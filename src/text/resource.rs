//! `Resource`: an entry in a context list, READ, PRUNE or hand-off.

use std::fmt;

use super::path::{PathError, RepoPath, is_deceptive};

/// A resource that can be shown to the model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A file or directory of the project.
    File(RepoPath),
    /// A web page, `http` or `https`.
    Url(String),
    /// An artifact of an earlier turn, `.teddy/<session>/<NN>/<name>`.
    Artifact(Artifact),
}

/// An artifact of a turn, as named in context lists.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Artifact {
    /// The session, one or more kebab-case components.
    pub session: String,
    pub turn: u64,
    /// Path in the turn's tree.
    pub name: String,
}

impl Resource {
    /// Parses an entry: `path`, `/path`, `./path`, `directory/`, a URL or an artifact. A URL must
    /// not contain whitespace or deceptive characters; everything else must be a valid path.
    pub fn parse(text: &str) -> Result<Resource, PathError> {
        if is_url(text) {
            if let Some(bad) = text.chars().find(|&c| c.is_whitespace() || is_deceptive(c)) {
                return Err(PathError::Character(bad as u32));
            }
            return Ok(Resource::Url(text.to_owned()));
        }

        let relative = relative(text);
        let relative = relative.strip_suffix('/').unwrap_or(relative);
        match Artifact::parse(relative) {
            Some(artifact) => Ok(Resource::Artifact(artifact)),
            None => RepoPath::parse(relative).map(Resource::File),
        }
    }
}

/// Returns a path without a `./` or `/` in front.
pub(super) fn relative(path: &str) -> &str {
    path.strip_prefix("./")
        .or_else(|| path.strip_prefix('/'))
        .unwrap_or(path)
}

/// Returns `true` if a text starts with `http://` or `https://`, in any case.
pub fn is_url(text: &str) -> bool {
    let scheme = text.split("://").next().unwrap_or_default();
    text.contains("://")
        && (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"))
}

impl Artifact {
    /// Parses `.teddy/<session>/<NN>/<name>`.
    pub fn parse(text: &str) -> Option<Artifact> {
        let mut parts = text.strip_prefix(".teddy/")?.rsplitn(3, '/');
        let (name, turn, session) = (parts.next()?, parts.next()?, parts.next()?);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        let safe = |part: &str| {
            !part.is_empty()
                && part.chars().all(plain)
                && !part
                    .split('/')
                    .any(|c| c.is_empty() || c == "." || c == "..")
        };

        if !turn.bytes().all(|b| b.is_ascii_digit()) || !safe(name) || !safe(session) {
            return None;
        }

        Some(Artifact {
            session: session.to_owned(),
            turn: turn.parse().ok()?,
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Artifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ".teddy/{}/{:02}/{}", self.session, self.turn, self.name)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::File(path) => path.fmt(f),
            Resource::Url(url) => f.write_str(url),
            Resource::Artifact(artifact) => artifact.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let actual = Resource::parse(text).map_or_else(|e| e.to_string(), |r| r.to_string());
        assert_eq!(actual, expected, "for {text:?}");
    }

    #[test]
    fn spellings_of_one_path_are_equal() {
        for text in ["src/a.rs", "/src/a.rs", "./src/a.rs"] {
            check(text, "src/a.rs");
        }
        check(".pre-commit-config.yaml", ".pre-commit-config.yaml");
        check("src/", "src");
        check("src//", "the path has an empty or `.` component");
    }

    #[test]
    fn a_url_is_kept_as_it_is() {
        check(
            "https://example.com/docs?a=1",
            "https://example.com/docs?a=1",
        );
        assert!(!is_url("ftp://example.com"));
        check(
            "https://a.example/\u{202e}x",
            "the path has the character U+202E, which is not allowed in a path",
        );
        check(
            "https://a.example/x y",
            "the path has the character U+0020, which is not allowed in a path",
        );
    }

    #[test]
    fn artifacts_of_turns_have_names() {
        check(
            ".teddy/add-auth/03/report.md",
            ".teddy/add-auth/03/report.md",
        );
        check(".teddy/change/x/3/plan.md", ".teddy/change/x/03/plan.md");
        check(".teddy/../03/report.md", "`.teddy` is TeDDy's own");
        check(".teddy/config.yaml", "`.teddy` is TeDDy's own");
    }
}
