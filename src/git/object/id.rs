//! Typed object ids.

use std::fmt;
use std::str::FromStr;

macro_rules! object_id {
    ($name:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub(in crate::git) gix::ObjectId);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0.to_string())
            }
        }

        impl FromStr for $name {
            type Err = anyhow::Error;

            fn from_str(text: &str) -> anyhow::Result<$name> {
                gix::ObjectId::from_hex(text.as_bytes())
                    .map($name)
                    .map_err(|_| anyhow::anyhow!("`{text}` is not an object id"))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$name, D::Error> {
                String::deserialize(deserializer)?
                    .parse()
                    .map_err(serde::de::Error::custom)
            }
        }
    };
}

object_id!(CommitId, "The id of a commit.");

object_id!(TreeId, "The id of a tree.");

object_id!(BlobId, "The id of a blob.");

object_id!(TagId, "The id of an annotated tag.");

impl BlobId {
    /// Wraps the id of an entry that is a file or symlink.
    pub fn of(id: gix::ObjectId) -> BlobId {
        BlobId(id)
    }
}

impl TagId {
    /// Wraps the id in a ref that points at a tag.
    pub fn of(target: CommitId) -> TagId {
        TagId(target.0)
    }
}

/// The mode of an entry. `Commit` is a submodule or nested repository; its id is a commit of that
/// repository.
pub use gix::objs::tree::EntryKind as EntryMode;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    pub mode: EntryMode,
    pub id: gix::ObjectId,
}

/// A path at which two trees differ; never a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeChange {
    /// Path with `/` between components.
    pub path: Vec<u8>,
    pub old: Option<TreeEntry>,
    pub new: Option<TreeEntry>,
}

impl TreeChange {
    /// Returns whether this is a new submodule or nested repository, so no file of this repository.
    pub fn is_new_repository(&self) -> bool {
        self.old.is_none() && self.new.as_ref().is_some_and(TreeEntry::is_repository)
    }
}

impl TreeEntry {
    pub fn is_file(&self) -> bool {
        matches!(self.mode, EntryMode::Blob | EntryMode::BlobExecutable)
    }

    pub fn is_repository(&self) -> bool {
        self.mode == EntryMode::Commit
    }
}

pub(in crate::git) fn index_mode(mode: EntryMode) -> gix::index::entry::Mode {
    gix::objs::tree::EntryMode::from(mode).into()
}
