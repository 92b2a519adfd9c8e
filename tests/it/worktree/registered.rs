//! Session worktrees that the user's git knows between turns.

use std::path::PathBuf;

use crate::plans::{create, execute, plan};
use crate::support::TestRepo;
use crate::support::overlay::{CHECKOUT, OVERLAY, overlays};

const RECORD: &str = ".git/worktrees/teddy-session-demo";

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo
}

/// Runs a command as a turn. Returns the path of the session's worktree, as git lists it.
fn run(repo: &TestRepo, backend: &str, command: &str) -> PathBuf {
    let text = plan("Run", &[execute(command)]);
    let out = repo.teddy_reads(&["execute", "-", "-y", "-c", backend], text);
    out.check(0, &[]);
    listed(repo).expect("the worktree is listed")
}

fn listed(repo: &TestRepo) -> Option<PathBuf> {
    let text = repo.git(&["worktree", "list", "--porcelain"]);
    let blocks = text.split("\n\n");
    let block = blocks
        .into_iter()
        .find(|block| block.contains("locked teddy session demo"))?;
    assert!(block.contains("\ndetached"), "{block}");
    let path = block.lines().next()?.strip_prefix("worktree ")?;
    Some(PathBuf::from(path))
}

fn backends() -> impl Iterator<Item = &'static str> {
    [CHECKOUT, OVERLAY]
        .into_iter()
        .filter(|backend| *backend != OVERLAY || overlays())
}

fn is_healthy(repo: &TestRepo) {
    repo.git(&["fsck", "--strict"]);
    repo.git(&["gc", "-q"]);
    repo.git(&["worktree", "list"]);
    let checks = repo.teddy(&["doctor"]).to_string();
    assert!(!checks.contains("linked worktree"), "{checks}");
    assert!(!checks.contains("registered"), "{checks}");
}

#[test]
fn git_lists_the_worktree_of_a_session_and_works_in_it_between_turns() {
    for backend in backends() {
        let repo = project();
        let before = repo.users();
        let path = run(&repo, backend, "echo b > b.txt");
        assert_eq!(repo.users(), before, "{backend}");
        let after = repo.git(&["rev-parse", "teddy/sessions/demo^2"]);
        let git = |args: &[&str]| repo.git_in(&path, args);
        assert_eq!(git(&["rev-parse", "HEAD"]), after, "{backend}");
        assert!(git(&["log", "--format=%s"]).ends_with("init"));
        assert!(git(&["show", "--stat"]).contains("b.txt"));
        assert!(git(&["diff", "--name-only", "HEAD~", "HEAD"]).contains("b.txt"));
        git(&["status"]);
        repo.teddy_in(&path, &["plan", "-m", "x"])
            .check(1, &["this is the worktree of session `demo`"]);
        is_healthy(&repo);

        // The next turn moves HEAD, and its commands have a repository of their own.
        run(
            &repo,
            backend,
            "test -d .git && test ! -e .git/commondir && echo c > c.txt",
        );
        let after = repo.git(&["rev-parse", "teddy/sessions/demo^2"]);
        assert_eq!(git(&["rev-parse", "HEAD"]), after, "{backend}");
        // The branch is not checked out there.
        repo.git(&["checkout", "-q", "-b", "other"]);
        repo.git(&["branch", "-q", "-D", "main"]);
    }
}

#[test]
fn a_plan_without_commands_registers_its_part_of_a_worktree() {
    let repo = project();
    repo.run_plan(&plan("Make", &[create("b.txt", "b\n")]));
    let path = listed(&repo).unwrap();
    let shown = repo.git_in(&path, &["show", "HEAD:b.txt"]);
    assert_eq!(shown, "b");
    // git completes the directory, and that does no harm.
    repo.git_in(&path, &["reset", "-q", "--hard"]);
    assert!(path.join("a.txt").exists());
    run(&repo, CHECKOUT, "cat a.txt b.txt");
    is_healthy(&repo);
}

#[test]
fn what_the_user_does_to_the_record_does_no_harm() {
    for backend in backends() {
        let repo = project();
        let path = run(&repo, backend, "echo 1 > b.txt");
        repo.git(&["worktree", "prune"]);
        assert!(listed(&repo).is_some());
        let path = path.to_str().unwrap();
        repo.git(&["worktree", "remove", "-f", "-f", path]);
        assert_eq!(listed(&repo), None);
        run(&repo, backend, "cat a.txt b.txt > c.txt");
        assert_eq!(repo.read("c.txt"), "a\n1\n", "{backend}");

        repo.git(&["worktree", "unlock", path]);
        run(&repo, backend, "echo 3 > c.txt");
        assert!(listed(&repo).is_some(), "{backend}: it is locked again");

        repo.git(&["worktree", "unlock", path]);
        std::fs::remove_file(PathBuf::from(path).join(".git")).unwrap();
        repo.git(&["worktree", "prune", "--expire=now"]);
        assert!(!repo.path().join(RECORD).exists());
        run(&repo, backend, "echo 2 > b.txt");
        is_healthy(&repo);
    }
}

#[test]
fn nothing_in_the_record_or_in_the_worktree_is_believed() {
    for backend in backends() {
        let repo = project();
        let path = run(&repo, backend, "echo 1 > b.txt");
        let record = repo.path().join(RECORD);
        let victim = repo.beside("victim");
        std::fs::create_dir_all(&victim).unwrap();
        std::fs::write(victim.join("kept"), "kept").unwrap();
        let elsewhere = format!("{}/.git\n", victim.display());
        std::fs::write(record.join("gitdir"), elsewhere).unwrap();
        std::fs::write(record.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(record.join("commondir"), "/nowhere\n").unwrap();
        std::fs::write(
            record.join("config.worktree"),
            "[core]\n\tfsmonitor = touch hacked\n",
        )
        .unwrap();
        std::fs::write(path.join(".git"), format!("gitdir: {}\n", victim.display())).unwrap();
        let forge = "rm -rf .git; echo 'gitdir: /nowhere' > .git; echo 2 > b.txt";
        let now = run(&repo, backend, forge);
        assert_eq!(now, path, "{backend}");
        let link = std::fs::read_to_string(path.join(".git")).unwrap();
        assert_eq!(link, format!("gitdir: {}\n", record.display()), "{backend}");
        assert_eq!(repo.read("b.txt"), "2\n");
        let names = crate::support::names(&record);
        assert_eq!(
            names,
            ["HEAD", "commondir", "gitdir", "locked"],
            "{backend}"
        );
        assert_eq!(crate::support::names(&victim), ["kept"]);
        is_healthy(&repo);
    }
}

#[test]
fn a_record_of_another_program_stays() {
    let repo = project();
    let other = repo.beside("teddy-session-demo");
    let other = other.to_str().unwrap();
    repo.git(&["worktree", "add", "-q", "--detach", other]);
    let text = plan("Run", &[execute("echo b > b.txt")]);
    repo.teddy_reads(&["execute", "-", "-y"], text)
        .check(0, &[]);
    assert!(repo.path().join(RECORD).join("gitdir").exists());
    repo.git_in(&PathBuf::from(other), &["status"]);
    is_healthy(&repo);
}

#[test]
fn what_a_crash_leaves_is_completed_or_removed() {
    let repo = project();
    let path = run(&repo, CHECKOUT, "echo 1 > b.txt");
    let own = repo.path().join(".git/teddy/worktrees/demo");
    let record = repo.path().join(RECORD);

    // Before the record was whole, or before all of it was removed.
    std::fs::remove_file(path.join(".git")).unwrap();
    for name in ["gitdir", "locked"] {
        std::fs::remove_file(record.join(name)).unwrap();
    }
    assert_eq!(listed(&repo), None);
    is_healthy(&repo);
    repo.done(&["doctor", "--fix"]);
    run(&repo, CHECKOUT, "echo 2 > b.txt");
    assert_eq!(
        repo.git_in(&path, &["rev-parse", "--git-dir"]),
        record.to_str().unwrap()
    );

    // The worktree and our own record are gone, so nothing else would remove git's.
    std::fs::remove_dir_all(&own).unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    repo.done(&["doctor", "--fix"]);
    assert_eq!(listed(&repo), None);
    is_healthy(&repo);
}

#[test]
fn a_worktree_that_is_removed_is_unregistered() {
    let repo = project();
    let path = run(&repo, CHECKOUT, "echo 1 > b.txt");
    repo.git(&["update-ref", "-d", "refs/teddy/sessions/demo"]);
    repo.done(&["gc", "-y"]);
    assert!(!path.exists());
    assert_eq!(listed(&repo), None);
    assert!(!repo.path().join(".git/worktrees").exists());
    is_healthy(&repo);
}
