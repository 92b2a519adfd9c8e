//! Publications: commits that record what a turn or restore applied to a checkout
//! (`docs/formats/publication.md`).
//!
//! They can come from elsewhere, or be rewritten by tools such as `git filter-branch`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::git::object::CommitId;
use crate::git::repository::Repository;

/// Newest version that TeDDy reads, and the one that it writes.
pub const SCHEMA: u32 = 1;
// A publication from elsewhere can have any size. Ours lists every path that was not applied.
const MAX_SIZE: u64 = 64 << 20;
// Paths per list. A diff is limited to the same number.
const MAX_PATHS: usize = 1_000_000;
// Commits of one turn that are searched for `before`.
const MAX_BETWEEN: usize = 100;
const SUBJECT: &str = "Files after turn ";

/// The patches applied to a set of files. The top patches identify it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack<P> {
    /// Top patch of all files that are not in `apart`. `None` if no turn is applied.
    pub top: Option<P>,
    /// Files and directories whose top patch differs from the rest.
    #[serde(
        default = "BTreeMap::new",
        skip_serializing_if = "BTreeMap::is_empty",
        with = "by_path"
    )]
    pub apart: BTreeMap<Vec<u8>, Option<P>>,
}

impl<P> Default for Stack<P> {
    fn default() -> Stack<P> {
        Stack {
            top: None,
            apart: BTreeMap::new(),
        }
    }
}

impl<P: Copy + PartialEq> Stack<P> {
    pub fn of(top: Option<P>) -> Stack<P> {
        Stack {
            top,
            ..Stack::default()
        }
    }

    /// The innermost entry of `apart` that contains the path decides.
    pub fn at(&self, path: &[u8]) -> Option<P> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let dirs = ends.map(|(end, _)| &path[..end]).collect::<Vec<_>>();
        let mut inwards = dirs.into_iter().chain([path]).rev();

        inwards
            .find_map(|dir| self.apart.get(dir).copied())
            .unwrap_or(self.top)
    }

    pub fn set(&mut self, path: &[u8], top: Option<P>) {
        if path.is_empty() {
            self.top = top;
        } else if self.at(path) != top {
            self.apart.insert(path.to_vec(), top);
        }
    }

    pub fn map<Q>(&self, name: impl Fn(P) -> Q) -> Stack<Q> {
        let detached = self.apart.iter();
        Stack {
            top: self.top.map(&name),
            apart: detached
                .map(|(path, top)| (path.clone(), top.map(&name)))
                .collect(),
        }
    }

    /// Can have duplicates.
    pub fn tops(&self) -> impl Iterator<Item = P> {
        [self.top]
            .into_iter()
            .chain(self.apart.values().copied())
            .flatten()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    pub before: CommitId,
    pub after: CommitId,
}

impl Delta {
    /// Replaces rewritten commits by the current ones, given the current `after`.
    pub fn rewritten(self, repository: &Repository, after: CommitId) -> Delta {
        if self.before == self.after {
            return Delta {
                before: after,
                after,
            };
        }

        let parent = |id: CommitId| repository.commit(id).ok()?.parents.first().copied();
        let ancestors = std::iter::successors(parent(after), |id| parent(*id)).take(MAX_BETWEEN);
        let is_kept = ancestors.into_iter().any(|id| id == self.before);
        // What `before` was rewritten to is not recorded. Only commits that commands of the turn
        // made can be between it and the parent of `after`.
        let before = match is_kept {
            true => self.before,
            false => parent(after).unwrap_or(after),
        };
        Delta { before, after }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publication {
    pub schema: u32,
    pub session: String,
    pub turn: u64,
    /// The turn's own patch, on top of `below`. `None` for a restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Delta>,
    #[serde(default)]
    pub below: Stack<CommitId>,
    /// For a restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Stack<CommitId>>,
    pub applied: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "paths")]
    pub left: Vec<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "paths")]
    pub marked: Vec<Vec<u8>>,
}

impl Publication {
    /// `None` if the commit is not a publication. Fails if it is too large or was written by a
    /// newer version.
    pub fn read(repository: &Repository, id: CommitId) -> anyhow::Result<Option<Publication>> {
        let size = repository.commit_size(id)?;
        anyhow::ensure!(
            size <= MAX_SIZE,
            "publication {id} has {size} bytes, and no more than {MAX_SIZE} are read"
        );
        let commit = repository.commit(id)?;
        let Some((_, body)) = commit
            .message
            .split_once("\n\n")
            .filter(|(subject, _)| subject.starts_with(SUBJECT))
        else {
            return Ok(None);
        };

        // A later version must not be mistaken for an ordinary commit.
        if let Ok(PublicationVersion { schema }) = serde_json::from_str(body) {
            anyhow::ensure!(
                schema <= SCHEMA,
                "publication {id} has schema {schema}, and this teddy reads up to {SCHEMA}: it was written by a newer one"
            );
        }

        let publication: Option<Publication> = serde_json::from_str(body).ok();
        Ok(publication.and_then(|it| it.with_parents(repository, &commit.parents)))
    }

    /// Replaces the ids of the message by those of the commit's parents, if they differ. `None` if
    /// they cannot be matched, because parents became equal.
    fn with_parents(self, repository: &Repository, parents: &[CommitId]) -> Option<Publication> {
        let recorded = self.parents();
        if recorded == parents {
            return Some(self);
        }
        if recorded.len() != parents.len() {
            let are_there = recorded.iter().all(|id| repository.has(*id));
            return are_there.then_some(self);
        }

        // `git filter-branch` changes the parents and not the message. Their order tells which is
        // which.
        let current: BTreeMap<CommitId, CommitId> =
            recorded.into_iter().zip(parents.iter().copied()).collect();
        let name = |id: CommitId| current.get(&id).copied().unwrap_or(id);
        let change = self.change.map(|change| match name(change.after) {
            after if after == change.after => change,
            after => change.rewritten(repository, after),
        });
        Some(Publication {
            change,
            below: self.below.map(name),
            target: self.target.as_ref().map(|target| target.map(name)),
            ..self
        })
    }

    pub fn message(&self) -> String {
        let body = serde_json::to_string_pretty(self)
            .expect("plain structs of strings and numbers are always JSON");
        format!("{SUBJECT}{} of {}\n\n{body}\n", self.turn, self.session)
    }

    pub fn parents(&self) -> Vec<CommitId> {
        // They keep everything reachable that is needed to undo what is in the files.
        let target = self.target.iter().flat_map(Stack::tops);
        let after = self.change.map(|change| change.after);
        let mut parents: Vec<CommitId> = Vec::new();

        for id in target.chain(after).chain(self.below.tops()) {
            if !parents.contains(&id) {
                parents.push(id);
            }
        }

        parents
    }

    /// The stack as intended. `id` is the publication's commit.
    pub fn target_stack(&self, id: CommitId) -> Stack<CommitId> {
        match (&self.target, self.change) {
            (Some(target), _) => target.clone(),
            (None, Some(_)) => Stack::of(Some(id)),
            (None, None) => self.below.clone(),
        }
    }

    /// The stack as it is. `id` is the publication's commit.
    pub fn stack(&self, id: CommitId) -> Stack<CommitId> {
        if !self.applied {
            return self.below.clone();
        }

        let mut stack = self.target_stack(id);
        // Paths that were not applied keep their previous patches.
        for path in &self.left {
            stack.set(path, self.below.at(path));
        }
        stack
    }
}

#[derive(Deserialize)]
struct PublicationVersion {
    schema: u32,
}

/// Escapes backslashes and invalid UTF-8 as `\xNN`.
fn quoted(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for chunk in path.utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\x5c"));
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

fn unquoted(text: &str) -> Option<Vec<u8>> {
    let mut pieces = text.split("\\x");
    let mut path = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        path.push(u8::from_str_radix(piece.get(..2)?, 16).ok()?);
        path.extend_from_slice(&piece.as_bytes()[2..]);
    }
    Some(path)
}

mod paths {
    use serde::de::Error as _;
    use serde::{Deserializer, Serializer};

    use super::{MAX_PATHS, quoted, unquoted};
    use crate::session::limited::list_up_to;

    pub(super) fn serialize<S: Serializer>(
        paths: &[Vec<u8>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| quoted(path)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Vec<u8>>, D::Error> {
        let texts: Vec<String> = list_up_to(deserializer, MAX_PATHS, usize::MAX)?;
        let paths = texts.into_iter().map(|text| unquoted(&text));
        paths
            .map(|path| path.ok_or_else(|| D::Error::custom("not a path")))
            .collect()
    }
}

mod by_path {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::{MAX_PATHS, quoted, unquoted};
    use crate::session::limited::map_up_to;

    pub(super) fn serialize<S: Serializer, T: Serialize>(
        map: &BTreeMap<Vec<u8>, T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(path, value)| (quoted(path), value)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Vec<u8>, T>, D::Error> {
        map_up_to(deserializer, MAX_PATHS, unquoted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> CommitId {
        digit.to_string().repeat(40).parse().unwrap()
    }

    fn turn() -> Publication {
        Publication {
            schema: SCHEMA,
            session: "demo".to_owned(),
            turn: 3,
            change: Some(Delta {
                before: id('1'),
                after: id('2'),
            }),
            below: Stack::of(Some(id('3'))),
            target: None,
            applied: true,
            left: Vec::new(),
            marked: Vec::new(),
        }
    }

    /// Writes an empty commit, which a publication can have as a parent.
    fn commit(repository: &Repository, message: &str) -> CommitId {
        let new = crate::git::object::NewCommit {
            tree: repository.empty_tree(),
            parents: &[],
            message,
            time: &crate::host::clock::now(),
        };
        repository.stage_commit(&new).unwrap()
    }

    /// As [`turn`], of commits that exist.
    fn turn_in(repository: &Repository) -> Publication {
        let [before, after, base] = ["1", "2", "3"].map(|name| commit(repository, name));
        Publication {
            change: Some(Delta { before, after }),
            below: Stack::of(Some(base)),
            ..turn()
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init(dir.path(), None).unwrap();
        let mut publication = turn_in(&repository);
        publication.below.set(b"src\\\xff/a \xc3\xa9", None);
        publication.left = vec![b"b\n".to_vec()];
        let commit = repository
            .stage_commit(&crate::git::object::NewCommit {
                tree: repository.empty_tree(),
                parents: &publication.parents(),
                message: &publication.message(),
                time: &crate::host::clock::now(),
            })
            .unwrap();
        let read = Publication::read(&repository, commit).unwrap();
        assert_eq!(read, Some(publication));
    }

    #[test]
    fn a_publication_of_any_size_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let repository = Repository::init(dir.path(), None).unwrap();
        let read = |message: &str| {
            let new = crate::git::object::NewCommit {
                tree: repository.empty_tree(),
                parents: &turn_in(&repository).parents(),
                message,
                time: &crate::host::clock::now(),
            };
            let commit = repository.stage_commit(&new).unwrap();
            Publication::read(&repository, commit).map(|publication| publication.is_some())
        };

        let mut many = turn_in(&repository);
        many.left = (0..MAX_PATHS)
            .map(|at| at.to_string().into_bytes())
            .collect();
        assert!(read(&many.message()).unwrap());
        many.left.push(b"more".to_vec());
        assert!(!read(&many.message()).unwrap());

        let long = many.message() + &" ".repeat(MAX_SIZE as usize);
        let error = read(&long).unwrap_err().to_string();
        assert!(
            error.contains("and no more than 67108864 are read"),
            "{error}"
        );
    }

    #[test]
    fn a_path_belongs_to_the_innermost_folder_that_is_apart() {
        let mut stack = Stack::of(Some(1));
        stack.set(b"src", Some(2));
        stack.set(b"src/deep", Some(1));
        stack.set(b"src/deep/same", Some(1));
        let actual = ["a", "src", "src/a", "src/deep/a", "srcs/a"].map(|path| {
            stack
                .at(path.as_bytes())
                .expect("every path has a patch here")
        });
        assert_eq!((actual, stack.apart.len()), ([1, 2, 2, 1, 1], 2));
    }

    #[test]
    fn what_was_left_has_what_was_there_before() {
        let publication = Publication {
            left: vec![b"a".to_vec()],
            ..turn()
        };
        let stack = publication.stack(id('9'));
        assert_eq!(
            (stack.at(b"a"), stack.at(b"b")),
            (Some(id('3')), Some(id('9')))
        );
        let nothing = Publication {
            applied: false,
            ..turn()
        };
        assert_eq!(nothing.stack(id('9')), nothing.below);
        assert_eq!(nothing.target_stack(id('9')), Stack::of(Some(id('9'))));
    }
}
