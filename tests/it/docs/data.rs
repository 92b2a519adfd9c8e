//! `docs/data.md`: lists exactly what a session sends and stores, and its deletion commands work.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::fake::{Fake, stream};
use crate::plans::{create, edit, execute, plan, with_memos};
use crate::support::{Output, TestRepo};

fn page() -> String {
    std::fs::read_to_string(format!("{}/docs/data.md", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// Returns the section below a heading.
fn part(heading: &str) -> String {
    let page = page();
    let (_, below) = page.split_once(&format!("\n{heading}\n")).unwrap();
    below.split("\n#").next().unwrap().to_owned()
}

/// Returns the places in the first column of the table below a heading.
fn places(heading: &str) -> BTreeSet<String> {
    let part = part(heading);
    let rows = part.lines().filter(|line| line.starts_with("| `"));
    let first = rows.map(|row| row.split(" | ").next().unwrap());
    first
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect()
}

/// Returns the lines of code below a heading.
fn code(heading: &str) -> Vec<String> {
    let part = part(heading);
    let blocks = part.split("```sh\n").skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// Adds the paths of all files and empty directories, relative to `top`.
fn collect(top: &Path, folder: &Path, found: &mut BTreeSet<String>) {
    let entries: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
    if entries.is_empty() && folder != top {
        found.insert(format!(
            "{}/",
            folder.strip_prefix(top).unwrap().to_str().unwrap()
        ));
    }
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            collect(top, &path, found);
        } else {
            found.insert(path.strip_prefix(top).unwrap().to_str().unwrap().to_owned());
        }
    }
}

fn below(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if folder.is_dir() {
        collect(folder, folder, &mut found);
    }
    found
}

/// Returns the paths that are neither a place nor inside of one.
fn outside<'a>(found: &'a BTreeSet<String>, places: &BTreeSet<String>) -> Vec<&'a String> {
    let is_covered = |path: &&String| {
        !places
            .iter()
            .any(|place| *path == place || (place.ends_with('/') && path.starts_with(place)))
    };
    found.iter().filter(is_covered).collect()
}

/// A project with a session that has used most features.
struct Used {
    repo: TestRepo,
    server: Fake,
}

impl Used {
    fn new() -> Used {
        let repo = TestRepo::new()
            .file("a.txt", "one\n")
            .file(".gitignore", "made\n");
        repo.commit("init");
        std::fs::create_dir(repo.beside("tmp")).unwrap();
        let actions = [
            edit("a.txt", "one", "1"),
            execute("echo x > made; echo ran"),
        ];
        let server = Fake::answering(&[
            stream(
                &with_memos("Change a", "[+] One is 1.", &actions),
                "stop",
                (10, 10),
            ),
            stream(&plan("Make b", &[create("b.txt", "b\n")]), "stop", (10, 10)),
        ]);
        repo.configure(&server.config(""));
        let used = Used { repo, server };
        used.work();
        used
    }

    /// Runs teddy with its own temporary directory and checks the exit code.
    fn teddy(&self, args: &[&str], code: i32) -> Output {
        let mut command = self.repo.teddy_command(args);
        command
            .current_dir(self.repo.path())
            .stdin(std::process::Stdio::null())
            .env("TMPDIR", self.repo.beside("tmp"))
            .env("FAKE_KEY", "hunter2-hunter2");
        let out = Output::of(&mut command);
        assert_eq!(out.code, code, "{args:?}: {out}");
        out
    }

    /// Runs typical commands of a user.
    fn work(&self) {
        for args in [
            &["init"][..],
            &["trust", "-y"],
            &["new", "demo"],
            &["context", "add", "a.txt"],
            &["plan", "-m", "change a"],
            &["execute", "-y"],
            &["plan", "-m", "make b"],
            &["execute", "-y"],
            &["log"],
            &["undo"],
            &["redo"],
            &["land", "-m", "Land it"],
            &["branch", "1", "other"],
            &["get-prompt", "developer"],
            &["verify"],
            &["gc", "-n"],
        ] {
            self.teddy(args, 0);
        }
        self.teddy(&["-c", "model=manual:-", "plan", "-m", "by hand"], 1);
        self.teddy(&["change", "proposal", "held", "go"], 1);
    }
}

#[test]
fn what_is_left_behind_is_on_the_page() {
    let used = Used::new();
    let repo = &used.repo;
    let ours = below(&repo.path().join(".git/teddy"));
    let in_teddy = places("### In `.git/teddy`");
    assert!(ours.len() > 10, "{ours:?}");
    assert_eq!(outside(&ours, &in_teddy), Vec::<&String>::new());

    let refs = repo.git(&["for-each-ref", "--format=%(refname)"]);
    let refs: BTreeSet<String> = refs
        .lines()
        .filter(|name| *name != "refs/heads/main")
        .map(str::to_owned)
        .collect();
    let in_repository = places("### In the repository");
    assert!(refs.len() > 4, "{refs:?}");
    assert_eq!(outside(&refs, &in_repository), Vec::<&String>::new());

    // Everything outside of `.git` is either the project's own or on the page.
    let mut files = below(&repo.path());
    files.retain(|path| !path.starts_with(".git/"));
    let own = [".gitignore", "a.txt", "b.txt", "made"].map(str::to_owned);
    let expected = own.into_iter().chain(places("### In your files")).collect();
    assert_eq!(outside(&files, &expected), Vec::<&String>::new());

    let home: BTreeSet<String> = below(&repo.beside("home"))
        .iter()
        .map(|path| {
            let folder = path.replacen("config/", "~/.config/", 1);
            folder.replacen("cache/", "~/.cache/", 1)
        })
        .collect();
    let in_home = places("### In your directories");
    assert!(home.len() > 2, "{home:?}");
    assert_eq!(outside(&home, &in_home), Vec::<&String>::new());
    assert_eq!(below(&repo.beside("tmp")), BTreeSet::new());
}

#[test]
fn every_directory_of_the_cache_that_the_source_names_is_on_the_page() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let listed = places("### In your directories");
    let mut named = BTreeSet::new();
    for file in below(&source).iter().filter(|file| file.ends_with(".rs")) {
        let text = std::fs::read_to_string(source.join(file)).unwrap();
        let joined = text.split("cache.join(\"").skip(1);
        named.extend(joined.map(|rest| {
            let name = rest.split('"').next().unwrap();
            format!("~/.cache/teddy/{name}/")
        }));
    }
    assert!(named.len() > 4, "{named:?}");
    assert!(named.is_subset(&listed), "{named:?}");
    assert!(listed.contains("~/.cache/teddy/open-*.html"));
}

#[test]
fn everything_in_the_git_directory_is_git_s_own_or_on_the_page() {
    let used = Used::new();
    let repo = &used.repo;
    let mut found = below(&repo.path().join(".git"));
    // Files that git creates when a user commits.
    found.retain(|path| {
        let gits = [
            "HEAD",
            "config",
            "description",
            "index",
            "COMMIT_EDITMSG",
            "packed-refs",
        ];
        let folders = [
            "hooks/",
            "info/",
            "branches/",
            "logs/HEAD",
            "logs/refs/heads/",
        ];
        let refs = ["refs/heads/", "refs/tags/", "refs/teddy/", "reftable/"];
        !gits.contains(&path.as_str())
            && !folders
                .iter()
                .chain(&refs)
                .any(|place| path.starts_with(place))
    });
    let places = places("### In the repository");
    assert_eq!(outside(&found, &places), Vec::<&String>::new());
}

#[test]
fn a_request_holds_what_the_page_says_and_nothing_else() {
    let used = Used::new();
    let requests = used.server.requests();
    assert_eq!(requests.len(), 2, "{requests:?}");
    let text = part("## What leaves your machine");
    for (number, request) in ["1", "2"].into_iter().zip(&requests) {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        for line in head.lines().skip(1) {
            let name = line.split(':').next().unwrap().to_ascii_lowercase();
            assert!(text.contains(&format!("`{name}`")), "{line}");
        }

        let body: Value = serde_json::from_str(body).unwrap();
        let own = ["model", "messages", "stream", "stream_options"];
        let other = body
            .as_object()
            .unwrap()
            .keys()
            .find(|key| !own.contains(&key.as_str()));
        assert_eq!(other, None, "{body}");
        let mut sent: String = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["content"].as_str().unwrap())
            .collect();
        for artifact in ["system_prompt.xml", "input.md", "user_prompt.txt"] {
            let recorded = used.repo.done(&["show", "-s", "demo", number, artifact]);
            let recorded = recorded.trim_end();
            assert!(sent.contains(recorded), "{artifact} is not what was sent");
            sent = sent.replace(recorded, "");
        }
        assert_eq!(sent.trim(), "# Message", "more was sent");
    }
}

#[test]
fn the_commands_of_the_page_delete_the_data() {
    let used = Used::new();
    let repo = &used.repo;
    let [sessions, own] = <[String; 2]>::try_from(code("## How to delete it")).unwrap();
    let run = |script: &str| {
        let mut shell = repo.command("sh");
        let path = teddy::host::env::var("PATH").unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_teddy")).parent().unwrap();
        shell
            .env("PATH", format!("{}:{path}", program.display()))
            .current_dir(repo.path())
            .args(["-ec", script])
            .env("XDG_CONFIG_HOME", repo.beside("home/config"))
            .env("XDG_CACHE_HOME", repo.beside("home/cache"));
        Output::of(&mut shell).check(0, &[]);
    };
    let turn = repo.git(&["rev-parse", "teddy/sessions/demo"]);
    let first = repo.json(&["show", "demo:1"], 0)["commit"].clone();
    let input = format!("{}:input.md", first.as_str().unwrap());
    let input = repo.git(&["rev-parse", &input]);
    assert!(repo.path().join(".git/worktrees").exists());
    let head = repo.git(&["rev-parse", "HEAD"]);

    run(&sessions);
    assert_eq!(repo.git(&["for-each-ref", "refs/teddy/"]), "");
    assert!(!repo.path().join(".git/teddy").exists());
    let objects = repo.git(&["cat-file", "--batch-check", "--batch-all-objects"]);
    assert!(!objects.contains(&turn) && !objects.contains(&input));
    assert!(!repo.path().join(".git/worktrees").exists());
    let reachable = repo.git(&[
        "rev-list",
        "--objects",
        "--all",
        "--reflog",
        "--indexed-objects",
    ]);
    let hidden: Vec<_> = objects
        .lines()
        .filter(|line| !reachable.contains(line.split(' ').next().unwrap()))
        .collect();
    assert_eq!(hidden, Vec::<&str>::new());
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(repo.read("b.txt"), "b\n");
    repo.git(&["fsck", "--strict"]);

    run(&own);
    assert_eq!(
        below(&repo.beside("home")),
        BTreeSet::from(["cache/", "config/"].map(str::to_owned))
    );
    // TeDDy still works.
    repo.done(&["new", "demo"]);
}
