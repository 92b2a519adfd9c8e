//! Files that never answer or never end: pipes among TeDDy's own files, devices in place of a plan or
//! a configuration. A clear error or an answer, never a wait.

use crate::plans::{create, plan};
use crate::support::{Output, TestRepo};

/// Longer than any command here takes, in seconds.
const LIMIT: &str = "120";

/// Runs TeDDy, which must not wait for ever.
#[track_caller]
fn teddy(repo: &TestRepo, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut teddy = repo.teddy_command(args);
    let mut command = repo.command("timeout");
    command
        .args(["-s", "KILL", LIMIT])
        .arg(teddy.get_program())
        .args(args)
        .env_clear()
        .envs(
            teddy
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .envs(variables.iter().copied())
        .current_dir(repo.path())
        .stdin(std::fs::File::open("/dev/zero").unwrap());
    teddy.current_dir(repo.path());
    let out = Output::of(&mut command);
    assert!(out.code >= 0, "waits for ever: {args:?}: {out}");
    out
}

/// Returns a repository with a session of one turn.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.run_plan(&plan("First", &[create("first.txt", "1\n")]));
    repo
}

#[test]
fn attack_10_pipes_among_our_own_files_are_not_waited_at() {
    for name in [
        "teddy/packs",
        "teddy/own-packs",
        "teddy/index/main",
        "teddy/tips/demo",
        "teddy/own-drafts/demo",
        "teddy/kept/main",
        "teddy/worktrees/demo/index",
        "teddy/worktrees/demo/tree",
        "teddy/current/main",
        "teddy/boot",
        "teddy/pending.json",
        "teddy/tokens",
        "logs/refs/teddy/sessions/demo",
        "logs/refs/teddy/snapshots/main",
    ] {
        let repo = project();
        let path = repo.path().join(".git").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = std::fs::remove_file(&path);
        let _ = std::fs::remove_dir_all(&path);
        repo.git(&["-c", "alias.pipe=!mkfifo", "pipe", path.to_str().unwrap()]);

        std::fs::write(
            repo.beside("plan.md"),
            plan("Second", &[create("second.txt", "2\n")]),
        )
        .unwrap();
        for args in [
            &["status", "-s", "demo"][..],
            &["execute", "../plan.md", "-y", "-s", "demo"],
            &["undo", "-s", "demo"],
            &["recover"],
            &["gc"],
            &["log", "-s", "demo"],
        ] {
            let out = teddy(&repo, args, &[]);
            assert_eq!(out.code, 0, "{name}: {args:?}: {out}");
        }
        assert_eq!(repo.read("first.txt"), "1\n", "{name}");
    }
}

#[test]
fn attack_10_a_device_without_an_end_is_refused() {
    let repo = project();
    teddy(&repo, &["execute", "/dev/zero", "-y"], &[])
        .check(1, &["cannot read `/dev/zero`", "larger than 64 MiB"]);
    teddy(&repo, &["execute", "-", "-y"], &[])
        .check(1, &["cannot read standard input", "larger than 64 MiB"]);
    teddy(&repo, &["plan", "-m", "go", "--from", "/dev/zero"], &[])
        .check(1, &["cannot read `/dev/zero`", "larger than 64 MiB"]);
    teddy(&repo, &["status"], &[("TEDDY_CONFIG", "/dev/zero")])
        .check(1, &["/dev/zero", "larger than 1 MiB"]);
    teddy(&repo, &["status"], &[("TEDDY_CONFIG", "/dev/null")]).check(0, &[]);
}
