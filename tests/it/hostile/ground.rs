//! The ground on which hostile plans are tried: a repository with a session, and canaries around
//! it.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support::TestRepo;

/// How long a command may take; nothing here takes more than a second.
const PATIENCE: Duration = Duration::from_secs(60);
/// What every plan has in front of its actions.
const HEAD: &str = "# Hostile\n- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Developer\n\n## Rationale\n````text\nx\n````\n\n## Action Plan\n\n";

/// A repository with a session in use, a folder of secrets beside it, and a home.
pub struct Ground {
    /// The repository.
    pub repo: TestRepo,
}

/// What came of a plan.
pub struct Tried {
    /// The exit code; that of a killed process is -1.
    pub code: i32,
    /// What was printed on stdout, as JSON where it is.
    pub json: Value,
    /// Both streams, for a person.
    pub words: String,
}

impl Ground {
    /// Makes a repository with a few files and a session.
    pub fn new() -> Ground {
        let ground = Ground {
            repo: TestRepo::new()
                .file("a.txt", "one\n")
                .file("src/main.rs", "fn main() {}\n")
                .file(".gitignore", "ignored\n"),
        };
        ground.repo.commit("one");
        std::fs::create_dir(ground.outside()).unwrap();
        std::fs::write(ground.outside().join("canary"), "canary\n").unwrap();
        ground.ok(&["new", "s"]);
        ground
    }

    /// Returns the folder that no plan may reach.
    pub fn outside(&self) -> PathBuf {
        self.repo.beside("outside")
    }

    /// Runs teddy in the repository.
    pub fn teddy(&self, args: &[&str]) -> Output {
        self.teddy_with(args, &[])
    }

    /// Runs teddy with more variables.
    pub fn teddy_with(&self, args: &[&str], env: &[(&str, &str)]) -> Output {
        let mut command = self.repo.command(env!("CARGO_BIN_EXE_teddy"));
        command
            .current_dir(self.repo.path())
            .args(args)
            .envs(env.iter().copied())
            .stdin(Stdio::null());
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output().unwrap()));
        receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            panic!(
                "teddy {args:?} hangs: {:?}",
                std::fs::read_to_string(self.repo.beside("plan.md"))
            );
        })
    }

    /// Runs teddy, which must succeed, and returns what it printed.
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.teddy(args);
        assert!(
            output.status.success(),
            "teddy {args:?}: {}",
            words(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Executes a whole plan, approved as it is.
    pub fn execute(&self, plan: impl AsRef<[u8]>) -> Tried {
        self.execute_with(plan, &[])
    }

    /// Executes a whole plan with more arguments.
    pub fn execute_with(&self, plan: impl AsRef<[u8]>, more: &[&str]) -> Tried {
        let file = self.repo.beside("plan.md");
        std::fs::write(&file, plan).unwrap();
        let output = self.teddy(
            &[
                &[
                    "execute",
                    file.to_str().unwrap(),
                    "-y",
                    "--no-replan",
                    "--json",
                ],
                more,
            ]
            .concat(),
        );
        Tried {
            code: output.status.code().unwrap_or(-1),
            json: serde_json::from_slice(&output.stdout).unwrap_or_default(),
            words: words(&output),
        }
    }

    /// Returns everything that a plan must not change, by path: the user's files, the repository's
    /// own state, the home but for caches, and the folder beside.
    pub fn state(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for top in [self.repo.path(), self.outside(), self.repo.beside("home")] {
            walk(&top, &mut found);
        }
        found
    }

    /// Returns what of [`Ground::state`] is not one of the user's files, which a plan may change.
    pub fn others(&self) -> BTreeMap<PathBuf, String> {
        let (repo, git) = (self.repo.path(), self.repo.path().join(".git"));
        // An index that was only refreshed is the same.
        let index = git.join("index");
        self.state()
            .into_iter()
            .filter(|(path, _)| {
                *path != index && (!path.starts_with(&repo) || path.starts_with(&git))
            })
            .collect()
    }
}

/// Returns a plan with these actions.
pub fn plan(actions: &str) -> String {
    format!("{HEAD}{actions}")
}

/// Returns a CREATE.
pub fn create(path: &str) -> String {
    format!("### `CREATE`\n- **File Path:** {path}\n- **Description:** d\n```text\nevil\n```\n\n")
}

/// Returns an EDIT that fits `a.txt` and what is named like it.
pub fn edit(path: &str) -> String {
    format!(
        "### `EDIT`\n- **File Path:** {path}\n- **Description:** d\n\n#### `FIND:`\n```text\none\n```\n#### `REPLACE:`\n```text\nevil\n```\n\n"
    )
}

/// Returns a READ.
pub fn read(resource: &str) -> String {
    format!("### `READ`\n- **Resource:** {resource}\n- **Description:** d\n\n")
}

/// Returns an EXECUTE.
pub fn run(command: &str) -> String {
    format!("### `EXECUTE`\n- **Description:** d\n```shell\n{command}\n```\n\n")
}

/// Returns both streams as text.
pub fn words(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Lists what is below a folder, without what teddy may write.
fn walk(folder: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ours = [
            ".git/teddy",
            ".git/refs/teddy",
            ".git/logs/refs/teddy",
            ".git/objects",
            ".git/worktrees",
            "home/.cache",
        ];
        if ours.iter().any(|ours| path.ends_with(ours)) {
            continue;
        }
        let metadata = path.symlink_metadata().unwrap();
        let kind = metadata.file_type();
        let what = if kind.is_symlink() {
            format!("link {}", path.read_link().unwrap().display())
        } else if kind.is_dir() {
            walk(&path, found);
            "folder".to_owned()
        } else if kind.is_fifo() || kind.is_socket() {
            "special".to_owned()
        } else {
            format!(
                "{:o} {}",
                metadata.mode(),
                String::from_utf8_lossy(&std::fs::read(&path).unwrap())
            )
        };
        found.insert(path, what);
    }
}

/// Checks that everything works: another turn, another session, TeDDy's own care, the user's git.
#[track_caller]
pub fn everything_works(ground: &Ground, after: &str) {
    // It is there already where this is not the first time.
    ground.teddy(&["new", "other"]);
    for args in [
        &["recover"][..],
        &["gc", "--idle-days", "30"],
        &["status"],
        &["du"],
        &["switch", "other"],
        &["switch", "s"],
    ] {
        let output = ground.teddy(args);
        assert!(
            output.status.success(),
            "after {after}: teddy {args:?}: {}",
            words(&output)
        );
    }
    for session in ["s", "other"] {
        let name = format!("after-{session}-{}", after.len());
        let again = plan(&(run("test -f a.txt && git status && git log -1") + &create_at(&name)));
        let tried = ground.execute_with(&again, &["-s", session]);
        assert_eq!(tried.code, 0, "after {after} in {session}: {}", tried.words);
        ground.repo.remove(&name);
    }
    git_works(ground);
}

/// Checks that the user's own git works.
#[track_caller]
fn git_works(ground: &Ground) {
    let repo = &ground.repo;
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    repo.git(&["worktree", "list"]);
    repo.git(&["worktree", "prune"]);
    repo.git(&["checkout", "-q", "-B", "elsewhere"]);
    repo.git(&["checkout", "-q", "main"]);
    repo.git(&["branch", "-q", "-D", "elsewhere"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.git(&["log", "--all", "--oneline"]);
}

/// Returns an action that makes a file.
fn create_at(path: &str) -> String {
    create(&format!("[{path}](/{path})"))
}
