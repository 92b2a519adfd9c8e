//! Finds and opens a repository, and explains why one cannot be used.

use std::path::{Path, PathBuf};

use gix::bstr::BString;

use super::call_settings::call_settings;
use super::repository::Repository;
use super::{During, command, irregular};
use crate::git::irregular::Irregular;
use crate::host::env;
use crate::host::file::read_regular_text;
use crate::text::shell_word::shell_word;

/// Settings of our own handle that override the configuration: a file that does not round-trip
/// (`core.safecrlf`) is recorded anyway, and a reflog entry needs a committer.
const OVERRIDES: [&str; 7] = [
    "core.safecrlf=false",
    // A restore writes the recorded bytes, not those of a replacement object.
    "core.useReplaceRefs=false",
    "gitoxide.committer.nameFallback=TeDDy",
    "gitoxide.committer.emailFallback=teddy@localhost",
    // git checks the hash of an index only in `git fsck`: with many files, hashing takes longer
    // than reading.
    "index.skipHash=true",
    // In milliseconds: git might be packing refs.
    "core.packedRefsTimeout=5000",
    "core.filesRefLockTimeout=2000",
];

/// Bytes of the object cache: enough for a few trees of a very large directory, which a turn reads
/// several times.
const CACHE: usize = 16 * 1024 * 1024;

/// Minimum number of slots for packs: a concurrent `git fetch` can add some.
const PACKS: usize = 1024;

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

/// Variables with which a caller of git, such as a hook, selects another index, ref namespace or
/// list of shallow commits.
const ELSEWHERE: [&str; 3] = ["GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_SHALLOW_FILE"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Files, so not a bare repository.
    Files,
    /// Sessions only.
    Record,
}

impl Repository {
    /// Finds the repository of a directory as git does, including `GIT_DIR` and `GIT_WORK_TREE`.
    pub fn discover(start: &Path, home: Option<&Path>) -> Result<Repository, OpenError> {
        Repository::find(start, home, Purpose::Files)
    }

    /// Returns an error if the repository has files but its configuration declares it bare.
    pub fn wrongly_bare(&self) -> Option<OpenError> {
        explain_wrongly_bare(&self.gix)
    }

    /// As [`Repository::discover`], but accepts a bare repository.
    pub fn discover_record(start: &Path, home: Option<&Path>) -> Result<Repository, OpenError> {
        Repository::find(start, home, Purpose::Record)
    }

    fn find(start: &Path, home: Option<&Path>, purpose: Purpose) -> Result<Repository, OpenError> {
        irregular::before_opening(start)?;
        let options = options();
        let trust = gix::sec::trust::Mapping {
            full: options.clone(),
            reduced: options,
        };

        // As in git, a ceiling at or below the directory has no effect.
        let upwards = gix::discover::upwards::Options {
            match_ceiling_dir_or_error: false,
            ..Default::default()
        };
        let repo = match env::pinned() {
            // gix would read the environment of the process instead of the pinned one.
            Some(_) => gix::ThreadSafeRepository::discover_opts(start, upwards, trust),
            None => gix::ThreadSafeRepository::discover_with_environment_overrides_opts(
                start, upwards, trust,
            ),
        };
        let repo = repo
            .map(|repo| repo.to_thread_local())
            .and_then(reopen_plain);
        let repo = repo.map_err(|error| explain_failure(start, &error))?;
        let repository = Repository::validate(repo, home, purpose)?;

        if let Some(error) = explain_other_files(&repository, start) {
            return Err(error);
        }

        // Only the configuration, which is read by now, tells where these are.
        for (key, name) in [
            ("core.excludesFile", "ignore"),
            ("core.attributesFile", "attributes"),
        ] {
            irregular::rules(&repository.global_file(key, name))?;
        }

        Ok(repository)
    }

    /// Creates a repository in a directory and opens it. Refuses a directory that is not a project,
    /// such as the home directory.
    pub fn init(dir: &Path, home: Option<&Path>) -> anyhow::Result<Repository> {
        let top = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        if let Some(scope) = too_wide(&top, home) {
            return Err(OpenError::TooWide(top, scope).into());
        }
        command::init(dir)?;
        Ok(Repository::discover(dir, home)?)
    }

    pub fn open(top: &Path) -> anyhow::Result<Repository> {
        let gix =
            gix::open_opts(top, plain()).during(format_args!("opening `{}`", top.display()))?;
        Ok(Repository::validate(gix, None, Purpose::Files)?)
    }

    /// Opens the repository again, to read what has changed.
    pub(in crate::git) fn reopened(&self) -> anyhow::Result<Repository> {
        match self.is_bare() {
            true => Ok(Repository::discover_record(self.git_dir(), None)?),
            false => Repository::open(self.workdir()),
        }
    }

    pub(in crate::git) fn main_repository(&self) -> anyhow::Result<gix::Repository> {
        // To gix, a linked worktree of a submodule is its main one.
        let options = plain().open_path_as_is(true);
        gix::open_opts(self.common_dir(), options).during("opening the main worktree")
    }

    /// Opens the repository with another worktree and index. Settings, objects and ignore rules stay
    /// the same.
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
        // Shares the packs that are already open.
        gix.objects = self.gix.objects.clone();
        gix.object_cache_size_if_unset(CACHE);

        let dirs = (top.to_owned(), self.common.clone());
        let opened = Repository::of(gix, dirs.0, dirs.1, self.read_only);
        let unreadable = |format| OpenError::RefFormat(self.git_dir().to_owned(), format);
        let opened = opened.map_err(unreadable)?;
        opened.memory.trees.share(&self.memory.trees);
        Ok(opened)
    }

    fn validate(
        mut gix: gix::Repository,
        home: Option<&Path>,
        purpose: Purpose,
    ) -> Result<Repository, OpenError> {
        let git_dir = gix.git_dir().to_owned();
        if let Some(workdir) = gix.workdir().filter(|workdir| !workdir.exists()) {
            return Err(elsewhere(&gix, workdir));
        }

        if gix.git_dir_trust() != gix::sec::Trust::Full {
            return Err(OpenError::Foreign(
                gix.workdir().map_or(git_dir, Path::to_owned),
            ));
        }

        if let Some(name) = unknown_extension(&gix) {
            return Err(OpenError::Extension(git_dir, name));
        }

        let wrongly_bare = explain_wrongly_bare(&gix);
        set_unread_workdir(&mut gix)?;
        let is_bare = gix.workdir().is_none() || is_bare(&gix);
        if purpose == Purpose::Files {
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
        if is_worktree_elsewhere(&gix, &workdir) {
            return Err(elsewhere(&gix, &workdir));
        }

        if let Some(scope) = too_wide(&workdir, home) {
            return Err(OpenError::TooWide(workdir, scope));
        }

        check_index_file(&gix)?;
        gix.object_cache_size_if_unset(CACHE);
        let read_only =
            rustix::fs::access(gix.objects.store_ref().path(), rustix::fs::Access::WRITE_OK)
                .is_err();
        gix.objects.enable_object_memory();

        let common = gix
            .common_dir()
            .canonicalize()
            .unwrap_or_else(|_| gix.common_dir().to_owned());
        Repository::of(gix, workdir, common, read_only)
            .map_err(|format| OpenError::RefFormat(git_dir, format))
    }
}

/// Returns the options to open a repository. gix has a fixed number of slots for packs, and fails
/// to read objects from packs beyond it.
fn options() -> gix::open::Options {
    let slots = gix::odb::store::init::Slots::AsNeededByDiskState {
        multiplier: 2.0,
        minimum: PACKS,
    };
    gix::open::Options::default()
        .cli_overrides(call_settings())
        .config_overrides(OVERRIDES)
        .object_store_slots(slots)
        .permissions(permissions(gix::open::Permissions::default()))
}

/// Permissions of gix to read the environment and other files. None if the environment is pinned,
/// because gix would read that of the process.
fn permissions(usual: gix::open::Permissions) -> gix::open::Permissions {
    match env::pinned() {
        Some(_) => gix::open::Permissions::isolated(),
        None => usual,
    }
}

/// Returns an unsupported extension of the repository format. git refuses unknown extensions only
/// in format version 1.
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

/// Returns `true` if `safe.bareRepository` allows a bare repository only through `GIT_DIR`, because
/// a clone can contain one among its files. The setting of the repository itself does not count.
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

/// Returns the kind of a directory that is too large for a project, such as the home directory.
fn too_wide(top: &Path, home: Option<&Path>) -> Option<&'static str> {
    if top.parent().is_none() {
        return Some("the root of the file system");
    }
    let is_home = home.is_some_and(|home| home.canonicalize().is_ok_and(|home| home == top));
    is_home.then_some("your home directory")
}

/// Options that ignore the variables that select a part of a repository: a calling git set them for
/// the user's checkout, and a session's worktree must not write the user's index.
///
/// Variables that name configuration files still count, so all of our handles and git in a plan's
/// command read the same configuration. gix has one permission for both groups: if a variable of the
/// first group is set, `GIT_CONFIG_GLOBAL` and `GIT_ATTR_NOSYSTEM` are ignored too.
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

/// Opens a repository again if variables select a part of it.
fn reopen_plain(repo: gix::Repository) -> gix::error::Result<gix::Repository> {
    if ELSEWHERE.iter().all(|name| env::var_os(name).is_none()) {
        return Ok(repo);
    }

    let worktree = repo
        .workdir()
        .filter(|_| env::var_os("GIT_WORK_TREE").is_some())
        .and_then(Path::to_str);
    let overrides = OVERRIDES
        .map(str::to_owned)
        .into_iter()
        .chain(worktree.map(|top| format!("core.worktree={top}")));
    gix::open_opts(
        repo.git_dir(),
        plain().config_overrides(overrides.map(BString::from)),
    )
}

fn explain_failure(start: &Path, error: &gix::Error) -> OpenError {
    let from_env = env::var_os("GIT_DIR").map(|value| start.join(value));
    let nearest = || {
        let mut above = start.ancestors().map(|dir| dir.join(".git"));
        above.find(|git| git.exists())
    };
    let git_dir = from_env.or_else(nearest);
    let Some(git_dir) = git_dir else {
        return OpenError::None(start.to_owned());
    };

    match irregular::link_target(&git_dir).filter(|target| !target.exists()) {
        Some(target) => OpenError::Lost(git_dir, target),
        None => OpenError::Damaged(git_dir, format!("{error:#}")),
    }
}

/// With `GIT_DIR` alone, git takes the current directory for the top of the files.
fn explain_other_files(repository: &Repository, start: &Path) -> Option<OpenError> {
    let is_set = |name: &str| env::var_os(name).is_some();
    if !is_set("GIT_DIR") || is_set("GIT_WORK_TREE") || repository.is_bare() {
        return None;
    }
    let config = repository.gix.config_snapshot();
    if config.string("core.worktree").is_some() {
        return None;
    }

    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (workdir, start) = (real(repository.workdir()), real(start));
    (workdir != start).then_some(OpenError::OtherFiles(workdir, start))
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("`{0}` is not in a git repository")]
    None(PathBuf),
    #[error("`{0}` is a bare repository: it has no files to work on")]
    Bare(PathBuf),
    #[error("`{0}` has files, but `core.bare` in `{1}` says that it is a bare repository")]
    ConfiguredBare(PathBuf, PathBuf),
    /// A linked worktree to which `core.bare` of the bare repository in this file applies, too.
    #[error(
        "`core.bare` in `{1}` holds for the linked worktree `{0}`, too, because `extensions.worktreeConfig` is set"
    )]
    LinkedBare(PathBuf, PathBuf),
    #[error("`{0}` is a bare repository, which `safe.bareRepository` says must be named")]
    Unnamed(PathBuf),
    #[error("`{0}` stores its refs as `{1}`, which TeDDy cannot read")]
    RefFormat(PathBuf, String),
    #[error("`{0}` needs the extension `{1}` of git, which TeDDy does not know")]
    Extension(PathBuf, String),
    #[error("`{0}` is {1}: TeDDy does not record it as a project")]
    TooWide(PathBuf, &'static str),
    /// `core.worktree` names a directory that does not exist or does not point back.
    #[error(
        "`{git_dir}` has its files in `{workdir}` (`core.worktree` in `{file}`), {}",
        explain_elsewhere(.workdir)
    )]
    Elsewhere {
        git_dir: PathBuf,
        /// Value of `core.worktree`.
        workdir: PathBuf,
        /// The configuration file with that setting.
        file: PathBuf,
    },
    #[error("`GIT_DIR` names the repository of `{0}`, but for git its files are then in `{1}`")]
    OtherFiles(PathBuf, PathBuf),
    #[error(transparent)]
    Irregular(#[from] Irregular),
    #[error("`{0}` belongs to another user")]
    Foreign(PathBuf),
    #[error("`{0}` leads to the git directory `{1}`, which does not exist")]
    Lost(PathBuf, PathBuf),
    #[error("cannot open the repository at `{0}`: {1}")]
    Damaged(PathBuf, String),
}

impl OpenError {
    pub fn hint(&self) -> String {
        match self {
            OpenError::None(_) => {
                "run `teddy init` to start one here, or use `-C <dir>` to name another directory"
                    .to_owned()
            }
            OpenError::Bare(_) => {
                "use a clone with a worktree, or `git worktree add`; what only reads sessions works here, such as `teddy sessions`, `log` and `show`"
                    .to_owned()
            }
            OpenError::ConfiguredBare(_, file) => {
                format!("`git config --file {} core.bare false`", quote_path(file))
            }
            OpenError::LinkedBare(_, file) => {
                let of_main = file.with_file_name("config.worktree");
                format!(
                    "`git config --file {} core.bare true && git config --file {} --unset core.bare` leaves it to the bare repository",
                    quote_path(&of_main),
                    quote_path(file)
                )
            }
            OpenError::Unnamed(git_dir) => {
                format!("set `GIT_DIR={}` if you trust it", quote_path(git_dir))
            }
            OpenError::RefFormat(..) | OpenError::Extension(..) => {
                "a newer TeDDy may know it".to_owned()
            }
            OpenError::TooWide(..) => "give the project a directory of its own".to_owned(),
            OpenError::Elsewhere { file, .. } => format!(
                "`git config --file {} --unset core.worktree`, or set `GIT_WORK_TREE` to the directory",
                quote_path(file)
            ),
            OpenError::OtherFiles(workdir, _) => format!(
                "set `GIT_WORK_TREE={}`, or run TeDDy there",
                quote_path(workdir)
            ),
            OpenError::Irregular(irregular) => {
                format!("`ls -lL {}` shows what it is", quote_path(&irregular.path))
            }
            OpenError::Foreign(path) => format!(
                "if you trust it: `git config --global --add safe.directory {}`",
                quote_path(path)
            ),
            OpenError::Lost(file, _) => format!(
                "if the repository was moved: run `git worktree repair {}` in it, or write the new path into the file",
                quote_path(file.parent().unwrap_or(file))
            ),
            OpenError::Damaged(..) => "`git fsck` reports what is wrong".to_owned(),
        }
    }
}

fn explain_elsewhere(workdir: &Path) -> &'static str {
    match workdir.exists() {
        true => "and nothing there leads back to it",
        false => "which does not exist",
    }
}

fn quote_path(path: &Path) -> String {
    shell_word(path.as_os_str().as_encoded_bytes())
}

/// Larger than any configuration file of git's, in bytes.
const MAX_GIT_FILE: u64 = 16 << 20;

impl Repository {
    /// Returns the directory that `core.hooksPath` names and the configuration file that says so, if
    /// the directory does not exist: git runs no hook then.
    pub fn missing_hooks_dir(&self) -> Option<(PathBuf, PathBuf)> {
        let config = self.gix.config_snapshot();
        let hooks_path = config.trusted_path("core.hooksPath").ok()??;
        let dir = self.workdir.join(hooks_path);
        let is_missing = !dir.as_os_str().is_empty() && !dir.exists();
        let file = is_missing.then(|| file_that_sets(&self.gix, "hooksPath"));
        Some((dir, file??))
    }
}

/// Returns the configuration file that sets a variable of the section `core`. `None` if no file does.
fn file_that_sets(gix: &gix::Repository, name: &str) -> Option<PathBuf> {
    let config = gix.config_snapshot();
    let sections = config.plumbing().sections_by_name("core")?;
    // Later sections override earlier ones.
    let setting = sections.filter(|section| section.contains_value_name(name));
    setting.last()?.meta().path.clone()
}

/// Returns `core.bare`, including that of `config.worktree`.
fn is_configured_bare(gix: &gix::Repository) -> bool {
    let config = gix.config_snapshot();
    config.boolean("core.bare").unwrap_or_default()
}

/// Returns whether the user set the worktree explicitly, so that `core.bare` does not count.
fn has_explicit_worktree(gix: &gix::Repository) -> bool {
    let is_set = gix.config_snapshot().string("core.worktree").is_some();
    is_set || env::var_os("GIT_WORK_TREE").is_some()
}

/// Returns whether git treats the repository as bare. A linked worktree never is.
fn is_bare(gix: &gix::Repository) -> bool {
    is_configured_bare(gix) && !has_explicit_worktree(gix) && gix.git_dir() == gix.common_dir()
}

/// Returns why git sees no files in a repository that has some.
///
/// A `.git` with an index has files; a bare repository that was cloned into a `.git`, with linked
/// worktrees next to it, does not. In a linked worktree, the repository's `core.bare` counts only
/// with `extensions.worktreeConfig`.
fn explain_wrongly_bare(gix: &gix::Repository) -> Option<OpenError> {
    if has_explicit_worktree(gix) || !is_configured_bare(gix) {
        return None;
    }

    let (git_dir, common) = (gix.git_dir(), gix.common_dir());
    let file = file_that_sets(gix, "bare")?;
    let is_linked = git_dir != common;
    if is_linked {
        let holds = gix
            .config_snapshot()
            .boolean("extensions.worktreeConfig")
            .unwrap_or_default();
        let top = gix.workdir().unwrap_or(git_dir).to_owned();
        return holds.then_some(OpenError::LinkedBare(top, file));
    }

    let has_files = git_dir.ends_with(".git") && git_dir.join("index").exists();
    has_files.then(|| OpenError::ConfiguredBare(git_dir.to_owned(), file))
}

/// gix does not read `config.worktree`, so a repository can look bare that is not.
fn set_unread_workdir(gix: &mut gix::Repository) -> Result<(), OpenError> {
    let git_dir = gix.git_dir().to_owned();
    if gix.workdir().is_some() || !git_dir.ends_with(".git") || is_configured_bare(gix) {
        return Ok(());
    }

    let top = git_dir.parent().map(Path::to_owned);
    let set = top.map(|top| gix.set_workdir(top)).transpose();
    set.map_err(|error| OpenError::Damaged(git_dir, error.to_string()))?;
    Ok(())
}

fn check_index_file(gix: &gix::Repository) -> Result<(), OpenError> {
    let index = gix.index_path();
    if index.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let why = format!("`{}` is not a file", index.display());
        return Err(OpenError::Damaged(gix.git_dir().to_owned(), why));
    }
    Ok(())
}

fn elsewhere(gix: &gix::Repository, workdir: &Path) -> OpenError {
    let git_dir = gix.git_dir().to_owned();
    OpenError::Elsewhere {
        file: file_that_sets(gix, "worktree").unwrap_or_else(|| git_dir.join("config")),
        git_dir,
        workdir: workdir.to_owned(),
    }
}

/// Returns whether `core.worktree` names a directory whose `.git` does not point back, as that of a
/// submodule does. Commands would change other files than those next to the repository.
fn is_worktree_elsewhere(gix: &gix::Repository, workdir: &Path) -> bool {
    let is_set = gix.config_snapshot().string("core.worktree").is_some();
    if !is_set || env::var_os("GIT_WORK_TREE").is_some() {
        return false;
    }

    let link = workdir.join(".git");
    let target = read_regular_text(&link, MAX_GIT_FILE)
        .ok()
        .and_then(|text| Some(workdir.join(text.trim_end().strip_prefix("gitdir: ")?)))
        .unwrap_or(link);
    let same = |a: &Path, b: &Path| Some(a.canonicalize().ok()? == b.canonicalize().ok()?);

    same(&target, gix.git_dir()) != Some(true)
}
