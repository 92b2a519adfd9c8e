//! Temporary repositories, isolated from the configuration of the machine and the user.

// Paths are given because two targets include this file.
#[path = "support/changes.rs"]
pub mod changes;
#[path = "support/container.rs"]
pub mod container;
#[path = "support/fake.rs"]
pub mod fake;
#[path = "support/in_process.rs"]
pub mod in_process;
#[path = "support/in_process_upkeep.rs"]
pub mod in_process_upkeep;
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
#[path = "support/watchdog.rs"]
pub mod watchdog;
#[path = "support/web.rs"]
pub mod web;

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex, Once, OnceLock};
use std::time::Duration;

use signal_hook::consts::SIGINT;
use teddy::host::process;

/// Time limit for a process.
const HANGS: Duration = Duration::from_secs(if crate::WORLDS { 900 } else { 120 });

/// How long a test waits for what must come. Long, because a busy machine takes its time.
pub const PATIENCE: Duration = Duration::from_secs(100);

/// Stands above the text of stderr in [`Output::shown`].
pub const STDERR: &str = "--- stderr\n";

pub struct TestRepo {
    /// Contains `repo`, `home` and whatever a test puts next to them.
    folder: tempfile::TempDir,
}

/// Returns all cases in `worlds`, and every `step`th one in `it`, from one that `first` chooses.
pub fn sample<T>(
    cases: impl IntoIterator<Item = T>,
    step: usize,
    first: usize,
) -> impl Iterator<Item = T> {
    let step = if crate::WORLDS { 1 } else { step };
    cases.into_iter().skip(first % step).step_by(step)
}

/// Returns the seeds of a random test: `few` in `it`, `many` in `worlds`. `TEDDY_SEEDS` sets their number, and
/// `TEDDY_SEED` the first one.
pub fn seeds(few: u64, many: u64) -> std::ops::Range<u64> {
    let number = |name| teddy::host::env::var(name).and_then(|text| text.parse().ok());
    let first = number("TEDDY_SEED").unwrap_or(1);
    let count = number("TEDDY_SEEDS").unwrap_or(if crate::WORLDS { many } else { few });
    first..first + count
}

/// Tests of disks, and of what a command in a sandbox reaches beside its repository: it has a
/// `/dev/shm` of its own.
const ON_DISK: &[&str] = &[
    "agents::acp",
    "agents::lanes",
    "agents::offered",
    "agents::race",
    "agents::resumed",
    "agents::transcript",
    "agents::turns",
    "crash::disk",
    "crash::flushes",
    "first_change",
    "hostile::bombs",
    "hostile::builds",
    "hostile::confined",
    "hostile::disk",
    "hostile::escapes",
    "hostile::namespaces",
    "hostile::objects",
    "hostile::other_worktrees",
    "hostile::private",
    "hostile::processes",
    "hostile::sandbox",
    "hostile::unreachable",
    "house::",
    "installing::",
    "packages::",
    "power::",
    "recording::",
    "worktree::container",
    "worktree::dependencies",
    "worktree::every_run",
    "worktree::kernels",
    "worktree::overlay",
    "worktree::same_view",
    "worktree::sandbox",
    "worktree::shared",
    "worktree::shell",
    "worktree::walkthroughs",
];

/// Returns a command with the path of a program. Given a name and a `PATH` of its own, the standard
/// library does not use `posix_spawn`: it forks, and copies the page tables of all tests. That was a
/// fifth of the time of the suite.
#[expect(clippy::disallowed_methods, reason = "a test starts programs itself")]
pub fn start(program: impl AsRef<OsStr>) -> Command {
    let program = program.as_ref();
    let mut command = Command::new(
        process::find(program)
            .as_deref()
            .unwrap_or(program.as_ref()),
    );
    command.arg0(program);
    command
}

/// Returns where the repositories of this test are made. In memory, a test takes two thirds of the CPU
/// time, and does not wait for what other programs write. `TMPDIR` chooses another place.
#[expect(clippy::disallowed_methods, reason = "tests pin the environment")]
fn repositories() -> PathBuf {
    static MEMORY: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let memory = PathBuf::from("/dev/shm");
        (std::env::var_os("TMPDIR").is_none() && serves(&memory)).then_some(memory)
    });
    let thread = std::thread::current();
    let is_on_disk = |test: &str| ON_DISK.iter().any(|part| test.starts_with(part));
    let memory = MEMORY
        .clone()
        .filter(|_| !thread.name().is_none_or(is_on_disk));
    memory.unwrap_or_else(std::env::temp_dir)
}

/// Ends this process at an interrupt, even if it was started to ignore them, as in the background of a
/// script. Programs inherit that, and tests interrupt them.
fn heed_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if ignored.is_some_and(|mask| mask & (1 << (SIGINT - 1)) != 0) {
            let always = Arc::new(AtomicBool::new(true));
            signal_hook::flag::register_conditional_shutdown(SIGINT, 130, always).unwrap();
        }
    });
}

/// Whether a directory does for repositories: programs run in it, it has 2 GiB, and files have
/// extended attributes, which Linux added to memory in 6.6.
fn serves(dir: &Path) -> bool {
    use rustix::fs::{StatVfsMountFlags, XattrFlags, fsetxattr, statvfs};
    let (Ok(system), Ok(file)) = (statvfs(dir), tempfile::tempfile_in(dir)) else {
        return false;
    };
    let runs = !system.f_flag.contains(StatVfsMountFlags::NOEXEC);
    let has_space = system.f_bavail.saturating_mul(system.f_frsize) >= 2 << 30;
    runs && has_space && fsetxattr(&file, "user.test", b"x", XattrFlags::empty()).is_ok()
}

impl TestRepo {
    pub fn new() -> TestRepo {
        TestRepo::with(&[])
    }

    /// `init` are extra arguments for `git init`.
    pub fn with(init: &[&str]) -> TestRepo {
        TestRepo::in_dir(tempfile::tempdir_in(repositories()).unwrap(), init)
    }

    /// Like [`TestRepo::with`], below `dir`, which can be on another file system.
    pub fn below(dir: &Path, init: &[&str]) -> TestRepo {
        TestRepo::in_dir(tempfile::tempdir_in(dir).unwrap(), init)
    }

    /// Returns a repository whose neighbors a command in the sandbox can read: it has a `/dev/shm` of
    /// its own.
    pub fn on_disk() -> TestRepo {
        TestRepo::below(&std::env::temp_dir(), &[])
    }

    fn in_dir(dir: tempfile::TempDir, init: &[&str]) -> TestRepo {
        static PLAIN: OnceLock<Template> = OnceLock::new();
        watchdog::watch();
        heed_interrupts();
        let repo = TestRepo { folder: dir };
        std::fs::create_dir(repo.folder.path().join("home")).unwrap();
        std::fs::create_dir(repo.path()).unwrap();
        if init.is_empty() {
            PLAIN.get_or_init(Template::make).write(&repo.path());
        } else {
            repo.init(init);
        }
        repo
    }

    fn init(&self, more: &[&str]) {
        self.git(&[&["init", "-q", "-b", "main"], more].concat());
        // The files of most tests would all be in the first input.
        self.git(&["config", "teddy.context.wholeProjectTokens", "0"]);
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("repo")
    }

    /// Returns a path next to the worktree.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Creates missing parent directories.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> TestRepo {
        self.write(path, content);
        self
    }

    /// Creates missing parent directories.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        self.put(path, content);
    }

    /// Like [`TestRepo::write`] for file names that are not UTF-8.
    pub fn put(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &TestRepo {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path().join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn remove(&self, path: &str) {
        let path = self.path().join(path);
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Returns stdout without the final newline.
    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.path(), args)
    }

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

    pub fn commit(&self, message: &str) -> String {
        // Automatic maintenance would start two more processes per commit.
        let quiet = ["-c", "maintenance.auto=false", "-c", "gc.auto=0"];
        self.git(&["add", "-A"]);
        self.git(
            &[
                &quiet[..],
                &["commit", "-q", "--allow-empty", "-m", message],
            ]
            .concat(),
        );
        let branch = std::fs::read_to_string(self.path().join(".git/refs/heads/main"));
        match branch.map(|id| id.trim().to_owned()) {
            Ok(id) if self.is_on_main() => id,
            _ => self.git(&["rev-parse", "HEAD"]),
        }
    }

    fn is_on_main(&self) -> bool {
        let head = std::fs::read_to_string(self.path().join(".git/HEAD"));
        head.is_ok_and(|head| head == "ref: refs/heads/main\n")
    }

    /// Returns the tree of all files that are not ignored. Reads every file again instead of
    /// trusting the user's index.
    pub fn tree(&self) -> String {
        self.tree_in(&self.path())
    }

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
        // Without an index, git would not know that an empty directory is a submodule. Fails on an
        // unborn branch, which does no harm.
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

    /// Clears the environment, so that no setting of the machine reaches the program.
    #[expect(clippy::disallowed_methods, reason = "tests pin the environment")]
    pub fn command(&self, program: &str) -> Command {
        let mut command = start(program);
        command
            .stdin(Stdio::null())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.beside("home"));
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            // Neither git nor TeDDy flushes. Tests of power cuts flush their own commits.
            .env("GIT_TEST_FSYNC", if crate::WORLDS { "1" } else { "0" });
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "Test")
                .env(format!("GIT_{role}_EMAIL"), "test@localhost");
            command.env(format!("GIT_{role}_DATE"), "2026-01-02T03:04:05+00:00");
        }
        // Set to run the tests with another ref format or hash.
        for format in ["GIT_DEFAULT_REF_FORMAT", "GIT_DEFAULT_HASH"] {
            std::env::var_os(format).map(|value| command.env(format, value));
        }
        command
    }

    pub fn open(&self) -> teddy::git::repository::Repository {
        teddy::git::repository::Repository::discover(&self.path(), None).unwrap()
    }

    /// Records one more answer for the model.
    pub fn reply(&self, answer: &str) -> &TestRepo {
        let answers = self.beside("answers");
        std::fs::create_dir_all(&answers).unwrap();
        let number = std::fs::read_dir(&answers).unwrap().count() + 1;
        std::fs::write(answers.join(format!("{number:03}.md")), answer).unwrap();
        // The replay model repeats a single file forever, so there are always at least two.
        std::fs::write(answers.join("999.md"), "no more answers").unwrap();
        self.configure(&format!("model: replay:{}\n", answers.display()))
    }

    pub fn configure(&self, yaml: &str) -> &TestRepo {
        std::fs::write(self.beside("teddy.yaml"), yaml).unwrap();
        self
    }

    pub fn teddy(&self, args: &[&str]) -> Output {
        self.teddy_in(&self.path(), args)
    }

    pub fn teddy_in(&self, folder: &Path, args: &[&str]) -> Output {
        Output::of(
            self.teddy_command(args)
                .current_dir(folder)
                .stdin(Stdio::null()),
        )
    }

    /// `input` becomes standard input.
    pub fn teddy_reads(&self, args: &[&str], input: impl AsRef<[u8]>) -> Output {
        self.reads(self.teddy_command(args), input)
    }

    /// `input` becomes standard input.
    pub fn reads(&self, mut command: Command, input: impl AsRef<[u8]>) -> Output {
        command
            .current_dir(self.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_ref()).unwrap();
        drop(stdin);
        Output::wait(child, &command)
    }

    /// The clock is fixed and all configuration and cache directories are the test's.
    pub fn teddy_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_teddy"));
        command
            .env("XDG_CONFIG_HOME", self.beside("home/config"))
            .env("XDG_CACHE_HOME", self.beside("home/cache"));
        command
            .env("TEDDY_CONFIG", self.beside("teddy.yaml"))
            .env("TEDDY_NOW", "2026-01-02T03:04:05+00:00")
            // Don't find models that are installed on the machine.
            .env("TEDDY_DISCOVERY", "off");
        command.args(args);
        command
    }

    /// Replaces what differs between runs: paths, ids, ports, times and token counts.
    pub fn plain(&self, text: &str) -> String {
        in_process::filtered(self, text)
    }

    /// Runs teddy and returns everything that the user sees, as [`Output::shown`] does.
    pub fn printed(&self, args: &[&str]) -> String {
        self.teddy(args).shown(self)
    }

    pub fn json(&self, args: &[&str], code: i32) -> serde_json::Value {
        let out = self.teddy(&[&["--json"], args].concat());
        assert_eq!(out.code, code, "teddy {args:?}: {out}");
        serde_json::from_str(&out.stdout)
            .unwrap_or_else(|error| panic!("teddy {args:?}: {error}: {out}"))
    }

    /// Runs teddy, which must succeed. Returns stdout.
    pub fn done(&self, args: &[&str]) -> String {
        let out = self.teddy(args);
        assert_eq!(out.code, 0, "teddy {args:?}: {out}");
        out.stdout
    }

    /// Executes a plan, which must succeed.
    pub fn run_plan(&self, plan: &str) {
        let out = self.teddy_reads(&["execute", "-", "-y"], plan);
        assert_eq!(out.code, 0, "{out}");
    }

    /// Captures what commands must not change: the user's refs, HEAD, stash, settings, hooks and
    /// index.
    pub fn users(&self) -> Users {
        let refs = self.git(&[
            "for-each-ref",
            "--format=%(refname) %(objectname) %(symref)",
        ]);
        let refs = users_refs(&refs);
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

/// Output of `git init`, cached so that only the first repository of a run starts a process.
struct Template {
    directories: Vec<PathBuf>,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Template {
    fn make() -> Template {
        let repo = TestRepo {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(repo.folder.path().join("home")).unwrap();
        std::fs::create_dir(repo.path()).unwrap();
        repo.init(&[]);
        let mut template = Template {
            directories: Vec::new(),
            files: Vec::new(),
        };
        template.read(&repo.path(), Path::new(".git"));
        template
    }

    fn read(&mut self, top: &Path, dir: &Path) {
        self.directories.push(dir.to_owned());
        for entry in std::fs::read_dir(top.join(dir)).unwrap() {
            let path = dir.join(entry.unwrap().file_name());
            if top.join(&path).is_dir() {
                self.read(top, &path);
            } else if path.extension().is_none_or(|ending| ending != "sample") {
                let content = std::fs::read(top.join(&path)).unwrap();
                self.files.push((path, content));
            }
        }
    }

    fn write(&self, top: &Path) {
        for dir in &self.directories {
            std::fs::create_dir(top.join(dir)).unwrap();
        }
        for (path, content) in &self.files {
            std::fs::write(top.join(path), content).unwrap();
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct Users {
    /// Without `refs/teddy`.
    refs: String,
    parts: Vec<(String, Vec<u8>)>,
    hooks: Vec<PathBuf>,
}

#[derive(Debug)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// -1 if a signal ended the process.
    pub code: i32,
}

impl Output {
    pub fn of(command: &mut Command) -> Output {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Output::wait(command.spawn().unwrap(), command)
    }

    /// Waits for a process. Kills it after `HANGS` and panics with its command line.
    pub fn wait(child: std::process::Child, command: &Command) -> Output {
        Output::wait_for(child, command, HANGS)
    }

    /// Like [`Output::wait`], with another limit.
    pub fn wait_for(child: std::process::Child, command: &Command, limit: Duration) -> Output {
        let pid = rustix::process::Pid::from_child(&child);
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(child.wait_with_output()));
        match receiver.recv_timeout(limit) {
            Ok(output) => Output::from(output.unwrap()),
            Err(_) => {
                // The process is not reaped yet, so its id cannot belong to another one.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                panic!("hangs for {limit:?}: {command:?}");
            }
        }
    }

    /// Returns stdout, stderr below a line that marks it, and the exit code, as one text that
    /// [`TestRepo::plain`] made comparable.
    pub fn shown(&self, repo: &TestRepo) -> String {
        let mark = if self.stderr.is_empty() { "" } else { STDERR };
        repo.plain(&format!(
            "{}{mark}{}exit code {}\n",
            self.stdout, self.stderr, self.code
        ))
    }

    /// Asserts the exit code and that each of `words` is on stdout or stderr.
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

/// Removes the lines of TeDDy's refs from a list. `for-each-ref --exclude` needs git 2.42.
pub fn users_refs(list: &str) -> String {
    let lines = list.lines().filter(|line| !line.starts_with("refs/teddy/"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads what the machine lacks, and prints it on one line once the tests have ended.
const REPORT: &str = r#"sort -u | {
    list=
    while IFS= read -r one; do list="${list:+$list; }$one"; done
    echo "skipped: $list" >&2
}"#;

/// Starts a process that names what was skipped after its input has ended.
#[expect(clippy::disallowed_methods, reason = "a test starts it itself")]
pub fn skip_reporter(stderr: Stdio) -> std::process::Child {
    let mut command = Command::new("sh");
    command.args(["-c", REPORT]).stdin(Stdio::piped());
    command.stderr(stderr).spawn().unwrap()
}

/// Notes why a test cannot run on this machine.
#[expect(
    clippy::zombie_processes,
    reason = "the reporter ends after this process"
)]
pub fn skipped(why: &str) {
    // The harness hides what a test that passes prints.
    static REPORTER: LazyLock<Mutex<std::process::ChildStdin>> = LazyLock::new(|| {
        let mut child = skip_reporter(Stdio::inherit());
        Mutex::new(child.stdin.take().unwrap())
    });
    writeln!(REPORTER.lock().unwrap(), "{why}").unwrap();
}

/// Returns all paths below a directory except TeDDy's, sorted. Directories end in `/`.
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
