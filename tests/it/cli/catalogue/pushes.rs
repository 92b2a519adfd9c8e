//! Sessions that `push` refuses to send.

use super::{Page, project, turn};
use crate::plans::create;

#[test]
fn a_session_that_is_not_sent() {
    let repo = project();
    turn(&repo, &[create("b.txt", "see /home/ada/x\n")]);
    let mut page = Page::default();
    page.refused(&repo, &["push"]);
    let bare = repo.beside("server.git");
    let path = bare.to_str().unwrap();
    repo.git(&["init", "-q", "--bare", path]);
    repo.git(&["remote", "add", "origin", path]);
    for args in [
        &["push", "--remote", "orign"][..],
        &["push", "other"],
        &["push"],
        &["push", "-y", "--code"],
        &["push", "-n", "--allow", "demo:7"],
        &["push", "--code", "--redact"],
        &["push", "demo", "other", "--as", "x"],
        &["push", "--delete"],
        &["push", "--delete", "demo"],
        &["-c", "push.mode=code", "push", "--redact"],
    ] {
        page.refused(&repo, args);
    }

    page.shown(&repo, &["push", "-y", "--allow", "paths"]);
    page.refused(&repo, &["push", "--redact"]);
    page.shown(&repo, &["push", "-y", "--code", "--allow", "paths"]);
    page.refused(&repo, &["push", "--no-code"]);
    page.refused(&repo, &["push", "--delete", "demo"]);

    repo.git(&[
        "update-ref",
        "refs/teddy/sessions/demo",
        "teddy/sessions/demo^",
    ]);
    page.shown(&repo, &["push"]);
    turn(&repo, &[create("c.txt", "c\n")]);
    page.refused(&repo, &["push"]);
    repo.git_in(&bare, &["config", "receive.hideRefs", "refs/teddy"]);
    page.refused(&repo, &["push", "-y", "--as", "mine"]);
    page.compare("push");
}
