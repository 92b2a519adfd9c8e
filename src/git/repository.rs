//! The repository: its handle, its folders, its configuration, and git run in it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::command::git_in;
use super::keep::pack::own::Keeping;
use super::object::memory::ObjectMemory;
use super::refs::choose;
use super::refs::store::RefStore;
use super::snapshot::loaded::Loaded;
use crate::host::env;

/// A repository that TeDDy can work on, or read where it is bare.
pub struct Repository {
    /// gix's handle.
    pub(in crate::git) gix: gix::Repository,
    /// Its refs.
    pub(in crate::git) refs: Box<dyn RefStore + Send>,
    /// The top of the worktree.
    pub(in crate::git) workdir: PathBuf,
    /// The git directory that all linked worktrees share, without links.
    pub(in crate::git) common: PathBuf,
    /// Whether nothing can be written: what readers need of new objects stays in memory then.
    pub(in crate::git) read_only: bool,
    /// When this process found packs and refs undamaged.
    pub(in crate::git) looked_over: Cell<Option<Instant>>,
    /// Indexes that were read.
    pub(in crate::git) loaded: Loaded,
    /// What is known of objects.
    pub(in crate::git) memory: ObjectMemory,
    /// What this process keeps of it stays kept meanwhile.
    pub(in crate::git) _keeping: Keeping,
}

/// For so long what was looked over counts as it was found. What takes bytes takes this process,
/// too; but a program that breaks what it finds may run meanwhile.
const LOOKED_OVER: Duration = Duration::from_secs(2);

impl Repository {
    /// Returns a handle; `common` is without links. Or the name of the form in which its refs are
    /// stored, which nobody here knows.
    pub(in crate::git) fn of(
        gix: gix::Repository,
        (workdir, common): (PathBuf, PathBuf),
        read_only: bool,
    ) -> Result<Repository, String> {
        Ok(Repository {
            refs: choose::of(&gix, &common)?,
            gix,
            workdir,
            _keeping: Keeping::of(&common),
            common,
            read_only,
            looked_over: Cell::default(),
            loaded: Loaded::default(),
            memory: ObjectMemory::default(),
        })
    }

    /// Returns whether packs and refs were looked over a moment ago.
    pub fn is_looked_over(&self) -> bool {
        let at = self.looked_over.get();
        at.is_some_and(|at| at.elapsed() < LOOKED_OVER)
    }

    /// Notes that packs and refs were looked over just now, and what was wrong with them put right.
    pub fn note_looked_over(&self) {
        self.looked_over.set(Some(Instant::now()));
    }

    /// Returns whether there are no files to work on.
    pub fn is_bare(&self) -> bool {
        self.gix.workdir().is_none()
    }

    /// Returns the top of the worktree, without links; of a bare repository, its git directory.
    pub fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// Returns the git directory of this worktree.
    pub fn git_dir(&self) -> &Path {
        self.gix.git_dir()
    }

    /// Returns the git directory that all linked worktrees share.
    pub fn common_dir(&self) -> PathBuf {
        self.common.clone()
    }

    /// Returns where TeDDy keeps what is no object: locks, the journal, caches.
    pub fn teddy_dir(&self) -> PathBuf {
        self.common_dir().join("teddy")
    }

    /// Returns a short name for this repository among all others, the same for its linked
    /// worktrees.
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

    /// Returns the name of this worktree among its siblings: `main`, or the id of a linked one.
    pub fn worktree_name(&self) -> String {
        match self
            .gix
            .worktree()
            .and_then(|worktree| worktree.id().ok().flatten().map(ToString::to_string))
        {
            Some(id) => format!("linked-{id}"),
            None => "main".to_owned(),
        }
    }

    /// Returns a git command for this repository; the caller adds the arguments. It has no part in
    /// the files, among which git would look for attributes, and wait for ever at a pipe.
    ///
    /// # Errors
    /// Where git is not installed.
    pub fn git(&self) -> anyhow::Result<Command> {
        let mut command = git_in(self.workdir())?;
        command
            .current_dir(self.git_dir())
            .arg("--git-dir")
            .arg(self.git_dir())
            .arg("--work-tree")
            .arg(self.git_dir());
        Ok(command)
    }

    /// Returns a value of git's configuration, such as `core.editor`.
    pub fn config(&self, key: &str) -> Option<String> {
        self.gix
            .config_snapshot()
            .string(key)
            .map(|value| value.to_string())
    }

    /// Returns the file of rules for all of the user's repositories: the one that a setting names,
    /// or the one of this name in git's own folder.
    pub(in crate::git) fn global_file(&self, key: &str, name: &str) -> PathBuf {
        match self.gix.config_snapshot().trusted_path(key) {
            Ok(Some(path)) => path,
            _ => env::config_home()
                .unwrap_or_default()
                .join("git")
                .join(name),
        }
    }

    /// Returns every setting of a section, `teddy` say, as `(subkey, value)`, later ones last.
    pub fn config_section(&self, section: &str) -> Vec<(String, String)> {
        let snapshot = self.gix.config_snapshot();
        let mut found = Vec::new();
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
                    found.push((format!("{subsection}{name}"), value.to_string()));
                }
            }
        }

        found
    }

    /// Returns whether objects are left on a server until they are needed.
    pub fn is_partial(&self) -> bool {
        let promises =
            |(key, value): &(String, String)| key.ends_with(".promisor") && value != "false";
        self.config("extensions.partialClone").is_some()
            || self.config_section("remote").iter().any(promises)
    }

    /// Returns who writes a commit: the user where git knows one, and TeDDy.
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

    /// Returns the user as author, from what gix would ask in its order. Asked itself, it also reads the
    /// time with the name of its zone, for which all zones of the machine are gone through.
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
        Some(gix::actor::Signature { name, email, time })
    }
}
