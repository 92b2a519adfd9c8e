//! CREATE and EDIT in the worktree: atomic, and never through a link.

use super::*;

#[test]
fn later_actions_see_what_earlier_ones_did() {
    let mut world = TestProject::new();
    let ran = world.check(
        vec![
            create("new/b.rs", "fn b() {}\n"),
            edit("new/b.rs", &[("fn b() {}\n", "fn c() {}\n")]),
            edit("new/b.rs", &[("fn c() {}\n", "fn d() {}\nfn e() {}\n")]),
            execute("write gen.rs text"),
            edit("gen.rs", &[("text\n", "changed\n")]),
        ],
        &[
            "Success: created, 1 line",
            "Success: changed 1 place: 1 line added, 1 removed",
            "Success: changed 1 place: 2 lines added, 1 removed",
            "Success: the command succeeded",
            "Success: changed 1 place: 1 line added, 1 removed",
        ],
    );
    assert_eq!(
        world.get("new/b.rs").as_deref(),
        Some("fn d() {}\nfn e() {}\n")
    );
    assert_eq!(world.get("gen.rs").as_deref(), Some("changed\n"));
    assert_eq!(ran.outcomes[0].written, [path("new/b.rs")]);
    assert_eq!(ran.outcomes[3].written, []);

    assert!(ran.is_whole());
}

#[test]
fn a_file_is_made_only_where_none_is() {
    let mut world = TestProject::new();
    world.check(
        vec![create("src/a.rs", "x\n")],
        &["Failure: `src/a.rs` already exists"],
    );
    world.check(
        vec![create("src", "x\n")],
        &["Failure: `src` already exists and is not a file"],
    );
    assert_eq!(world.get("src/a.rs").as_deref(), Some("one\ntwo\nthree\n"));
    world.check(
        vec![create("empty.txt", "x")],
        &["Success: filled the empty file, 1 line"],
    );
    world.check(
        vec![ActionKind::Create(Create {
            overwrite: true,
            keep_bytes: false,
            ..new_file("src/a.rs", "x\ny\n")
        })],
        &["Success: replaced as a whole, 2 lines"],
    );
    assert_eq!(world.get("empty.txt").as_deref(), Some("x"));

    assert_eq!(world.get("src/a.rs").as_deref(), Some("x\ny\n"));
}

#[test]
fn an_edit_applies_as_a_whole_or_not_at_all() {
    let mut world = TestProject::new();
    let ran = world.check(
        vec![edit("src/a.rs", &[("one\n", "1\n"), ("nowhere at all\n", "x\n")])],
        &["Failure: FIND 2 of 2 is not in `src/a.rs`; no place in the file is like it; the file is as it was"],
    );
    assert!(ran.failed);
    assert_eq!(world.get("src/a.rs").as_deref(), Some("one\ntwo\nthree\n"));
    let ran = world.check(
        vec![edit("src/a.rs", &[("one\n", "1\n"), ("1\ntwo\n", "2\n")])],
        &["Success: changed 2 places: 1 line added, 2 removed"],
    );

    assert_eq!(
        ran.outcomes[0]
            .positions
            .iter()
            .map(|p| p.line)
            .collect::<Vec<_>>(),
        [1, 1]
    );
    assert_eq!(world.get("src/a.rs").as_deref(), Some("2\nthree\n"));
}

#[test]
fn an_edit_fails_where_a_command_has_changed_its_file() {
    let mut world = TestProject::new();
    let ran = world.check(
        vec![execute("write src/a.rs other"), edit("src/a.rs", &[("one\n", "1\n")])],
        &["Success: the command succeeded", "Failure: FIND is not in `src/a.rs`; no place in the file is like it; the file is as it was"],
    );
    assert!(ran.failed);
    assert_eq!(world.get("src/a.rs").as_deref(), Some("other\n"));
}

#[test]
fn an_edit_needs_text() {
    let mut world = TestProject::new();
    world.put("latin.txt", b"caf\xe9\n");
    world.check(
        vec![edit("bin.dat", &[("a\n", "b\n")])],
        &["Failure: `bin.dat` is binary"],
    );
    world.check(
        vec![edit("latin.txt", &[("a\n", "b\n")])],
        &["Failure: `latin.txt` is not UTF-8"],
    );

    world.check(
        vec![edit("nope", &[("a\n", "b\n")])],
        &["Failure: cannot read `nope`: no such file or directory"],
    );
}

#[test]
fn an_edit_keeps_the_mode_and_leaves_hard_links_alone() {
    let mut world = TestProject::new();
    let (file, other) = (
        world.dir.path().join("src/a.rs"),
        world.dir.path().join("linked"),
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("the mode can be set");
    fs::hard_link(&file, &other).expect("the link can be made");
    world.run(vec![edit("src/a.rs", &[("one\n", "1\n")])], &[]);
    assert_eq!(
        fs::metadata(&file).expect("the file exists").mode() & 0o777,
        0o755
    );
    assert_eq!(world.get("src/a.rs").as_deref(), Some("1\ntwo\nthree\n"));

    assert_eq!(world.get("linked").as_deref(), Some("one\ntwo\nthree\n"));
}

#[test]
fn no_action_goes_through_a_link_or_into_another_repository() {
    let mut world = TestProject::new();
    let external = tempfile::tempdir().expect("a temporary folder");
    fs::write(external.path().join("x"), "secret\n").expect("the file can be written");
    symlink(external.path(), world.dir.path().join("out")).expect("the link can be made");
    world.put("vendor/.git/HEAD", b"ref: refs/heads/main\n");

    for kind in [
        create("out/new", "x\n"),
        edit("out/x", &[("secret\n", "b\n")]),
        read("out/x"),
        read("out"),
    ] {
        let ran = world.run(vec![kind], &[]);
        assert_eq!(
            ran.outcomes[0].ending,
            Ending::Failure,
            "{:?}",
            ran.outcomes[0]
        );
    }

    let in_out = ActionKind::Execute(Execute {
        cwd: Some(path("out")),
        ..command("ls")
    });
    world.check(
        vec![in_out],
        &["Failure: there is no directory `out` to run in"],
    );
    assert_eq!(
        fs::read_dir(external.path())
            .expect("the directory exists")
            .count(),
        1
    );

    world.check(
        vec![create("vendor/lib/x", "x\n")],
        &["Failure: `vendor/lib/x` is in `vendor`, which is a repository of its own"],
    );
}
