//! Overlays under difficult conditions: unsupported machines, full disks, users who change files
//! during a command, and commands that try to escape.
//!
//! CI also runs this module as root.

use std::path::Path;

use crate::plans::{execute, plan};
use crate::support::overlay::{CHECKOUT, OVERLAY, files, overlays, printed, project, run, signs};
use crate::support::{Output, TestRepo, skipped};

/// Notes why a test is skipped. Returns `!needed`.
fn is_missing(needed: bool, why: &str) -> bool {
    if !needed {
        skipped(why);
    }
    !needed
}

/// Returns the path of the plan, relative to the project.
fn write_plan(repo: &TestRepo, script: &str) -> &'static str {
    std::fs::write(repo.beside("plan.md"), plan("Try", &[execute(script)])).unwrap();
    "../plan.md"
}

/// Runs a shell script with `$TEDDY` in new namespaces. `None` if this process cannot create them.
fn apart(repo: &TestRepo, namespaces: &str, script: &str) -> Option<Output> {
    let within = |script: &str| {
        let mut command = repo.command("unshare");
        command.args([namespaces, "sh", "-c", script]);
        command.env("TEDDY", env!("CARGO_BIN_EXE_teddy"));
        command.current_dir(repo.path());
        command
    };
    let can = within("true")
        .output()
        .is_ok_and(|output| output.status.success());
    let missing = is_missing(can, &format!("`unshare {namespaces}` is not possible here"));
    (!missing).then(|| Output::of(&mut within(script)))
}

/// Exit code 77: the script could not mount.
fn is_refused(out: &Output) -> bool {
    is_missing(out.code != 77, "this cannot be mounted here")
}

/// Calls `deed` while a command runs, then lets the command run `script`.
fn meanwhile(repo: &TestRepo, script: &str, deed: impl FnOnce()) -> Output {
    let (started, go) = signs(repo);
    let script = format!(
        "touch {}; while [ ! -e {} ]; do sleep 0.02; done; {script}",
        started.display(),
        go.display()
    );
    std::thread::scope(|scope| {
        let ran = scope.spawn(|| run(repo, OVERLAY, &script));
        while !started.exists() && !ran.is_finished() {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        deed();
        std::fs::write(&go, "").unwrap();
        ran.join().unwrap()
    })
}

#[test]
fn where_namespaces_are_forbidden_commands_run_in_a_copy() {
    let repo = project();
    write_plan(&repo, "ls -a; echo n > n.txt");
    let forbidden = "echo 0 > /proc/sys/user/max_mnt_namespaces || exit 77;";
    let Some(out) = apart(
        &repo,
        "-Ur",
        &format!("{forbidden} $TEDDY -v execute ../plan.md -y"),
    ) else {
        return;
    };
    if is_refused(&out) {
        return;
    }
    let words = "Commands run in a copy of your files (no namespace of mounts)";
    out.check(0, &[words]);
    assert!(!printed(&repo).contains("target"), "{}", printed(&repo));
    assert_eq!(repo.read("n.txt"), "n\n");

    let insist = format!("{forbidden} $TEDDY execute ../plan.md -y -c {OVERLAY}");
    let words = "`worktree.backend` is `overlay`, which this machine cannot do: no namespace";
    let out = apart(&repo, "-Ur", &insist).unwrap();
    out.check(1, &[words, "-c worktree.backend=auto"]);
}

#[test]
fn a_project_that_lies_on_overlays_is_seen_through_one_or_copied() {
    if is_missing(overlays(), "no overlays here") {
        return;
    }
    let repo = project();
    write_plan(
        &repo,
        "echo n >> src/a.txt; test ! -e target/built || echo warm",
    );
    let mounts = "m=$(dirname $PWD)/m; mkdir $m; mount -t tmpfs t $m || exit 77
        mkdir $m/u $m/k $m/p $m/u2 $m/k2 $m/p2
        options=userxattr,lowerdir=$PWD,upperdir=$m/u,workdir=$m/k
        mount -t overlay o -o $options $m/p || exit 77
        cp $m/../plan.md $m; cd $m/p
        $TEDDY execute ../plan.md -y; $TEDDY show @ output/01.txt
        options=userxattr,lowerdir=$m/p,upperdir=$m/u2,workdir=$m/k2
        mount -t overlay o -o $options $m/p2 || exit 77; cd $m/p2
        $TEDDY execute ../plan.md -y; $TEDDY execute ../plan.md -y -c worktree.backend=overlay";
    let Some(out) = apart(&repo, "-m", mounts) else {
        return;
    };
    if is_refused(&out) {
        return;
    }
    assert!(out.stdout.contains("warm"), "{out}");
    let copied = "commands run in a copy of your files, not over them: mounting an";
    out.check(
        1,
        &[copied, "which this machine cannot do: mounting an overlay"],
    );
    assert_eq!(out.stderr.matches(copied).count(), 1, "{out}");
    assert_eq!(repo.read("src/a.txt"), "a\n");
}

#[test]
fn a_file_system_that_cannot_take_layers_takes_copies() {
    for kind in ["ramfs", "overlay"] {
        let repo = project();
        write_plan(&repo, "echo n >> src/a.txt");
        let mount = format!(
            "c=$XDG_CACHE_HOME; test -n \"$c\" || c=$HOME/.cache; b=$(dirname $PWD)/b
            mkdir -p $c $b; mount -t tmpfs t $b || exit 77; mkdir $b/u $b/k
            options=lowerdir=$c,upperdir=$b/u,workdir=$b/k
            if [ {kind} = ramfs ]; then mount -t ramfs r $c; else mount -t overlay o -o $options $c; fi || exit 77
            $TEDDY -v execute ../plan.md -y && $TEDDY execute ../plan.md -y -c {OVERLAY}"
        );
        let Some(out) = apart(&repo, "-m", &mount) else {
            return;
        };
        if is_refused(&out) {
            return;
        }
        let words = "Commands run in a copy of your files (";
        out.check(1, &[words, "which this machine cannot do: "]);
        assert_eq!(repo.read("src/a.txt"), "a\nn\n", "{kind}: {out}");
    }
}

#[test]
fn a_full_disk_below_the_worktrees_is_said_and_loses_nothing() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && is_missing(overlays(), "no overlays here") {
            continue;
        }
        let repo = project();
        let users = files(&repo.path());
        let [fails, goes] = ["head -c 9000000 /dev/zero > big", "echo ok > ok.txt"]
            .map(|script| plan("Try", &[execute(script)]));
        repo.put("../fails.md", fails).put("../goes.md", goes);
        // The third run first removes what the second left on the disk, which frees space, so it
        // can succeed or fail.
        let script = format!(
            "c=$XDG_CACHE_HOME; test -n \"$c\" || c=$HOME/.cache; mkdir -p $c
            mount -t tmpfs -o size=2m t $c || exit 77; run='$TEDDY execute -y -c {backend}'
            head -c 9000000 /dev/zero > $c/fill; eval $run ../goes.md; echo first $?
            rm $c/fill; eval $run ../fails.md; echo second $?; $TEDDY undo
            head -c 9000000 /dev/zero > $c/fill; eval $run ../goes.md && test -s ok.txt
            test $? = 0 || test ! -e ok.txt; echo third $?
            rm $c/fill; eval $run ../goes.md; echo fourth $?"
        );
        let Some(out) = apart(&repo, "-m", &script) else {
            return;
        };
        if is_refused(&out) {
            return;
        }
        for words in ["first 1", "second 1", "third 0", "fourth 0"] {
            assert!(out.stdout.contains(words), "{words}: {out}");
        }
        let full =
            "is full, so what commands wrote there may be incomplete; `teddy gc` frees space";
        let unmade = "the session's worktree cannot be made; nothing was run: ";
        out.check(
            0,
            &[full, unmade, "`worktree.root` puts worktrees on another"],
        );
        assert_eq!(repo.read("ok.txt"), "ok\n");
        repo.remove("ok.txt");
        assert_eq!(files(&repo.path()), users, "{backend}: {out}");
        repo.done(&["verify"]);
    }
}

#[test]
fn a_command_that_removes_its_own_folder_removes_files_and_nothing_else() {
    if is_missing(overlays(), "no overlays here") {
        return;
    }
    for script in [
        "rm -rf \"$PWD\"; rmdir \"$PWD\"; true",
        "mv \"$PWD\" \"$PWD.x\"; mv \"$PWD\" /tmp; rm -rf .[a-z]* *; cd ..; rm -rf *; true",
    ] {
        let repo = project();
        repo.put("../home/mine", "mine\n");
        run(&repo, OVERLAY, script).check(0, &[]);
        // Ignored files are not part of a result.
        let left = files(&repo.path());
        let ignored = [
            ".env",
            ".venv/.gitignore",
            ".venv/lib",
            "target/.env",
            "target/built",
        ];
        let names: Vec<&str> = left.keys().map(String::as_str).collect();
        let of_snapshot = |name: &&str| !ignored.contains(name);
        assert_eq!(
            names.into_iter().filter(of_snapshot).collect::<Vec<_>>(),
            ["untracked/id_rsa"],
            "{script}"
        );
        assert_eq!(repo.read("../home/mine"), "mine\n");
        repo.done(&["undo"]);
        run(&repo, OVERLAY, "cat target/built src/a.txt").check(0, &[]);
        assert!(
            printed(&repo).starts_with("built\na\n"),
            "{}",
            printed(&repo)
        );
    }
}

#[test]
fn a_file_with_two_names_is_not_written_by_the_other() {
    if is_missing(overlays(), "no overlays here") {
        return;
    }
    for backend in [OVERLAY, CHECKOUT] {
        let repo = project();
        repo.put("../outside", "outside\n");
        let link = |from: &str, to: &str| {
            std::fs::hard_link(repo.path().join(from), repo.path().join(to)).unwrap();
        };
        link("src/a.txt", "src/a2.txt");
        link("../outside", "src/outside");
        let script =
            "echo x >> src/a.txt; echo x >> src/outside; ln src/b.txt src/b2; echo x >> src/b2";
        run(&repo, backend, script).check(0, &[]);
        let read = [
            "src/a.txt",
            "src/a2.txt",
            "../outside",
            "src/outside",
            "src/b2",
        ];
        assert_eq!(
            read.map(|path| repo.read(path)),
            ["a\nx\n", "a\n", "outside\n", "outside\nx\n", "b\nx\n"],
            "{backend}"
        );
    }
}

/// Attempts to escape from the overlay. `REPO` is the user's directory, at which commands find the
/// overlay. None of them changes a file of the result.
const AROUND: [&str; 12] = [
    "mount -o remount,rw . ; mount -t tmpfs t src; mount --bind /tmp src",
    "umount . ; umount -l \"$PWD\"; umount -a",
    "unshare -m true && echo LEFT; unshare -Urm mount -t tmpfs t src && echo LEFT",
    "nsenter -t $PPID -m true && echo LEFT; nsenter -t 1 -m true && echo LEFT",
    "chroot . true && echo LEFT; chroot / true && echo LEFT",
    "for p in /proc/[0-9]* /proc/self; do for at in root cwd; do echo x > $p/$at/REPO/src/a.txt; cat $p/$at/REPO/.env $p/$at/REPO/.git/config; done; done; git checkout -q src/a.txt",
    "for p in /proc/[0-9]*; do for fd in $p/fd/*; do echo x > $fd/src/a.txt; cat $fd/.env; done; done",
    "mknod src/gone c 0 0; mknod src/n c 1 3; ls src",
    "mv .git g; cat .git/config; mkdir .git; ls -a .git; rmdir .git; ln -s g .git; rm .git; mv g .git",
    "rm -rf .git; cat .git/config; git remote -v",
    "rm .env; mkdir .env; rmdir .env; cat .env target/.env; mv target t; cat t/.env; mv t target",
    "ls -aR ../.teddy-worktrees; echo x > ../.teddy-worktrees/s/layer/files/src/a.txt; rm -rf ../.teddy-worktrees",
];

#[test]
fn no_command_gets_around_the_view() {
    if is_missing(overlays(), "no overlays here") {
        return;
    }
    let repo = project();
    repo.git(&["config", "remote.origin.pushurl", "https://me:KEY=4@host/x"]);
    let (before, users) = (files(&repo.path()), repo.users());
    let mut wrong = Vec::new();
    let path = repo.path().display().to_string();
    for scripts in AROUND.chunks(3) {
        let script = scripts.join(") 2>&1; (").replace("/REPO", &path);
        let script = format!("({script}) 2>&1; echo the end");
        let out = run(&repo, OVERLAY, &script);
        let said = printed(&repo);
        let reached = said.contains("KEY=") || said.contains("LEFT");
        let same = files(&repo.path()) == before && repo.users() == users;
        if out.code != 0 || reached || !same || !said.contains("the end") {
            wrong.push(format!("{script}: same {same}\n{said}\n{out}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(
        !mounts.contains(&repo.beside("").display().to_string()),
        "{mounts}"
    );
}

/// Sets the attributes with which overlayfs marks its own files.
const ATTRIBUTES: &str = "python3 - <<'P'
import os
for space in ['user.overlay.', 'trusted.overlay.', 'user.overlay.overlay.']:
    for name, value in [('opaque', b'y'), ('whiteout', b'y'), ('redirect', b'/d'), ('metacopy', b''), ('origin', b'x')]:
        for path in ['.', '.git', 'src', 'src/deep', 'src/a.txt', 'target']:
            try:
                os.setxattr(path, space + name, value)
            except OSError:
                pass
P
ls .git/config target/built src/a.txt; cat .git/config .env; true";

#[test]
fn attributes_of_overlays_that_a_command_sets_mean_nothing() {
    let python = teddy::host::process::find("python3").is_some();
    if is_missing(overlays() && python, "no overlays or no Python here") {
        return;
    }
    let repo = project();
    repo.git(&["config", "remote.origin.pushurl", "https://me:KEY=4@host/x"]);
    let before = files(&repo.path());
    for _ in 0..2 {
        run(&repo, OVERLAY, ATTRIBUTES).check(0, &[]);
        let said = printed(&repo);
        assert!(
            said.contains("target/built\n") && !said.contains("KEY="),
            "{said}"
        );
        assert_eq!(files(&repo.path()), before);
    }
    run(&repo, OVERLAY, "rm -r src/deep; cat src/a.txt target/built").check(0, &[]);
    assert!(!repo.path().join("src/deep/c.txt").exists());
    assert_eq!(repo.read("src/a.txt"), "a\n");
}

#[test]
fn a_view_whose_holder_is_killed_interrupts_the_plan() {
    if is_missing(overlays(), "no overlays here") {
        return;
    }
    let repo = project();
    let before = files(&repo.path());
    let home = repo.beside("home").display().to_string();
    let out = meanwhile(&repo, "echo n > n.txt", || {
        let mine = |process: &Path| {
            let read = |name: &str| std::fs::read(process.join(name)).unwrap_or_default();
            let held = String::from_utf8_lossy(&read("mountinfo")).contains(&home);
            held && String::from_utf8_lossy(&read("cmdline")).contains("__overlay")
        };
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let holder = processes.map(|entry| entry.path()).find(|path| mine(path));
        let name = holder.unwrap().file_name().unwrap().to_owned();
        let pid = rustix::process::Pid::from_raw(name.to_str().unwrap().parse().unwrap());
        rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::KILL).unwrap();
    });
    out.check(
        1,
        &["the process that shows commands your files was ended from outside"],
    );
    assert_eq!(files(&repo.path()), before);
    repo.done(&[
        "execute",
        "-y",
        "-c",
        CHECKOUT,
        write_plan(&repo, "echo m > m.txt"),
    ]);
    run(&repo, OVERLAY, "test -e m.txt").check(0, &[]);
}

#[test]
fn a_project_that_is_rewritten_while_a_command_runs_keeps_what_the_user_made() {
    if is_missing(overlays(), "no overlays here") {
        return;
    }
    let repo = project();
    let out = meanwhile(&repo, "echo made > made.txt", || {
        repo.git(&["checkout", "-qb", "other"]);
        repo.git(&["rm", "-rq", "src", "d"]);
        repo.write("src", "a file now\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "rewritten"]);
    });
    out.check(0, &[]);
    assert_eq!(repo.read("src"), "a file now\n");
    assert_eq!(repo.read("made.txt"), "made\n");
    assert!(!repo.path().join("d/e").exists());
    repo.done(&["verify"]);
}

#[test]
fn a_project_that_is_moved_away_while_a_command_runs_goes_on_when_it_is_back() {
    if is_missing(overlays(), "no overlays here") {
        return;
    }
    let repo = project();
    let (here, away) = (repo.path(), repo.beside("away"));
    let before = files(&here);
    let out = meanwhile(&repo, "echo made > made.txt", || {
        std::fs::rename(&here, &away).unwrap();
    });
    out.check(1, &["is gone"]);
    assert_eq!(files(&away), before);
    std::fs::rename(&away, &here).unwrap();
    run(&repo, OVERLAY, "test ! -e made.txt; cat target/built").check(0, &[]);
    repo.done(&["verify"]);
}

/// Private files that an overlay would show: the project is the directory of all settings, or
/// contains its git directory under another name.
#[test]
fn private_places_in_the_project_are_seen_by_no_command() {
    let settings = TestRepo::new();
    let folder = settings.beside("home/config");
    std::fs::create_dir_all(folder.join("gh")).unwrap();
    std::fs::write(folder.join("gh/hosts.yml"), "token\n").unwrap();
    std::fs::write(folder.join(".gitignore"), "gh/\n").unwrap();
    settings.git_in(&folder, &["init", "-q", "-b", "main"]);
    settings.git_in(&folder, &["add", "-A"]);
    settings.git_in(&folder, &["commit", "-q", "-m", "one"]);

    let apart = TestRepo::new();
    let project = apart.beside("apart");
    std::fs::create_dir(&project).unwrap();
    let separate = format!("--separate-git-dir={}", project.join("data").display());
    apart.git_in(&project, &["init", "-q", "-b", "main", &separate]);
    std::fs::write(project.join(".gitignore"), "data/\n").unwrap();
    apart.git_in(&project, &["add", "-A"]);
    apart.git_in(&project, &["commit", "-q", "-m", "one"]);

    for (repo, folder, secret) in [
        (&settings, &folder, "gh/hosts.yml"),
        (&apart, &project, "data/config"),
    ] {
        assert_eq!(repo.teddy_in(folder, &["new", "s"]).code, 0);
        let script = format!("test ! -e {secret} && echo ok > seen");
        std::fs::write(repo.beside("plan.md"), plan("Look", &[execute(&script)])).unwrap();
        let path = repo.beside("plan.md");
        let out = repo.teddy_in(folder, &["execute", path.to_str().unwrap(), "-y"]);
        assert_eq!(out.code, 0, "{secret}: {out}");
        assert!(folder.join("seen").exists(), "{secret}: {out}");
    }
}

/// Bug: a turn could make any secret visible to the next one.
#[test]
fn only_the_users_own_settings_show_secrets() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let repo = project();
        // A commit must not help either.
        let script = "printf '.env\\n' > .worktreeinclude; git add -A; git commit -q -m more";
        let out = run(&repo, backend, script);
        assert_eq!(out.code, 0, "{out}");
        let seen = "test ! -e .env && echo hidden > seen || echo shown > seen";
        assert_eq!(run(&repo, backend, seen).code, 0);
        assert_eq!(repo.read("seen"), "hidden\n", "{backend}");

        repo.configure("worktree:\n  copy: [.env]\n");
        assert_eq!(run(&repo, backend, seen).code, 0);
        assert_eq!(repo.read("seen"), "shown\n", "{backend}");
    }
}

/// Bug: git does not treat a directory with tracked files as a nested repository, but TeDDy did and
/// lost the files.
#[test]
fn a_repository_that_is_made_among_tracked_files_takes_none_away() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let repo = project();
        let script = "cd src; git init -q; git -c user.email=a -c user.name=b commit -q --allow-empty -m x; echo n > n";
        let out = run(&repo, backend, script);
        assert_eq!(out.code, 0, "{out}");
        let texts = ["src/a.txt", "src/b.txt", "src/n"].map(|path| repo.read(path));
        assert_eq!(texts, ["a\n", "b\n", "n\n"], "{backend}");
        repo.done(&["undo"]);
        assert!(!repo.path().join("src/n").exists());
        assert_eq!(repo.read("src/a.txt"), "a\n", "{backend}");
    }
}

/// A command can change the permissions of the user's own directory, and root can list it anyway.
#[test]
fn what_is_in_a_folder_that_the_user_closed_is_seen_by_no_command() {
    use std::os::unix::fs::PermissionsExt as _;
    let repo = project().file("conf/.env", "KEY=1\n");
    let close = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(repo.path().join("conf"), permissions).unwrap();
    };
    close(0o000);
    let script = "chmod 755 conf; cat conf/.env && echo shown > seen || echo hidden > seen";
    let out = run(&repo, "worktree.backend=auto", script);
    close(0o755);
    assert_eq!(out.code, 0, "{out}");
    assert_eq!(repo.read("seen"), "hidden\n", "{out}");
}

/// Options of `unshare` with which this user can mount.
fn mounts() -> &'static str {
    match rustix::process::geteuid().is_root() {
        true => "-m",
        false => "-Urm",
    }
}

/// Runs a plan whose command runs a program of the project and one of its own, and commits.
const USUAL: &str = "./run.sh && echo '#!/bin/sh' > \"$TMPDIR/t\" && chmod +x \"$TMPDIR/t\" && \"$TMPDIR/t\" && \
    echo n >> src/a.txt && git commit -qam own && git log --format=%s -1";

#[test]
fn a_cache_on_another_file_system_is_used_as_any_other() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && is_missing(overlays(), "no overlays here") {
            continue;
        }
        let repo = project();
        repo.git(&["update-index", "--chmod=+x", "run.sh"]);
        repo.git(&["checkout", "-q", "run.sh"]);
        repo.git(&["commit", "-qm", "executable"]);
        write_plan(&repo, USUAL);
        let script = format!(
            "c=$HOME/.cache; mkdir -p $c; mount -t tmpfs -o mode=700,nosuid,nodev t $c || exit 77
            for n in 1 2; do $TEDDY execute ../plan.md -y -c {backend} || exit 1; done
            $TEDDY undo 2 && $TEDDY gc --idle-days 0 && $TEDDY redo && $TEDDY recover
            $TEDDY execute ../plan.md -y -c {backend} && $TEDDY show @ output/01.txt && git worktree list"
        );
        let Some(out) = apart(&repo, mounts(), &script) else {
            return;
        };
        if is_refused(&out) {
            return;
        }
        out.check(0, &["own\n", "/s ", " locked\n"]);
        assert_eq!(repo.read("src/a.txt"), "a\nn\nn\n", "{backend}: {out}");
    }
}

#[test]
fn a_cache_that_runs_no_programs_is_named_where_commands_need_them() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && is_missing(overlays(), "no overlays here") {
            continue;
        }
        let repo = project();
        repo.put(
            "../edit.md",
            plan("Try", &[execute("echo n > n.txt; sh run.sh")]),
        );
        repo.put(
            "../plan.md",
            plan("Try", &[execute("chmod +x run.sh; ./run.sh")]),
        );
        let tool = "printf '#!/bin/sh\\n' > $TMPDIR/t; chmod +x $TMPDIR/t; $TMPDIR/t";
        repo.put("../tool.md", plan("Try", &[execute(tool)]));
        let script = format!(
            "c=$HOME/.cache; t=$(dirname $PWD)/t; mkdir -p $c $t
            for d in $c $t; do mount -t tmpfs -o noexec,nosuid,nodev t $d || exit 77; done
            run='$TEDDY execute -y -c {backend}'
            eval $run ../edit.md; echo files $?; eval $run ../plan.md; echo program $?
            TMPDIR=$t; export TMPDIR; eval $run ../tool.md; echo tool $?"
        );
        let Some(out) = apart(&repo, mounts(), &script) else {
            return;
        };
        if is_refused(&out) {
            return;
        }
        // In an overlay, the options of the mount above it count, and that one runs programs.
        let (code, place) = match backend {
            OVERLAY => (
                "program 0",
                "`$TMPDIR` is on a file system that runs no programs",
            ),
            _ => (
                "program 1",
                "the worktree is on a file system that runs no programs",
            ),
        };
        out.check(0, &["files 0", code, "tool 1", place]);
        let wrong = "the sandbox lets commands write";
        assert!(!out.stderr.contains(wrong), "{backend}: {out}");
        assert_eq!(repo.read("n.txt"), "n\n");
    }
}

#[test]
fn a_container_without_namespaces_and_with_a_read_only_root_runs_commands() {
    let repo = project();
    write_plan(
        &repo,
        "echo n > n.txt; echo t > \"$TMPDIR/t\"; cat src/a.txt; ls -a",
    );
    // All that can be written is the project, the home directory and a temporary directory.
    let script = "d=$(dirname $PWD); cd /; mount --bind $d $d && mkdir -p $d/t && \
        mount -t tmpfs t $d/t && mount -o remount,bind,ro / || exit 77
        for kind in mnt ipc user; do echo 0 > /proc/sys/user/max_${kind}_namespaces || exit 77; done
        export TMPDIR=$d/t; cd $d/repo
        $TEDDY -v execute ../plan.md -y && $TEDDY undo && $TEDDY redo && $TEDDY gc && $TEDDY doctor";
    let Some(out) = apart(&repo, "-Urm", script) else {
        return;
    };
    if is_refused(&out) {
        return;
    }
    let copied = "Commands run in a copy of your files (no namespace of mounts)";
    out.check(0, &[copied, "sandboxed, no network"]);
    assert_eq!(repo.read("n.txt"), "n\n");
    let said = repo.done(&["show", "1", "output/01.txt"]);
    assert!(
        said.starts_with("a\n") && !said.contains("target"),
        "{said}"
    );
}

#[test]
fn root_of_a_container_without_capabilities_runs_commands() {
    if is_missing(
        rustix::process::geteuid().is_root(),
        "only root can try root",
    ) {
        return;
    }
    let repo = project();
    write_plan(&repo, "echo n > n.txt; cat src/a.txt");
    let set = "-sys_admin,-sys_ptrace,-sys_resource,-mknod,-net_admin";
    let mut command = repo.command("setpriv");
    command.args(["--bounding-set", set, "--inh-caps", set, "--"]);
    command.arg(env!("CARGO_BIN_EXE_teddy"));
    command
        .args(["-v", "execute", "../plan.md", "-y"])
        .current_dir(repo.path());
    let out = Output::of(&mut command);
    if is_missing(!matches!(out.code, 126 | 127), "there is no `setpriv` here") {
        return;
    }
    let copied = "Commands run in a copy of your files (no namespace of mounts)";
    out.check(0, &[copied, "sandboxed, no network"]);
    assert_eq!(repo.read("n.txt"), "n\n");
}

#[test]
fn where_namespaces_are_forbidden_dependencies_are_linked_and_the_rest_is_named() {
    let repo = project();
    repo.write(
        ".gitignore",
        "/target/\n.env\n.venv/\n*.log\nnode_modules/\n",
    );
    repo.write("node_modules/dep/index.js", "1\n");
    repo.write("packages/a/node_modules/b/index.js", "2\n");
    repo.remove(".venv/lib");
    let path_file = ".venv/lib/python3.11/site-packages/mine.pth";
    // No directory on the module path does the same in a copy.
    let path_line = format!(
        "import sys; sys.path.append('{}/src')\n",
        repo.path().display()
    );
    repo.write(path_file, &path_line);
    let script = "cat node_modules/dep/index.js packages/a/node_modules/b/index.js .venv/lib/python3.11/site-packages/mine.pth > seen
        test ! -e target; cat .env; echo x > node_modules/dep/index.js; git status --short";
    write_plan(&repo, script);
    let forbidden = |arguments: &[&str]| {
        let mut command = repo.command(env!("CARGO_BIN_EXE_teddy"));
        command
            .args(arguments)
            .env("FAILPOINTS", "no-namespaces=return");
        Output::of(command.current_dir(repo.path()))
    };
    let out = forbidden(&["execute", "../plan.md", "-y"]);
    out.check(
        0,
        &["commands run in a copy of your files: without `target`, which git ignores; `worktree.copy` or `worktree.link` provides such directories; `.venv` has modules of your checkout (`pip install -e`): commands use them instead of those in the worktree, or fail if the sandbox hides them; `worktree.setup` can install those in the worktree"],
    );
    assert_eq!(repo.read("seen"), format!("1\n2\n{path_line}"));
    assert_eq!(repo.read("node_modules/dep/index.js"), "1\n");
    // The links are no files of the project for git.
    let said = printed(&repo);
    assert!(
        !said.contains("KEY=") && said.ends_with("\n?? seen\n"),
        "{said}"
    );

    let words = "commands, agents, the lanes and checks of races, `bisect run`, `compare --check`, `verify --rerun` and `worktree.setup` run in a copy of your files, with links to ignored dependencies, and other ignored files only if `worktree.copy` or `worktree.link` names them: commands get no view of their own here";
    forbidden(&["doctor"]).check(
        0,
        &[words, "no network, not even loopback, no pseudo-terminals"],
    );
    forbidden(&["-v", "status"]).check(0, &["with no network and no pseudo-terminals, in sh"]);
}

#[test]
fn doctor_gives_the_setting_that_forbids_namespaces() {
    let repo = project();
    let script = "cd /proc/sys/user && echo 0 > max_mnt_namespaces && echo 0 > max_user_namespaces || exit 77
        cd \"$OLDPWD\"; $TEDDY doctor";
    let Some(out) = apart(&repo, "-Ur", script) else {
        return;
    };
    if !is_refused(&out) {
        out.check(0, &["fix: sudo sysctl user.max_user_namespaces=10000"]);
    }
}

#[test]
fn doctor_tells_what_a_command_really_gets() {
    if is_missing(overlays(), "no overlays here") {
        return;
    }
    let repo = project();
    repo.teddy(&["doctor", "--json"]).check(
        0,
        &[
            "`compare --check`, `verify --rerun` and `worktree.setup` run over your files, in an overlay",
            "a network of their own with loopback, pseudo-terminals, and these shells: sh",
        ],
    );
    repo.teddy(&["-v", "status"])
        .check(0, &["with their own loopback and pseudo-terminals, in sh"]);
    let without = |failpoint: &str| {
        let mut command = repo.command(env!("CARGO_BIN_EXE_teddy"));
        command.arg("doctor").env("FAILPOINTS", failpoint);
        Output::of(command.current_dir(repo.path()))
    };
    without("no-terminals=return").check(0, &["with loopback, no pseudo-terminals"]);
    without("no-network-namespace=return").check(0, &["not even loopback, pseudo-terminals"]);
}

/// Bug: git failed in every command, because it followed the `.git` file to what commands do not see.
#[test]
fn git_works_beside_a_submodule_and_a_linked_worktree_among_the_files() {
    for backend in [OVERLAY, CHECKOUT] {
        if backend == OVERLAY && !overlays() {
            continue;
        }
        let repo = project();
        let library = repo.beside("library");
        let name = library.to_str().unwrap();
        repo.git(&["init", "-q", "-b", "main", name]);
        repo.git_in(&library, &["commit", "-q", "--allow-empty", "-m", "lib"]);
        let allowed = "protocol.file.allow=always";
        repo.git(&["-c", allowed, "submodule", "--quiet", "add", name, "sub"]);
        repo.commit("sub");
        repo.git(&["worktree", "add", "-q", "linked"]);

        let script = "git status --short && echo n > n && git add -A && git commit -qm own && \
                      git log --format=%s -1 && git diff HEAD";
        let out = run(&repo, backend, script);
        out.check(0, &[]);
        assert!(!out.stderr.contains("is not recorded"), "{out}");
        assert_eq!(printed(&repo), "own\n", "{backend}");
        assert_eq!(repo.git(&["status", "--short"]), "?? linked/\n?? n");
        if backend == OVERLAY {
            // In there, git does not work on the project.
            let script = "cd sub && ! git checkout -q HEAD~1 && ! git log && ls -a";
            run(&repo, backend, script).check(0, &[]);
            assert!(!printed(&repo).contains("init"));
        }
        assert!(repo.path().join("sub/.git").is_file());
        assert!(repo.path().join("linked/.git").is_file());
    }
}
