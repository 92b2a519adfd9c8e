//! A repository for one test, apart from the machine's and the user's settings.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A repository in a folder of its own, removed when dropped.
pub struct TestRepo {
    /// The folder that holds it, and a home.
    folder: tempfile::TempDir,
}

impl TestRepo {
    /// Makes an empty repository on branch `main`.
    pub fn new() -> TestRepo {
        TestRepo::with(&[])
    }

    /// Makes an empty repository on branch `main`, with more arguments to `git init`.
    pub fn with(init: &[&str]) -> TestRepo {
        let repo = TestRepo { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(repo.folder.path().join("home")).unwrap();
        std::fs::create_dir(repo.path()).unwrap();
        repo.git(&[&["init", "-q", "-b", "main"], init].concat());
        repo
    }

    /// Returns the top of the worktree.
    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("repo")
    }

    /// Returns a folder beside the worktree.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file and its folders.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> TestRepo {
        self.write(path, content);
        self
    }

    /// Writes a file and its folders.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        self.put(path, content);
    }

    /// Writes a file of any name and its folders, one after another.
    pub fn put(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &TestRepo {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Reads a file as text.
    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Removes a file or folder.
    pub fn remove(&self, path: &str) {
        let path = self.path().join(path);
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Runs git and returns what it printed, without the final newline.
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.path(), args)
    }

    /// Runs git in another folder.
    pub fn git_in(&self, folder: &Path, args: &[&str]) -> String {
        let output = self.command("git").current_dir(folder).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
    }

    /// Commits everything and returns the commit's id.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// Returns the tree of every file that is not ignored, each read anew.
    pub fn tree(&self) -> String {
        self.tree_in(&self.path())
    }

    /// Returns the tree of every file of another worktree.
    pub fn tree_in(&self, folder: &Path) -> String {
        let index = self.beside("index");
        let _ = std::fs::remove_file(&index);
        let run = |args: &[&str]| self.command("git").current_dir(folder).env("GIT_INDEX_FILE", &index).args(args).output().unwrap();
        // Only an index knows that an empty folder is a submodule; on an unborn branch there is none.
        run(&["read-tree", "HEAD"]);
        run(&["add", "-A"]);
        let written = run(&["write-tree"]);
        assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
        String::from_utf8_lossy(&written.stdout).trim().to_owned()
    }

    /// Returns a command with an environment that nothing of the machine reaches.
    #[expect(clippy::disallowed_methods, reason = "a test starts git itself")]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var("PATH").unwrap()).env("HOME", self.beside("home"));
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Test").env(format!("GIT_{role}_EMAIL"), "test@localhost");
            command.env(format!("GIT_{role}_DATE"), "2026-01-02T03:04:05+00:00");
        }
        command
    }

    /// Opens the repository as TeDDy does.
    pub fn open(&self) -> teddy::git::repository::Repository {
        teddy::git::repository::Repository::discover(&self.path(), None).unwrap()
    }
}
