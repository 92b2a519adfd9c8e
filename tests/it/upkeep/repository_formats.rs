//! The same guarantees in every repository format: loose refs and reftable, SHA-1 and SHA-256.
//!
//! Each scenario runs in all four combinations. `GIT_DEFAULT_REF_FORMAT=reftable` in the
//! environment runs the other tests with reftable.

use std::path::Path;

use crate::plans::{create, edit, execute, plan};
use crate::support::{Output, TestRepo, skipped};

#[derive(Clone, Copy)]
struct Format {
    refs: &'static str,
    objects: &'static str,
}

impl Format {
    /// Checks whether git supports the format. Notes it if not.
    fn is_known(self) -> bool {
        let version = TestRepo::new().git(&["version"]);
        let numbers = version
            .split([' ', '.'])
            .filter_map(|part| part.parse::<u32>().ok());
        let is_known = self.refs == "files" || numbers.ge([2, 45]);
        if !is_known {
            skipped(&format!("{version} knows no reftable"));
        }
        is_known
    }

    fn repo(self) -> TestRepo {
        let refs = format!("--ref-format={}", self.refs);
        let objects = format!("--object-format={}", self.objects);
        // An older git does not know the option.
        let args = [objects.as_str(), &refs];
        let repo = TestRepo::with(&args[..if self.refs == "files" { 1 } else { 2 }]);
        repo.put("a.txt", "one\n").put("b.txt", "two\n");
        repo.commit("init");
        repo
    }

    fn session(self) -> TestRepo {
        let repo = self.repo();
        repo.workflow().new_session("demo").done();
        repo.workflow().add(&["a.txt", "b.txt"]);
        repo
    }
}

/// Defines a test per scenario and format.
macro_rules! in_every_format {
    ($($scenario:ident)*) => {
        in_every_format!(files_sha1 "files" "sha1" $($scenario)*);
        in_every_format!(files_sha256 "files" "sha256" $($scenario)*);
        in_every_format!(reftable_sha1 "reftable" "sha1" $($scenario)*);
        in_every_format!(reftable_sha256 "reftable" "sha256" $($scenario)*);
    };
    ($module:ident $refs:literal $objects:literal $($scenario:ident)*) => {
        mod $module {
            $(#[test]
            fn $scenario() {
                let format = super::Format { refs: $refs, objects: $objects };
                if format.is_known() {
                    super::$scenario(format);
                }
            })*
        }
    };
}

in_every_format! {
    a_turn_with_a_command_that_commits
    a_first_turn_before_any_commit
    a_model_answers_and_the_plan_waits
    steps_are_taken_back_and_done_again
    turns_are_named_as_git_names_commits
    sessions_branch_and_are_switched
    two_sessions_at_once
    the_user_commits_and_switches_meanwhile
    gc_packs_and_forgets
    a_ref_that_another_process_moved_is_not_overwritten
    a_ref_without_its_commit_gets_the_last_one_back
    a_change_is_planned
    a_linked_worktree_has_a_head_of_its_own
    a_repository_within_is_recorded_by_its_commit
    turns_land_on_the_users_branch
    killed_at_any_point_a_turn_is_there_or_not
}

/// Returns a ref's reflog, newest first.
fn log_of(repo: &TestRepo, name: &str) -> Vec<String> {
    let log = repo.git(&["log", "-g", "--format=%gn <%ge> %gs", name, "--"]);
    log.lines().map(str::to_owned).collect()
}

fn a_turn_with_a_command_that_commits(format: Format) {
    let repo = format.session();
    let users = repo.users();
    let commit =
        "git add made.txt && git commit -qm 'By a command' && git branch side && git tag v1";
    let made = [
        create("made.txt", "made\n"),
        execute(commit),
        execute("git log --format=%s main > log.txt && git rev-parse --abbrev-ref HEAD >> log.txt"),
    ];
    repo.run_plan(&plan("Commit", &made));

    assert_eq!(repo.read("made.txt"), "made\n");
    assert_eq!(repo.read("log.txt"), "By a command\ninit\nmain\n");
    let chain = repo.git(&["log", "--format=%s", "teddy/sessions/demo^2"]);
    assert_eq!(chain, "Commit\nBy a command\ninit");
    let turns = repo.git(&[
        "log",
        "--first-parent",
        "--format=%s",
        "teddy/sessions/demo",
    ]);
    assert_eq!(turns.lines().next(), Some("Commit"));
    assert_eq!(
        repo.git(&["rev-parse", "teddy/sessions/demo^2^{tree}"]),
        repo.tree()
    );
    assert_eq!(repo.users(), users, "the user's refs and HEAD are theirs");
    let log = log_of(&repo, "refs/teddy/sessions/demo");
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(
        log[0].starts_with("TeDDy <teddy@localhost> teddy: "),
        "{log:?}"
    );
    repo.git(&["fsck", "--strict", "--no-dangling"]);
}

fn a_first_turn_before_any_commit(format: Format) {
    let refs = format!("--ref-format={}", format.refs);
    let objects = format!("--object-format={}", format.objects);
    let repo = TestRepo::with(&[objects.as_str(), &refs]);
    repo.write("a.txt", "one\n");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("First", &[create("b.txt", "two\n")]));
    assert_eq!(repo.read("b.txt"), "two\n");
    let status = repo.workflow().status();
    assert_eq!(status["turn"], 1, "{status}");
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(repo.git(&["for-each-ref", "refs/heads"]), "");
}

fn a_model_answers_and_the_plan_waits(format: Format) {
    let repo = format.session();
    repo.reply(&plan("Change", &[edit("a.txt", "one", "1")]));
    repo.workflow().plan("go").done();
    assert_eq!(repo.workflow().status()["state"], "planned");
    let draft = repo.git(&["rev-parse", "refs/teddy/drafts/demo"]);
    assert_eq!(
        repo.git(&["rev-parse", "teddy/drafts/demo~1"]),
        repo.git(&["rev-parse", "teddy/sessions/demo"])
    );

    repo.workflow().execute().done();
    assert_eq!(repo.read("a.txt"), "1\n");
    assert_eq!(repo.workflow().status()["turn"], 1);
    let left = repo.git(&["for-each-ref", "--format=%(refname)", "refs/teddy/drafts"]);
    assert_eq!(left, "", "{draft}");
    std::fs::remove_dir_all(repo.beside("answers")).unwrap();
    repo.reply(&plan("Other", &[create("other.txt", "other\n")]));
    repo.done(&["start", "--name", "other", "-m", "x", "-y"]);
    assert_eq!(repo.read("other.txt"), "other\n");
}

fn steps_are_taken_back_and_done_again(format: Format) {
    let repo = format.session();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    repo.workflow()
        .run_plan(&plan("Two", &[edit("b.txt", "two", "2")]));
    repo.write("mine.txt", "mine\n");
    repo.workflow().undo(1).done();
    assert_eq!(
        (repo.read("a.txt"), repo.read("b.txt")),
        ("1\n".into(), "two\n".into())
    );
    repo.workflow().redo(1).done();
    assert_eq!(repo.read("b.txt"), "2\n");
    repo.workflow().restore("0").done();
    assert_eq!(
        (repo.read("a.txt"), repo.read("b.txt")),
        ("one\n".into(), "two\n".into())
    );
    assert_eq!(repo.read("mine.txt"), "mine\n");
    let published = repo.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/teddy/published",
    ]);
    assert_eq!(published, "refs/teddy/published/main");
}

fn turns_are_named_as_git_names_commits(format: Format) {
    let repo = format.session();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    repo.workflow()
        .run_plan(&plan("Two", &[edit("b.txt", "two", "2")]));
    let tip = repo.git(&["rev-parse", "teddy/sessions/demo"]);
    for name in [
        "1",
        "@~1",
        "teddy/sessions/demo~1",
        "teddy/sessions/demo^{/One}",
        &format!("{tip}^"),
    ] {
        let shown = repo.json(&["show", name], 0);
        assert_eq!(shown["number"], 1, "{name}: {shown}");
    }
    for name in [
        "nothing",
        "HEAD",
        "teddy/sessions/demo..HEAD",
        "--all",
        "HEAD:a.txt",
    ] {
        let out = repo.teddy(&["show", "--", name]);
        assert_ne!(out.code, 0, "{name}: {out}");
    }
    assert_eq!(repo.workflow().log().as_array().unwrap().len(), 3);
    assert!(repo.done(&["diff", "1"]).contains("+1"));
}

fn sessions_branch_and_are_switched(format: Format) {
    let repo = format.session();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    repo.workflow()
        .run_plan(&plan("Two", &[edit("b.txt", "two", "2")]));
    repo.workflow().branch("1", "other").done();
    let first = repo.git(&["rev-parse", "teddy/sessions/demo~1"]);
    assert_eq!(repo.git(&["rev-parse", "teddy/sessions/other"]), first);
    repo.teddy(&["branch", "1", "other"]).check(1, &["other"]);
    repo.workflow().switch("demo").done();
    repo.workflow().switch("other").done();
    repo.workflow().restore("@").done();
    assert_eq!(
        (repo.read("a.txt"), repo.read("b.txt")),
        ("1\n".into(), "two\n".into())
    );
    assert_eq!(repo.workflow().sessions().as_array().unwrap().len(), 2);
}

fn two_sessions_at_once(format: Format) {
    let repo = format.session();
    repo.workflow().new_session("beside").done();
    std::thread::scope(|scope| {
        for session in ["demo", "beside"] {
            let repo = &repo;
            scope.spawn(move || {
                for turn in 0..3 {
                    let path = format!("{session}-{turn}.txt");
                    let text = plan(&path, &[create(&path, "made\n"), execute("true")]);
                    repo.teddy_reads(&["-s", session, "execute", "-", "-y"], text)
                        .check(0, &[]);
                    // git before 2.48 does not wait for a reftable's lock.
                    let mut pack = repo.command("git");
                    pack.current_dir(repo.path()).args(["pack-refs", "--all"]);
                    Output::of(&mut pack);
                }
            });
        }
    });
    for session in ["demo", "beside"] {
        let count = repo.git(&[
            "rev-list",
            "--count",
            "--first-parent",
            &format!("teddy/sessions/{session}"),
        ]);
        assert_eq!(count, "4", "{session}");
        (0..3).for_each(|turn| assert_eq!(repo.read(&format!("{session}-{turn}.txt")), "made\n"));
    }
}

fn the_user_commits_and_switches_meanwhile(format: Format) {
    let repo = format.session();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    repo.write("c.txt", "three\n");
    repo.commit("The user's");
    repo.workflow()
        .run_plan(&plan("Two", &[edit("b.txt", "two", "2")]));
    let workspace = repo.git(&["log", "-1", "--format=%s", "teddy/sessions/demo^2"]);
    assert_eq!(workspace, "Two");
    let merged = repo.git(&["merge-base", "main", "teddy/sessions/demo^2"]);
    assert_eq!(merged, repo.git(&["rev-parse", "main"]));

    repo.commit("More of the user's");
    repo.git(&["switch", "-q", "-c", "side", "HEAD~2"]);
    let status = repo.workflow().status();
    assert_eq!(status["workspace"]["branch"]["now"], "side", "{status}");
    repo.git(&["switch", "-q", "--detach", "main"]);
    repo.workflow()
        .run_plan(&plan("Three", &[create("d.txt", "four\n")]));
    assert_eq!(repo.read("d.txt"), "four\n");
}

fn gc_packs_and_forgets(format: Format) {
    let repo = format.session();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    repo.reply(&plan("Two", &[edit("b.txt", "two", "2")]));
    repo.workflow().plan("go").done();
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.workflow().execute().done();
    assert_eq!(repo.read("b.txt"), "2\n");
    repo.workflow().branch("1", "other").done();
    repo.done(&["gc", "--idle-days", "0", "demo", "-y"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.done(&["doctor", "--fix"]);
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    repo.workflow()
        .run_plan(&plan("Three", &[create("c.txt", "three\n")]));
}

fn a_ref_that_another_process_moved_is_not_overwritten(format: Format) {
    use teddy::git::refs::{self, Expected, MoveError, RefMove};
    let repo = format.session();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    let opened = repo.open();
    let commit = |name: &str| repo.git(&["rev-parse", name]).parse().unwrap();
    let (old, tip) = (
        commit("teddy/sessions/demo~1"),
        commit("teddy/sessions/demo"),
    );
    let (one, two) = ("refs/teddy/sessions/one", "refs/teddy/sessions/two");
    refs::move_to(&opened, one, Expected::Absent, old, "teddy: test").unwrap();

    let wish = |name, expected| RefMove {
        name,
        expected,
        to: tip,
    };
    for moves in [
        [wish(two, Expected::Absent), wish(one, Expected::Absent)],
        [wish(one, Expected::At(tip)), wish(two, Expected::Any)],
        [wish(one, Expected::At(old)), wish(two, Expected::At(old))],
    ] {
        let error = refs::apply(&opened, &moves, "teddy: test").unwrap_err();
        assert!(matches!(error, MoveError::Moved { .. }), "{error:?}");
        assert_eq!(
            refs::read(&opened, one).unwrap(),
            Some(old),
            "nothing was moved"
        );
        assert_eq!(refs::read(&opened, two).unwrap(), None, "nothing was moved");
    }

    // Updates by other processes are visible immediately.
    repo.git(&["update-ref", two, &old.to_string()]);
    assert_eq!(refs::read(&opened, two).unwrap(), Some(old));
    refs::apply(
        &opened,
        &[wish(one, Expected::At(old)), wish(two, Expected::At(old))],
        "teddy: test",
    )
    .unwrap();
    assert_eq!(repo.git(&["rev-parse", one, two]), format!("{tip}\n{tip}"));
    let error = refs::delete(&opened, one, Expected::At(old)).unwrap_err();
    assert!(matches!(error, MoveError::Moved { .. }), "{error:?}");
    refs::delete(&opened, one, Expected::At(tip)).unwrap();
    assert!(refs::discard(&opened, two).unwrap());
    let names: Vec<_> = refs::list(&opened, "refs/teddy/sessions/").unwrap();
    assert_eq!(
        names
            .into_iter()
            .map(|found| found.name)
            .collect::<Vec<_>>(),
        ["refs/teddy/sessions/demo"]
    );
}

fn a_ref_without_its_commit_gets_the_last_one_back(format: Format) {
    let repo = format.session();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    let sound = repo.git(&["rev-parse", "teddy/sessions/demo"]);
    let tree = repo.git(&["rev-parse", "teddy/sessions/demo^{tree}"]);
    let lost = repo.git(&["commit-tree", "-p", &sound, "-m", "lost", &tree]);
    repo.git(&["update-ref", "refs/teddy/sessions/demo", &lost]);
    std::fs::remove_file(
        repo.path()
            .join(".git/objects")
            .join(&lost[..2])
            .join(&lost[2..]),
    )
    .unwrap();

    repo.teddy(&["doctor", "--fix"]).check(
        0,
        &["`refs/teddy/sessions/demo` was damaged and is at turn 1"],
    );
    assert_eq!(repo.git(&["rev-parse", "teddy/sessions/demo"]), sound);
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    repo.workflow()
        .run_plan(&plan("Two", &[edit("b.txt", "two", "2")]));
}

fn a_change_is_planned(format: Format) {
    let answers = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/change");
    let repo = format.repo();
    repo.configure(&format!(
        "model: recorded\nmodels:\n  recorded: {{ kind: replay, path: {answers} }}\n"
    ));
    let id = "greet-by-name";
    repo.done(&["change", "plan", id, "Greet people by name"]);
    assert_eq!(
        repo.json(&["change", "status", id], 0)["phase"],
        "challenged"
    );
    let log = repo.git(&["log", "--format=%s", &format!("refs/teddy/changes/{id}")]);
    assert!(log.lines().count() >= 2, "{log}");
}

fn a_linked_worktree_has_a_head_of_its_own(format: Format) {
    let repo = format.session();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    let linked = repo.beside("linked");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "side",
        linked.to_str().unwrap(),
    ]);
    std::fs::write(linked.join("b.txt"), "side\n").unwrap();
    repo.git_in(&linked, &["commit", "-qam", "Side"]);

    let run = |args: &[&str]| repo.teddy_in(&linked, args).check(0, &[]).stdout.clone();
    run(&["new", "there"]);
    let text = plan(
        "There",
        &[
            create("c.txt", "three\n"),
            execute("git log -1 --format=%s > said.txt"),
        ],
    );
    std::fs::write(repo.beside("there.md"), text).unwrap();
    run(&["execute", repo.beside("there.md").to_str().unwrap(), "-y"]);
    assert_eq!(
        std::fs::read_to_string(linked.join("said.txt")).unwrap(),
        "Side\n"
    );
    assert!(!repo.path().join("c.txt").exists());
    let published = repo.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/teddy/published",
    ]);
    assert_eq!(
        published,
        "refs/teddy/published/linked-linked\nrefs/teddy/published/main"
    );
    repo.git(&["worktree", "remove", "--force", linked.to_str().unwrap()]);
    repo.done(&["gc"]);
    let published = repo.git(&[
        "for-each-ref",
        "--format=%(refname)",
        "refs/teddy/published",
    ]);
    assert_eq!(published, "refs/teddy/published/main");
}

fn a_repository_within_is_recorded_by_its_commit(format: Format) {
    let repo = format.session();
    let inner = repo.path().join("inner");
    let refs = format!("--ref-format={}", format.refs);
    let objects = format!("--object-format={}", format.objects);
    repo.git(&["init", "-q", &objects, &refs, inner.to_str().unwrap()]);
    repo.write("inner/own.txt", "own\n");
    repo.git_in(&inner, &["add", "-A"]);
    repo.git_in(&inner, &["commit", "-q", "-m", "inner"]);
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    assert_eq!(
        repo.git(&["rev-parse", "teddy/sessions/demo^2^{tree}"]),
        repo.tree()
    );
    let recorded = repo.git(&["rev-parse", "teddy/sessions/demo^2:inner"]);
    assert_eq!(recorded, repo.git_in(&inner, &["rev-parse", "HEAD"]));
}

fn turns_land_on_the_users_branch(format: Format) {
    let repo = format.session();
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    repo.done(&["land", "-m", "Land"]);
    assert_eq!(repo.git(&["log", "--format=%s", "main"]), "Land\ninit");
    assert_eq!(repo.git(&["status", "--short"]), "");

    repo.workflow()
        .run_plan(&plan("Two", &[edit("b.txt", "two", "2")]));
    let linked = repo.beside("linked");
    repo.git(&[
        "worktree",
        "add",
        "-q",
        "--force",
        linked.to_str().unwrap(),
        "main",
    ]);
    repo.teddy(&["land", "-m", "Two"]).check(1, &["linked"]);
    repo.git(&["worktree", "remove", linked.to_str().unwrap()]);

    repo.git(&["switch", "-q", "-c", "side", "main~1"]);
    repo.git(&["stash", "-q"]);
    repo.write("a.txt", "side\n");
    repo.commit("Side");
    repo.git(&["switch", "-q", "main"]);
    let picked = repo
        .command("git")
        .current_dir(repo.path())
        .args(["cherry-pick", "side"])
        .output()
        .unwrap();
    assert!(!picked.status.success(), "the two do not fit together");
    repo.git(&["checkout", "-q", "--ours", "a.txt"]);
    repo.git(&["add", "a.txt"]);
    repo.teddy(&["land", "-m", "Two"])
        .check(1, &["a cherry-pick"]);
    repo.git(&["cherry-pick", "--abort"]);
    repo.git(&["stash", "pop", "-q"]);
    repo.done(&["land", "-m", "Two"]);
    assert_eq!(repo.git(&["log", "--format=%s", "main"]), "Two\nLand\ninit");
}

/// The two formats of objects share the points out.
fn killed_at_any_point_a_turn_is_there_or_not(format: Format) {
    let repo = format.session();
    let made = |number: usize| {
        let path = format!("made-{number}.txt");
        (plan(&path, &[create(&path, "made\n")]), path)
    };
    for (number, point) in [
        "before-intent",
        "after-intent",
        "after-ref-before-sync",
        "after-ref",
        "publish-prepared",
        "after-publish",
        "before-clear",
    ]
    .into_iter()
    .enumerate()
    .skip(usize::from(format.objects == "sha256"))
    .step_by(2)
    {
        let (text, path) = made(number);
        std::fs::write(repo.beside("plan.md"), text).unwrap();
        let before = repo.git(&["rev-parse", "teddy/sessions/demo"]);
        let mut killed = repo.teddy_command(&["execute", "../plan.md", "-y"]);
        killed
            .current_dir(repo.path())
            .env("FAILPOINTS", format!("{point}=1*return(kill)"));
        assert_eq!(Output::of(&mut killed).code, -1, "{point}");

        repo.done(&["doctor", "--fix"]);
        let is_there = repo.git(&["rev-parse", "teddy/sessions/demo"]) != before;
        assert_eq!(is_there, repo.path().join(&path).exists(), "{point}");
        assert_eq!(is_there, !point.ends_with("intent"), "{point}");
        assert!(
            repo.json(&["doctor", "--fix"], 0)["recovery"]["foreign_locks"]
                .as_array()
                .unwrap()
                .is_empty()
        );
        repo.git(&["fsck", "--strict", "--no-dangling"]);
    }
    let (text, path) = made(99);
    repo.run_plan(&text);
    assert_eq!(repo.read(&path), "made\n");
}

/// A session of one turn in a repository with a reftable. `None` if git does not support it.
fn reftable() -> Option<TestRepo> {
    let format = Format {
        refs: "reftable",
        objects: "sha1",
    };
    let repo = format.is_known().then(|| format.session())?;
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "one", "1")]));
    Some(repo)
}

/// Returns the tables in `tables.list`.
fn tables(repo: &TestRepo) -> Vec<std::path::PathBuf> {
    let folder = repo.path().join(".git/reftable");
    let list = std::fs::read_to_string(folder.join("tables.list")).unwrap();
    list.lines().map(|name| folder.join(name)).collect()
}

fn make(repo: &TestRepo, path: &str) -> Output {
    repo.teddy_reads(
        &["execute", "-", "-y"],
        plan(path, &[create(path, "made\n")]),
    )
}

#[test]
fn the_reftable_lock_of_another_process_is_named_and_kept() {
    let Some(repo) = reftable() else { return };
    let lock = repo.path().join(".git/reftable/tables.list.lock");
    std::fs::write(&lock, "").unwrap();
    make(&repo, "x.txt").check(
        1,
        &[
            "another process holds the lock",
            "tables.list.lock",
            "hint: try again",
        ],
    );
    assert!(!repo.path().join("x.txt").exists());
    assert!(lock.exists(), "it may be the user's own git");
    let locks = repo.json(&["doctor", "--fix"], 0);
    assert_eq!(
        locks["recovery"]["foreign_locks"][0]["path"],
        lock.to_str().unwrap(),
        "{locks}"
    );

    std::fs::remove_file(&lock).unwrap();
    make(&repo, "x.txt").check(0, &[]);
}

#[test]
fn the_lock_of_a_reftable_that_we_left_is_removed() {
    let Some(repo) = reftable() else { return };
    let lock = repo.path().join(".git/reftable/tables.list.lock");
    // The lock remains if a process and its git are killed.
    std::fs::write(&lock, "").unwrap();
    std::fs::write(
        repo.path().join(".git/teddy/refs/lock"),
        "process 4000000 (moving refs)start: ok\n",
    )
    .unwrap();
    repo.teddy(&["doctor", "--fix"])
        .check(0, &["removed the lock of `reftable/tables.list`"]);
    assert!(!lock.exists());
    make(&repo, "x.txt").check(0, &[]);

    // A lock from before the last boot is always removed.
    std::fs::File::create(&lock)
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    make(&repo, "y.txt").check(0, &["removed the lock of `reftable/tables.list`"]);
}

#[test]
fn a_lock_on_refs_is_respected_after_its_owner_was_killed() {
    let Some(repo) = reftable() else { return };
    // A git that outlives its parent still holds TeDDy's lock.
    let held = teddy::host::lock::Lock::take(
        &repo.path().join(".git/teddy/refs"),
        "test",
        std::time::Duration::ZERO,
    )
    .unwrap();
    let mut command = repo.teddy_command(&["new", "other"]);
    command
        .current_dir(repo.path())
        .env("TEDDY_LOCK_TIMEOUT", "0.3");
    Output::of(&mut command).check(75, &["is at work in this repository"]);
    drop(held);
    repo.workflow().new_session("other").done();
}

#[test]
fn a_table_that_a_power_cut_emptied_is_not_taken_for_one_without_sessions() {
    let Some(repo) = reftable() else { return };
    let table = tables(&repo).pop().unwrap();
    let bytes = std::fs::read(&table).unwrap();
    let middle = bytes.len() - 30;
    let mut flipped = bytes.clone();
    flipped[middle] ^= 1;
    for damaged in [
        &[][..],
        &bytes[..bytes.len() - 1],
        &vec![0; bytes.len()],
        &flipped,
    ] {
        write_over(&table, damaged);
        for args in [
            &["sessions"][..],
            &["status"],
            &["new", "x"],
            &["doctor", "--fix"],
        ] {
            repo.teddy(args).check(
                1,
                &[
                    "is damaged: a power cut or the disk took what is in it",
                    "hint: ",
                ],
            );
        }
    }
    std::fs::remove_file(&table).unwrap();
    insta::assert_snapshot!(repo.printed(&["sessions"]), @"
    --- stderr
    error: `[dir]/repo/.git/reftable/0x000000000009-0x000000000009-[id].ref` is damaged: it is missing
    hint: every ref is in such a table, your branches too, so nothing is changed; restore it from a backup, or let `git fsck --lost-found` find the commits
    exit code 1
    ");
    write_over(&table, &bytes);

    let list = repo.path().join(".git/reftable/tables.list");
    let names = std::fs::read(&list).unwrap();
    write_over(&list, b"");
    insta::assert_snapshot!(repo.printed(&["sessions"]), @"
    --- stderr
    error: `[dir]/repo/.git/reftable/tables.list` is damaged: it names no table
    hint: every ref is in such a table, your branches too, so nothing is changed; restore it from a backup, or let `git fsck --lost-found` find the commits
    exit code 1
    ");
    write_over(&list, &names);
    assert_eq!(repo.workflow().sessions().as_array().unwrap().len(), 1);
    make(&repo, "x.txt").check(0, &[]);
}

/// git makes its files read-only, so delete the file first.
fn write_over(path: &Path, bytes: &[u8]) {
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn attack_10_a_pipe_among_the_tables_is_refused_by_name() {
    let Some(repo) = reftable() else { return };
    for path in [
        tables(&repo).pop().unwrap(),
        repo.path().join(".git/reftable/tables.list"),
    ] {
        let aside = repo.beside("aside");
        std::fs::rename(&path, &aside).unwrap();
        let made = repo.command("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        repo.teddy(&["sessions"]).check(
            1,
            &["cannot read `", path.file_name().unwrap().to_str().unwrap()],
        );
        std::fs::rename(&aside, &path).unwrap();
    }
    repo.done(&["sessions"]);
}

#[test]
fn a_format_of_refs_from_the_future_is_refused_by_name() {
    let Some(repo) = reftable() else { return };
    repo.git(&["config", "extensions.refStorage", "hologram"]);
    insta::assert_snapshot!(repo.printed(&["status"]), @"
    --- stderr
    error: `[dir]/repo/.git` stores its refs as `hologram`, which TeDDy cannot read
    hint: a newer TeDDy may know it
    exit code 1
    ");
}

#[test]
fn refs_that_were_migrated_are_what_they_were() {
    if reftable().is_none() {
        return;
    }
    let repo = Format {
        refs: "files",
        objects: "sha1",
    }
    .session();
    make(&repo, "files.txt").check(0, &[]);
    // git does not migrate a repository with worktrees, and before 2.48 none with reflogs.
    repo.done(&["gc", "--idle-days", "0", "-y"]);
    std::fs::remove_dir_all(repo.path().join(".git/logs")).unwrap();
    repo.git(&["refs", "migrate", "--ref-format=reftable"]);
    make(&repo, "reftable.txt").check(0, &[]);
    repo.workflow().undo(1).done();
    assert!(!repo.path().join("reftable.txt").exists());
    assert_eq!(repo.workflow().status()["turn"], 3);
}
