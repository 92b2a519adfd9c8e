//! Landing: commits that git itself makes for the user, on one of their branches.
//!
//! Only this part of TeDDy runs the user's commit hooks, asks for their signing key and moves their
//! branch and index. git commits in the user's checkout if the files there are exactly what is
//! committed, so that a landing behaves like a commit by hand; otherwise in a separate directory
//! with the user's git directory.
//!
//! # Example
//!
//! ```
//! # use std::process::Command;
//! # use teddy::git::repository::Repository;
//! # let dir = tempfile::tempdir()?;
//! # let git = |args: &[&str]| {
//! #     let mut git = Command::new("git");
//! #     git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
//! #     git.current_dir(&dir).args(args).status()
//! # };
//! # git(&["init", "-q", "-b", "main"])?;
//! # std::fs::write(dir.path().join("a.txt"), "one\n")?;
//! # git(&["add", "a.txt"])?;
//! # git(&["config", "user.name", "A"])?;
//! # git(&["config", "user.email", "a@localhost"])?;
//! # git(&["commit", "-qm", "first"])?;
//! # let repository = Repository::discover(dir.path(), None)?;
//! use teddy::git::land::branch::target;
//!
//! let target = target(&repository, None)?;
//! assert_eq!(target.reference(), "refs/heads/main");
//! # Ok::<(), anyhow::Error>(())
//! ```

pub mod branch;
pub mod commit;
pub mod index;

pub mod shared;
