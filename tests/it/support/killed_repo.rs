//! The rig of the crash tests: a repository, a user who saves, and the one verdict about all
//! guarantees.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use teddy::git::repository::Repository;

/// How many files are in a folder of the rig.
const PER_FOLDER: usize = 20;
/// The length of every file, so that one write call saves it.
const LENGTH: usize = 2048;

/// A scratch repository, a home, and the program under test.
pub struct Rig {
    /// Holds both.
    folder: tempfile::TempDir,
    /// The program.
    pub teddy: PathBuf,
}

/// Returns the content of a file: the tag, repeated, so that a torn file is recognised.
pub fn body(tag: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(LENGTH + 64);
    while bytes.len() < LENGTH {
        bytes.extend_from_slice(format!("{tag}\n").as_bytes());
    }
    bytes.truncate(LENGTH - 1);
    bytes.push(b'\n');
    bytes
}

/// Returns the tag of a file that is whole.
pub fn tag_of(bytes: &[u8]) -> Option<String> {
    let tag = str::from_utf8(bytes).ok()?.split('\n').next()?.to_owned();
    (body(&tag) == bytes).then_some(tag)
}

impl Rig {
    /// Makes a repository with so many files on branch `main`, and session `storm`.
    pub fn new(teddy: &Path, files: usize) -> Rig {
        let rig = Rig {
            folder: tempfile::tempdir().expect("a temporary folder"),
            teddy: teddy.to_owned(),
        };
        for name in ["home", "repo", "other"] {
            std::fs::create_dir(rig.beside(name)).expect("a new folder");
        }
        rig.git(&["init", "-q", "-b", "main"]);
        for number in 0..files {
            rig.write(&Rig::file(number), &body(&format!("start {number}")));
        }
        rig.write(".gitignore", b"*.ignored\n");
        rig.write("kept.ignored", &body("ignored"));
        rig.git(&["add", "-A"]);
        rig.git(&["commit", "-q", "-m", "Start"]);
        rig
    }

    /// Leaves everything on disk and returns where.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    /// Returns the path of a numbered file.
    pub fn file(number: usize) -> String {
        format!(
            "d{:02}/f{:02}.txt",
            number / PER_FOLDER,
            number % PER_FOLDER
        )
    }

    /// Returns the top of the worktree.
    pub fn path(&self) -> PathBuf {
        self.beside("repo")
    }

    /// Returns a path beside the worktree.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder
            .path()
            .canonicalize()
            .expect("the folder is there")
            .join(name)
    }

    /// Writes a file and its folders.
    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a new folder");
        std::fs::write(&path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    /// Returns a command with an environment that nothing of the machine reaches.
    #[expect(clippy::disallowed_methods, reason = "a test starts programs itself")]
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
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
        // In which format repositories are made, if it is not git's own choice.
        for format in ["GIT_DEFAULT_REF_FORMAT", "GIT_DEFAULT_HASH"] {
            std::env::var_os(format).map(|value| command.env(format, value));
        }
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// Returns the program with arguments.
    pub fn teddy(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.teddy);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.teddy(args).output().expect("the program starts")
    }

    /// Runs the program, which must end well; returns what it printed.
    pub fn must(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "teddy {args:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Runs git and returns what it printed.
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.command("git").args(args).output().expect("git starts");
        assert!(output.status.success(), "git {args:?}: {}", said(&output));
        String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned()
    }

    /// Writes a plan beside the repository and returns its path: it overwrites files, makes one,
    /// and may run a command.
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

    /// Returns what of the repository is the user's alone.
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
        let refs = self.git(&[
            "for-each-ref",
            "--format=%(refname) %(objectname)",
            "--exclude=refs/teddy",
        ]);
        state.insert("refs".to_owned(), refs.into_bytes());
        state
    }
}

/// Returns what a program said.
pub fn said(output: &Output) -> String {
    format!(
        "{}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// A user: saves files, and remembers what was saved.
#[derive(Default)]
pub struct Saver {
    /// The saves that the user has not overwritten: path and tag.
    pub saved: BTreeSet<(String, String)>,
    /// How many saves there were.
    pub count: usize,
}

impl Saver {
    /// Saves a file, in place or through another file as editors do.
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

/// Returns every file of the workspace that is torn.
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

/// Returns the saves that are neither at their path, nor reachable from a ref, nor in `teddy/undo`.
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
    // What was moved aside when a publication was killed, until a recovery puts it back or into
    // `undo`.
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

/// Calls something with every file below a folder.
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

/// Returns what `git fsck` finds, unreachable objects left out.
pub fn fsck(rig: &Rig) -> Vec<String> {
    // The commit-graph of a `gc` names drafts that are over and pruned since, as it does with
    // branches that are deleted.
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

/// The verdict about G1 to G9 after a recovery: everything that is not as promised.
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
    let output = rig.run(&["log"]);
    if !output.status.success() {
        wrong.push(format!("G8 the session cannot be read: {}", said(&output)));
    }
    wrong
}
