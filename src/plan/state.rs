//! State of a path as git records it: a file, an executable file or a symbolic link, with its
//! content.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::text::damage::Damage;
use crate::text::hex;

/// Kind of entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateMode {
    /// A regular file.
    Plain,
    /// A file that its owner can execute.
    Executable,
    Link,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    pub mode: StateMode,
    /// Content of the file, or target of the link.
    pub bytes: Vec<u8>,
}

/// Size and hash, to recognize content that is not at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imprint {
    pub size: u64,
    /// SHA-256, 64 lower-case hexadecimal digits.
    pub hash: String,
}

/// Kind, size and hash, to recognize the state of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownState {
    pub mode: StateMode,
    /// Size and hash of its content.
    pub imprint: Imprint,
}

/// Kind of a path before and after. `None` if it does not exist, or is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModeChange {
    pub before: Option<StateMode>,
    pub after: Option<StateMode>,
}

impl ModeChange {
    #[must_use]
    pub fn then(self, next: ModeChange) -> ModeChange {
        ModeChange {
            before: self.before.or(next.before),
            after: next.after.or(self.after),
        }
    }

    pub fn damage(self) -> Option<Damage> {
        self.before?.damage_by(self.after?)
    }
}

impl StateMode {
    pub const ALL: [StateMode; 3] = [StateMode::Plain, StateMode::Executable, StateMode::Link];

    /// Returns its name in a plan.
    pub fn word(self) -> &'static str {
        match self {
            StateMode::Plain => "file",
            StateMode::Executable => "executable file",
            StateMode::Link => "symbolic link",
        }
    }

    /// Returns the damage that a change to another kind does.
    pub fn damage_by(self, new: StateMode) -> Option<Damage> {
        match (self, new) {
            _ if self == new => None,
            (StateMode::Link, _) => Some(Damage::LinkReplaced),
            (_, StateMode::Link) => Some(Damage::BecomesLink),
            (_, StateMode::Executable) => Some(Damage::BecomesExecutable),
            _ => Some(Damage::NoLongerExecutable),
        }
    }
}

impl fmt::Display for StateMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FileState {
    /// Creates a regular file.
    pub fn plain(bytes: impl Into<Vec<u8>>) -> FileState {
        FileState {
            mode: StateMode::Plain,
            bytes: bytes.into(),
        }
    }

    /// Returns kind, size and hash.
    pub fn known_state(&self) -> KnownState {
        KnownState {
            mode: self.mode,
            imprint: Imprint::of(&self.bytes),
        }
    }

    /// Returns the content as text; `None` for a link, invalid UTF-8, or content with a NUL.
    pub fn text(&self) -> Option<&str> {
        let is_text = self.mode != StateMode::Link && memchr::memchr(0, &self.bytes).is_none();
        is_text
            .then(|| std::str::from_utf8(&self.bytes).ok())
            .flatten()
    }
}

impl Imprint {
    /// Computes size and hash.
    pub fn of(bytes: &[u8]) -> Imprint {
        Imprint {
            size: bytes.len() as u64,
            hash: hex(&Sha256::digest(bytes)),
        }
    }

    /// Returns whether size and hash match the bytes.
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        self.size == bytes.len() as u64 && *self == Imprint::of(bytes)
    }
}
