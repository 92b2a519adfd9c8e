//! With the sandbox, a command reaches only the worktree. Without it, TeDDy reports what the
//! command changed.
//!
//! CI also runs this module as root.

use teddy::host::sandbox::{Availability, availability};

use super::ground::{Ground, each_fails, none_passed, plan, run, words};
use crate::plans;
use crate::support::overlay::overlays;

/// Commands that must fail in the sandbox. `OUT` is a directory outside of the project, `REPO` the
/// user's repository, `HOME` the home directory. Over the user's files, `REPO` is the overlay: those
/// commands must not get through it.
const CLOSED: &[&str] = &[
    "echo x > OUT/new",
    "echo x >> OUT/canary",
    "rm -rf OUT/canary",
    // `mv` between file systems copies first, and reading is allowed.
    "mv OUT/canary . || { rm -f canary; false; }",
    "ln OUT/canary hard && echo x > hard",
    "cat HOME/.ssh/id",
    "ls HOME/.ssh && cat HOME/.ssh/*",
    "cat HOME/.aws/credentials",
    "cat REPO/.env",
    "cat REPO/ignored",
    "echo x > REPO/a.txt",
    "rm REPO/a.txt",
    "echo x >> REPO/.git/config",
    "echo x > REPO/.git/hooks/pre-commit",
    "cat REPO/.git/config",
    "cat REPO/.git/logs/HEAD",
    "git -C REPO branch evil",
    "git --git-dir=REPO/.git update-ref refs/heads/evil HEAD",
    "touch REPO/.git/objects/x",
    "mkdir REPO/.git/objects/xx",
    "rm -rf REPO/.git/objects/pack REPO/.git/HEAD && test ! -e REPO/.git/HEAD",
    "rm -rf REPO/.git/teddy && test ! -e REPO/.git/teddy",
    "echo x > HOME/.bashrc",
    "mkdir -p HOME/.config/teddy/trust && echo {} > HOME/.config/teddy/trust/x",
    "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", PORT))' || curl -s http://127.0.0.1:PORT/",
    "kill -9 $PPID",
    "test -n \"$OPENAI_API_KEY$MY_TOKEN$GIT_DIR\"",
];

/// Commands that work in their own repository and change nothing of the user's.
const OWN: [&str; 7] = [
    "git config user.name evil && test \"$(git config user.name)\" = evil",
    "git branch evil && git rev-parse evil",
    "git tag evil && git rev-parse evil",
    "echo x > a.txt && git stash && git stash drop",
    "git update-ref -d refs/heads/main && ! git rev-parse main",
    "! git for-each-ref | grep refs/teddy",
    "echo 'echo evil > ../evil' > $(git rev-parse --git-path hooks)/pre-commit || true",
];

#[test]
fn what_a_command_does_to_its_own_repository_is_not_done_to_the_users() {
    for sandbox in ["on", "off"] {
        let ground = Ground::new();
        let before = ground.state();
        let all = OWN.map(|command| format!("( {command} ) || exit 1; "));
        for command in [&all.concat(), "rm -rf .git"] {
            let setting = format!("execute.sandbox={sandbox}");
            let tried = ground.execute_with(plan(&run(command)), &["-c", &setting]);
            assert_eq!(tried.code, 0, "{command}: {}", tried.words);
            assert_eq!(ground.state(), before, "{command}");
        }
    }
}

#[test]
fn a_command_reaches_nothing_but_its_worktree() {
    if availability() != Availability::Full {
        return;
    }
    let ground = Ground::new();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    for (file, text) in [
        (".ssh/id", "hunter2"),
        (".aws/credentials", "hunter2"),
        (".bashrc", "mine"),
    ] {
        let path = ground.repo.beside("home").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    ground.repo.put(".env", "hunter2").put("ignored", "hunter2");
    // In a checkout, and over the user's files if that is possible here.
    for backend in overlays()
        .then_some("overlay")
        .into_iter()
        .chain(["checkout"])
    {
        let fill = |command: &&str| {
            let command = command
                .replace("OUT", ground.outside().to_str().unwrap())
                .replace("REPO", ground.repo.path().to_str().unwrap());
            command
                .replace("HOME", ground.repo.beside("home").to_str().unwrap())
                .replace("PORT", &server.local_addr().unwrap().port().to_string())
        };
        // A command can change the overlay, and the user approved what becomes of the files. There,
        // commands see what git ignores.
        let is_over = backend == "overlay";
        let (covered, closed): (Vec<&str>, Vec<&str>) = CLOSED
            .iter()
            .filter(|command| !is_over || !command.contains("REPO/ignored"))
            .partition(|command| is_over && command.contains("REPO"));
        let output_of = |commands: &[&str]| {
            let script = each_fails(commands.iter().map(fill));
            std::fs::write(ground.repo.beside("plan.md"), plan(&run(&script))).unwrap();
            let keys = [("OPENAI_API_KEY", "hunter2"), ("MY_TOKEN", "hunter2")];
            let setting = format!("worktree.backend={backend}");
            let arguments = ["execute", "../plan.md", "-y", "--no-replan", "--json", "-c"];
            let output = ground.teddy_with(&[&arguments[..], &[&setting]].concat(), &keys);
            let told = words(&output) + &ground.ok(&["show", "@", "output/01.txt"]);
            assert!(told.contains("tried all"), "{backend}: {told}");
            assert!(!told.contains("hunter2"), "{backend}: {told}");
            assert!(server.accept().is_err(), "{backend}: {told}");
            told
        };
        let before = ground.state();
        none_passed(&output_of(&closed));
        assert_eq!(ground.state(), before, "{backend}");
        if !covered.is_empty() {
            let others = ground.others();
            output_of(&covered);
            assert_eq!(ground.others(), others, "{backend}");
        }
        ground.repo.put("a.txt", "one\n");
    }
}

#[test]
fn without_the_sandbox_a_change_of_the_repository_is_reported() {
    let ground = Ground::new();
    for (command, part) in [
        ("git -C REPO config x.y z", "config"),
        ("git -C REPO branch evil", "refs/heads/evil"),
        ("echo x > REPO/.git/hooks/pre-commit", "hooks/pre-commit"),
        ("git -C REPO update-ref refs/stash HEAD", "refs/stash"),
    ] {
        let command = command.replace("REPO", ground.repo.path().to_str().unwrap());
        let tried = ground.execute_with(plan(&run(&command)), &["-c", "execute.sandbox=off"]);
        let report = ground.ok(&["show"]);
        assert!(
            report.contains(part) && tried.words.contains("not sandboxed"),
            "{command}: {report}"
        );
    }
}

#[test]
fn the_approval_says_how_commands_are_confined() {
    let ground = Ground::new();
    let said = |setting: &str| {
        ground
            .execute_with(plan(&run("true")), &["-c", setting])
            .words
    };
    assert!(said("execute.sandbox=off").contains("not sandboxed"));
    if availability() == Availability::Full {
        assert!(said("execute.sandbox=on").contains("sandboxed, no network"));
        assert!(said("execute.sandbox=require").contains("sandboxed, no network"));
    }
}

#[test]
fn a_commit_of_a_command_leaves_no_temporary_objects() {
    if availability() != Availability::Full {
        return;
    }
    let ground = Ground::new();
    let command = "echo 2 > a.txt; git diff --stat > /dev/null; git add a.txt && git commit -qm two; git log --format=%s -2";
    let tried = ground.execute(plan(&run(command)));
    assert_eq!(tried.code, 0, "{}", tried.words);
    assert!(tried.words.contains("│ two\n  │ one"), "{}", tried.words);

    ground.repo.git(&["fsck", "--strict"]);
    let objects = std::fs::read_dir(ground.repo.path().join(".git/objects")).unwrap();
    let names = objects.flat_map(|folder| {
        let files = std::fs::read_dir(folder.unwrap().path()).unwrap();
        files.map(|file| file.unwrap().file_name())
    });
    let is_temporary = |name: &std::ffi::OsString| name.as_encoded_bytes().starts_with(b"tmp_obj_");
    assert_eq!(names.filter(is_temporary).count(), 0);
}

#[test]
fn a_rule_whose_path_cannot_be_opened_stops_the_whole_plan() {
    let repo = crate::support::TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    let link = repo.beside("loop");
    std::os::unix::fs::symlink("loop", &link).unwrap();
    repo.configure(&format!("execute: {{ writable: [{}] }}\n", link.display()));
    let actions = [plans::create("b.txt", "b\n"), plans::execute("true")];
    let out = repo.teddy_reads(&["execute", "-", "-y"], plans::plan("Try", &actions));
    if out.code == 0 && out.stderr.contains("not sandboxed") {
        return crate::support::skipped("Landlock");
    }
    let why = format!("the sandbox cannot open `{}`", link.display());
    out.check(1, &[&why, "the plan was interrupted"]);
    assert!(!repo.path().join("b.txt").exists());

    std::fs::remove_file(&link).unwrap();
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("b.txt"), "b\n");
}

/// Bug: the next command could read and write what the link led to.
#[test]
fn a_link_in_the_place_of_a_writable_directory_opens_nothing() {
    let repo = crate::support::TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    let private = repo.beside("private");
    std::fs::create_dir(&private).unwrap();
    repo.configure("execute: { writable: [build] }\n");
    repo.done(&["new", "demo"]);
    let link = format!("ln -s {} build", private.display());
    repo.run_plan(&plans::plan("Link", &[plans::execute(&link)]));

    let action = plans::execute("echo x > build/x");
    let out = repo.teddy_reads(&["execute", "-", "-y"], plans::plan("Write", &[action]));
    if out.stderr.contains("not sandboxed") {
        return crate::support::skipped("Landlock");
    }
    let why = "`execute.writable` has `build`, which is a symbolic link in the project";
    out.check(1, &[why]);
    assert_eq!(std::fs::read_dir(&private).unwrap().count(), 0);

    repo.remove("build");
    repo.write("build/old", "");
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("build/x"), "x\n");
}
