//! Files with bytes that git does not store: output removed by a clean filter, line endings,
//! `$Id$`. A turn changes only its own part of the bytes on disk, and TeDDy keeps replaced files
//! that git cannot restore.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::plans::{create, edit, execute, plan};
use crate::support::{Output, TestRepo};

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
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.ipynb", "--session"]);
    repo
}

fn run(repo: &TestRepo, settings: &[&str], action: String) -> Output {
    let file = repo.beside("plan.md");
    std::fs::write(&file, plan("Try", &[action])).unwrap();
    let args = [settings, &["execute", "../plan.md", "-y"]].concat();
    repo.teddy(&args)
}

/// Returns the replaced files that git could not restore.
fn kept(repo: &TestRepo) -> Vec<Vec<u8>> {
    let dirs = ["replaced", "displaced"].map(|dir| repo.path().join(".git/teddy/undo").join(dir));
    let files = dirs
        .iter()
        .flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten());
    let paths: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

const BACKENDS: [&str; 2] = ["worktree.backend=auto", "worktree.backend=checkout"];

#[test]
fn an_edit_leaves_what_a_filter_drops() {
    let repo = project();
    let changed = "cell 1\n#out 42 minutes\ncell two\n";
    run(&repo, &[], edit("a.ipynb", "cell 2", "cell two")).check(0, &[]);
    assert_eq!(repo.read("a.ipynb"), changed);
    for (args, expected) in [
        (&["undo"][..], NOTEBOOK),
        (&["redo"], changed),
        (&["restore", "0"], NOTEBOOK),
        (&["restore", "1"], changed),
        (&["restore", "0", "--exact", "-y"], NOTEBOOK),
    ] {
        repo.done(args);
        assert_eq!(repo.read("a.ipynb"), expected, "{args:?}");
        assert_eq!(
            repo.json(&["status"], 0)["workspace"]["changed"],
            serde_json::json!([])
        );
    }
}

#[test]
fn an_edit_above_and_below_dropped_lines_leaves_them() {
    let repo = project();
    let pairs = [("cell 1", "zero\ncell one"), ("cell 2", "cell two\nend")];
    run(&repo, &[], crate::plans::edit_pairs("a.ipynb", &pairs)).check(0, &[]);
    let expected = "zero\ncell one\n#out 42 minutes\ncell two\nend\n";
    assert_eq!(repo.read("a.ipynb"), expected);
}

#[test]
fn a_command_leaves_what_a_filter_drops_and_keeps_its_own_output() {
    for backend in BACKENDS {
        let repo = project();
        let script = "echo '#out 7' >> a.ipynb; echo 'cell 3' >> a.ipynb";
        run(&repo, &["-c", backend], execute(script)).check(0, &[]);
        let changed = repo.read("a.ipynb");
        for line in ["#out 42 minutes\n", "cell 3\n"] {
            assert!(changed.contains(line), "{backend}: {changed}");
        }
        if !changed.contains("#out 7") {
            // In a checkout, the command did not see the user's output.
            let is_kept = |bytes: &Vec<u8>| bytes.ends_with(b"#out 7\ncell 3\n");
            assert!(kept(&repo).iter().any(is_kept), "{backend}: {changed}");
        }

        repo.done(&["undo"]);
        assert!(
            repo.read("a.ipynb").contains("#out 42 minutes\n"),
            "{backend}"
        );
        assert!(!repo.read("a.ipynb").contains("cell 3"), "{backend}");
        repo.done(&["redo"]);
        assert_eq!(repo.read("a.ipynb"), changed, "{backend}");
    }
}

#[test]
fn a_file_that_a_command_makes_or_moves_has_all_its_bytes() {
    for backend in BACKENDS {
        let repo = project();
        let script = "printf 'cell\\n#out new\\n' > b.ipynb; printf '#out only\\n' > c.ipynb";
        run(&repo, &["-c", backend], execute(script)).check(0, &[]);
        let check = || {
            assert_eq!(repo.read("b.ipynb"), "cell\n#out new\n", "{backend}");
            assert_eq!(repo.read("c.ipynb"), "#out only\n", "{backend}");
        };
        check();
        repo.done(&["undo"]);
        assert!(!repo.path().join("b.ipynb").exists());
        repo.done(&["redo"]);
        check();
    }

    let repo = project();
    run(&repo, &[], execute("mv a.ipynb moved.ipynb")).check(0, &[]);
    assert!(repo.read("moved.ipynb").starts_with("cell 1\n"));
    repo.done(&["undo"]);
    assert_eq!(repo.read("a.ipynb"), NOTEBOOK);
}

#[test]
fn a_file_that_a_turn_deletes_comes_back_with_all_its_bytes() {
    let repo = project();
    run(&repo, &[], execute("rm a.ipynb")).check(0, &[]);
    assert!(!repo.path().join("a.ipynb").exists());
    assert_eq!(kept(&repo), [NOTEBOOK.as_bytes()]);
    repo.done(&["undo"]);
    assert_eq!(repo.read("a.ipynb"), NOTEBOOK);
}

#[test]
fn a_mode_changes_without_the_bytes() {
    let repo = project();
    run(&repo, &[], execute("chmod +x a.ipynb")).check(0, &[]);
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
    let action = create("a.ipynb", "new\n").replace(
        "- **Description:**",
        "- **Overwrite:** true\n- **Description:**",
    );
    run(&repo, &[], action).check(0, &[]);
    assert_eq!(repo.read("a.ipynb"), "new\n#out 42 minutes\n");
    assert_eq!(kept(&repo), [NOTEBOOK.as_bytes()]);
    repo.done(&["undo"]);
    assert_eq!(repo.read("a.ipynb"), NOTEBOOK);
}

#[test]
fn record_undo_and_pick_leave_what_a_filter_drops() {
    let repo = project();
    repo.write("a.ipynb", "cell 1\n#out 43\ncell zwei\n");
    repo.done(&["record", "-m", "by hand"]);
    assert_eq!(repo.read("a.ipynb"), "cell 1\n#out 43\ncell zwei\n");
    repo.done(&["undo"]);
    assert_eq!(repo.read("a.ipynb"), "cell 1\n#out 43\ncell 2\n");
    repo.done(&["branch", "0", "other"]);
    repo.done(&["pick", "demo:1"]);
    assert_eq!(repo.read("a.ipynb"), "cell 1\n#out 43\ncell zwei\n");
}

/// nbstripout sets a count to null, so a change of that line does not apply to the file on disk.
#[test]
fn a_change_that_does_not_fit_the_bytes_on_disk_leaves_the_file() {
    let notebook = "n: 5\nx\n";
    let repo = with_filter("sed 's/^n: .*/n: null/'", notebook);
    run(&repo, &[], edit("a.ipynb", "n: null", "m: null"))
        .check(4, &["`a.ipynb`", "bytes that git's filters don't store"]);
    assert_eq!(repo.read("a.ipynb"), notebook);

    repo.done(&["restore", "@", "--theirs", "-y"]);
    assert_eq!(repo.read("a.ipynb"), "m: null\nx\n");
    assert_eq!(kept(&repo), [notebook.as_bytes()]);

    // Undo data outlives the next commands until it is old enough.
    repo.done(&["new", "other"]);
    repo.done(&["gc"]);
    assert_eq!(kept(&repo), [notebook.as_bytes()]);
}

#[test]
fn line_ends_that_a_turn_does_not_change_stay() {
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
        repo.done(&["new", "demo"]);
        repo.done(&["context", "add", "m.txt", "--session"]);
        let stored = repo.git(&["hash-object", "--path=m.txt", "m.txt"]);
        let is_stored_as_lf = stored == repo.git(&["rev-parse", "HEAD:m.txt"]);
        assert!(is_stored_as_lf, "{config:?} {attributes}");

        run(&repo, &[], edit("m.txt", "b", "B")).check(0, &[]);
        assert_eq!(
            repo.read("m.txt"),
            "a\r\nB\nc\r\nd\n",
            "{config:?} {attributes}"
        );
        repo.done(&["undo"]);
        assert_eq!(repo.read("m.txt"), mixed, "{config:?} {attributes}");
        run(&repo, &[], execute("sed -i 's/d/D/' m.txt")).check(0, &[]);
        assert_eq!(
            repo.read("m.txt"),
            "a\r\nb\nc\r\nD\n",
            "{config:?} {attributes}"
        );
        repo.done(&["undo"]);
        assert_eq!(repo.read("m.txt"), mixed, "{config:?} {attributes}");
    }
}

#[test]
fn ident_is_written_as_git_writes_it() {
    let repo = TestRepo::new()
        .file(".gitattributes", "*.c ident\n")
        .file("x.c", "$Id$\na\nb\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "x.c", "--session"]);
    let as_git = || {
        repo.git(&["add", "x.c"]);
        let ours = repo.read("x.c");
        repo.remove("x.c");
        repo.git(&["checkout", "-q", "--", "x.c"]);
        assert_eq!(repo.read("x.c"), ours);
        assert!(ours.starts_with("$Id: ") && ours.contains(" $\n"), "{ours}");
    };
    repo.remove("x.c");
    repo.git(&["checkout", "-q", "--", "x.c"]);
    run(&repo, &[], edit("x.c", "a", "A")).check(0, &[]);
    as_git();
    repo.done(&["undo"]);
    as_git();

    // A keyword that was not expanded stays unexpanded.
    repo.write("x.c", "$Id$\na\nb\n");
    run(&repo, &[], edit("x.c", "b", "B")).check(0, &[]);
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
    repo.done(&["new", "demo"]);
    repo.write("e.rc", encode("a\nB\nc\n"));
    repo.done(&["record", "-m", "by hand"]);

    // git stores the same content for another line ending.
    repo.write("e.rc", encode("a\r\nB\nc\n"));
    repo.done(&["undo"]);
    let disk = || std::fs::read(repo.path().join("e.rc")).unwrap();
    assert_eq!(disk(), encode("a\r\nb\nc\n"));
    repo.done(&["redo"]);
    assert_eq!(disk(), encode("a\r\nB\nc\n"));
}

/// In a clone without blobs, the version before need not be there.
#[test]
fn line_ends_stay_in_a_partial_clone() {
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
    let run = |args: &[&str]| repo.teddy_in(&clone, args).check(0, &[]).code;
    run(&["new", "demo"]);
    run(&["context", "add", "m.txt", "--session"]);
    std::fs::write(
        repo.beside("plan.md"),
        plan("Try", &[edit("m.txt", "b", "B")]),
    )
    .unwrap();
    run(&["execute", "../plan.md", "-y"]);
    let disk = || std::fs::read_to_string(clone.join("m.txt")).unwrap();
    assert_eq!(disk(), "a\r\nB\nc\r\n");
    run(&["undo"]);
    assert_eq!(disk(), "a\r\nb\nc\r\n");
}

#[test]
fn damage_to_encoding_and_line_ends_is_named_before_approval() {
    let repo = TestRepo::new()
        .file("a.php", b"x = 1\n# caf\xe9, d\xe9j\xe0\n")
        .file("b.vb", "\u{feff}a\r\nb\r\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.write(
        "agent",
        "#!/bin/sh\nprintf 'x = 2\\n# caf\\357\\277\\275, d\\357\\277\\275j\\357\\277\\275\\n' > a.php\nprintf 'A\\nb\\n' > b.vb\necho Done.\n",
    );
    let agent = repo.beside("agent");
    std::fs::rename(repo.path().join("agent"), &agent).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    repo.configure(&format!(
        "models:\n  a: {{ kind: agent, run: [{}] }}\n",
        agent.display()
    ));
    repo.done(&["plan", "small changes", "--model", "a"]);
    repo.teddy(&["execute"]).check(
        1,
        &[
            "3 bytes that are not UTF-8 became U+FFFD",
            "the byte order mark is removed",
            "line ends change from CRLF to LF",
        ],
    );
}
