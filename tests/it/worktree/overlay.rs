//! Commands in an overlay over the user's files: what they see and leave, and the same results as
//! in a checkout.
//!
//! CI also runs this module as root.

use crate::plans::{create, edit, execute, plan, read};
use crate::support::overlay::{CHECKOUT, OVERLAY, files, overlays, printed, project, run, signs};
use crate::support::{Output, TestRepo};

#[test]
fn a_command_sees_the_files_that_git_ignores_and_no_secret() {
    if !overlays() {
        return;
    }
    let repo = project();
    let before = files(&repo.path());
    run(
        &repo,
        OVERLAY,
        "cat target/built .venv/lib; ls -a . target untracked; cat .env",
    )
    .check(1, &[]);
    let said = printed(&repo);
    assert!(said.contains("built\nlib\n"), "{said}");
    for secret in [".env\n", "id_rsa", "KEY="] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
    assert_eq!(files(&repo.path()), before);

    repo.configure("worktree: { copy: ['/.env'] }\n");
    run(&repo, OVERLAY, "cat .env; test ! -e target/.env").check(0, &[]);
    assert!(printed(&repo).contains("KEY=2"));
}

/// Regression: TeDDy read the rules behind the link, and failed because it leads to itself.
#[test]
fn a_directory_can_take_the_place_of_a_link_to_itself() {
    let repo = TestRepo::new();
    std::os::unix::fs::symlink("link", repo.path().join("link")).unwrap();
    repo.commit("init");
    repo.done(&["new", "demo"]);
    let script = "rm link && mkdir -p link/sub && echo 1 > link/sub/a.txt";
    repo.run_plan(&plan("Replace it", &[execute(script)]));
    assert_eq!(repo.read("link/sub/a.txt"), "1\n");
}

#[test]
fn what_a_command_makes_of_ignored_files_stays_in_the_layer_from_turn_to_turn() {
    if !overlays() {
        return;
    }
    let repo = project();
    run(
        &repo,
        OVERLAY,
        "echo mine > target/built; rm .venv/lib; echo x > x.log; echo n > n.txt",
    )
    .check(0, &[]);
    assert_eq!(repo.read("target/built"), "built\n");
    assert_eq!(repo.read(".venv/lib"), "lib\n");
    assert_eq!(repo.read("n.txt"), "n\n");
    assert!(!repo.path().join("x.log").exists());

    repo.write("n.txt", "the user's\n");
    run(
        &repo,
        OVERLAY,
        "cat target/built x.log n.txt; test ! -e .venv/lib",
    )
    .check(0, &[]);
    assert_eq!(
        printed(&repo).lines().collect::<Vec<_>>()[..3],
        ["mine", "x", "the user's"]
    );
    repo.done(&["gc", "--idle-days", "0"]);
    run(&repo, OVERLAY, "cat target/built .venv/lib").check(0, &[]);
    assert!(printed(&repo).starts_with("built\nlib\n"));
}

#[test]
fn a_later_version_of_the_users_wins_over_a_commands_in_an_ignored_file() {
    if !overlays() {
        return;
    }
    let repo = project();
    repo.write("x.log", "mine\n");
    run(
        &repo,
        OVERLAY,
        "echo theirs > x.log; echo theirs > target/built",
    )
    .check(0, &[]);
    let report = repo.done(&["show"]);
    let line = "git ignores it, and one more file that changed";
    assert!(report.contains(line), "{report}");
    run(&repo, OVERLAY, "cat x.log target/built").check(0, &[]);
    assert!(printed(&repo).starts_with("theirs\ntheirs\n"));

    repo.write("x.log", "mine, later\n");
    // As a package manager does, which keeps the times of a package.
    repo.write("target/built", "mine, too\n");
    let built = std::fs::File::options()
        .write(true)
        .open(repo.path().join("target/built"));
    let old = std::time::SystemTime::UNIX_EPOCH;
    built.unwrap().set_modified(old).unwrap();
    run(&repo, OVERLAY, "cat x.log target/built").check(0, &[]);
    assert!(printed(&repo).starts_with("mine, later\nmine, too\n"));
    let report = repo.done(&["show"]);
    assert!(!report.contains("git ignores it"), "{report}");
}

#[test]
fn control_directories_of_other_systems_are_closed_like_gits() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let repo = project();
        for dir in [".jj", ".hg", ".sl"] {
            repo.write(&format!("{dir}/store/secret"), "secret\n");
        }
        repo.configure("worktree: { copy: ['**/secret'] }\n");
        let script = "find . -name secret; test ! -e .jj && mkdir .hg && echo x | tee .hg/x";
        run(&repo, backend, script).check(0, &[]);
        assert!(!printed(&repo).contains("secret\n"), "{}", printed(&repo));
        let recorded = repo.git(&["ls-tree", "-r", "--name-only", "teddy/sessions/s^2"]);
        assert!(!recorded.contains(".hg"), "{recorded}");
        assert!(!repo.path().join(".hg/x").exists());
        assert_eq!(repo.read(".jj/store/secret"), "secret\n");

        let change = plan("Change", &[create(".jj/x", "x\n")]);
        repo.write("../plan.md", change);
        repo.teddy(&["execute", "../plan.md", "-y", "--no-replan"])
            .check(3, &["another version control system"]);
    }
}

#[test]
fn git_in_a_command_is_the_private_one_and_knows_every_file() {
    if !overlays() {
        return;
    }
    let repo = project();
    let users = repo.users();
    run(&repo, OVERLAY, "git status --short; ls .git/hooks; git rev-parse HEAD; echo a2 > src/a.txt; git commit -qam two; git stash list").check(0, &[]);
    let said = printed(&repo);
    assert!(!said.contains("??") && !said.contains(" M "), "{said}");
    assert_eq!(repo.users(), users);
    assert_eq!(repo.read("src/a.txt"), "a2\n");
    let subject = repo.git(&["log", "-2", "--format=%s", "teddy/sessions/s^2"]);
    assert!(subject.contains("two"), "{subject}");
}

#[test]
fn the_plans_own_edits_and_its_commands_see_each_other() {
    if !overlays() {
        return;
    }
    let repo = project();
    repo.run_plan(&plan("Look", &[read("src/a.txt")]));
    let steps = [
        create("made.txt", "made\n"),
        execute("cat made.txt; echo by command > both.txt; sed -i s/a/A/ src/a.txt"),
        edit("src/a.txt", "A", "AA"),
        execute("cat src/a.txt; rm made.txt"),
    ];
    let out = repo.teddy_reads(&["execute", "-", "-y", "-c", OVERLAY], plan("Both", &steps));
    out.check(0, &[]);
    assert_eq!(repo.read("src/a.txt"), "AA\n");
    assert_eq!(repo.read("both.txt"), "by command\n");
    assert!(!repo.path().join("made.txt").exists());
}

/// Runs a command that waits until the user has saved something.
fn run_while_saving(repo: &TestRepo, backend: &str, script: &str, save: impl FnOnce()) {
    let (started, saved) = signs(repo);
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; {script}",
        started.display(),
        saved.display()
    );
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| run(repo, backend, &script));
        while !started.exists() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        save();
        std::fs::write(&saved, "").unwrap();
        ran.join().unwrap().check(0, &[]);
    });
}

#[test]
fn what_the_user_saves_while_a_command_runs_is_theirs() {
    if !overlays() {
        return;
    }
    for backend in [OVERLAY, CHECKOUT] {
        let repo = project();
        run_while_saving(&repo, backend, "echo plan >> src/b.txt", || {
            repo.write("src/a.txt", "saved meanwhile\n");
            repo.remove("d/e");
        });
        assert_eq!(repo.read("src/a.txt"), "saved meanwhile\n", "{backend}");
        assert_eq!(repo.read("src/b.txt"), "b\nplan\n", "{backend}");
        assert!(!repo.path().join("d/e").exists(), "{backend}");
        let changed = repo.git(&[
            "diff",
            "--name-only",
            "teddy/sessions/s^2^",
            "teddy/sessions/s^2",
        ]);
        assert_eq!(changed, "src/b.txt", "{backend}");
    }
}

/// Regression: the turn had the user's edit too, and an undo took it away.
#[test]
fn what_the_user_saves_in_a_file_that_a_command_then_writes_is_theirs() {
    if !overlays() {
        return;
    }
    for backend in [OVERLAY, CHECKOUT] {
        let repo = project();
        let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n{last}\n");
        repo.write("src/b.txt", lines("1", "5"));
        run_while_saving(&repo, backend, "sed -i s/5/plan/ src/b.txt", || {
            repo.write("src/b.txt", lines("mine", "5"));
        });
        assert_eq!(repo.read("src/b.txt"), lines("mine", "plan"), "{backend}");
        let of_turn = repo.git(&["show", "teddy/sessions/s^2:src/b.txt"]);
        assert_eq!(of_turn, lines("1", "plan").trim_end(), "{backend}");
        repo.done(&["undo"]);
        assert_eq!(repo.read("src/b.txt"), lines("mine", "5"), "{backend}");
    }
}

#[test]
fn a_project_that_goes_away_while_a_command_runs_loses_nothing_of_the_record() {
    if !overlays() {
        return;
    }
    let repo = project();
    let (started, gone) = signs(&repo);
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.05; done; echo plan > src/new.txt",
        started.display(),
        gone.display()
    );
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| run(&repo, OVERLAY, &script));
        while !started.exists() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        for name in ["src", "d", "run.sh"] {
            repo.remove(name);
        }
        std::fs::write(&gone, "").unwrap();
        // The kernel decides whether the command can still write below a removed directory.
        ran.join().unwrap();
    });
    assert!(!repo.path().join("run.sh").exists());
    assert!(
        repo.git(&["ls-tree", "-r", "--name-only", "teddy/sessions/s^2"])
            .contains("run.sh")
    );
    repo.done(&["verify"]);
    run(&repo, OVERLAY, "true").check(0, &[]);
}

#[test]
fn nothing_of_a_killed_run_stays_mounted_and_the_session_goes_on() {
    if !overlays() {
        return;
    }
    let repo = project();
    let command = repo
        .teddy_command(&["execute", "-", "-y", "-c", OVERLAY])
        .current_dir(repo.path())
        .env("FAILPOINTS", "after-run=return(kill)")
        .stdin(std::process::Stdio::piped())
        .spawn();
    let mut child = command.unwrap();
    let text = plan("Try", &[execute("echo n > n.txt; echo o > target/o")]);
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
    assert!(!child.wait().unwrap().success());
    assert!(!repo.path().join("n.txt").exists());
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(
        !mounts.contains(&repo.beside("home").display().to_string()),
        "{mounts}"
    );
    run(&repo, OVERLAY, "test ! -e n.txt && cat target/o").check(0, &[]);
}

/// Bug: files stayed in the layer that a power cut had torn, because a mounted one flushes nothing.
#[test]
fn a_layer_that_was_mounted_when_the_system_stopped_is_replaced() {
    if !overlays() {
        return;
    }
    let repo = project();
    let boot = repo.path().join(".git/teddy/worktrees/s/layer-boot");
    let stop_while = |script: &str| {
        std::fs::write(repo.beside("plan.md"), plan("Try", &[execute(script)])).unwrap();
        let mut command = repo.teddy_command(&["execute", "../plan.md", "-y", "-c", OVERLAY]);
        command.current_dir(repo.path());
        command.env("FAILPOINTS", "after-run=return(kill)");
        assert!(!command.status().unwrap().success());
        // The test cannot restart the system.
        std::fs::write(&boot, "an earlier one").unwrap();
    };
    stop_while("echo o > target/o");
    run(&repo, OVERLAY, "test ! -e target/o && echo p > target/p").check(0, &[]);
    // The overlay was unmounted before the system stopped.
    std::fs::write(&boot, "an earlier one").unwrap();
    run(&repo, OVERLAY, "cat target/p").check(0, &[]);
    stop_while("echo o > target/o");
    repo.configure("worktree: { setup: 'echo set > target/set' }\n");
    run(&repo, OVERLAY, "cat target/set; test ! -e target/p").check(0, &[]);
    stop_while("true");
    run(&repo, OVERLAY, "cat target/set").check(0, &["preparing the worktree"]);
}

#[test]
fn a_machine_without_overlays_runs_commands_in_a_copy_and_says_so_where_one_is_required() {
    let repo = project();
    let without = |args: &[&str]| {
        let mut command = repo.teddy_command(args);
        command.current_dir(repo.path());
        command.env("FAILPOINTS", "no-overlay=return");
        command
    };
    std::fs::write(
        repo.beside("plan.md"),
        plan("Try", &[execute("ls -a; echo n > n.txt")]),
    )
    .unwrap();
    let file = repo.beside("plan.md").display().to_string();
    let run = |more: &[&str]| Output::of(&mut without(&[&["execute", &file, "-y"], more].concat()));
    run(&[]).check(0, &[]);
    assert!(!printed(&repo).contains("target"));
    assert_eq!(repo.read("n.txt"), "n\n");
    let words =
        "`worktree.backend` is `overlay`, which this machine cannot do: kernel without overlays";
    run(&["-c", OVERLAY]).check(1, &[words, "-c worktree.backend=auto"]);
    let told = Output::of(&mut without(&["-v", "status"]));
    told.check(
        0,
        &["Commands run in a copy of your files (kernel without overlays)"],
    );
    let told = Output::of(&mut without(&["doctor", "-v"]));
    assert!(
        told.stdout.contains("run in a copy of your files"),
        "{told}"
    );
}

#[test]
fn a_set_up_runs_once_in_a_layer() {
    if !overlays() {
        return;
    }
    let repo = project();
    repo.configure("worktree: { setup: 'echo set > target/set; echo x >> src/a.txt' }\n");
    run(&repo, OVERLAY, "cat target/set src/a.txt").check(0, &["preparing the worktree"]);
    assert!(printed(&repo).starts_with("set\na\n"), "{}", printed(&repo));
    let again = run(&repo, OVERLAY, "cat target/set");
    assert!(!again.check(0, &[]).stderr.contains("preparing"));
    repo.configure("worktree: { setup: 'exit 7' }\n");
    run(&repo, OVERLAY, "true").check(1, &["`worktree.setup` failed with exit code 7"]);
}

/// Session names such as `try` are common, so worktrees must not be found by name alone.
#[test]
fn a_repository_at_the_path_of_another_one_sees_nothing_of_its_sessions() {
    let check = |backend: &str| {
        let repo = project();
        run(
            &repo,
            backend,
            "mkdir -p target; echo theirs | tee x.log target/tool",
        )
        .check(0, &[]);
        repo.remove(".git");
        repo.git(&["init", "-q"]);
        repo.commit("another project");
        repo.done(&["new", "s"]);
        run(
            &repo,
            backend,
            "echo seen; find . -name x.log -o -name tool",
        )
        .check(0, &[]);
        assert_eq!(printed(&repo), "seen\n", "{backend}");
        run(&repo, backend, "echo ours > x.log; rm .gitignore").check(0, &[]);
        run(&repo, backend, "cat x.log").check(0, &[]);
        assert_eq!(printed(&repo), "ours\n", "{backend}");
    };
    check(CHECKOUT);
    if overlays() {
        check(OVERLAY);
    }
}

#[test]
fn what_a_turn_recorded_is_the_users_even_where_they_ignore_it_later() {
    let check = |backend: &str| {
        let repo = project();
        let write =
            "mkdir out; echo turn | tee f.tmp g.tmp out/made; rm untracked.txt; echo own > x.log";
        run(&repo, backend, write).check(0, &[]);
        repo.remove("f.tmp");
        repo.write("g.tmp", "edited\n");
        repo.remove("out/made");
        repo.write("out/own", "own\n");
        repo.write("untracked.txt", "again\n");
        repo.write(".gitignore", "*.log\n*.tmp\n/out/\n/untracked.txt\n");

        let look = "ls -d f.tmp out/made; cat g.tmp out/own untracked.txt; cat x.log; true";
        run(&repo, backend, look).check(0, &[]);
        let said = printed(&repo);
        let seen: Vec<&str> = said
            .lines()
            .filter(|line| !line.starts_with("ls:"))
            .collect();
        let seen: Vec<&str> = seen
            .into_iter()
            .filter(|line| !line.starts_with("cat:"))
            .collect();
        let expected: &[&str] = match backend {
            OVERLAY => &["edited", "own", "again", "own"],
            // What a turn made is tracked until a turn or the user removes it.
            _ => &["edited", "own"],
        };
        assert_eq!(seen, expected, "{backend}: {said}");

        run(&repo, backend, "echo '*.log' > .gitignore").check(0, &[]);
        assert!(!repo.path().join("f.tmp").exists(), "{backend}");
        assert_eq!(repo.read("g.tmp"), "edited\n", "{backend}");
    };
    check(CHECKOUT);
    if overlays() {
        check(OVERLAY);
    }
}
