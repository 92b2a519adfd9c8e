//! A repository for one test, apart from the machine's and the user's settings.

// Paths are given because two targets include this file.
#[path = "support/changes.rs"]
pub mod changes;
#[path = "support/fake.rs"]
pub mod fake;
#[path = "support/in_process.rs"]
pub mod in_process;
#[path = "support/killed_repo.rs"]
pub mod killed_repo;
#[path = "support/landing.rs"]
pub mod landing;
#[path = "support/machine.rs"]
pub mod machine;
#[path = "support/overlay.rs"]
pub mod overlay;
#[path = "support/plans.rs"]
pub mod plans;
#[path = "support/random_kills.rs"]
pub mod random_kills;
#[path = "support/remotes.rs"]
pub mod remotes;
#[path = "support/screen.rs"]
pub mod screen;
#[path = "support/scripted_agent.rs"]
pub mod scripted_agent;
#[path = "support/scripted_user.rs"]
pub mod scripted_user;
#[path = "support/server.rs"]
pub mod server;
#[path = "support/source.rs"]
pub mod source;
#[path = "support/web.rs"]
pub mod web;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
        let repo = TestRepo {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(repo.folder.path().join("home")).unwrap();
        std::fs::create_dir(repo.path()).unwrap();
        repo.git(&[&["init", "-q", "-b", "main"], init].concat());
        repo
    }

    /// Makes an empty repository on branch `main` in a folder below this one, which may be on another
    /// disk, with more arguments to `git init`.
    pub fn below(folder: &Path, init: &[&str]) -> TestRepo {
        let repo = TestRepo {
            folder: tempfile::tempdir_in(folder).unwrap(),
        };
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
        std::fs::read_to_string(self.path().join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
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
        let output = self
            .command("git")
            .current_dir(folder)
            .args(args)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout)
            .trim_end_matches('\n')
            .to_owned()
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
        let run = |args: &[&str]| {
            self.command("git")
                .current_dir(folder)
                .env("GIT_INDEX_FILE", &index)
                .args(args)
                .output()
                .unwrap()
        };
        // Only an index knows that an empty folder is a submodule; on an unborn branch there is
        // none.
        run(&["read-tree", "HEAD"]);
        run(&["add", "-A"]);
        let written = run(&["write-tree"]);
        assert!(
            written.status.success(),
            "{}",
            String::from_utf8_lossy(&written.stderr)
        );
        String::from_utf8_lossy(&written.stdout).trim().to_owned()
    }

    /// Returns a command with an environment that nothing of the machine reaches.
    #[expect(clippy::disallowed_methods, reason = "a test starts git itself")]
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.beside("home"));
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "Test")
                .env(format!("GIT_{role}_EMAIL"), "test@localhost");
            command.env(format!("GIT_{role}_DATE"), "2026-01-02T03:04:05+00:00");
        }
        // In which format repositories are made, if it is not git's own choice.
        for format in ["GIT_DEFAULT_REF_FORMAT", "GIT_DEFAULT_HASH"] {
            std::env::var_os(format).map(|value| command.env(format, value));
        }
        command
    }

    /// Opens the repository as TeDDy does.
    pub fn open(&self) -> teddy::git::repository::Repository {
        teddy::git::repository::Repository::discover(&self.path(), None).unwrap()
    }

    /// Gives the model one more recorded answer.
    pub fn reply(&self, answer: &str) -> &TestRepo {
        let answers = self.beside("answers");
        std::fs::create_dir_all(&answers).unwrap();
        let number = std::fs::read_dir(&answers).unwrap().count() + 1;
        std::fs::write(answers.join(format!("{number:03}.md")), answer).unwrap();
        // A single file would answer every time.
        std::fs::write(answers.join("999.md"), "no more answers").unwrap();
        self.configure(&format!("model: replay:{}\n", answers.display()))
    }

    /// Writes the user's own configuration.
    pub fn configure(&self, yaml: &str) -> &TestRepo {
        std::fs::write(self.beside("teddy.yaml"), yaml).unwrap();
        self
    }

    /// Runs teddy in the repository.
    pub fn teddy(&self, args: &[&str]) -> Output {
        self.teddy_in(&self.path(), args)
    }

    /// Runs teddy in another folder.
    pub fn teddy_in(&self, folder: &Path, args: &[&str]) -> Output {
        Output::of(
            self.teddy_command(args)
                .current_dir(folder)
                .stdin(Stdio::null()),
        )
    }

    /// Runs teddy with a text on its standard input.
    pub fn teddy_reads(&self, args: &[&str], input: impl AsRef<[u8]>) -> Output {
        let mut command = self.teddy_command(args);
        command
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_ref())
            .unwrap();
        Output::from(child.wait_with_output().unwrap())
    }

    /// Returns teddy as a command, apart from the machine's and the user's settings.
    pub fn teddy_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_teddy"));
        command
            .env("XDG_CONFIG_HOME", self.beside("home/config"))
            .env("XDG_CACHE_HOME", self.beside("home/cache"));
        command
            .env("TEDDY_CONFIG", self.beside("teddy.yaml"))
            .env("TEDDY_NOW", "2026-01-02T03:04:05+00:00")
            // What is on the machine is not the test's.
            .env("TEDDY_DISCOVERY", "off");
        command.args(args);
        command
    }

    /// Runs teddy and returns what it printed as JSON; it must end with this exit code.
    pub fn json(&self, args: &[&str], code: i32) -> serde_json::Value {
        let out = self.teddy(&[&["--json"], args].concat());
        assert_eq!(out.code, code, "teddy {args:?}: {out}");
        serde_json::from_str(&out.stdout)
            .unwrap_or_else(|error| panic!("teddy {args:?}: {error}: {out}"))
    }

    /// Runs teddy, which must succeed, and returns what it printed.
    pub fn done(&self, args: &[&str]) -> String {
        let out = self.teddy(args);
        assert_eq!(out.code, 0, "teddy {args:?}: {out}");
        out.stdout
    }

    /// Executes a plan from elsewhere, which must succeed.
    pub fn run_plan(&self, plan: &str) {
        let out = self.teddy_reads(&["execute", "-", "-y"], plan);
        assert_eq!(out.code, 0, "{out}");
    }

    /// Returns everything of the user's that no command may change: refs, HEAD, stash, settings,
    /// hooks, and the index.
    pub fn users(&self) -> Users {
        let refs = self.git(&[
            "for-each-ref",
            "--exclude=refs/teddy/",
            "--format=%(refname) %(objectname) %(symref)",
        ]);
        let read =
            |name: &str| std::fs::read(self.path().join(".git").join(name)).unwrap_or_default();
        let parts = [
            "HEAD",
            "index",
            "config",
            "logs/HEAD",
            "logs/refs/heads/main",
            "logs/refs/stash",
        ];
        let mut hooks: Vec<_> = std::fs::read_dir(self.path().join(".git/hooks"))
            .unwrap()
            .map(|hook| hook.unwrap().path())
            .collect();
        hooks.sort();
        Users {
            refs,
            parts: parts
                .iter()
                .map(|name| ((*name).to_owned(), read(name)))
                .collect(),
            hooks,
        }
    }
}

/// What is the user's in a repository, byte for byte.
#[derive(Debug, PartialEq, Eq)]
pub struct Users {
    /// The refs but for ours.
    refs: String,
    /// Files of git's own folder.
    parts: Vec<(String, Vec<u8>)>,
    /// The hooks.
    hooks: Vec<PathBuf>,
}

/// What a run of teddy left.
#[derive(Debug)]
pub struct Output {
    /// Its results.
    pub stdout: String,
    /// Its words.
    pub stderr: String,
    /// Its exit code; -1 where a signal ended it.
    pub code: i32,
}

impl Output {
    /// Runs a command to its end.
    pub fn of(command: &mut Command) -> Output {
        Output::from(command.output().unwrap())
    }

    /// Compares the exit code, and looks for words in what was said.
    #[track_caller]
    pub fn check(&self, code: i32, words: &[&str]) -> &Output {
        assert_eq!(self.code, code, "{self}");
        for words in words {
            assert!(
                self.stderr.contains(words) || self.stdout.contains(words),
                "nothing says `{words}`: {self}"
            );
        }
        self
    }
}

impl From<std::process::Output> for Output {
    fn from(output: std::process::Output) -> Output {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Output {
            stdout: text(output.stdout),
            stderr: text(output.stderr),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "exit code {}\n--- stdout\n{}\n--- stderr\n{}",
            self.code, self.stdout, self.stderr
        )
    }
}

/// Says why a test has nothing to test here.
#[expect(clippy::print_stderr, reason = "whoever runs the tests reads it")]
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// Returns the paths of everything below a folder but TeDDy's own, sorted; folders end in `/`.
pub fn names(folder: &Path) -> Vec<String> {
    let (mut folders, mut names) = (vec![folder.to_owned()], Vec::new());
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(&at).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if entry.file_type().unwrap().is_dir() {
                names.push(format!("{name}/"));
                folders.push(path);
            } else {
                names.push(name);
            }
        }
    }
    names.sort();
    names
}
