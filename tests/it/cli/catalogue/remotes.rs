//! Remotes that don't exist, cannot be reached or send invalid sessions.

use super::{Page, project};
use crate::fake::{Fake, response};

#[test]
fn a_remote_that_is_no_help() {
    let repo = project();
    let mut page = Page::default();
    page.refused(&repo, &["fetch"]);
    repo.git(&["remote", "add", "origin", "/nowhere.git"]);
    page.refused(&repo, &["fetch", "orgin"]);
    page.refused(&repo, &["fetch"]);

    repo.git(&["remote", "set-url", "origin", "http://127.0.0.1:1/x.git"]);
    page.refused(&repo, &["fetch"]);
    let refusal = response(
        "401 Unauthorized",
        "www-authenticate: Basic realm=\"git\"\r\ncontent-length: 0\r\n",
        "",
    );
    let server = Fake::answering(&vec![refusal; 8]);
    repo.git(&[
        "remote",
        "set-url",
        "origin",
        &format!("{}/x.git", server.origin),
    ]);
    page.refused(&repo, &["fetch"]);

    let bare = repo.beside("server.git");
    let path = bare.to_str().unwrap();
    repo.git(&["init", "-q", "--bare", path]);
    repo.git(&["remote", "set-url", "origin", path]);
    page.refused(&repo, &["fetch", "origin", "add-auth"]);
    let tree = repo.git_in(&bare, &["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let commit = repo.beside("commit");
    std::fs::write(&commit, format!("tree {tree}\n\nno author\n")).unwrap();
    let args = ["hash-object", "-t", "commit", "-w", "--literally"];
    let id = repo.git_in(&bare, &[&args[..], &[commit.to_str().unwrap()]].concat());
    std::fs::write(
        bare.join("packed-refs"),
        format!("{id} refs/teddy/sessions/x\n"),
    )
    .unwrap();
    page.refused(&repo, &["fetch"]);

    repo.git_in(&bare, &["update-ref", "-d", "refs/teddy/sessions/x"]);
    repo.git(&["push", "-q", "origin", "main:refs/teddy/sessions/x"]);
    page.refused(&repo, &["fetch"]);
    repo.git(&[
        "push",
        "-q",
        "origin",
        "+refs/teddy/sessions/demo:refs/teddy/sessions/x",
    ]);
    repo.done(&["fetch"]);
    page.refused(&repo, &["-s", "origin/x", "undo"]);
    page.compare("remotes");
}
