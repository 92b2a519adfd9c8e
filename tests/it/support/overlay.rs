//! Projects whose commands run in an overlay over the user's files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::plans::{execute, plan};
use crate::support::{Output, TestRepo, skipped};

pub const OVERLAY: &str = "worktree.backend=overlay";

pub const CHECKOUT: &str = "worktree.backend=checkout";

/// Checks whether this machine can mount overlays for commands. Notes that tests are skipped if it
/// cannot.
pub fn overlays() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();

    *KNOWN.get_or_init(|| {
        let repo = project();
        let status = repo.teddy(&["-v", "status"]);
        let can = status.stderr.contains("Commands run over your files");
        if !can {
            skipped("no overlays here");
        }
        can
    })
}

/// Creates a project with ignored files, a secret and a session.
pub fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file(".gitignore", "/target/\n.env\n.venv/\n*.log\n")
        .file("src/a.txt", "a\n")
        .file("src/b.txt", "b\n")
        .file("src/deep/c.txt", "c\n")
        .file("run.sh", "#!/bin/sh\n")
        .file("d/e", "e\n");
    repo.commit("init");
    let repo = repo
        .file("target/built", "built\n")
        .file("target/.env", "KEY=1\n")
        .file(".env", "KEY=2\n")
        .file(".venv/.gitignore", "*\n")
        .file(".venv/lib", "lib\n")
        .file("untracked.txt", "untracked\n")
        .file("untracked/id_rsa", "not a key\n");
    repo.done(&["new", "s"]);
    repo
}

pub fn run(repo: &TestRepo, backend: &str, script: &str) -> Output {
    repo.teddy_reads(
        &["execute", "-", "-y", "-c", backend],
        plan("Try", &[execute(script)]),
    )
}

pub fn printed(repo: &TestRepo) -> String {
    repo.done(&["show", "@", "output/01.txt"])
}

/// Returns all files outside `.git` with their content; of a symlink, its target.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in std::fs::read_dir(at).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if kind.is_dir() && entry.file_name() != ".git" {
                folders.push(path);
            } else if kind.is_file() {
                found.insert(name, std::fs::read(path).unwrap());
            } else if kind.is_symlink() {
                let target = std::fs::read_link(path).unwrap();
                found.insert(name, target.into_os_string().into_encoded_bytes());
            }
        }
    }
    found
}

/// Returns two paths: a command creates the first when it has started and waits for the second.
pub fn signs(repo: &TestRepo) -> (PathBuf, PathBuf) {
    let folder = repo.beside("signs");
    std::fs::create_dir(&folder).unwrap();
    repo.configure(&format!(
        "execute: {{ writable: ['{}'] }}\n",
        folder.display()
    ));
    (folder.join("started"), folder.join("go"))
}
