//! Context lists and their entries.

use super::{Page, project};

#[test]
fn an_entry_that_names_nothing() {
    let repo = project();
    repo.write("notes.md", "Notes.\n");
    repo.write(".gitignore", "secret.txt\n");
    repo.write("secret.txt", "x\n");
    let mut page = Page::default();
    for args in [
        &["context", "add", "../out.txt"][..],
        &["context", "add", ".git/config"],
        &["context", "add", "/etc/../../x"],
        &["context", "add", "a\nb"],
        &["context", "add", ""],
        &["context", "add", "ftp://example.com/"],
    ] {
        page.refused(&repo, args);
    }
    for args in [
        &["context", "add", "nope.txt"][..],
        &["context", "add", "note.md"],
        &["context", "add", "A.txt", "a.txt"],
        &["context", "rm", "a.tx"],
        &["context", "rm", "nothing.txt"],
        &["context", "list"],
    ] {
        page.shown(&repo, args);
    }
    page.compare("context");
}

#[test]
fn a_list_of_every_session_that_cannot_be_read() {
    let repo = project();
    repo.write(".teddy/global.context", b"a.txt\n\xff\n");
    let mut page = Page::default();
    page.refused(&repo, &["context", "add", "b.txt", "--global"]);
    repo.remove(".teddy/global.context");
    std::fs::create_dir(repo.path().join(".teddy/global.context")).unwrap();
    page.refused(&repo, &["context", "add", "b.txt", "--global"]);
    repo.remove(".teddy/global.context");
    repo.write(".teddy/memos.yaml", "a: b\n");
    page.shown(&repo, &["-q", "context"]);
    page.compare("unreadable-lists");
}
