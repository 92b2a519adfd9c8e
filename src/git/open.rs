//! How a repository is found and opened, and why one is not fit.

mod error;
mod misplaced;

use std::path::Path;

use gix::bstr::BString;

use super::irregular;
use super::repository::Repository;
use super::{During, command};
use crate::host::env;
pub use error::OpenError;
use misplaced::{file_that_sets, is_bare, is_elsewhere, is_said_bare, wrongly_bare};

/// Settings that hold for our own handle, whatever the configuration says: a file that does not
/// round-trip is recorded all the same, and a log line needs somebody who wrote it.
const OVERRIDES: [&str; 7] = [
    "core.safecrlf=false",
    // What is brought back are the bytes that were recorded, not those that somebody shows in their
    // place.
    "core.useReplaceRefs=false",
    "gitoxide.committer.nameFallback=TeDDy",
    "gitoxide.committer.emailFallback=teddy@localhost",
    // As git itself, which looks at the sum of an index in `git fsck` only: with many files that
    // takes longer than reading them.
    "index.skipHash=true",
    // The user's own git may be packing refs; milliseconds.
    "core.packedRefsTimeout=5000",
    "core.filesRefLockTimeout=2000",
];

/// So many bytes of objects are kept in memory: a few trees of a folder with very many files, each
/// of which is asked for several times in a turn.
const CACHE: usize = 16 * 1024 * 1024;

/// As many packs have room at least; a busy `git fetch` makes a few while we run.
const PACKS: usize = 1024;

/// The extensions of a repository's format with which we can work.
const EXTENSIONS: [&str; 8] = [
    "noop",
    "noop-v1",
    "preciousobjects",
    "partialclone",
    "worktreeconfig",
    "objectformat",
    "refstorage",
    "relativeworktrees",
];

/// Variables with which git's callers, such as its hooks, point it to another index, part of the
/// refs or list of edges.
const ELSEWHERE: [&str; 3] = ["GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_SHALLOW_FILE"];

/// What a repository is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Its files: a bare one has none.
    Files,
    /// Its sessions.
    Record,
}

impl Repository {
    /// Finds the repository of a folder as git does, `GIT_DIR` and `GIT_WORK_TREE` included.
    ///
    /// # Errors
    /// [`OpenError`], each with a hint.
    pub fn discover(start: &Path, home: Option<&Path>) -> Result<Repository, OpenError> {
        Repository::find(start, home, Purpose::Files)
    }

    /// Returns why git sees no files in this repository, although it has some.
    pub fn wrongly_bare(&self) -> Option<OpenError> {
        wrongly_bare(&self.gix)
    }

    /// As [`Repository::discover`], but a bare repository will do: for what reads the record only.
    ///
    /// # Errors
    /// As for [`Repository::discover`].
    pub fn discover_record(start: &Path, home: Option<&Path>) -> Result<Repository, OpenError> {
        Repository::find(start, home, Purpose::Record)
    }

    /// Finds the repository of a folder.
    fn find(start: &Path, home: Option<&Path>, wanted: Purpose) -> Result<Repository, OpenError> {
        irregular::before_opening(start)?;
        let options = options();
        let trust = gix::sec::trust::Mapping {
            full: options.clone(),
            reduced: options,
        };

        // A ceiling at or below the folder says nothing, as for git.
        let upwards = gix::discover::upwards::Options {
            match_ceiling_dir_or_error: false,
            ..Default::default()
        };
        let found = match env::pinned() {
            // gix would read the real environment.
            Some(_) => gix::ThreadSafeRepository::discover_opts(start, upwards, trust),
            None => gix::ThreadSafeRepository::discover_with_environment_overrides_opts(
                start, upwards, trust,
            ),
        };
        let found = found.map(|found| found.to_thread_local()).and_then(plainly);
        let found = found.map_err(|error| why_not(start, &error))?;
        let repository = Repository::judge(found, home, wanted)?;

        for (key, name) in [
            ("core.excludesFile", "ignore"),
            ("core.attributesFile", "attributes"),
        ] {
            irregular::rules(&repository.global_file(key, name))?;
        }

        Ok(repository)
    }

    /// Makes a repository in a folder that has none, and opens it.
    ///
    /// # Errors
    /// The folder is no project, and nothing is made; or git cannot make it.
    pub fn init(folder: &Path, home: Option<&Path>) -> anyhow::Result<Repository> {
        let top = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        if let Some(what) = too_wide(&top, home) {
            return Err(OpenError::TooWide(top, what).into());
        }
        command::init(folder)?;
        Ok(Repository::discover(folder, home)?)
    }

    /// Opens the worktree whose top is this folder.
    ///
    /// # Errors
    /// Where there is none.
    pub fn open(top: &Path) -> anyhow::Result<Repository> {
        let gix =
            gix::open_opts(top, plain()).during(format_args!("opening `{}`", top.display()))?;
        Ok(Repository::judge(gix, None, Purpose::Files)?)
    }

    /// Opens this repository once more, to see what changed since.
    pub(in crate::git) fn reopened(&self) -> anyhow::Result<Repository> {
        match self.is_bare() {
            true => Ok(Repository::discover_record(self.git_dir(), None)?),
            false => Repository::open(self.workdir()),
        }
    }

    /// Opens this repository with another folder as its worktree, and another file as the index of
    /// that: settings, objects and rules are this one's.
    pub(in crate::git) fn with_worktree(
        &self,
        top: &Path,
        index: &Path,
    ) -> anyhow::Result<Repository> {
        let index = [
            b"gitoxide.core.indexFile=",
            index.as_os_str().as_encoded_bytes(),
        ]
        .concat();
        let overrides = OVERRIDES.map(BString::from);
        let overrides = overrides.into_iter().chain([BString::from(index)]);
        let options = plain().config_overrides(overrides);
        let opened = gix::open_opts(self.git_dir(), options);
        let mut gix = opened.during(format_args!("opening `{}`", self.git_dir().display()))?;

        gix.set_workdir(top.to_owned())
            .during(format_args!("opening `{}`", top.display()))?;
        // The packs are open already.
        gix.objects = self.gix.objects.clone();
        gix.object_cache_size_if_unset(CACHE);

        let folders = (top.to_owned(), self.common.clone());
        let opened = Repository::of(gix, folders, self.read_only);
        let unreadable = |format| OpenError::RefFormat(self.git_dir().to_owned(), format);
        let opened = opened.map_err(unreadable)?;
        opened.memory.share_trees(&self.memory);
        Ok(opened)
    }

    /// Refuses what cannot be worked on.
    fn judge(
        mut gix: gix::Repository,
        home: Option<&Path>,
        wanted: Purpose,
    ) -> Result<Repository, OpenError> {
        let git_dir = gix.git_dir().to_owned();
        let elsewhere = |workdir: &Path| OpenError::Elsewhere {
            git_dir: git_dir.clone(),
            workdir: workdir.to_owned(),
            file: file_that_sets(&gix, "worktree").unwrap_or_else(|| git_dir.join("config")),
        };
        if let Some(workdir) = gix.workdir().filter(|workdir| !workdir.exists()) {
            return Err(elsewhere(workdir));
        }

        if gix.git_dir_trust() != gix::sec::Trust::Full {
            // As git wants it named.
            return Err(OpenError::Foreign(
                gix.workdir().map_or(git_dir, Path::to_owned),
            ));
        }

        if let Some(name) = unknown_extension(&gix) {
            return Err(OpenError::Extension(git_dir, name));
        }

        let wrongly_bare = wrongly_bare(&gix);
        if gix.workdir().is_none() && git_dir.ends_with(".git") && !is_said_bare(&gix) {
            // gix does not ask `config.worktree`.
            let top = git_dir.parent().map(Path::to_owned);
            let set = top.map(|top| gix.set_workdir(top)).transpose();
            set.map_err(|error| OpenError::Damaged(git_dir.clone(), error.to_string()))?;
        }
        let is_bare = gix.workdir().is_none() || is_bare(&gix);
        if wanted == Purpose::Files {
            if let Some(error) = wrongly_bare {
                return Err(error);
            }
            if is_bare {
                return Err(OpenError::Bare(git_dir));
            }
        }

        if is_bare && must_be_named(&gix) {
            return Err(OpenError::Unnamed(git_dir));
        }

        let workdir = gix.workdir().unwrap_or(&git_dir);
        let workdir = workdir.canonicalize().unwrap_or(workdir.to_owned());
        if is_elsewhere(&gix, &workdir) {
            return Err(OpenError::Elsewhere {
                file: file_that_sets(&gix, "worktree").unwrap_or_else(|| git_dir.join("config")),
                git_dir,
                workdir,
            });
        }

        if let Some(what) = too_wide(&workdir, home) {
            return Err(OpenError::TooWide(workdir, what));
        }

        let index = gix.index_path();
        if index.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let why = format!("`{}` is not a file", index.display());
            return Err(OpenError::Damaged(git_dir, why));
        }

        gix.object_cache_size_if_unset(CACHE);
        let read_only =
            rustix::fs::access(gix.objects.store_ref().path(), rustix::fs::Access::WRITE_OK)
                .is_err();
        gix.objects.enable_object_memory();

        let common = gix
            .common_dir()
            .canonicalize()
            .unwrap_or_else(|_| gix.common_dir().to_owned());
        Repository::of(gix, (workdir, common), read_only)
            .map_err(|format| OpenError::RefFormat(git_dir, format))
    }
}

/// Returns how repositories are opened. Packs that come while we run need room in gix's fixed
/// table, or reading fails.
fn options() -> gix::open::Options {
    let slots = gix::odb::store::init::Slots::AsNeededByDiskState {
        multiplier: 2.0,
        minimum: PACKS,
    };
    gix::open::Options::default()
        .config_overrides(OVERRIDES)
        .object_store_slots(slots)
        .permissions(permissions(gix::open::Permissions::default()))
}

/// What gix may read besides the repository itself: the usual, or nothing if the environment is
/// pinned, because gix reads the real one.
fn permissions(usual: gix::open::Permissions) -> gix::open::Permissions {
    match env::pinned() {
        Some(_) => gix::open::Permissions::isolated(),
        None => usual,
    }
}

/// Returns an extension of the repository's format that we do not know; git itself stops at one in
/// the newer format only.
fn unknown_extension(gix: &gix::Repository) -> Option<String> {
    let config = gix.config_snapshot();
    if config
        .integer("core.repositoryFormatVersion")
        .unwrap_or_default()
        < 1
    {
        return None;
    }

    let sections = config
        .plumbing()
        .sections_by_name("extensions")
        .into_iter()
        .flatten();
    let names = sections.flat_map(|section| {
        section
            .body()
            .value_names()
            .map(|name| name.to_string())
            .collect::<Vec<_>>()
    });
    names
        .map(|name| name.to_ascii_lowercase())
        .find(|name| !EXTENSIONS.contains(&name.as_str()))
}

/// Returns whether the user's git takes a bare repository only where `GIT_DIR` names it
/// (`safe.bareRepository`): somebody can have put it among the files of a clone. What a repository
/// says of itself does not count.
fn must_be_named(gix: &gix::Repository) -> bool {
    use gix::config::Source;

    if env::var_os("GIT_DIR").is_some() {
        return false;
    }

    let config = gix.config_snapshot();
    let value = config
        .plumbing()
        .strings_filter("safe.bareRepository", |section| {
            !matches!(section.source, Source::Local | Source::Worktree)
        });
    let last = value.and_then(|values| values.last().map(ToString::to_string));

    last.is_some_and(|value| value.eq_ignore_ascii_case("explicit"))
}

/// Returns what a folder is that is too much for a project.
fn too_wide(top: &Path, home: Option<&Path>) -> Option<&'static str> {
    if top.parent().is_none() {
        return Some("the root of the file system");
    }
    let is_home = home.is_some_and(|home| home.canonicalize().is_ok_and(|home| home == top));
    is_home.then_some("your home directory")
}

/// Options that ignore the variables that name a part of a repository: the caller's git set them for
/// the user's checkout, and a session's worktree must not write the user's index.
///
/// The variables that name configuration files still count, so that all of our handles, and git in a
/// plan's command, see the same configuration. gix knows one permission for both groups; if the first
/// group is set, `GIT_CONFIG_GLOBAL` and `GIT_ATTR_NOSYSTEM` are therefore ignored.
pub(in crate::git) fn plain() -> gix::open::Options {
    let mut permissions = permissions(gix::open::Permissions::all());
    let names_a_part = |name: &&str| env::var_os(name).is_some();
    if !ELSEWHERE.iter().any(names_a_part) && env::var_os("GIT_WORK_TREE").is_none() {
        return options().permissions(permissions);
    }

    permissions.env.git_prefix = gix::sec::Permission::Deny;
    let ignores_system = env::var("GIT_CONFIG_NOSYSTEM").is_some_and(|value| {
        gix::config::Boolean::try_from(std::ffi::OsString::from(value)).is_ok_and(|value| value.0)
    });
    permissions.config.system &= !ignores_system;
    permissions.config.git_binary &= !ignores_system;
    let options = options().permissions(permissions);
    match env::var_os("GIT_CONFIG_SYSTEM") {
        Some(path) => options.system_config_path(path),
        None => options,
    }
}

/// Opens a repository that was found anew, where variables name a part of it.
fn plainly(found: gix::Repository) -> gix::error::Result<gix::Repository> {
    if ELSEWHERE.iter().all(|name| env::var_os(name).is_none()) {
        return Ok(found);
    }

    let worktree = found
        .workdir()
        .filter(|_| env::var_os("GIT_WORK_TREE").is_some())
        .and_then(Path::to_str);
    let overrides = OVERRIDES
        .map(str::to_owned)
        .into_iter()
        .chain(worktree.map(|top| format!("core.worktree={top}")));
    gix::open_opts(
        found.git_dir(),
        plain().config_overrides(overrides.map(BString::from)),
    )
}

/// Finds out why nothing was opened.
fn why_not(start: &Path, error: &gix::Error) -> OpenError {
    let named = env::var_os("GIT_DIR").map(|named| start.join(named));
    let found = || {
        let mut above = start.ancestors().map(|folder| folder.join(".git"));
        above.find(|git| git.exists())
    };
    let git_dir = named.or_else(found);
    let Some(git_dir) = git_dir else {
        return OpenError::None(start.to_owned());
    };

    OpenError::Damaged(git_dir, format!("{error:#}"))
}
