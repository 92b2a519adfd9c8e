//! Fixture of the crash tests: a repository, a user who saves files, and checks of all guarantees
//! after a crash.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use teddy::git::repository::Repository;

const PER_FOLDER: usize = 20;
/// Length of every file: small enough that one `write` call saves it.
const LENGTH: usize = 2048;

/// A scratch repository, a home directory and the program under test.
pub struct Rig {
    folder: tempfile::TempDir,
    pub teddy: PathBuf,
}

/// Repeats the tag up to `LENGTH`, so that [`tag_of`] detects a torn file.
pub fn body(tag: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LENGTH + 64);
    while bytes.len() < LENGTH {
        bytes.extend_from_slice(format!("{tag}\n").as_bytes());
    }
    bytes.truncate(LENGTH - 1);
    bytes.push(b'\n');
    bytes
}

pub fn tag_of(bytes: &[u8]) -> Option<String> {
    let tag = str::from_utf8(bytes).ok()?.split('\n').next()?.to_owned();
    (body(&tag) == bytes).then_some(tag)
}

impl Rig {
    /// Creates `files` files on branch `main`, and the session `storm`.
    pub fn new(teddy: &Path, files: usize) -> Rig {
        let rig = Rig {
            folder: tempfile::tempdir().expect("a temporary folder"),
            teddy: teddy.to_owned(),
        };
        for name in ["home", "repo", "other"] {
            std::fs::create_dir(rig.beside(name)).expect("a new folder");
        }
        rig.git(&["init", "-q", "-b", "main"]);
        // `doctor --fix` sets it otherwise, and checks compare the configuration.
        rig.git(&["config", "log.excludeDecoration", "refs/teddy/"]);
        for number in 0..files {
            rig.write(&Rig::file(number), &body(&format!("start {number}")));
        }
        rig.write(".gitignore", b"*.ignored\n");
        rig.write("kept.ignored", &body("ignored"));
        rig.git(&["add", "-A"]);
        rig.git(&["commit", "-q", "-m", "Start"]);
        rig
    }

    /// Leaves everything on disk and returns the path.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    pub fn file(number: usize) -> String {
        format!(
            "d{:02}/f{:02}.txt",
            number / PER_FOLDER,
            number % PER_FOLDER
        )
    }

    pub fn path(&self) -> PathBuf {
        self.beside("repo")
    }

    /// Returns a path next to the worktree.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .expect("the folder is there")
            .join(name)
    }

    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a new folder");
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Clears the environment, so that no setting of the machine reaches the program.
    #[expect(clippy::disallowed_methods, reason = "tests pin the environment")]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = super::start(program);
        command
            .env_clear()
            .env("PATH", std::env::var("PATH").expect("a path"))
            .env("HOME", self.beside("home"));
        command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("TEDDY_LOCK_TIMEOUT", "20");
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "Test")
                .env(format!("GIT_{role}_EMAIL"), "test@localhost");
        }
        // Set to run the tests with another ref format or hash.
        for format in ["GIT_DEFAULT_REF_FORMAT", "GIT_DEFAULT_HASH"] {
            std::env::var_os(format).map(|value| command.env(format, value));
        }
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    pub fn teddy(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.teddy);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.teddy(args).output().expect("the program starts")
    }

    /// Runs the program, which must succeed. Returns stdout.
    pub fn must(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "teddy {args:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    pub fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().expect("git starts");
        assert!(output.status.success(), "git {args:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Writes a plan that overwrites `files`, creates one and runs `command`, if any. Returns its
    /// path.
    pub fn plan(&self, tag: &str, files: &[String], command: Option<&str>) -> String {
        let mut text = format!(
            "# Turn {tag}\n- **Status:** Green 🟢\n- **Plan Type:** Implementation\n- **Agent:** Pathfinder\n\n"
        );
        text.push_str("## Rationale\n````text\n### 1. Synthesis\nA test.\n\n### 2. Justification\nA test.\n\n### 3. Expected Outcome\nFiles.\n\n### 4. State Dashboard\n- [ ] all\n````\n\n## Action Plan\n");
        for path in files {
            let body = String::from_utf8(body(&format!("turn {tag} {path}"))).expect("text");
            text.push_str(&format!("\n### `CREATE`\n- **File Path:** [{path}](/{path})\n- **Description:** Write.\n- **Overwrite:** true\n````text\n{body}````\n"));
        }
        if let Some(command) = command {
            text.push_str(&format!(
                "\n### `EXECUTE`\n- **Description:** Run.\n- **Expected Outcome:** files\n````shell\n{command}\n````\n"
            ));
        }
        let path = self.beside("plan.md");
        std::fs::write(&path, text).expect("a writable folder");
        path.to_str().expect("text").to_owned()
    }

    /// Captures what TeDDy must not change in the repository.
    pub fn users_state(&self) -> BTreeMap<String, Vec<u8>> {
        let git = self.path().join(".git");
        let mut state = BTreeMap::new();
        for name in ["HEAD", "index", "config", "description"] {
            state.insert(
                name.to_owned(),
                std::fs::read(git.join(name)).unwrap_or_default(),
            );
        }
        for entry in std::fs::read_dir(git.join("hooks"))
            .into_iter()
            .flatten()
            .flatten()
        {
            state.insert(
                format!("hooks/{}", entry.file_name().display()),
                std::fs::read(entry.path()).unwrap_or_default(),
            );
        }
        let refs = self.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
        let refs = super::users_refs(&refs);
        state.insert("refs".to_owned(), refs.into_bytes());
        state
    }
}

pub fn said(output: &Output) -> String {
    format!(
        "{}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A user who saves files and remembers what must not get lost.
#[derive(Default)]
pub struct Saver {
    /// Saves that the user has not overwritten: path and tag.
    pub saved: BTreeSet<(String, String)>,
    pub count: usize,
}

impl Saver {
    /// Saves in place, or by a rename as many editors do.
    pub fn save(&mut self, rig: &Rig, path: &str, in_place: bool) {
        self.count += 1;
        let tag = format!("user {} {path}", self.count);
        let target = rig.path().join(path);
        if let Some(before) = std::fs::read(&target).ok().and_then(|bytes| tag_of(&bytes)) {
            self.saved.remove(&(path.to_owned(), before));
        }
        std::fs::create_dir_all(target.parent().expect("a file has a folder"))
            .expect("a new folder");
        if in_place && target.exists() {
            let file = std::fs::OpenOptions::new().write(true).open(&target);
            file.and_then(|mut file| file.write_all(&body(&tag)))
                .unwrap_or_else(|error| panic!("{path}: {error}"));
        } else {
            let beside = rig.beside("saving");
            std::fs::write(&beside, body(&tag)).expect("a writable folder");
            std::fs::rename(&beside, &target).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
        self.saved.insert((path.to_owned(), tag));
    }
}

/// Returns every torn file of the worktree.
pub fn torn(rig: &Rig) -> Vec<String> {
    let mut torn = Vec::new();
    let mut folders = vec![rig.path()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                if !path.ends_with(".git") && !path.ends_with(".teddy") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ending| ending == "txt")
                && tag_of(&std::fs::read(&path).unwrap_or_default()).is_none()
            {
                torn.push(path.display().to_string());
            }
        }
    }
    torn
}

/// Returns saves that are neither at their path, nor reachable from a ref, nor in `teddy/undo`.
pub fn lost(rig: &Rig, saver: &Saver) -> Vec<String> {
    let at_its_path = |path: &str, tag: &str| {
        std::fs::read(rig.path().join(path)).is_ok_and(|bytes| bytes == body(tag))
    };
    let gone: Vec<_> = saver
        .saved
        .iter()
        .filter(|(path, tag)| !at_its_path(path, tag))
        .collect();
    if gone.is_empty() {
        return Vec::new();
    }
    let objects = rig.git(&["rev-list", "--objects", "--all"]);
    let reachable: BTreeSet<&str> = objects
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    let mut kept = Vec::new();
    each_file(&rig.path().join(".git/teddy/undo"), &mut |path| {
        kept.push(std::fs::read(path).unwrap_or_default())
    });
    // A killed publication leaves displaced files under these names until recovery restores them or
    // moves them to `undo`.
    each_file(&rig.path(), &mut |path| {
        if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(".teddy-tmp-"))
        {
            kept.push(std::fs::read(path).unwrap_or_default());
        }
    });
    let repository = Repository::open(&rig.path()).expect("a repository");
    let is_lost = |tag: &str| {
        let bytes = body(tag);
        let id = repository.blob_id(&bytes).expect("an id").to_string();
        !reachable.contains(id.as_str()) && !kept.contains(&bytes)
    };
    gone.into_iter()
        .filter(|(_, tag)| is_lost(tag))
        .map(|(path, tag)| format!("{path}: `{tag}`"))
        .collect()
}

pub fn each_file(folder: &Path, call: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            each_file(&path, call)
        } else {
            call(&path)
        }
    }
}

/// Runs `git fsck` without reporting unreachable objects.
pub fn fsck(rig: &Rig) -> Vec<String> {
    // The commit-graph of `git gc` still lists drafts that were pruned since, as it does with
    // commits of deleted branches.
    let plain = [
        "-c",
        "core.commitGraph=false",
        "fsck",
        "--strict",
        "--no-dangling",
        "--no-progress",
    ];
    let output = rig.command("git").args(plain).output().expect("git starts");
    let text = said(&output);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if output.status.success() {
        lines.retain(|line| {
            line.contains("error")
                || line.contains("broken")
                || line.contains("missing")
                || line.contains("warning")
        });
    }
    lines
}

/// Checks the guarantees G1 to G9 after a recovery. Returns every violation.
pub fn verdict(rig: &Rig, saver: &Saver, users_state: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let mut wrong = Vec::new();
    wrong.extend(
        lost(rig, saver)
            .into_iter()
            .map(|what| format!("G1 lost: {what}")),
    );
    wrong.extend(torn(rig).into_iter().map(|what| format!("G2 torn: {what}")));
    wrong.extend(fsck(rig).into_iter().map(|what| format!("G6 fsck: {what}")));
    let now = rig.users_state();
    for (part, bytes) in users_state {
        if now.get(part) != Some(bytes) {
            wrong.push(format!("G7 the user's `{part}` was changed"));
        }
    }
    let git = rig.path().join(".git");
    if git.join("teddy/pending.json").exists() {
        wrong.push("G3 an intent survived the recovery".to_owned());
    }
    each_file(&git.join("refs"), &mut |path| {
        if path.extension().is_some_and(|ending| ending == "lock") {
            wrong.push(format!("G8 the lock `{}` survived", path.display()));
        }
    });
    for entry in rig
        .git(&[
            "--no-optional-locks",
            "status",
            "--porcelain",
            "--ignored",
            "-uall",
        ])
        .lines()
        .filter(|line| line.contains(".teddy-tmp-"))
    {
        wrong.push(format!("G3 a temporary file survived: {entry}"));
    }
    if std::fs::read(rig.path().join("kept.ignored")).ok() != Some(body("ignored")) {
        wrong.push("G1 an ignored file was changed".to_owned());
    }
    let format = "--format=%(objectname) %(refname:lstrip=3)";
    let sessions = rig.git(&["for-each-ref", format, "refs/teddy/sessions"]);
    for (id, name) in sessions.lines().filter_map(|line| line.split_once(' ')) {
        let own = std::fs::read_to_string(git.join("teddy/tips").join(name)).unwrap_or_default();
        // The line of a session with other users' turns names one of them, too.
        if !own.lines().any(|line| line == id) {
            wrong.push(format!("G3 `{name}` is no longer the user's: {own}"));
        }
    }
    let output = rig.run(&["log"]);
    if !output.status.success() {
        wrong.push(format!("G8 the session cannot be read: {}", said(&output)));
    }
    wrong
}
