//! What is at a path, as git sees it: a file, an executable file or a link, with its bytes.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// What kind of thing is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateMode {
    /// A file.
    Plain,
    /// A file that its owner may execute.
    Executable,
    /// A symbolic link.
    Link,
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// Its kind.
    pub mode: StateMode,
    /// Its bytes; the target of a link.
    pub content: Vec<u8>,
}

/// By what bytes are known again without being there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imprint {
    /// How many there are.
    pub size: u64,
    /// Their SHA-256, 64 small hexadecimal digits.
    pub hash: String,
}

/// By what the state of a path is known again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownState {
    /// Its kind.
    pub mode: StateMode,
    /// Its bytes.
    pub imprint: Imprint,
}

impl StateMode {
    /// Every kind.
    pub const ALL: [StateMode; 3] = [StateMode::Plain, StateMode::Executable, StateMode::Link];

    /// Returns its name in a plan.
    pub fn word(self) -> &'static str {
        match self {
            StateMode::Plain => "file",
            StateMode::Executable => "executable file",
            StateMode::Link => "symbolic link",
        }
    }
}

impl fmt::Display for StateMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FileState {
    /// Makes an ordinary file.
    pub fn plain(content: impl Into<Vec<u8>>) -> FileState {
        FileState {
            mode: StateMode::Plain,
            content: content.into(),
        }
    }

    /// Returns by what it is known again.
    pub fn known(&self) -> KnownState {
        KnownState {
            mode: self.mode,
            imprint: Imprint::of(&self.content),
        }
    }

    /// Returns the text of a file that a person can read as one: UTF-8 without a NUL.
    pub fn text(&self) -> Option<&str> {
        let is_text = self.mode != StateMode::Link && memchr::memchr(0, &self.content).is_none();
        is_text
            .then(|| std::str::from_utf8(&self.content).ok())
            .flatten()
    }
}

impl Imprint {
    /// Returns the imprint of bytes.
    pub fn of(bytes: &[u8]) -> Imprint {
        let digest = Sha256::digest(bytes);
        Imprint {
            size: bytes.len() as u64,
            hash: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// Returns whether these are the bytes.
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        self.size == bytes.len() as u64 && *self == Imprint::of(bytes)
    }
}
