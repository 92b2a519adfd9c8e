//! Turns that cannot be committed to a branch.

use std::os::unix::fs::PermissionsExt;

use super::{Page, project, turn};
use crate::plans::{edit, execute};

#[test]
fn a_landing_that_is_refused() {
    let repo = project();
    let mut page = Page::default();
    page.refused(&repo, &["land"]);
    turn(&repo, &[execute("true")]);
    page.refused(&repo, &["land", "1", "--no-edit"]);
    turn(&repo, &[edit("a.txt", "one", "two")]);
    page.refused(&repo, &["land"]);
    page.refused(&repo, &["land", "-m", " "]);
    page.refused(&repo, &["land", "9", "--no-edit"]);
    page.refused(&repo, &["land", "3..2", "--no-edit"]);

    let hook = repo.path().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho not today >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).unwrap();
    page.refused(&repo, &["land", "--no-edit"]);
    std::fs::remove_file(hook).unwrap();

    repo.git(&["checkout", "-q", "--detach"]);
    page.refused(&repo, &["land", "--no-edit"]);
    repo.git(&["checkout", "-q", "main"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    std::fs::write(repo.path().join(".git/MERGE_HEAD"), format!("{head}\n")).unwrap();
    page.refused(&repo, &["land", "--no-edit"]);
    std::fs::remove_file(repo.path().join(".git/MERGE_HEAD")).unwrap();

    repo.done(&["undo"]);
    page.refused(&repo, &["land", "2", "--no-edit"]);
    page.compare("land");
}

#[test]
fn a_signature_that_cannot_be_made() {
    let repo = project();
    let mut page = Page::default();
    repo.git(&["config", "gpg.format", "ssh"]);
    page.refused(&repo, &["verify", "--sign"]);
    page.refused(&repo, &["verify", "--sign", "dmeo"]);
    page.compare("sign");
}
