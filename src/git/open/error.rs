//! Why a repository cannot be opened, with what the user can do about it.

use std::path::{Path, PathBuf};

use crate::git::irregular::Irregular;
use crate::text::shell_word::shell_word;

/// Why a directory is not fit.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No repository.
    #[error("`{0}` is not in a git repository")]
    None(PathBuf),
    /// It has no worktree.
    #[error("`{0}` is a bare repository: it has no files to work on")]
    Bare(PathBuf),
    /// It has files, and `core.bare` in this file says that it has none.
    #[error("`{0}` has files, but `core.bare` in `{1}` says that it is a bare repository")]
    ConfiguredBare(PathBuf, PathBuf),
    /// A linked worktree to which `core.bare` of the bare repository in this file applies, too.
    #[error(
        "`core.bare` in `{1}` holds for the linked worktree `{0}`, too, because `extensions.worktreeConfig` is set"
    )]
    LinkedBare(PathBuf, PathBuf),
    /// It is bare, and the user's git takes such a one only where it is named.
    #[error("`{0}` is a bare repository, which `safe.bareRepository` says must be named")]
    Unnamed(PathBuf),
    /// It stores refs in a way that we cannot read.
    #[error("`{0}` stores its refs as `{1}`, which TeDDy cannot read")]
    RefFormat(PathBuf, String),
    /// It says that who does not know something must not touch it, and we do not.
    #[error("`{0}` needs the extension `{1}` of git, which TeDDy does not know")]
    Extension(PathBuf, String),
    /// The worktree is a home directory or a file system's root.
    #[error("`{0}` is {1}: TeDDy does not record it as a project")]
    TooWide(PathBuf, &'static str),
    /// Its configuration says that its files are in a directory that does not exist, or that knows
    /// nothing of it.
    #[error(
        "`{git_dir}` has its files in `{workdir}` (`core.worktree` in `{file}`), {}",
        explain_elsewhere(.workdir)
    )]
    Elsewhere {
        /// The git directory.
        git_dir: PathBuf,
        /// Where its files are said to be.
        workdir: PathBuf,
        /// The configuration file that says so.
        file: PathBuf,
    },
    /// A file of git is not a regular file.
    #[error(transparent)]
    Irregular(#[from] Irregular),
    /// Another user owns it.
    #[error("`{0}` belongs to another user")]
    Foreign(PathBuf),
    /// It is damaged.
    #[error("cannot open the repository at `{0}`: {1}")]
    Damaged(PathBuf, String),
}

impl OpenError {
    /// Returns what the user can do about it.
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
            OpenError::Irregular(irregular) => {
                format!("`ls -lL {}` shows what it is", quote_path(&irregular.path))
            }
            OpenError::Foreign(path) => format!(
                "if you trust it: `git config --global --add safe.directory {}`",
                quote_path(path)
            ),
            OpenError::Damaged(..) => "`git fsck` reports what is wrong".to_owned(),
        }
    }
}

/// Returns what is wrong with a directory in which no worktree of the repository is.
fn explain_elsewhere(workdir: &Path) -> &'static str {
    match workdir.exists() {
        true => "and nothing there leads back to it",
        false => "which does not exist",
    }
}

/// Returns a path as one word of a command.
fn quote_path(path: &Path) -> String {
    shell_word(path.as_os_str().as_encoded_bytes())
}
