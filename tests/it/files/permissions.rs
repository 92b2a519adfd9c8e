//! Files and directories without read or write permission. TeDDy reports and leaves them, and
//! everything else works.
//!
//! Permissions don't apply to root, so root runs teddy as user `nobody` here.
//!
//! CI also runs this module as root.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::plans::{create, edit, execute, plan};
use crate::support::overlay::{self, CHECKOUT, OVERLAY};
use crate::support::{Output, TestRepo, skipped};

/// User id of `nobody`.
const NOBODY: u32 = 65_534;

/// A project that belongs to `nobody` if the test runs as root. Its session has the files in
/// context. `None` if `nobody` cannot run teddy.
fn project() -> Option<TestRepo> {
    let repo = TestRepo::new()
        .file("a.txt", "a\n")
        .file("dir/b.txt", "b\n")
        .file("dir/c.txt", "c\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt", "dir"]);
    if rustix::process::geteuid().is_root() {
        let top = repo.beside("");
        chmod(&top, 0o755);
        give(&top);
        run(&repo, &["--version"])?;
    }
    Some(repo)
}

/// Changes the owner of everything below a directory to `NOBODY`.
fn give(folder: &Path) {
    std::os::unix::fs::lchown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
    if folder.is_dir() && !folder.is_symlink() {
        std::fs::read_dir(folder)
            .unwrap()
            .for_each(|entry| give(&entry.unwrap().path()));
    }
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs teddy as a user to whom permissions apply. `None` if that is not possible.
fn run(repo: &TestRepo, args: &[&str]) -> Option<Output> {
    run_with(repo, args, &[])
}

fn run_with(repo: &TestRepo, args: &[&str], variables: &[(&str, &str)]) -> Option<Output> {
    let mut own = repo.teddy_command(args);
    own.current_dir(repo.path()).envs(variables.iter().copied());
    if !rustix::process::geteuid().is_root() {
        return Some(Output::of(&mut own));
    }
    let mut command = repo.command("setpriv");
    own.get_envs().for_each(|(name, value)| {
        value.map(|value| command.env(name, value));
    });
    let number = NOBODY.to_string();
    command
        .args([
            "--reuid",
            &number,
            "--regid",
            &number,
            "--clear-groups",
            "--",
        ])
        .arg(own.get_program())
        .args(own.get_args());
    let output = command
        .current_dir(repo.path())
        .stdin(std::process::Stdio::null())
        .output()
        .ok()?;
    // `setpriv` is missing, or `nobody` cannot reach the program.
    (!matches!(output.status.code(), Some(126 | 127))).then(|| Output::from(output))
}

/// Runs git in a repository of another user.
fn git(repo: &TestRepo, args: &[&str]) -> String {
    repo.git(&[&["-c", "safe.directory=*"], args].concat())
}

fn tree(repo: &TestRepo) -> String {
    let stash = repo.beside("objects");
    std::fs::create_dir_all(&stash).unwrap();
    let run = |args: &[&str]| {
        let mut command = repo.command("git");
        command
            .env("GIT_INDEX_FILE", repo.beside("index"))
            .env("GIT_OBJECT_DIRECTORY", &stash);
        command.env(
            "GIT_ALTERNATE_OBJECT_DIRECTORIES",
            repo.path().join(".git/objects"),
        );
        Output::of(
            command
                .current_dir(repo.path())
                .args(["-c", "safe.directory=*"])
                .args(args),
        )
        .stdout
    };
    let _ = std::fs::remove_file(repo.beside("index"));
    run(&["add", "-A"]);
    run(&["write-tree"]).trim().to_owned()
}

fn run_plan(repo: &TestRepo, text: &str) -> Output {
    let path = repo.beside("plan.md");
    std::fs::write(&path, text).unwrap();
    chmod(&path, 0o644);
    run(repo, &["-q", "execute", "../plan.md", "-y"]).unwrap()
}

/// Returns what the newest turn did not capture.
fn not_captured(repo: &TestRepo) -> Value {
    let meta = git(repo, &["show", "teddy/sessions/demo:meta.yaml"]);
    let meta: Value = serde_yaml::from_str(&meta).unwrap();
    meta["not_captured"].clone()
}

#[test]
fn what_is_in_a_folder_that_may_not_be_read_counts_as_git_knows_it() {
    let Some(repo) = project() else { return };
    chmod(&repo.path().join("dir"), 0o000);
    let mut statuses = String::new();
    for number in 0..3 {
        run_plan(
            &repo,
            &plan("More", &[create(&format!("{number}.txt"), "x\n")]),
        )
        .check(0, &[]);
        statuses += &run(&repo, &["status"]).unwrap().shown(&repo);
        let named = git(
            &repo,
            &["ls-tree", "-r", "--name-only", "teddy/sessions/demo^2"],
        );
        let made: String = (0..=number).map(|made| format!("{made}.txt\n")).collect();
        assert_eq!(named, made + "a.txt\ndir/b.txt\ndir/c.txt");
        let dir = json!([{ "path": "dir", "reason": "unreadable: permission denied" }]);
        assert_eq!(not_captured(&repo), dir);
    }
    insta::assert_snapshot!(statuses, @r"
    Session demo, turn 1, on branch main
    Ready for turn 2
    Your files are as the newest turn left them
    In no snapshot, left as they are:
      dir: unreadable: permission denied
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    Session demo, turn 2, on branch main
    Ready for turn 3
    Your files are as the newest turn left them
    In no snapshot, left as they are:
      dir: unreadable: permission denied
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    Session demo, turn 3, on branch main
    Ready for turn 4
    Your files are as the newest turn left them
    In no snapshot, left as they are:
      dir: unreadable: permission denied
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    chmod(&repo.path().join("dir"), 0o755);
    assert_eq!(
        tree(&repo),
        git(&repo, &["rev-parse", "teddy/sessions/demo^2^{tree}"])
    );
}

#[test]
fn nothing_is_changed_beside_a_file_that_may_not_be() {
    let changes = [edit("a.txt", "a", "A"), edit("dir/b.txt", "b", "B")];
    let deletes = [execute("rm dir/b.txt; echo A > a.txt")];
    let both = [
        create("new.txt", "new\n"),
        execute("echo c > dir/c.txt"),
        create("dir/d.txt", "d\n"),
    ];
    let cases = [
        (&changes[..], 0o555, "dir/b.txt"),
        (&deletes, 0o555, "dir/b.txt"),
        (&deletes, 0o000, "dir/b.txt"),
        (&[create("dir/new/x.txt", "x\n")], 0o555, "dir/new/x.txt"),
        (&both, 0o555, "dir/d.txt"),
    ];
    // An overlay cannot hide secrets in a directory that it cannot list, so `auto` and not
    // `overlay`.
    let backends = ["checkout", "auto"];
    let all = backends.map(|backend| cases.map(|case| (backend, case)));
    for (backend, (actions, mode, file)) in all.concat() {
        let Some(repo) = project() else { return };
        repo.configure(&format!("worktree: {{ backend: {backend} }}\n"));
        let before = tree(&repo);
        chmod(&repo.path().join("dir"), mode);
        let ran = run_plan(&repo, &plan("Change", actions));
        // It does not blame edits of the user, who made none.
        let warning = format!(
            "warning: `{file}` or its directory is read-only; once it is writable, \
             `teddy restore @ --theirs` writes the turn's version\n"
        );
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (4, warning.as_str()),
            "{backend} {mode:o}"
        );
        run(&repo, &["new", "other"]).unwrap().check(0, &[]);
        chmod(&repo.path().join("dir"), 0o755);
        assert_eq!(tree(&repo), before);
        run(&repo, &["-s", "demo", "restore", "@", "--theirs"])
            .unwrap()
            .check(0, &[]);
        assert_eq!(
            tree(&repo),
            git(&repo, &["rev-parse", "teddy/sessions/demo^2^{tree}"])
        );
        run(&repo, &["-s", "demo", "undo"]).unwrap().check(0, &[]);
        assert_eq!(tree(&repo), before);
    }
}

#[test]
fn a_read_only_file_is_a_risk_in_the_review_and_keeps_its_mode() {
    let Some(repo) = project() else { return };
    let reviewed = |text: &str| {
        let path = repo.beside("plan.md");
        std::fs::write(&path, text).unwrap();
        chmod(&path, 0o644);
        run(&repo, &["execute", "../plan.md", "-y"]).unwrap()
    };
    chmod(&repo.path().join("a.txt"), 0o444);
    let ran = reviewed(&plan("Change", &[edit("a.txt", "a", "A")]));
    ran.check(0, &["⚠ a.txt is read-only, and is replaced"]);
    assert_eq!(repo.read("a.txt"), "A\n");
    let mode = std::fs::metadata(repo.path().join("a.txt")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o444);

    chmod(&repo.path().join("dir"), 0o555);
    let ran = reviewed(&plan("Change", &[edit("dir/b.txt", "b", "B")]));
    chmod(&repo.path().join("dir"), 0o755);
    ran.check(4, &["⚠ dir/b.txt is in a read-only directory: "]);
    // Nobody edited the file, so there are no sides to choose from.
    assert!(!ran.stderr.contains("--markers"), "{ran}");
}

/// Bug: it stopped half-way with "Permission denied", and every later command did.
#[test]
fn an_undo_needs_no_permission_for_directories_that_stay() {
    let Some(repo) = project() else { return };
    let path = repo.beside("plan.md");
    let both = [edit("dir/b.txt", "b", "B"), create("dir/new.txt", "1\n")];
    std::fs::write(&path, plan("Change", &both)).unwrap();
    chmod(&path, 0o644);
    let ran = run(&repo, &["execute", "../plan.md", "-y"]).unwrap();
    ran.check(0, &[]);
    chmod(&repo.path(), 0o555);
    let undone = run(&repo, &["undo"]).unwrap();
    chmod(&repo.path(), 0o755);
    undone.check(0, &["delete dir/new.txt", "write dir/b.txt"]);
    assert_eq!(repo.read("dir/b.txt"), "b\n");
}

/// Runs a plan in a backend. `None` if the machine has no such backend.
fn run_plan_in(repo: &TestRepo, backend: &str, text: &str, faults: &str) -> Option<Output> {
    let path = repo.beside("plan.md");
    std::fs::write(&path, text).unwrap();
    chmod(&path, 0o644);
    let args = ["-q", "execute", "../plan.md", "-y", "-c", backend];
    let out = run_with(repo, &args, &[("FAILPOINTS", faults)])?;
    (!out.stderr.contains("which this machine cannot do")).then_some(out)
}

#[test]
fn permissions_that_a_command_leaves_block_neither_its_result_nor_the_next_turn() {
    let script = "mkdir s; echo x > s/f; chmod 555 s; mkdir -p t/u; echo y > t/u/g; echo z > h\n\
                  mkdir -p cache/m; echo m > cache/m/n; chmod 444 cache/m/n; chmod 555 cache/m\n\
                  echo B > dir/b.txt; chmod 000 h t/u/g t/u t dir \"$XDG_CACHE_HOME\" .";
    for backend in [OVERLAY, CHECKOUT] {
        let Some(repo) = project() else { return };
        repo.write(".gitignore", "/cache/\n");
        if rustix::process::geteuid().is_root() {
            give(&repo.path());
        }
        let Some(out) = run_plan_in(&repo, backend, &plan("Leave", &[execute(script)]), "") else {
            continue;
        };
        out.check(0, &[]);
        let listed = git(
            &repo,
            &["ls-tree", "-r", "--name-only", "teddy/sessions/demo^2"],
        );
        assert_eq!(
            listed, ".gitignore\na.txt\ndir/b.txt\ndir/c.txt\nh\ns/f\nt/u/g",
            "{backend}"
        );
        for (path, text) in [
            ("s/f", "x\n"),
            ("t/u/g", "y\n"),
            ("h", "z\n"),
            ("dir/b.txt", "B\n"),
        ] {
            assert_eq!(repo.read(path), text, "{backend}");
        }

        // The next commands see the files, and the build output of the first ones.
        let look = "cat s/f t/u/g h dir/b.txt cache/m/n; rm -r s; echo i > t/i";
        let next = plan("Next", &[create("j", "j\n"), execute(look)]);
        run_plan_in(&repo, backend, &next, "")
            .unwrap()
            .check(0, &[]);
        assert!(!repo.path().join("s").exists() && repo.path().join("t/i").exists());
        run(&repo, &["doctor", "--fix"]).unwrap().check(0, &[]);
        run(&repo, &["gc", "--idle-days", "0"])
            .unwrap()
            .check(0, &[]);
        run_plan_in(
            &repo,
            backend,
            &next.replace("`j`", "`k`").replace("(/j)", "(/k)"),
            "",
        );
    }
}

#[test]
fn a_save_before_an_action_runs_stops_the_whole_plan() {
    let actions = [
        create("new.txt", "new\n"),
        execute("true"),
        edit("a.txt", "a", "A"),
    ];
    for backend in [OVERLAY, CHECKOUT] {
        let Some(repo) = project() else { return };
        let script = repo.beside("save.sh");
        let file = repo.path().join("a.txt");
        std::fs::write(&script, format!("echo mine > {}\n", file.display())).unwrap();
        chmod(&script, 0o755);
        // The second turn comes after one that is not in the user's files.
        let unsynced = "the result of turn 1 is not in your files (`a.txt`, `new.txt`); \
                        `teddy restore 1 --theirs` takes it, `--markers` writes conflict markers, \
                        `--ours` keeps your side\n";
        for (point, before) in [("before-worktree", ""), ("after-worktree", unsynced)] {
            repo.write("a.txt", "a\n");
            let faults = format!("{point}=1*return(sh:{})", script.display());
            let Some(out) = run_plan_in(&repo, backend, &plan("Change", &actions), &faults) else {
                continue;
            };
            let warning = "warning: `a.txt` overlaps with your own edits and was left as it is\n";
            assert_eq!(
                (out.code, out.stderr),
                (4, format!("{before}{warning}")),
                "{backend} {point}"
            );
            assert_eq!(repo.read("a.txt"), "mine\n", "{backend} {point}");
            assert!(!repo.path().join("new.txt").exists(), "{backend} {point}");
            let undone = run(&repo, &["undo"]).unwrap();
            undone.check(1, &["error: nothing to undo"]);
        }
    }
}

#[test]
fn an_unreadable_file_is_named_and_kept() {
    let Some(repo) = project() else { return };
    for (path, text) in [("a.txt", "mine\n"), ("secret", "s\n")] {
        repo.write(path, text);
        chmod(&repo.path().join(path), 0o000);
    }
    if rustix::process::geteuid().is_root() {
        give(&repo.path());
    }
    run_plan(&repo, &plan("Change", &[edit("dir/b.txt", "b", "B")])).check(0, &[]);
    let unreadable =
        |path: &str| json!({ "path": path, "reason": "unreadable: permission denied" });
    assert_eq!(
        not_captured(&repo),
        json!([unreadable("a.txt"), unreadable("secret")])
    );
    let refused = run_plan(&repo, &plan("Change", &[edit("a.txt", "a", "A")]));
    insta::assert_snapshot!(refused.shown(&repo), @r"
    turn 2 executed [id]
    --- stderr
    warning: `a.txt` overlaps with your own edits and was left as it is
    exit code 4
    ");
    let restored = run(&repo, &["restore", "0"]).unwrap();
    insta::assert_snapshot!(restored.shown(&repo), @r"
    write dir/b.txt
    --- stderr
    Your files match turn 0: 1 file changed.
    exit code 0
    ");
    for (path, text) in [("a.txt", "mine\n"), ("secret", "s\n")] {
        chmod(&repo.path().join(path), 0o644);
        assert_eq!(repo.read(path), text);
    }
}

#[test]
fn a_session_in_a_repository_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let Some(repo) = project() else { return };
    std::os::unix::fs::lchown(repo.path().join(".git"), Some(0), Some(0)).unwrap();
    let out = run(&repo, &["status"]).unwrap();
    insta::assert_snapshot!(out.shown(&repo), @r"
    --- stderr
    error: `[dir]/repo` belongs to another user
    hint: if you trust it: `git config --global --add safe.directory [dir]/repo`
    exit code 1
    ");
}

/// Returns the permissions of a file.
fn mode(repo: &TestRepo, name: &str) -> u32 {
    let found = repo.path().join(name).metadata().unwrap();
    found.permissions().mode() & 0o777
}

#[test]
fn a_file_that_a_command_made_private_is_kept_private() {
    for backend in ["overlay", "checkout"] {
        if backend == "overlay" && !overlay::overlays() {
            continue;
        }
        let repo = TestRepo::new().file("a.txt", "a\n");
        repo.commit("init");
        repo.workflow().new_session("demo").done();
        let script = "umask 022; mkdir d; echo p > plain; echo k > d/secret; chmod 600 d/secret; \
                      echo t > tool; chmod 700 tool";
        let setting = format!("worktree.backend={backend}");
        overlay::run(&repo, &setting, script).check(0, &[]);
        let modes = || ["plain", "d/secret", "tool"].map(|name| mode(&repo, name));
        assert_eq!(modes(), [0o644, 0o600, 0o700], "{backend}");
        repo.workflow().undo(1).done();
        assert!(!repo.path().join("d").exists());
        repo.workflow().redo(1).done();
        assert_eq!(modes(), [0o644, 0o600, 0o700], "{backend}, after a redo");

        // The user opens one and closes the other.
        chmod(&repo.path().join("d/secret"), 0o644);
        chmod(&repo.path().join("plain"), 0o600);
        repo.workflow().undo(1).done();
        repo.workflow().restore("1").done();
        assert_eq!(modes(), [0o600, 0o644, 0o700], "{backend}, after a restore");
    }
}

#[test]
fn a_private_file_of_the_users_comes_back_private() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let repo = repo.file("mine.txt", "mine\n");
    chmod(&repo.path().join("mine.txt"), 0o600);
    repo.run_plan(&plan("Remove it", &[execute("rm mine.txt")]));
    assert!(!repo.path().join("mine.txt").exists());
    repo.workflow().undo(1).done();
    assert_eq!(mode(&repo, "mine.txt"), 0o600);
}

#[test]
fn another_user_of_the_repository_sees_who_owns_the_sessions() {
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can try two users");
    }
    let Some(repo) = project() else { return };
    // Everybody can write, as a group could with `core.sharedRepository`.
    let shared = ["", ".git", ".git/objects", ".git/refs", ".git/worktrees"];
    for dir in shared.map(|dir| repo.path().join(dir)) {
        if dir.exists() {
            chmod(&dir, 0o777);
        }
    }
    run_plan(&repo, &plan("First", &[create("new.txt", "x\n")])).check(0, &[]);

    let other = |args: &[&str]| {
        let home = repo.beside("other");
        std::fs::create_dir_all(&home).unwrap();
        std::os::unix::fs::lchown(&home, Some(NOBODY - 1), Some(NOBODY - 1)).unwrap();
        let own = repo.teddy_command(args);
        let mut command = repo.command("setpriv");
        for (name, value) in own.get_envs() {
            value.map(|value| command.env(name, value));
        }
        let number = (NOBODY - 1).to_string();
        command.args(["--reuid", &number, "--regid", &number, "--clear-groups"]);
        command
            .arg("--")
            .arg(own.get_program())
            .args(own.get_args());
        for (name, dir) in [
            ("HOME", ""),
            ("XDG_CONFIG_HOME", "c"),
            ("XDG_CACHE_HOME", "k"),
        ] {
            command.env(name, home.join(dir));
        }
        let config = home.join("gitconfig");
        std::fs::write(&config, "[safe]\n\tdirectory = *\n").unwrap();
        command.env("GIT_CONFIG_GLOBAL", config);
        Output::of(command.current_dir(repo.path()))
    };
    let mut replies = String::new();
    for args in [
        &["new", "mine"][..],
        &["execute", "../plan.md", "-y"],
        &["doctor", "--fix"],
        &["undo"],
        &["gc"],
    ] {
        let reply = other(args);
        assert_eq!((reply.code, reply.stdout.as_str()), (1, ""), "{args:?}");
        replies += &reply.shown(&repo);
    }
    insta::assert_snapshot!(replies, @r"
    --- stderr
    error: cannot lock `[dir]/repo/.git/teddy/lock`: `[dir]/repo/.git/teddy` belongs to another user (id 65534); a clone has sessions of its own
    exit code 1
    --- stderr
    error: cannot lock `[dir]/repo/.git/teddy/locks/demo/lock`: `[dir]/repo/.git/teddy` belongs to another user (id 65534); a clone has sessions of its own
    exit code 1
    --- stderr
    error: cannot lock `[dir]/repo/.git/teddy/lock`: `[dir]/repo/.git/teddy` belongs to another user (id 65534); a clone has sessions of its own
    exit code 1
    --- stderr
    error: cannot lock `[dir]/repo/.git/teddy/locks/demo/lock`: `[dir]/repo/.git/teddy` belongs to another user (id 65534); a clone has sessions of its own
    exit code 1
    --- stderr
    error: cannot lock `[dir]/repo/.git/teddy/lock`: `[dir]/repo/.git/teddy` belongs to another user (id 65534); a clone has sessions of its own
    exit code 1
    ");
    let checks = other(&["doctor"]);
    let lines = checks.stdout.lines();
    let lines: Vec<&str> = lines
        .skip_while(|line| !line.starts_with("worktrees"))
        .take_while(|line| !line.starts_with("agents"))
        .collect();
    let problem = format!(
        "  problem   `{}` belongs to another user (id {NOBODY}); a clone has sessions of its own",
        repo.path().join(".git/teddy").display()
    );
    assert_eq!(lines, ["worktrees   1 problem", &problem], "{checks}");
    assert!(!checks.stdout.contains("still lists"), "{checks}");

    // The first user notices nothing of it.
    let status = run(&repo, &["status"]).unwrap();
    insta::assert_snapshot!(status.shown(&repo), @r"
    Session demo, turn 1, on branch main
    Ready for turn 2
    Your files are as the newest turn left them
    --- stderr
    Next: teddy '<what you want>'
    exit code 0
    ");
    run(&repo, &["undo"]).unwrap().check(0, &[]);
    run(&repo, &["verify"]).unwrap().check(0, &[]);
}
