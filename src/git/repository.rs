//! The repository handle: directories, configuration, and git commands for it.

use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use gix::bstr::BString;

use super::command::git_in;
use super::keep::pack::own::Keeping;
use super::object::tree::ObjectMemory;
use super::refs::choose;
use super::refs::store::RefStore;
use super::snapshot::loaded::Loaded;
use crate::host::env;
use crate::host::file::{FileKind, Root};

/// An open repository. A bare one is read-only.
pub struct Repository {
    pub(in crate::git) gix: gix::Repository,
    pub(in crate::git) refs: Box<dyn RefStore + Send>,
    pub(in crate::git) workdir: PathBuf,
    pub(in crate::git) common: PathBuf,
    /// Nothing can be written. New objects stay in memory.
    pub(in crate::git) read_only: bool,
    /// Time at which this process last checked packs and refs for damage.
    pub(in crate::git) checked: Cell<Option<Instant>>,
    pub(in crate::git) loaded: Loaded,
    pub(in crate::git) memory: ObjectMemory,
    /// Keeps packs protected as long as a handle exists.
    pub(in crate::git) _keeping: Keeping,
}

pub const MAIN_WORKTREE: &str = "main";

/// Time for which a check is valid. Damage by power loss would end this process too, but another
/// program can damage the repository while it runs.
const CHECKED: Duration = Duration::from_secs(2);

impl Repository {
    /// Returns a handle. `common` must be canonical. The error is the name of an unknown ref
    /// format.
    pub(in crate::git) fn of(
        gix: gix::Repository,
        workdir: PathBuf,
        common: PathBuf,
        read_only: bool,
    ) -> Result<Repository, String> {
        Ok(Repository {
            refs: choose::of(&gix, &common)?,
            gix,
            workdir,
            _keeping: Keeping::of(&common),
            common,
            read_only,
            checked: Cell::default(),
            loaded: Loaded::default(),
            memory: ObjectMemory::default(),
        })
    }

    pub fn is_checked(&self) -> bool {
        let at = self.checked.get();
        at.is_some_and(|at| at.elapsed() < CHECKED)
    }

    pub fn note_checked(&self) {
        self.checked.set(Some(Instant::now()));
    }

    pub fn is_bare(&self) -> bool {
        self.gix.workdir().is_none()
    }

    /// Returns the canonical top of the worktree; for a bare repository, its git directory.
    pub fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// Returns the type of one of the user's files. `None` below a symbolic link.
    pub fn kind_on_disk(&self, path: &[u8]) -> Option<FileKind> {
        let top = Root::open(&self.workdir).ok()?;
        top.kind(Path::new(OsStr::from_bytes(path))).ok()?
    }

    pub fn has_file(&self, path: &[u8]) -> bool {
        let kind = self.kind_on_disk(path);
        kind.is_some_and(|kind| kind != FileKind::Dir)
    }

    /// Returns the file or link of the user's that is in place of a directory above a path.
    pub fn file_above(&self, path: &[u8]) -> Option<Vec<u8>> {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut above = ends.map(|(end, _)| &path[..end]);
        above.find(|dir| self.has_file(dir)).map(<[u8]>::to_vec)
    }

    pub fn git_dir(&self) -> &Path {
        self.gix.git_dir()
    }

    pub fn common_dir(&self) -> PathBuf {
        self.common.clone()
    }

    /// Returns the directory for TeDDy's data other than objects: locks, journal, caches.
    pub fn teddy_dir(&self) -> PathBuf {
        self.common_dir().join("teddy")
    }

    /// Returns a short name that is unique to this repository and its linked worktrees.
    pub fn identity(&self) -> String {
        let common = self.common_dir();
        let bytes = common.as_os_str().as_encoded_bytes();
        let id = gix::objs::compute_hash(gix::hash::Kind::Sha1, gix::objs::Kind::Blob, bytes);
        let id = id.map(|id| id.to_string()).unwrap_or_default();
        let top = if common.ends_with(".git") {
            common.parent()
        } else {
            Some(common.as_path())
        };

        let name = top
            .and_then(Path::file_name)
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let plain: String = name
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            .collect();
        format!("{plain}-{}", id.get(..12).unwrap_or("0"))
    }

    /// Returns the name of this worktree: [`MAIN_WORKTREE`], or `linked-<id>`.
    pub fn worktree_name(&self) -> String {
        match self
            .gix
            .worktree()
            .and_then(|worktree| worktree.id().ok().flatten().map(ToString::to_string))
        {
            Some(id) => format!("linked-{id}"),
            None => MAIN_WORKTREE.to_owned(),
        }
    }

    /// Returns a git command for this repository, without arguments.
    ///
    /// Its worktree is set to the git directory: git would look for attributes in the user's files,
    /// and block on a pipe.
    pub fn git(&self) -> anyhow::Result<Command> {
        // Hooks of `git commit` have a relative `GIT_DIR`.
        let git_dir = std::path::absolute(self.git_dir())?;
        let mut command = git_in(self.workdir())?;
        command
            .current_dir(&git_dir)
            .arg("--git-dir")
            .arg(&git_dir)
            .arg("--work-tree")
            .arg(&git_dir);
        Ok(command)
    }

    pub fn config(&self, key: &str) -> Option<String> {
        self.gix
            .config_snapshot()
            .string(key)
            .map(|value| value.to_string())
    }

    /// Returns the path of a global rule file: the value of a setting, or `name` in git's
    /// configuration directory.
    pub(in crate::git) fn global_file(&self, key: &str, name: &str) -> PathBuf {
        match self.gix.config_snapshot().trusted_path(key) {
            Ok(Some(path)) => path,
            _ => env::config_home()
                .unwrap_or_default()
                .join("git")
                .join(name),
        }
    }

    /// Returns the settings of a section, such as `teddy`, as `(subkey, value)`. Later ones
    /// override earlier ones.
    pub fn config_section(&self, section: &str) -> Vec<(String, String)> {
        let snapshot = self.gix.config_snapshot();
        let mut values = Vec::new();
        for part in snapshot
            .plumbing()
            .sections_by_name(section)
            .into_iter()
            .flatten()
        {
            let subsection = part
                .header()
                .subsection_name()
                .map(|name| format!("{name}."))
                .unwrap_or_default();
            for name in part.body().value_names() {
                for value in part.body().values(&name) {
                    values.push((format!("{subsection}{name}"), value.to_string()));
                }
            }
        }

        values
    }

    pub fn is_partial(&self) -> bool {
        let promises =
            |(key, value): &(String, String)| key.ends_with(".promisor") && value != "false";
        self.config("extensions.partialClone").is_some()
            || self.config_section("remote").iter().any(promises)
    }

    /// Returns author and committer: the user, if git knows them, and TeDDy.
    pub(in crate::git) fn signatures(
        &self,
        time: gix::date::Time,
    ) -> (gix::actor::Signature, gix::actor::Signature) {
        let teddy = gix::actor::Signature {
            name: "TeDDy".into(),
            email: "teddy@localhost".into(),
            time,
        };
        let author = self.author(time).unwrap_or_else(|| teddy.clone());
        (author, teddy)
    }

    /// Returns the user as author from the keys that gix reads, in its order. gix's own function
    /// would also load the names of all time zones. `None` if no name remains once characters that
    /// a commit cannot have are removed.
    fn author(&self, time: gix::date::Time) -> Option<gix::actor::Signature> {
        let config = self.gix.config_snapshot();
        let first = |keys: &[&str]| keys.iter().find_map(|key| config.string(*key));
        let name = first(&["author.name", "user.name", "gitoxide.author.nameFallback"])?;
        let email = first(&[
            "author.email",
            "user.email",
            "gitoxide.user.emailFallback",
            "gitoxide.author.emailFallback",
        ])?;
        let (name, email) = (without_crud(&name), without_crud(&email));
        (!name.is_empty()).then_some(gix::actor::Signature { name, email, time })
    }
}

/// Removes what git removes from names and addresses (`strbuf_addstr_without_crud`): `<`, `>` and
/// line breaks anywhere, control characters, spaces and some punctuation at both ends.
fn without_crud(text: &[u8]) -> BString {
    let is_crud = |byte: &u8| *byte <= b' ' || b",:;<>\"\\'".contains(byte);
    let start = text.iter().position(|byte| !is_crud(byte));
    let end = text.iter().rposition(|byte| !is_crud(byte));
    let (Some(start), Some(end)) = (start, end) else {
        return BString::default();
    };
    let trimmed = text[start..=end].iter().copied();
    trimmed
        .filter(|byte| !b"<>\n\0".contains(byte))
        .collect::<Vec<_>>()
        .into()
}

/// Returns the line for an object directory with an absolute path. A path with control characters is
/// quoted as in C, so that it is one line. Others are not: GitPython, libgit2 and dulwich cannot read
/// the quoted form.
pub(in crate::git) fn alternates_line(path: &Path) -> Vec<u8> {
    let path = path.as_os_str().as_bytes();
    if path.starts_with(b"/") && !path.iter().any(u8::is_ascii_control) {
        return [path, b"\n"].concat();
    }

    let mut text = vec![b'"'];
    for &byte in path {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', byte]),
            0..0x20 | 0x7f => text.extend(format!("\\{byte:03o}").bytes()),
            _ => text.push(byte),
        }
    }

    text.extend(b"\"\n");
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;
    use crate::git::object::NewCommit;
    use crate::host::clock;

    #[test]
    fn names_are_cleaned_as_by_git() {
        let check =
            |text: &str, expected: &str| assert_eq!(without_crud(text.as_bytes()), expected);
        check("Ada Lovelace", "Ada Lovelace");
        check(". Ada <Lovelace>.", ". Ada Lovelace.");
        check("'\"x\\\" ,;:", "x");
        check("a\nb\tc\u{1}", "ab\tc");
        check("\u{1}\u{e9} ", "\u{e9}");
        check(" <>;", "");
        check("", "");
    }

    fn config() -> ProptestConfig {
        ProptestConfig {
            cases: 60,
            failure_persistence: None,
            rng_seed: RngSeed::Fixed(11),
            ..ProptestConfig::default()
        }
    }

    /// Quotes any bytes as a value of git's configuration.
    fn quoted(value: &[u8]) -> Vec<u8> {
        let escape = |byte: &u8| match byte {
            b'"' | b'\\' => vec![b'\\', *byte],
            b'\n' => b"\\n".to_vec(),
            _ => vec![*byte],
        };
        let text: Vec<u8> = value.iter().flat_map(escape).collect();
        [b"\"", &text[..], b"\""].concat()
    }

    /// Opens a repository with this at the end of its configuration.
    fn open_with(lines: &[u8]) -> (tempfile::TempDir, anyhow::Result<Repository>) {
        let dir = tempfile::tempdir().unwrap();
        Repository::init(dir.path(), None).unwrap();
        let path = dir.path().join(".git/config");
        let text = [&std::fs::read(&path).unwrap(), lines].concat();
        std::fs::write(path, text).unwrap();
        let opened = Repository::open(dir.path());
        (dir, opened)
    }

    #[test]
    fn random_a_name_of_any_bytes_makes_a_commit() {
        let bytes = || {
            proptest::collection::vec(any::<u8>().prop_filter("git has no NUL", |b| *b > 0), 0..12)
        };
        let text = || {
            prop_oneof![
                bytes(),
                "[ a<>.,\"\\\\\n]{0,9}".prop_map(String::into_bytes)
            ]
        };
        proptest!(config(), |(name in text(), email in text())| {
            let (name, email) = (quoted(&name), quoted(&email));
            let lines = [b"[user]\n\tname = ", &name[..], b"\n\temail = ", &email, b"\n"].concat();
            let (_dir, opened) = open_with(&lines);
            // A carriage return in a value can be one that gix refuses.
            let Ok(repository) = opened else { return Ok(()) };
            let commit = repository.encoded(&NewCommit {
                tree: repository.empty_tree(),
                parents: &[],
                message: "Text\n",
                time: &clock::now(),
            });
            let commit = commit.unwrap();
            let author = gix::objs::CommitRef::from_bytes(&commit, gix::hash::Kind::Sha1).unwrap();
            prop_assert!(author.author().is_ok());
        });
    }

    #[test]
    fn random_an_odd_value_is_read_or_refused() {
        let key = prop_oneof![
            "core\\.(autocrlf|eol|fileMode|ignoreCase|symlinks|safecrlf|abbrev|compression)",
            "core\\.(sharedRepository|bigFileThreshold|logAllRefUpdates|precomposeUnicode|bare)",
            "extensions\\.(objectFormat|refStorage|partialClone|worktreeConfig|x)",
            "user\\.(name|email)|author\\.(name|email)|remote\\.promisor|index\\.threads",
        ];
        let value = prop_oneof![
            "(|true|-1|0|99999999999999999999|1k|9223372036854775807g|auto|input)"
                .prop_map(String::into_bytes),
            proptest::collection::vec(any::<u8>(), 0..9),
        ];
        proptest!(config(), |(settings in proptest::collection::vec((key, value), 1..4))| {
            let mut lines = Vec::new();
            for (key, value) in &settings {
                let (section, name) = key.split_once('.').unwrap();
                lines.extend(format!("[{section}]\n\t{name} = ").bytes());
                lines.extend_from_slice(value);
                lines.push(b'\n');
            }
            let (_dir, opened) = open_with(&lines);
            if let Ok(repository) = opened {
                // None of these panics.
                repository.is_partial();
                repository.config_section("core");
                let _ = repository.write_blob(b"x");
                let _ = crate::git::refs::head(&repository);
            }
        });
    }
}

#[cfg(test)]
mod alternates_tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: &str) {
        assert_eq!(
            alternates_line(Path::new(path)),
            format!("{expected}\n").as_bytes()
        );
    }

    #[test]
    fn a_path_is_one_line_and_quoted_only_if_it_must_be() {
        check("/a b/objects", "/a b/objects");
        check("/#\"\\/objects", "/#\"\\/objects");
        check("/#\"\\/\n", "\"/#\\\"\\\\/\\012\"");
        check("/ä", "/ä");
    }
}
