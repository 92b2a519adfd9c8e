//! Shared by the benchmarks: generated trees, timing against git, tables.
#![allow(clippy::print_stdout, reason = "a bench reports on stdout")]
#![allow(clippy::unwrap_used, reason = "a bench fails where it must")]
#![allow(dead_code, reason = "each bench uses its part")]

pub mod model;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

// Long enough for any file system to forget removed files.
const SETTLED: Duration = Duration::from_secs(40);

/// Waits until removed files don't slow down the file system. To create a file, ext4 skips recently
/// freed inodes one by one.
pub fn settle() {
    std::thread::sleep(SETTLED);
}

/// A committed tree of generated files, removed on drop.
pub struct Workspace {
    /// Contains the repository in `repo`, and `home`.
    root: tempfile::TempDir,
    /// Number of files.
    pub files: usize,
    /// `true` if all files are in one directory.
    pub is_flat: bool,
    /// `true` if no object is in a pack.
    pub is_loose: bool,
    /// State of the pseudo-random generator.
    seed: u64,
}

impl Workspace {
    /// Creates and commits a tree with about 15 files per directory, six levels deep.
    pub fn new(files: usize) -> Workspace {
        Workspace::make(files, false)
    }

    /// Creates and commits a tree with all files in one directory.
    pub fn flat(files: usize) -> Workspace {
        Workspace::make(files, true)
    }

    fn make(files: usize, is_flat: bool) -> Workspace {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("home")).unwrap();
        std::fs::create_dir(root.path().join("repo")).unwrap();
        let mut workspace = Workspace {
            root,
            files,
            is_flat,
            is_loose: false,
            seed: 1,
        };
        for n in 0..files {
            workspace.rewrite(n);
        }
        workspace.git(&["init", "-q", "-b", "main"]);
        workspace.git(&["config", "gc.auto", "0"]);
        workspace.git(&["config", "maintenance.auto", "false"]);
        workspace.git(&["add", "-A"]);
        workspace.git(&["commit", "-q", "-m", "all"]);
        workspace.git(&["gc", "-q"]);
        // git rereads files that have the same time stamp as the index ("racily clean"). Refresh
        // the index in a later second, so that none has.
        std::thread::sleep(Duration::from_millis(1100));
        workspace.git(&["status", "--short"]);
        workspace
    }

    /// Waits until the files removed by `git gc` don't slow down the file system.
    pub fn settled(self) -> Workspace {
        settle();
        self
    }

    /// Unpacks all objects into a file each.
    pub fn loosened(mut self) -> Workspace {
        let packs = self.beside("packs");
        std::fs::rename(self.path().join(".git/objects/pack"), &packs).unwrap();
        for entry in std::fs::read_dir(&packs).unwrap() {
            let path = entry.unwrap().path();
            if path
                .extension()
                .is_some_and(|extension| extension == "pack")
            {
                let pack = std::fs::File::open(path).unwrap();
                run(self.git_command(&["unpack-objects", "-q"]).stdin(pack));
            }
        }
        self.is_loose = true;
        self
    }

    /// Removes all that TeDDy keeps for the repository.
    pub fn forget_sessions(&self) {
        let dirs = ["teddy", "refs/teddy", "logs/refs/teddy", "worktrees"];
        let kept = dirs.map(|dir| self.path().join(".git").join(dir));
        for dir in kept.into_iter().chain([self.beside("home/.cache")]) {
            if dir.exists() {
                std::fs::remove_dir_all(dir).unwrap();
            }
        }
    }

    /// Returns the top of the worktree.
    pub fn path(&self) -> PathBuf {
        self.root.path().join("repo")
    }

    /// Returns a path next to the worktree.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Returns the path of a file.
    pub fn file(&self, n: usize) -> PathBuf {
        if self.is_flat {
            return self.path().join("d").join(format!("file_{n}.rs"));
        }

        let folder = n / 15;
        let path: PathBuf = (0..5)
            .rev()
            .map(|level| {
                format!(
                    "d{}",
                    (folder / 5_usize.pow(level)) % 5 + 10 * (folder / 5_usize.pow(level + 1))
                )
            })
            .collect();
        self.path().join(path).join(format!("file_{n}.rs"))
    }

    /// Rewrites a file with new content.
    pub fn rewrite(&mut self, n: usize) {
        let path = self.file(n);
        let lines = 8 + self.random() % 120;
        let text: String = (0..lines)
            .map(|line| format!("let value_{line} = {};\n", self.random()))
            .collect();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Rewrites the same `count` files on each call, evenly distributed over the tree.
    pub fn rewrite_some(&mut self, count: usize) {
        for n in 0..count {
            self.rewrite(n * self.files / count);
        }
    }

    fn random(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed >> 16
    }

    /// Copies the session `first` many times, with a different commit each.
    pub fn multiply(&self, sessions: usize) {
        let tip = self.read(&["cat-file", "commit", "refs/teddy/sessions/first"]);
        let (top, message) = tip.split_once("\n\n").unwrap();
        let ids = |key: &str| {
            let lines = top.lines().filter_map(|line| line.split_once(' '));
            let ids = lines.filter(|(name, _)| *name == key).map(|(_, id)| id);
            ids.map(str::to_owned).collect::<Vec<_>>()
        };
        let merges = |id: &String| format!("merge {id}\n");
        let (tree, parents) = (ids("tree"), ids("parent"));
        let others: String = parents[1..].iter().map(merges).collect();

        let sessions = (0..sessions).map(|n| {
            let message = message.replace("Session: first", &format!("Session: s-{n}"));
            format!(
                "commit refs/teddy/sessions/s-{n}\ncommitter TeDDy <teddy@localhost> {} +0000\ndata {}\n{message}\nfrom {}\n{others}M 040000 {} \n\n",
                1_790_000_000 + n,
                message.len(),
                parents[0],
                tree[0],
            )
        });
        let path = self.beside("stream");
        std::fs::write(&path, sessions.collect::<String>()).unwrap();
        let mut import = self.git_command(&["fast-import", "--quiet", "--force"]);
        run(import.stdin(std::fs::File::open(&path).unwrap()));
    }

    /// Returns git's output.
    pub fn read(&self, args: &[&str]) -> String {
        let output = self.git_command(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns a git command in the worktree.
    pub fn git_command(&self, args: &[&str]) -> Command {
        let mut command = apart(&self.path(), &self.beside("home"), "git");
        command.args(args);
        command
    }

    /// Runs git in the worktree.
    pub fn git(&self, args: &[&str]) {
        git_in(&self.path(), &self.root.path().join("home"), args);
    }
}

/// Returns a command that ignores the machine's configuration.
#[expect(clippy::disallowed_methods, reason = "a bench starts programs itself")]
pub fn apart(folder: &Path, home: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .env("HOME", home)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1");
    for name in [
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "TEDDY_SESSION",
        "TEDDY_CONFIG",
    ] {
        command.env_remove(name);
    }
    command
}

/// Runs a command, which must succeed, and discards its output.
pub fn run(command: &mut Command) {
    let done = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let done = done.output().unwrap();
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Runs git with an identity for commits.
pub fn git_in(folder: &Path, home: &Path, args: &[&str]) {
    let mut command = apart(folder, home, "git");
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "Bench")
            .env(format!("GIT_{role}_EMAIL"), "bench@localhost");
    }
    run(command.args(args));
}

/// Returns a non-interactive TeDDy command.
#[expect(clippy::disallowed_methods, reason = "the bench chooses the build")]
pub fn teddy(folder: &Path, home: &Path, args: &[&str]) -> Command {
    let program = std::env::var("TEDDY_BENCH_PROGRAM");
    let program = program.unwrap_or_else(|_| env!("CARGO_BIN_EXE_teddy").to_owned());
    let mut command = apart(folder, home, &program);
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs a command, which must succeed, and returns its peak memory use in bytes.
///
/// Polls `/proc`, because the information disappears when the process ends.
pub fn peak(command: &mut Command) -> u64 {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = quiet.spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        most = most.max(kilobytes.map_or(0, |count| count.parse().unwrap()));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{command:?}");
            return most * 1024;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Returns the duration of a call.
pub fn time(run: impl FnOnce()) -> Duration {
    let start = Instant::now();
    run();
    start.elapsed()
}

/// Returns the median.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Returns the time that the least load disturbed.
pub fn fastest(times: Vec<Duration>) -> Duration {
    times.into_iter().min().unwrap()
}

/// Returns the median times of TeDDy and git, measured alternately to even out load on the machine.
pub fn sample(
    samples: usize,
    mut ours: impl FnMut(),
    mut gits: impl FnMut(),
) -> (Duration, Duration) {
    let (mut our_times, mut git_times) = (Vec::new(), Vec::new());
    for _ in 0..samples {
        our_times.push(time(&mut ours));
        git_times.push(time(&mut gits));
    }
    (median(our_times), median(git_times))
}

/// A row of the table.
pub struct Row {
    /// Name of the case.
    pub name: String,
    /// TeDDy's time.
    pub ours: Duration,
    /// git's time.
    pub gits: Duration,
    /// The required ratio.
    pub at_first: f64,
    /// The desired ratio.
    pub goal: f64,
}

/// Prints the header of the table.
pub fn head(against: &str) {
    println!(
        "{:<40} {:>9} {:>12} {:>6} {:>9} {:>6}",
        "", "ours", against, "ratio", "at first", "goal"
    );
}

impl Row {
    /// Prints the row. Returns `false` if the required ratio is exceeded.
    pub fn print(&self) -> bool {
        let ratio = self.ours.as_secs_f64() / self.gits.as_secs_f64();
        let ms = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        println!(
            "{:<40} {:>9} {:>12} {ratio:>6.2} {:>9.1} {:>6.1}",
            self.name,
            ms(self.ours),
            ms(self.gits),
            self.at_first,
            self.goal
        );
        ratio <= self.at_first
    }
}

/// Returns the sizes from the command line, or the defaults.
pub fn sizes() -> Vec<usize> {
    let given: Vec<usize> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse().ok())
        .collect();
    if given.is_empty() {
        vec![1_000, 10_000, 80_000]
    } else {
        given
    }
}
