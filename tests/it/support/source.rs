//! The project's source files, for tests that check them.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;

pub struct File {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
}

impl File {
    /// Returns the text without inline tests, which are at the end of a file.
    pub fn code(&self) -> &str {
        static TESTS: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"(?m)^#\[cfg\((all\()?test\b.*\)\]\nmod \w+ \{").expect("a good pattern")
        });
        TESTS
            .find(&self.text)
            .map_or(self.text.as_str(), |found| &self.text[..found.start()])
    }

    pub fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.contains("/tests/")
            || [
                "tests.rs",
                "cases.rs",
                "damage.rs",
                "law.rs",
                "sample.rs",
                "fake.rs",
            ]
            .contains(&name)
            || name.ends_with("_tests.rs")
    }

    /// Returns the top-level module of `src`.
    pub fn floor(&self) -> Option<&str> {
        let below = self.path.strip_prefix("src/")?;
        below
            .split('/')
            .next()
            .map(|name| name.trim_end_matches(".rs"))
            .filter(|name| !["lib", "bin", "build"].contains(name))
    }
}

/// `TEDDY_TIDY_ROOT` selects a copy of the project.
pub fn root() -> PathBuf {
    let copy = teddy::host::env::var("TEDDY_TIDY_ROOT");
    PathBuf::from(copy.as_deref().unwrap_or(env!("CARGO_MANIFEST_DIR")))
}

/// Returns the files below a directory with this suffix, sorted by path.
pub fn files(folder: &str, ending: &str) -> Vec<File> {
    let mut found = Vec::new();
    collect(&root().join(folder), ending, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "nothing in {folder}");
    found
}

fn collect(folder: &Path, ending: &str, found: &mut Vec<File>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, ending, found);
        } else if path.to_str().unwrap().ends_with(ending) {
            let name = path
                .strip_prefix(root())
                .unwrap()
                .to_str()
                .unwrap()
                .replace('\\', "/");
            found.push(File {
                path: name,
                text: std::fs::read_to_string(&path).unwrap(),
            });
        }
    }
}
