//! Files with bytes that git does not store: output removed by a clean filter, line endings,
//! `$Id$`. A turn changes only its own part of the bytes on disk, and TeDDy keeps replaced files
//! that git cannot restore.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use teddy::workflow::gc::GcOptions;
use teddy::workflow::pick::PickOptions;
use teddy::workflow::restore::{OnOverlap, RestoreOptions};

use crate::plans::{edit, edit_pairs, execute, plan, replace};
use crate::support::in_process::{Reply, Workflow};
use crate::support::{TestRepo, overlay};

/// The filter removes the line of output.
const NOTEBOOK: &str = "cell 1\n#out 42 minutes\ncell 2\n";

/// A project with a filter that removes lines of output.
fn project() -> TestRepo {
    with_filter("grep -v '^#out' || :", NOTEBOOK)
}

/// A project whose notebook has this clean filter.
fn with_filter(script: &str, notebook: &str) -> TestRepo {
    let repo = TestRepo::new()
        .file(".gitattributes", "*.ipynb filter=strip\n")
        .file("a.ipynb", notebook);
    let program = repo.beside("strip");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.git(&["config", "filter.strip.clean", program.to_str().unwrap()]);
    repo.git(&["config", "filter.strip.smudge", "cat"]);
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.ipynb"]);
    repo
}

/// Executes an action that is no command.
fn act(repo: &TestRepo, action: String) -> Reply {
    repo.workflow().execute_text(&plan("Try", &[action]))
}

/// Runs a command, which must succeed.
fn run(repo: &TestRepo, script: &str) {
    repo.run_plan(&plan("Try", &[execute(script)]));
}

fn resolving(on_overlap: OnOverlap) -> RestoreOptions {
    RestoreOptions {
        on_overlap,
        ..RestoreOptions::default()
    }
}

/// Returns the replaced files that git could not restore, sorted.
fn kept(repo: &TestRepo) -> Vec<String> {
    let dirs = ["replaced", "displaced"].map(|dir| repo.path().join(".git/teddy/undo").join(dir));
    let files = dirs
        .iter()
        .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
    let mut texts: Vec<String> = files
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    texts.sort();
    texts
}

const BACKENDS: [&str; 2] = ["worktree.backend=auto", overlay::CHECKOUT];

/// Whether commands see the user's output, which a checkout does not have.
fn sees_output(backend: &str) -> bool {
    backend != overlay::CHECKOUT && overlay::overlays()
}

type Step = fn(Workflow<'_>) -> Reply;

#[test]
fn an_edit_leaves_what_a_filter_drops() {
    let repo = project();
    let changed = "cell 1\n#out 42 minutes\ncell two\n";
    let mut replies = act(&repo, edit("a.ipynb", "cell 2", "cell two")).done();
    assert_eq!(repo.read("a.ipynb"), changed);
    let steps: [(Step, &str); 5] = [
        (|workflow| workflow.undo(1), NOTEBOOK),
        (|workflow| workflow.redo(1), changed),
        (|workflow| workflow.restore("0"), NOTEBOOK),
        (|workflow| workflow.restore("1"), changed),
        (
            |workflow| workflow.restore_with("0", &resolving(OnOverlap::Exact)),
            NOTEBOOK,
        ),
    ];
    for (step, expected) in steps {
        replies += &step(repo.workflow()).done();
        assert_eq!(repo.read("a.ipynb"), expected, "{replies}");
        assert_eq!(repo.workflow().status()["workspace"]["changed"], json!([]));
    }
    insta::assert_snapshot!(replies, @r"
    ▶ 1. EDIT a.ipynb
      ✓ changed 1 place: 1 line added, 1 removed
    turn 1 executed
      modified a.ipynb
    at turn 0
      over [1]
      write a.ipynb
    at turn 1
      over [1]
      write a.ipynb
    at turn 0
      write a.ipynb
    at turn 1
      write a.ipynb
    at turn 0
      write a.ipynb
    ");
}

#[test]
fn an_edit_above_and_below_dropped_lines_leaves_them() {
    let repo = project();
    let pairs = [("cell 1", "zero\ncell one"), ("cell 2", "cell two\nend")];
    act(&repo, edit_pairs("a.ipynb", &pairs)).done();
    let expected = "zero\ncell one\n#out 42 minutes\ncell two\nend\n";
    assert_eq!(repo.read("a.ipynb"), expected);
}

#[test]
fn a_command_leaves_what_a_filter_drops_and_keeps_its_own_output() {
    for backend in BACKENDS {
        let repo = project();
        let script = "echo '#out 7' >> a.ipynb; echo 'cell 3' >> a.ipynb";
        overlay::run(&repo, backend, script).check(0, &[]);
        let (changed, written) = match sees_output(backend) {
            true => {
                let written = "cell 1\n#out 42 minutes\ncell 2\n#out 7\ncell 3\n";
                (written, written)
            }
            false => (
                "cell 1\n#out 42 minutes\ncell 2\ncell 3\n",
                "cell 1\ncell 2\n#out 7\ncell 3\n",
            ),
        };
        assert_eq!(repo.read("a.ipynb"), changed, "{backend}");
        assert_eq!(kept(&repo), [NOTEBOOK, written], "{backend}");

        repo.workflow().undo(1).done();
        assert_eq!(repo.read("a.ipynb"), NOTEBOOK, "{backend}");
        repo.workflow().redo(1).done();
        assert_eq!(repo.read("a.ipynb"), changed, "{backend}");
    }
}

#[test]
fn a_file_that_a_command_makes_or_moves_has_all_its_bytes() {
    for backend in BACKENDS {
        let repo = project();
        let script = "printf 'cell\\n#out new\\n' > b.ipynb; printf '#out only\\n' > c.ipynb";
        overlay::run(&repo, backend, script).check(0, &[]);
        let check = || {
            assert_eq!(repo.read("b.ipynb"), "cell\n#out new\n", "{backend}");
            assert_eq!(repo.read("c.ipynb"), "#out only\n", "{backend}");
        };
        check();
        repo.workflow().undo(1).done();
        assert!(!repo.path().join("b.ipynb").exists());
        repo.workflow().redo(1).done();
        check();

        let repo = project();
        overlay::run(&repo, backend, "mv a.ipynb moved.ipynb").check(0, &[]);
        let moved = match sees_output(backend) {
            true => NOTEBOOK,
            false => "cell 1\ncell 2\n",
        };
        assert_eq!(repo.read("moved.ipynb"), moved, "{backend}");
        repo.workflow().undo(1).done();
        assert_eq!(repo.read("a.ipynb"), NOTEBOOK, "{backend}");
    }
}

#[test]
fn a_file_that_a_turn_deletes_comes_back_with_all_its_bytes() {
    let repo = project();
    run(&repo, "rm a.ipynb");
    assert!(!repo.path().join("a.ipynb").exists());
    assert_eq!(kept(&repo), [NOTEBOOK]);
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.ipynb"), NOTEBOOK);
}

/// Bug: the undo wrote version 100.
#[test]
fn an_undo_finds_the_newest_of_more_than_100_versions() {
    let repo = project();
    run(&repo, "rm a.ipynb");
    repo.workflow().undo(1).done();
    let dir = repo.path().join(".git/teddy/undo/replaced");
    let first = std::fs::read_dir(&dir).unwrap().next().unwrap();
    let first = first.unwrap().file_name().into_string().unwrap();
    for number in 2..=100 {
        let name = first.replace(".1.", &format!(".{number}."));
        std::fs::copy(dir.join(&first), dir.join(name)).unwrap();
    }

    let newest = NOTEBOOK.replace("42", "43");
    repo.write("a.ipynb", &newest);
    run(&repo, "rm a.ipynb");
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.ipynb"), newest);
}

#[test]
fn a_mode_changes_without_the_bytes() {
    let repo = project();
    run(&repo, "chmod +x a.ipynb");
    let mode = repo
        .path()
        .join("a.ipynb")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(
        (mode & 0o100, repo.read("a.ipynb").as_str()),
        (0o100, NOTEBOOK)
    );
}

#[test]
fn a_create_that_overwrites_leaves_what_a_filter_drops() {
    let repo = project();
    act(&repo, replace("a.ipynb", "new\n")).done();
    assert_eq!(repo.read("a.ipynb"), "new\n#out 42 minutes\n");
    assert_eq!(kept(&repo), [NOTEBOOK]);
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.ipynb"), NOTEBOOK);
}

#[test]
fn record_undo_and_pick_leave_what_a_filter_drops() {
    let repo = project();
    repo.write("a.ipynb", "cell 1\n#out 43\ncell zwei\n");
    repo.workflow().record("by hand").done();
    assert_eq!(repo.read("a.ipynb"), "cell 1\n#out 43\ncell zwei\n");
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.ipynb"), "cell 1\n#out 43\ncell 2\n");
    repo.workflow().branch("0", "other").done();
    repo.workflow()
        .pick(&["demo:1"], &PickOptions::default())
        .done();
    assert_eq!(repo.read("a.ipynb"), "cell 1\n#out 43\ncell zwei\n");
}

/// nbstripout sets a count to null, so a change of that line does not apply to the file on disk.
#[test]
fn a_change_that_does_not_fit_the_bytes_on_disk_leaves_the_file() {
    let notebook = "n: 5\nx\n";
    let repo = with_filter("sed 's/^n: .*/n: null/'", notebook);
    let refused = act(&repo, edit("a.ipynb", "n: null", "m: null")).refused();
    insta::assert_snapshot!(refused, @r"
    ▶ 1. EDIT a.ipynb
      ✓ changed 1 place: 1 line added, 1 removed
    turn 1 executed
      overlap a.ipynb
      `a.ipynb` has bytes that git's filters don't store, and the change doesn't fit them, so the file stays as it is; `teddy restore @ --theirs` writes the turn's version and keeps yours in `.git/teddy/undo/replaced`
    ");
    assert_eq!(repo.read("a.ipynb"), notebook);

    let theirs = resolving(OnOverlap::Theirs);
    insta::assert_snapshot!(repo.workflow().restore_with("@", &theirs).done(), @r"
    at turn 1
      write a.ipynb
    ");
    assert_eq!(repo.read("a.ipynb"), "m: null\nx\n");
    assert_eq!(kept(&repo), [notebook]);

    // Undo data outlives the next commands until it is old enough.
    repo.workflow().new_session("other").done();
    let options = GcOptions {
        fetched: Vec::new(),
        sessions: Vec::new(),
        idle_days: 14,
        undo_days: 30,
        no_bundle: false,
    };
    insta::assert_snapshot!(repo.workflow().gc(&options).done(), @"0 undo files, 0 snapshots");
    assert_eq!(kept(&repo), [notebook]);
}

/// Bug: in a repository with SHA-256 ids, the name below `undo` was too long, and an undo stopped
/// halfway.
#[test]
fn a_long_name_fits_beside_long_ids() {
    let name = format!("{}.txt", "n".repeat(250));
    let repo = TestRepo::with(&["--object-format=sha256"])
        .file(".gitattributes", "*.txt text eol=lf\n")
        .file(&name, "a\r\nb\r\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write(&name, "a\r\nB\r\n");
    repo.workflow().record("by hand").done();
    repo.workflow().undo(1).done();
    assert_eq!(repo.read(&name), "a\r\nb\r\n");
    repo.workflow().redo(1).done();
    assert_eq!(repo.read(&name), "a\r\nB\r\n");
}

#[test]
fn unchanged_line_ends_are_kept() {
    for (config, attributes) in [
        (&[][..], "*.txt text=auto\n"),
        (&["core.autocrlf", "input"], ""),
        (&["core.autocrlf", "true"], ""),
        (&[], "*.txt text eol=crlf\n"),
        (&[], "*.txt text eol=lf\n"),
    ] {
        let repo = TestRepo::new()
            .file(".gitattributes", attributes)
            .file("m.txt", "a\nb\nc\nd\n");
        repo.commit("init");
        if let [key, value] = config {
            repo.git(&["config", key, value]);
        }
        let mixed = "a\r\nb\nc\r\nd\n";
        repo.write("m.txt", mixed);
        repo.workflow().new_session("demo").done();
        repo.workflow().add(&["m.txt"]);
        let stored = repo.git(&["hash-object", "--path=m.txt", "m.txt"]);
        let is_stored_as_lf = stored == repo.git(&["rev-parse", "HEAD:m.txt"]);
        assert!(is_stored_as_lf, "{config:?} {attributes}");

        let undo_to_mixed = || {
            repo.workflow().undo(1).done();
            assert_eq!(repo.read("m.txt"), mixed, "{config:?} {attributes}");
        };
        act(&repo, edit("m.txt", "b", "B")).done();
        assert_eq!(
            repo.read("m.txt"),
            "a\r\nB\nc\r\nd\n",
            "{config:?} {attributes}"
        );
        undo_to_mixed();
        run(&repo, "sed -i 's/d/D/' m.txt");
        assert_eq!(
            repo.read("m.txt"),
            "a\r\nb\nc\r\nD\n",
            "{config:?} {attributes}"
        );
        undo_to_mixed();
    }
}

/// Bug: the undo of a command that had rewritten such a file gave it other line ends.
#[test]
fn line_ends_that_git_writes_come_back_after_a_rewrite() {
    for (config, attributes) in [
        (&["core.autocrlf", "true"][..], ""),
        (&[], "*.txt text eol=crlf\n"),
    ] {
        let crlf = "one\r\ntwo\r\nthree\r\n";
        let repo = TestRepo::new()
            .file(".gitattributes", attributes)
            .file("m.txt", crlf);
        if let [key, value] = config {
            repo.git(&["config", key, value]);
        }
        repo.commit("init");
        repo.workflow().new_session("demo").done();
        run(&repo, "printf 'new\\ntwo\\n' > m.txt");
        assert_eq!(repo.read("m.txt"), "new\ntwo\n", "{config:?}");
        for _ in 0..2 {
            repo.workflow().undo(1).done();
            assert_eq!(repo.read("m.txt"), crlf, "{config:?}");
            assert_eq!(repo.git(&["status", "--short"]), "", "{config:?}");
            repo.workflow().redo(1).done();
            assert_eq!(repo.read("m.txt"), "new\ntwo\n", "{config:?}");
        }
    }
}

/// Bug: the way back into a directory that had been removed gave the files other line ends, and a
/// notebook lost its output.
#[test]
fn bytes_that_git_does_not_write_come_back_with_their_directory() {
    let repo = project();
    repo.git(&["config", "core.autocrlf", "true"]);
    repo.write("new/m.txt", "a\nb\n");
    repo.write("new/b.ipynb", NOTEBOOK);
    repo.workflow().record("by hand").done();
    for _ in 0..2 {
        repo.workflow().undo(1).done();
        assert!(!repo.path().join("new").exists());
        repo.workflow().redo(1).done();
        assert_eq!(repo.read("new/m.txt"), "a\nb\n");
        assert_eq!(repo.read("new/b.ipynb"), NOTEBOOK);
    }
}

/// Bug: the way back from the file to the link was refused, although nothing had changed.
#[test]
fn a_file_with_line_ends_of_its_own_becomes_a_link_and_a_file_again() {
    let repo = TestRepo::new().file("g", "g\n").file("m.txt", "a\nb\n");
    repo.commit("init");
    repo.git(&["config", "core.autocrlf", "input"]);
    repo.write("m.txt", "a\r\nb\r\n");
    repo.workflow().new_session("demo").done();
    run(&repo, "rm m.txt && ln -s g m.txt");
    for _ in 0..2 {
        repo.workflow().undo(1).done();
        assert_eq!(repo.read("m.txt"), "a\r\nb\r\n");
        repo.workflow().redo(1).done();
        let target = std::fs::read_link(repo.path().join("m.txt")).unwrap();
        assert_eq!(target.to_str(), Some("g"));
    }
}

#[test]
fn ident_is_written_as_git_writes_it() {
    let repo = TestRepo::new()
        .file(".gitattributes", "*.c ident\n")
        .file("x.c", "$Id$\na\nb\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["x.c"]);
    let check_expanded = |rest: &str| {
        repo.git(&["add", "x.c"]);
        let id = repo.git(&["rev-parse", ":x.c"]);
        let ours = repo.read("x.c");
        assert_eq!(ours, format!("$Id: {id} $\n{rest}"));
        repo.remove("x.c");
        repo.git(&["checkout", "-q", "--", "x.c"]);
        assert_eq!(repo.read("x.c"), ours, "git writes it differently");
    };
    repo.remove("x.c");
    repo.git(&["checkout", "-q", "--", "x.c"]);
    act(&repo, edit("x.c", "a", "A")).done();
    check_expanded("A\nb\n");
    repo.workflow().undo(1).done();
    check_expanded("a\nb\n");

    // A keyword that was not expanded stays unexpanded.
    repo.write("x.c", "$Id$\na\nb\n");
    act(&repo, edit("x.c", "b", "B")).done();
    assert_eq!(repo.read("x.c"), "$Id$\na\nB\n");
}

#[test]
fn utf_16_keeps_the_bytes_that_a_turn_does_not_change() {
    let encode = |text: &str| {
        let units = text.encode_utf16();
        units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    };
    let attributes = "*.rc text=auto working-tree-encoding=UTF-16LE\n";
    let repo = TestRepo::new()
        .file(".gitattributes", attributes)
        .file("e.rc", encode("a\nb\nc\n"));
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.write("e.rc", encode("a\nB\nc\n"));
    repo.workflow().record("by hand").done();

    // git stores the same content for another line ending.
    repo.write("e.rc", encode("a\r\nB\nc\n"));
    repo.workflow().undo(1).done();
    let disk = || std::fs::read(repo.path().join("e.rc")).unwrap();
    assert_eq!(disk(), encode("a\r\nb\nc\n"));
    repo.workflow().redo(1).done();
    assert_eq!(disk(), encode("a\r\nB\nc\n"));
}

/// In a clone without blobs, the version before need not be there.
#[test]
fn line_ends_are_kept_in_a_partial_clone() {
    let repo = TestRepo::new().file("m.txt", "a\nb\nc\n");
    repo.commit("init");
    repo.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", repo.path().display());
    let clone = repo.beside("clone");
    repo.git(&[
        "clone",
        "-q",
        "--filter=blob:none",
        "--depth=1",
        &url,
        "../clone",
    ]);
    repo.git_in(&clone, &["config", "core.autocrlf", "true"]);
    std::fs::write(clone.join("m.txt"), "a\r\nb\nc\r\n").unwrap();
    let workflow = || repo.workflow().below("../clone");
    workflow().new_session("demo").done();
    workflow().add(&["m.txt"]);
    workflow().run_plan(&plan("Try", &[edit("m.txt", "b", "B")]));
    let disk = || std::fs::read_to_string(clone.join("m.txt")).unwrap();
    assert_eq!(disk(), "a\r\nB\nc\r\n");
    workflow().undo(1).done();
    assert_eq!(disk(), "a\r\nb\nc\r\n");
}

#[test]
fn damage_to_encoding_and_line_ends_is_named_before_approval() {
    let repo = TestRepo::on_disk()
        .file("a.php", b"x = 1\n# caf\xe9, d\xe9j\xe0\n")
        .file("b.vb", "\u{feff}a\r\nb\r\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let agent = repo.beside("agent");
    let script = "#!/bin/sh\n\
                  printf 'x = 2\\n# caf\\357\\277\\275, d\\357\\277\\275j\\357\\277\\275\\n' > a.php\n\
                  printf 'A\\nb\\n' > b.vb\n\
                  echo Done.\n";
    std::fs::write(&agent, script).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.configure(&format!(
        "models:\n  a: {{ kind: agent, run: [{}] }}\n",
        agent.display()
    ));
    repo.done(&["plan", "small changes", "--model", "a"]);
    // Nobody is at the terminal, so the plan is shown and waits.
    let review = repo.teddy(&["execute"]);
    insta::assert_snapshot!(review.shown(&repo), @r#"
    --- stderr
    ▶ Reviewing Plan: "Done"
      demo · turn 1
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Done.
     Changes: 2 files  +4 -4
      a.php  +2 -2  file, 19 bytes → file, 25 bytes
        (before: the encoding is not UTF-8: bytes outside of it are shown as \x..)
        (after: the encoding is UTF-8)
        @@ -1,2 +1,2 @@
        -x = 1
        -# caf\xe9, d\xe9j\xe0
        +x = 2
        +# caf�, d�j�
      b.vb  +2 -2
        @@ -1,2 +1,2 @@
        -\u{feff}a\u{d}
        -b\u{d}
        +A
        +b
     Action Plan:
      - TAKE: 1 file
        ⚠ a.php: 3 bytes that are not UTF-8 became U+FFFD
      - EDIT: 1 file
        ⚠ b.vb: the byte order mark is removed
        ⚠ b.vb: line ends change from CRLF to LF in 1 line
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    error: stdin is not a terminal, so TeDDy cannot ask for approval of this plan
    hint: `-y` approves it
    exit code 1
    "#);
}
