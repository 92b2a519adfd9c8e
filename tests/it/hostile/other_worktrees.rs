//! Commands cannot read the worktrees of other sessions, wherever `worktree.root` puts them.

use std::path::{Path, PathBuf};

use super::ground::{Ground, plan, run};
use crate::support::overlay::overlays;

/// Runs a command in a session with worktrees in `root`.
fn runs(ground: &Ground, session: &str, (backend, root): (&str, &Path), command: &str) {
    let [backend, root] = [
        format!("worktree.backend={backend}"),
        format!("worktree.root={}", root.display()),
    ];
    let args = ["-s", session, "-c", &backend, "-c", &root];
    let tried = ground.execute_with(plan(&run(command)), &args);
    assert_eq!(tried.code, 0, "{}", tried.words);
}

/// Lets session `s` read what session `t` left in its worktree below `held`, while the worktrees of
/// `s` are in `root`.
#[track_caller]
fn check(ground: &Ground, backend: &str, held: &Path, root: &Path) {
    let _ = ground.teddy(&["new", "t"]);
    // git ignores the file, so it stays in the worktree or in the layer.
    runs(
        ground,
        "t",
        (backend, held),
        "echo hunter2 > ignored; cat ignored",
    );
    let top = held.display();
    let reading = format!(
        "cat {top}/*/t/ignored ../t/ignored {top}/*/.teddy-worktrees/t/layer/files/ignored; \
         find {top} -name ignored -exec cat {{}} +; true"
    );
    runs(ground, "s", (backend, root), &reading);
    let report = ground.ok(&["-s", "s", "show"]);
    let how = format!("{backend}, {top}, {}: {report}", root.display());
    assert!(!report.contains("hunter2"), "{how}");
    assert!(report.contains("Permission denied"), "{how}");
}

fn backends() -> Vec<&'static str> {
    let overlay = overlays().then_some("overlay");
    ["checkout"].into_iter().chain(overlay).collect()
}

#[test]
fn no_command_reads_another_worktree_below_the_users_own_root() {
    if teddy::host::sandbox::availability() != teddy::host::sandbox::Availability::Full {
        return;
    }
    for backend in backends() {
        let ground = Ground::new();
        let root = ground.repo.beside("trees");
        check(&ground, backend, &root, &root);

        let ground = Ground::new();
        let (link, target) = (ground.repo.beside("link"), ground.repo.beside("target"));
        std::fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        check(&ground, backend, &target, &link);

        // The user has moved the root since.
        let ground = Ground::new();
        let [old, new] = ["old", "new"].map(|name| ground.repo.beside(name));
        check(&ground, backend, &old, &new);
    }
}

#[test]
fn no_command_reads_the_worktree_of_another_repository_below_the_same_root() {
    if teddy::host::sandbox::availability() != teddy::host::sandbox::Availability::Full {
        return;
    }
    for backend in backends() {
        let (one, other) = (Ground::new(), Ground::new());
        let root = one.repo.beside("trees");
        runs(&other, "s", (backend, &root), "echo hunter2 > ignored");
        let reading = format!(
            "find {} -name ignored -exec cat {{}} +; true",
            root.display()
        );
        runs(&one, "s", (backend, &root), &reading);
        let report = one.ok(&["show"]);
        assert!(!report.contains("hunter2"), "{backend}: {report}");
    }
}

/// An overlay would show the worktrees inside the project, because only the project itself is hidden.
#[test]
fn a_root_that_leads_into_the_project_is_never_below_an_overlay() {
    if !overlays() {
        return;
    }
    let ground = Ground::new();
    let inside: PathBuf = ground.repo.path().join("ignored");
    let link = ground.repo.beside("link");
    std::fs::create_dir(&inside).unwrap();
    std::os::unix::fs::symlink(&inside, &link).unwrap();
    for root in [&inside, &link] {
        let setting = format!("worktree.root={}", root.display());
        let args = ["-c", "worktree.backend=overlay", "-c", &setting];
        let tried = ground.execute_with(plan(&run("true")), &args);
        assert_eq!(tried.code, 1, "{}", tried.words);
        let why = "`worktree.root` is in the project";
        assert!(tried.words.contains(why), "{}", tried.words);
    }

    let setting = format!("worktree.root={}", link.display());
    ground.execute_with(plan(&run("true")), &["-c", &setting]);
    let tried = ground.execute_with(plan(&run("true")), &["-c", "worktree.backend=overlay"]);
    let why = "has worktrees of sessions, and is inside the project";
    assert!(tried.words.contains(why), "{}", tried.words);
}
