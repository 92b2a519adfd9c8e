//! Fixture for hostile plans: a repository with a session, surrounded by canary files.

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::{PATIENCE, TestRepo};

/// Far above the second that a command here takes.
const HEAD: &str = "# Hostile\n- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Developer\n\n## Rationale\n````text\nx\n````\n\n## Action Plan\n\n";

/// A repository with a session, a directory with secrets next to it, and a home directory.
pub struct Ground {
    pub repo: TestRepo,
}

pub struct Tried {
    /// -1 if a signal ended the process.
    pub code: i32,
    /// Stdout as JSON, if it is JSON.
    pub json: Value,
    /// Both streams.
    pub words: String,
}

impl Ground {
    pub fn new() -> Ground {
        let ground = Ground {
            repo: TestRepo::new()
                .file("a.txt", "one\n")
                .file("src/main.rs", "fn main() {}\n")
                .file(".gitignore", "ignored\n"),
        };
        ground.repo.commit("one");
        // `doctor --fix` sets it otherwise, and the settings of the user must stay as they are.
        let settings = ground.repo.path().join(".git/config");
        let mut text = std::fs::read_to_string(&settings).unwrap();
        text.push_str("[log]\n\texcludeDecoration = refs/teddy/\n");
        std::fs::write(settings, text).unwrap();
        std::fs::create_dir(ground.outside()).unwrap();
        std::fs::write(ground.outside().join("canary"), "canary\n").unwrap();
        ground.repo.workflow().new_session("s").done();
        ground
    }

    /// Returns a directory that no plan can reach.
    pub fn outside(&self) -> PathBuf {
        self.repo.beside("outside")
    }

    pub fn teddy(&self, args: &[&str]) -> Output {
        self.teddy_with(args, &[])
    }

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

    /// Runs teddy, which must succeed. Returns stdout.
    pub fn ok(&self, args: &[&str]) -> String {
        let output = self.teddy(args);
        assert!(
            output.status.success(),
            "teddy {args:?}: {}",
            words(&output)
        );
        String::from_utf8(output.stdout).unwrap()
    }

    /// Executes a plan and approves all of it.
    pub fn execute(&self, plan: impl AsRef<[u8]>) -> Tried {
        self.execute_with(plan, &[])
    }

    /// Like [`Ground::execute`], with extra arguments.
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

    /// Captures by path what a plan must not change: the user's files, the repository's own state,
    /// the home directory without caches, and the directory of secrets.
    pub fn state(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for top in [self.repo.path(), self.outside(), self.repo.beside("home")] {
            walk(&top, &mut found);
        }
        found
    }

    /// Returns [`Ground::state`] without the user's files, which a plan can change.
    pub fn others(&self) -> BTreeMap<PathBuf, String> {
        let (repo, git) = (self.repo.path(), self.repo.path().join(".git"));
        // Ignore the index: a command can refresh its stat data.
        let index = git.join("index");
        self.state()
            .into_iter()
            .filter(|(path, _)| {
                *path != index && (!path.starts_with(&repo) || path.starts_with(&git))
            })
            .collect()
    }
}

pub fn plan(actions: &str) -> String {
    format!("{HEAD}{actions}")
}

pub fn create(path: &str) -> String {
    format!("### `CREATE`\n- **File Path:** {path}\n- **Description:** d\n```text\nevil\n```\n\n")
}

/// An EDIT that matches `a.txt` and files with the same content.
pub fn edit(path: &str) -> String {
    format!(
        "### `EDIT`\n- **File Path:** {path}\n- **Description:** d\n\n#### `FIND:`\n```text\none\n```\n#### `REPLACE:`\n```text\nevil\n```\n\n"
    )
}

pub fn read(resource: &str) -> String {
    format!("### `READ`\n- **Resource:** {resource}\n- **Description:** d\n\n")
}

pub fn run(command: &str) -> String {
    format!("### `EXECUTE`\n- **Description:** d\n```shell\n{command}\n```\n\n")
}

/// Returns a script of commands none of which may succeed. [`none_passed`] checks what it printed.
pub fn each_fails(commands: impl IntoIterator<Item = String>) -> String {
    let commands = commands.into_iter();
    let tries = commands
        .map(|command| format!("if ( {command}\n) then echo 'pas''sed:' $n; fi\nn=$((n + 1))\n"));
    format!("n=0\n{}echo 'tried ''all'", tries.collect::<String>())
}

/// Checks the output of a script of [`each_fails`].
#[track_caller]
pub fn none_passed(output: &str) {
    assert!(!output.contains("passed: "), "{output}");
    assert!(output.contains("tried all"), "{output}");
}

pub fn words(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Skips what TeDDy itself writes.
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

/// Checks that TeDDy and the user's git still work: maintenance commands, and a turn in two
/// sessions.
#[track_caller]
pub fn everything_works(ground: &Ground, after: &str) {
    // Fails if an earlier call created the session.
    ground.teddy(&["new", "other"]);
    for args in [
        &["doctor", "--fix"][..],
        &["gc", "--idle-days", "30"],
        &["status"],
        &["gc", "-n"],
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

fn create_at(path: &str) -> String {
    create(&format!("[{path}](/{path})"))
}
