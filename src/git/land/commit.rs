//! One commit, made by git as the user runs it: with their hooks, filters, identity and keys.
//!
//! git commits from an index of its own, in a directory that belongs to one landing. The user's index
//! is untouched until the commit exists, so a refused commit leaves it as it was. git moves the branch
//! itself, as it does for a commit made by hand; [`commits_since`] reports whether it did.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use anyhow::Context as _;
use gix::bstr::ByteSlice as _;
use rustix::io::{FdFlags, fcntl_setfd};

use super::index;
use crate::git::command::{run_checked, run_with_input};
use crate::git::ignore::rule_for;
use crate::git::keep::durable::note_written;
use crate::git::keep::pack::private_blobs;
use crate::git::object::{CommitId, TreeId};
use crate::git::refs::{self, MoveError};
use crate::git::repository::Repository;
use crate::git::user_git::{git_for, silent_git, silent_git_for, user_git};
use crate::host::file::{read_regular, read_regular_text};
use crate::host::foreground::{self, Foreground};
use crate::host::process;
use crate::text::hint::error_with_hint;
use crate::text::shell_word::shell_word;

/// Held by TeDDy, git and everything that git starts, as long as one of them runs.
const LOCK: &str = "lock";

const INDEX_FILE: &str = "index";

/// Copy of the index with a hook's changes.
const REPAIRED: &str = "repaired";

const MESSAGE_FILE: &str = "message";

/// Ignore rules for the links in the separate directory.
const RULES: &str = "ignored";

const FILES: &str = "files";

const WORKTREE: &str = "teddy-land";

/// Hooks that git runs for a commit.
const HOOKS: [&str; 4] = [
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
];

/// More commits are not the work of hooks.
const MAX_COMMITS: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitSite {
    /// In the user's checkout, which has the files that are committed.
    Checkout,
    /// In a directory with the files that are committed, on the user's git directory.
    Separate,
    /// In a linked worktree that is on a new branch.
    NewBranch,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    Yes,
    /// `--no-verify`
    No,
}

pub struct CommitRequest<'a> {
    pub site: CommitSite,
    /// The full name of the branch.
    pub branch: &'a str,
    /// `None` for the first commit of a repository.
    pub parent: Option<CommitId>,
    /// The tree, before hooks.
    pub tree: TreeId,
    pub message: &'a CommitMessage,
    pub verify: Verify,
}

/// The directory of one landing. Removed when dropped, unless it is kept for recovery.
pub struct LandingDir<'a> {
    repository: &'a Repository,
    path: PathBuf,
    pub has_hooks: bool,
    is_kept: bool,
    _lock: File,
}

impl<'a> LandingDir<'a> {
    /// Makes the directory below `parent`. The caller holds TeDDy's lock: recovery must not find it
    /// before it is locked.
    pub fn make(
        repository: &'a Repository,
        parent: &Path,
        name: &str,
    ) -> anyhow::Result<LandingDir<'a>> {
        std::fs::create_dir_all(parent)?;
        let dir = tempfile::Builder::new()
            .prefix(&format!("{name}-"))
            .tempdir_in(parent)?;
        let lock = File::create(dir.path().join(LOCK))?;
        lock.lock()?;
        // git and its hooks inherit it: recovery must not remove the index of a git that outlives a
        // killed TeDDy, which would then commit an empty tree.
        fcntl_setfd(&lock, FdFlags::empty())?;

        Ok(LandingDir {
            repository,
            path: dir.keep(),
            has_hooks: has_hooks(repository)?,
            is_kept: false,
            _lock: lock,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The editor that made git stop the last commit.
    pub fn failed_editor(&self) -> Option<String> {
        read_regular_text(&self.path.join(FAILED_EDITOR), MAX_EDITOR).ok()
    }

    /// Leaves the directory, with what recovery needs, when this is dropped.
    pub fn keep(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }

    /// Lets git make a commit, and returns how git ended. The commit can exist even if git failed, and
    /// a hook can have undone it even if git succeeded.
    pub fn commit(&self, request: &CommitRequest<'_>) -> anyhow::Result<ExitStatus> {
        index::wait_unlocked(self.repository)?;
        private_blobs::publish_tree(self.repository, request.tree)
            .context("making landed files readable; nothing was changed")?;
        self.prepare(request)
            .context("preparing the commit; nothing was changed")?;
        let mut git = self.git(request.site, user_git)?;
        if request.site != CommitSite::Checkout {
            self.set_paths(&mut git, request.site)?;
        }

        let message = request.message;
        std::fs::write(self.path.join(MESSAGE_FILE), &message.text)?;
        if let Some(comment) = message.comment {
            git.args(["-c", &format!("core.commentChar={comment}")]);
        }
        let encoding = self.repository.config("i18n.commitEncoding");
        if !message.edit && encoding.is_some_and(|name| !name.eq_ignore_ascii_case("utf-8")) {
            // What we write is UTF-8; an editor writes it as the user has it set.
            git.args(["-c", "i18n.commitEncoding=UTF-8"]);
        }

        git.args(["commit", "--quiet", "--file"])
            .arg(self.path.join(MESSAGE_FILE));
        if request.verify == Verify::No {
            git.arg("--no-verify");
        }
        if message.edit {
            git.arg("--edit");
            watch_editor(self.repository, &self.path, &mut git, message)?;
        }
        git.env("GIT_REFLOG_ACTION", "teddy land");
        git.env(INSIDE, std::process::id().to_string());

        let keys = match message.edit {
            true => Foreground::Terminal,
            false => Foreground::Watched,
        };
        self.check_unmoved(request)?;
        let status = foreground::run(&mut git, keys).context("cannot start `git commit`")?;
        // git does not flush what it wrote, and our next ref can depend on it.
        note_written();
        Ok(status)
    }

    /// git commits on what HEAD is when it starts. Anything but the parent would lose its changes.
    fn check_unmoved(&self, request: &CommitRequest<'_>) -> anyhow::Result<()> {
        let is_own = request.site == CommitSite::NewBranch;
        match moved(self.repository, request.branch, request.parent)? {
            Some(error) if !is_own => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Returns the tree that a hook which refused the commit left in the files to be committed.
    pub fn repaired(
        &self,
        site: CommitSite,
        tree: TreeId,
        paths: &[&[u8]],
    ) -> anyhow::Result<TreeId> {
        let mut list = Vec::new();
        for path in paths {
            if self.repository.entry(tree, path)?.is_some() {
                list.extend_from_slice(path);
                list.push(0);
            }
        }
        if list.is_empty() || (site != CommitSite::Checkout && !self.has_hooks) {
            return Ok(tree);
        }

        let copy = self.path.join(REPAIRED);
        index::copy(&self.index(site)?, &copy)?;
        let mut git = self.git(site, silent_git)?;
        git.env("GIT_INDEX_FILE", &copy);
        git.args(["--literal-pathspecs", "add", "--update"])
            .args(["--pathspec-from-file=-", "--pathspec-file-nul"]);
        run_with_input(&mut git, &list, "read what the hook changed")?;

        let mut git = self.git(site, silent_git)?;
        git.env("GIT_INDEX_FILE", &copy).arg("write-tree");
        let tree = run_checked(&mut git, "write what the hook changed")?;
        String::from_utf8_lossy(&tree).trim().parse()
    }

    /// Writes the index, and the files if they are not the user's and a program reads them.
    fn prepare(&self, request: &CommitRequest<'_>) -> anyhow::Result<()> {
        let worktree = self.site_dir(request.site);
        match request.site {
            CommitSite::Checkout => {
                return index::for_commit(
                    self.repository,
                    &self.path.join(INDEX_FILE),
                    request.tree,
                );
            }
            CommitSite::Separate => {
                let _ = std::fs::remove_dir_all(&worktree);
                let _ = std::fs::remove_file(self.path.join(INDEX_FILE));
                std::fs::create_dir_all(&worktree)?;
                // Not only GIT_DIR: lint-staged and others remove that from the environment.
                let git_dir = self.repository.git_dir().canonicalize()?;
                let link = [b"gitdir: ", git_dir.as_os_str().as_bytes(), b"\n"].concat();
                std::fs::write(worktree.join(".git"), link)?;
            }
            CommitSite::NewBranch if worktree.exists() => {}
            CommitSite::NewBranch => self.add_worktree(request)?,
        }

        let mut git = self.git(request.site, silent_git)?;
        git.arg("read-tree");
        if self.has_hooks || request.message.edit {
            git.args(["--reset", "-u"]);
        }
        git.arg(request.tree.to_string());
        run_checked(&mut git, "write the files of the commit")?;
        link_ignored(self.repository, &worktree, &self.path.join(RULES))
    }

    /// Makes a linked worktree on the new branch, at the parent of the commit.
    fn add_worktree(&self, request: &CommitRequest<'_>) -> anyhow::Result<()> {
        let run = |args: &[&str]| {
            let mut git = silent_git_for(self.repository)?;
            run_checked(git.args(args), "make a worktree for the new branch")
        };
        let worktree = self.path.join(WORKTREE);
        let path = worktree.to_str().context("the path is not UTF-8")?;
        let add = ["worktree", "add", "--quiet", "--force", "--no-checkout"];
        if let Some(parent) = request.parent {
            let name = request.branch.trim_start_matches("refs/heads/");
            let parent = parent.to_string();
            let (new, log) = ("0".repeat(parent.len()), "teddy land: new branch");
            // The null id as the old value: fails if the branch exists by now.
            run(&["update-ref", "-m", log, request.branch, &parent, &new])?;
            run(&[&add[..], &[path, name]].concat())?;
            return Ok(());
        }

        // `worktree add --orphan` needs git 2.42. Any commit will do: the branch has none yet.
        let empty = self.repository.gix.object_hash().empty_tree().to_string();
        let mut git = silent_git_for(self.repository)?;
        git.args(["hash-object", "-w", "-t", "tree", "--stdin"]);
        run_with_input(&mut git, b"", "write an empty tree")?;
        let start = run(&["commit-tree", "-m", "teddy land", &empty])?;
        let start = String::from_utf8_lossy(&start).trim().to_owned();
        run(&[&add[..], &["--detach", path, &start]].concat())?;
        let mut git = silent_git(&worktree)?;
        git.args(["symbolic-ref", "HEAD", request.branch]);
        run_checked(&mut git, "start the new branch").map(drop)
    }

    fn git(
        &self,
        site: CommitSite,
        git: impl Fn(&Path) -> anyhow::Result<Command>,
    ) -> anyhow::Result<Command> {
        let dir = self.site_dir(site);
        let mut git = git(&dir)?;
        if site == CommitSite::NewBranch {
            return Ok(git);
        }
        // Otherwise without GIT_DIR, as by hand: hooks see a difference.
        if !self.is_discovered(&dir)? {
            git.env("GIT_DIR", self.repository.git_dir());
            git.env("GIT_WORK_TREE", &dir);
        }
        git.env("GIT_INDEX_FILE", self.path.join(INDEX_FILE));
        Ok(git)
    }

    fn site_dir(&self, site: CommitSite) -> PathBuf {
        match site {
            CommitSite::Checkout => self.repository.workdir().to_owned(),
            CommitSite::Separate => self.path.join(FILES),
            CommitSite::NewBranch => self.path.join(WORKTREE),
        }
    }

    fn index(&self, site: CommitSite) -> anyhow::Result<PathBuf> {
        if site != CommitSite::NewBranch {
            return Ok(self.path.join(INDEX_FILE));
        }
        let mut git = self.git(site, silent_git)?;
        git.args(["rev-parse", "--git-path", "index"]);
        let path = run_checked(&mut git, "tell where the index is")?;
        Ok(self.site_dir(site).join(first_line(path)))
    }

    /// Returns whether git finds the repository from a directory, and takes that for its files.
    fn is_discovered(&self, dir: &Path) -> anyhow::Result<bool> {
        let mut git = user_git(dir)?;
        git.args(["rev-parse", "--absolute-git-dir", "--show-toplevel"]);
        let output = git.output()?.stdout;
        let found = output
            .lines()
            .map(|line| line.to_path_lossy().canonicalize().ok());
        let expected = [self.repository.git_dir(), dir].map(|path| path.canonicalize().ok());
        Ok(expected.iter().all(Option::is_some) && found.eq(expected))
    }

    /// Tells git what a relative path of the configuration means outside the user's checkout.
    fn set_paths(&self, git: &mut Command, site: CommitSite) -> anyhow::Result<()> {
        let rules = self.path.join(RULES);
        git.arg("-c").arg(setting("core.excludesFile", &rules));
        let hooks = self.repository.config("core.hooksPath");
        if hooks.is_some() && site == CommitSite::Separate {
            let hooks = hooks_dir(self.repository)?;
            git.arg("-c").arg(setting("core.hooksPath", &hooks));
        }
        Ok(())
    }
}

impl Drop for LandingDir<'_> {
    fn drop(&mut self) {
        if !self.is_kept {
            remove(self.repository, &self.path);
        }
    }
}

/// Set for hooks to the process id of the TeDDy that lands.
pub const INSIDE: &str = "TEDDY_LANDING";

/// Returns whether a process of the landing in a directory lives.
pub fn is_in_use(dir: &Path) -> bool {
    let lock = File::open(dir.join(LOCK));
    lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(std::fs::TryLockError::WouldBlock)))
}

/// Removes the directory of a landing, as far as possible now.
pub fn remove(repository: &Repository, dir: &Path) {
    let worktree = dir.join(WORKTREE);
    if worktree.exists() {
        let git = silent_git_for(repository);
        if let Ok(mut git) = git {
            // Twice: a git that was killed while it added the worktree leaves it locked.
            git.args(["worktree", "remove", "--force", "--force"]);
            let _ = run_checked(git.arg(&worktree), "remove the worktree");
        }
    }
    let _ = std::fs::remove_dir_all(dir);
}

/// Returns the error if HEAD is not on this branch, or this commit, any more.
pub fn moved(
    repository: &Repository,
    branch: &str,
    commit: Option<CommitId>,
) -> anyhow::Result<Option<MoveError>> {
    let current = refs::branch(repository)?.unwrap_or_default();
    let name = match branch.strip_prefix("refs/heads/") == Some(&current) {
        true if refs::head(repository)? == commit => return Ok(None),
        true => branch,
        false => "HEAD",
    };
    Ok(Some(MoveError::Moved {
        name: name.to_owned(),
    }))
}

/// Takes the newest commit off a branch again, unless the branch has moved.
pub fn take_back(
    repository: &Repository,
    branch: &str,
    commit: CommitId,
    parent: CommitId,
) -> anyhow::Result<()> {
    let mut git = silent_git_for(repository)?;
    git.args(["update-ref", "-m", "teddy land: take back", branch]);
    git.args([parent.to_string(), commit.to_string()]);
    run_checked(&mut git, "take the commit back").map(drop)
}

/// Returns the commits between two positions of a branch, oldest first; none if the branch did not
/// move, or moved to something that does not continue it.
pub fn commits_since(
    repository: &Repository,
    old: Option<CommitId>,
    now: Option<CommitId>,
) -> anyhow::Result<Vec<CommitId>> {
    let (mut commits, mut at) = (Vec::new(), now);
    while at != old {
        let Some(id) = at.filter(|_| commits.len() < MAX_COMMITS) else {
            return Ok(Vec::new());
        };
        commits.push(id);
        at = repository.commit(id)?.parents.first().copied();
    }
    commits.reverse();
    Ok(commits)
}

fn has_hooks(repository: &Repository) -> anyhow::Result<bool> {
    let dir = hooks_dir(repository)?;
    let is_there = |name: &&str| process::find(dir.join(name)).is_some();
    Ok(HOOKS.iter().any(is_there) || !repository.config_section("hook").is_empty())
}

fn hooks_dir(repository: &Repository) -> anyhow::Result<PathBuf> {
    let mut git = git_for(repository)?;
    git.args(["rev-parse", "--git-path", "hooks"]);
    let path = run_checked(&mut git, "tell where hooks are").context("looking for hooks")?;
    Ok(repository.workdir().join(first_line(path)))
}

fn first_line(mut bytes: Vec<u8>) -> OsString {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    }
    OsString::from_vec(bytes)
}

fn setting(name: &str, path: &Path) -> OsString {
    [OsStr::new(name), OsStr::new("="), path.as_os_str()]
        .into_iter()
        .collect()
}

// Links the user's ignored files into a scratch worktree, because hooks need `node_modules` or a
// virtual environment.

// Dependencies of a project are fewer; the rest is build output.
const MAX_LINKS: usize = 1000;

const MAX_RULE_FILE: u64 = 1 << 20;

/// Links each ignored file or directory whose parent exists in the worktree and whose path is free,
/// and writes rules by which git ignores the links.
pub(super) fn link_ignored(
    repository: &Repository,
    worktree: &Path,
    rules: &Path,
) -> anyhow::Result<()> {
    let own = repository.global_file("core.excludesFile", "ignore");
    let mut text = read_regular(&own, MAX_RULE_FILE).unwrap_or_default();
    for path in ignored_paths(repository)?.iter().take(MAX_LINKS) {
        let name = OsStr::from_bytes(path);
        let target = repository.workdir().join(name);
        // The directory of the sessions' worktrees can be in the project.
        if worktree.starts_with(&target) {
            continue;
        }

        match std::os::unix::fs::symlink(&target, worktree.join(name)) {
            Ok(()) => text.extend(rule_for(path)),
            // Linked for an earlier commit, tracked, or in an untracked directory.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => text.extend(rule_for(path)),
            Err(_) => {}
        }
    }

    Ok(std::fs::write(rules, text)?)
}

/// Returns the ignored files and directories; a directory covers everything in it.
fn ignored_paths(repository: &Repository) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut git = silent_git_for(repository)?;
    git.args(["ls-files", "--others", "--ignored", "--exclude-standard"])
        .args(["--directory", "-z"]);
    let list = run_checked(&mut git, "list what it ignores")?;
    let paths = list.split(|byte| *byte == 0);
    let paths = paths.map(|path| path.strip_suffix(b"/").unwrap_or(path));

    Ok(paths
        .filter(|path| !path.is_empty())
        .map(<[u8]>::to_vec)
        .collect())
}

const EDITOR_SCRIPT: &str = "editor";
const FAILED_EDITOR: &str = "failed-editor";
/// In bytes.
const MAX_EDITOR: u64 = 1 << 16;
pub const EDITOR_HINT: &str =
    "`core.editor`, `VISUAL` or `EDITOR` names one; `-m '<message>'` gives the message without one";

/// Trailers that do not count as a message, one per line.
const TRAILERS_FILE: &str = "trailers";

const MAX_TEMPLATE: u64 = 1 << 20;

#[derive(Debug, Clone, Default)]
pub struct CommitMessage {
    pub text: String,
    /// The user's editor opens it first.
    pub edit: bool,
    /// The comment character, if the user's would remove a line of the draft.
    pub comment: Option<char>,
    /// Comments begin with this; `None` if git chooses it.
    pub comment_prefix: Option<String>,
    /// Whether git removes comments once the editor has ended.
    pub strips_comments: bool,
    /// Trailers of ours. A message of trailers alone is empty.
    pub trailers: Vec<String>,
}

/// Makes git treat a message as empty if only our trailers remain: the first one would become the
/// subject.
pub(super) fn watch_editor(
    repository: &Repository,
    dir: &Path,
    git: &mut Command,
    message: &CommitMessage,
) -> anyhow::Result<()> {
    let Some(comment) = &message.comment_prefix else {
        return Ok(());
    };
    let mut ask = git_for(repository)?;
    let editor = run_checked(ask.args(["var", "GIT_EDITOR"]), "name an editor")?;
    let editor = String::from_utf8_lossy(&editor).trim().to_owned();
    // git opens no editor then.
    if editor == ":" {
        return Ok(());
    }
    check_editor(&editor)?;

    let (script, trailers) = (dir.join(EDITOR_SCRIPT), dir.join(TRAILERS_FILE));
    let failed = dir.join(FAILED_EDITOR);
    // Of an earlier attempt.
    let _ = std::fs::remove_file(&failed);
    std::fs::write(&trailers, message.trailers.join("\n") + "\n")?;
    let comment: String = comment.chars().map(escape_for_pattern).collect();
    let uncommented = match message.strips_comments {
        true => format!("grep -v '^{comment}'"),
        false => "cat".to_owned(),
    };
    let text = format!(
        "{editor} \"$@\" || {{ printf %s {} >{}; exit 1; }}\n\
         sed '/^{comment} -* >8 -*$/,$d' \"$1\" | {uncommented} |\n\
         grep -vxF -f {} | grep -v '^Signed-off-by: ' | grep -q '[^[:space:]]' || : >\"$1\"\n",
        shell_word(editor.as_bytes()),
        shell_word(failed.as_os_str().as_encoded_bytes()),
        shell_word(trailers.as_os_str().as_encoded_bytes()),
    );
    std::fs::write(&script, text)?;
    let script = shell_word(script.as_os_str().as_encoded_bytes());
    git.env("GIT_EDITOR", format!("sh {script}"));
    Ok(())
}

/// Fails if the program of an editor is missing. git would name our script instead.
fn check_editor(editor: &str) -> anyhow::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./ ".contains(c);
    let program = editor.split(' ').next().unwrap_or_default();
    if !editor.chars().all(is_plain) || program.is_empty() {
        return Ok(());
    }
    let mut shell = process::command("sh");
    shell.args(["-c", "command -v \"$0\" >/dev/null", program]);
    match shell.status()?.success() {
        true => Ok(()),
        false => Err(error_with_hint(
            format!("the editor `{program}` was not found; nothing was changed"),
            EDITOR_HINT,
        )),
    }
}

pub fn message_template(repository: &Repository) -> Option<String> {
    let snapshot = repository.gix.config_snapshot();
    let path = snapshot.trusted_path("commit.template").ok().flatten()?;
    let path = repository.workdir().join(path);
    read_regular_text(&path, MAX_TEMPLATE).ok()
}

/// Returns a basic regular expression for a character, within single quotes and slashes.
fn escape_for_pattern(c: char) -> String {
    match c {
        '^' | '\\' | '/' | '$' | '*' | '.' | '[' => format!("\\{c}"),
        '\'' => "'\\''".to_owned(),
        c => c.to_string(),
    }
}
