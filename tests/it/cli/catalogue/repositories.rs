//! Repositories and configurations that TeDDy cannot use.

use super::{Page, project};
use crate::support::TestRepo;

#[test]
fn a_folder_that_is_no_project() {
    let repo = project();
    std::fs::create_dir(repo.beside("elsewhere")).unwrap();
    repo.git(&["init", "-q", "--bare", "../bare.git"]);
    repo.git(&["init", "-q", "../home"]);
    let mut page = Page::default();
    page.refused(&repo, &["-C", "../elsewhere", "status"]);
    page.refused(&repo, &["-C", "../elsewhere", "new", "demo"]);
    page.refused(&repo, &["-C", "../bare.git", "status"]);
    page.refused(&repo, &["-C", "../home", "status"]);
    page.refused_with(&repo, &["status"], &[("GIT_DIR", "/nonexistent")]);
    page.compare("no-project");
}

#[test]
fn a_repository_that_teddy_cannot_work_with() {
    let mut page = Page::default();
    for (key, value) in [
        ("extensions.refStorage", "fromTheFuture"),
        ("extensions.fromTheFuture", "true"),
        ("core.worktree", "../../elsewhere"),
        ("core.worktree", "../../nowhere"),
    ] {
        let repo = project();
        std::fs::create_dir(repo.beside("elsewhere")).unwrap();
        repo.git(&["config", "core.repositoryFormatVersion", "1"]);
        repo.git(&["config", key, value]);
        page.refused(&repo, &["status"]);
    }
    page.compare("unfit-repository");
}

#[test]
fn a_repository_whose_files_are_damaged() {
    let mut page = Page::default();
    let repo = project();
    std::fs::write(repo.path().join(".git/HEAD"), "nonsense\n").unwrap();
    page.shown(&repo, &["status"]);
    page.refused(&repo, &["plan", "-m", "go", "--from", "a.txt"]);

    let repo = project();
    std::fs::remove_file(repo.path().join(".git/config")).unwrap();
    std::fs::create_dir(repo.path().join(".git/config")).unwrap();
    page.refused(&repo, &["status"]);

    let repo = project();
    let tip = repo.git(&["rev-parse", "refs/teddy/sessions/demo"]);
    let draft = repo.git(&["rev-parse", "refs/teddy/drafts/demo^{tree}"]);
    let objects = repo.path().join(".git/objects");
    assert_ne!(tip, draft);
    std::fs::remove_dir_all(objects.join("pack")).unwrap();
    std::fs::create_dir(objects.join("pack")).unwrap();
    page.refused(&repo, &["log"]);
    page.shown(&repo, &["new", "other"]);
    page.compare("damaged-repository");
}

#[test]
fn a_repository_of_another_user() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let repo = project();
    std::os::unix::fs::lchown(repo.path().join(".git"), Some(65534), Some(65534)).unwrap();
    std::os::unix::fs::lchown(repo.path(), Some(65534), Some(65534)).unwrap();
    Page::default()
        .refused(&repo, &["status"])
        .compare("foreign-repository");
}

#[test]
fn a_wrong_configuration() {
    let repo = project();
    let mut page = Page::default();
    for yaml in [
        "modle: x\n",
        "model: [\n",
        "- a\n",
        "replan: {max: many}\n",
        "execute: {sandbox: perhaps}\n",
        "snapshot: {max_file_size: large}\n",
    ] {
        repo.configure(yaml);
        page.refused(&repo, &["status"]);
    }
    repo.configure("");
    repo.git(&["config", "teddy.replan.max", "many"]);
    page.refused(&repo, &["status"]);
    repo.git(&["config", "--unset", "teddy.replan.max"]);
    repo.write(
        ".teddy/config.yaml",
        "execute: {sandbox: off}\nagent: developer\n",
    );
    page.shown(&repo, &["new", "other"]);
    repo.write(".teddy/config.yaml", "agent: [\n");
    page.shown(&repo, &["status"]);
    page.refused(&repo, &["plan", "-m", "go"]);
    page.compare("configuration");
}

#[test]
fn too_many_new_files() {
    let repo = project();
    repo.write("new/1", "x");
    repo.write("new/2", "x");
    let mut page = Page::default();
    let most = "snapshot.max_new_files=1";
    page.refused(&repo, &["-c", most, "plan", "-m", "go", "--from", "a.txt"]);
    let most = "snapshot.max_new_size=1";
    page.refused(&repo, &["-c", most, "plan", "-m", "go", "--from", "a.txt"]);
    page.compare("too-many-files");
}

#[test]
fn no_repository_to_begin_with() {
    let repo = TestRepo::new();
    let mut page = Page::default();
    page.shown(&repo, &["status"]);
    page.refused(&repo, &["-s", "demo", "status"]);
    page.refused(&repo, &["switch"]);
    page.compare("empty-repository");
}
