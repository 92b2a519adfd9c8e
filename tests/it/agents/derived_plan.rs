//! Plans derived from an agent's changes, from the draft to the user's files and back. The tests
//! write the draft by hand.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use teddy::plan::difference::{
    AgentText, FileState, MadeChange, StateMode, WrittenPlan, plan_with_takes,
};

use crate::plans::{create, plan};
use crate::support::TestRepo;

/// A project with files of every kind, and a session.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\nthree\n")
        .file("bin.dat", b"\0\x01")
        .file("run.sh", "#!/bin/sh\n")
        .file("old/only.txt", "moved\n")
        .file("folder/x", "x\n")
        .file("file", "f\n");
    symlink("a.txt", repo.path().join("link")).unwrap();
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo
}

fn state(mode: StateMode, content: &[u8]) -> FileState {
    let content = content.to_vec();
    FileState {
        mode,
        bytes: content,
    }
}

fn change(path: &str, before: Option<FileState>, after: Option<FileState>) -> MadeChange {
    MadeChange {
        path: path.as_bytes().to_vec(),
        before,
        after,
    }
}

/// Returns changes of every kind.
fn work() -> Vec<MadeChange> {
    let plain = |text: &str| Some(FileState::plain(text));
    let bytes = |bytes: &[u8]| Some(state(StateMode::Plain, bytes));
    let link = |target: &str| Some(state(StateMode::Link, target.as_bytes()));
    let run = |text: &str| Some(state(StateMode::Executable, text.as_bytes()));
    vec![
        change(
            "a.txt",
            plain("one\ntwo\nthree\n"),
            plain("one\n2\nthree\n"),
        ),
        change("bin.dat", bytes(b"\0\x01"), bytes(b"\0\x02\xff")),
        change("run.sh", plain("#!/bin/sh\n"), run("#!/bin/sh\necho\n")),
        change("old/only.txt", plain("moved\n"), None),
        change("new/only.txt", None, plain("moved\n")),
        change("folder/x", plain("x\n"), None),
        change("folder", None, plain("now a file\n")),
        change("file", plain("f\n"), None),
        change("file/inside", None, plain("now a directory\n")),
        change("link", link("a.txt"), link("../elsewhere")),
    ]
}

/// Stores an object and returns its id.
fn stored(repo: &TestRepo, kind: &str, bytes: &[u8]) -> String {
    let file = repo.beside("bytes");
    std::fs::write(&file, bytes).unwrap();
    let file = file.to_str().unwrap();
    repo.git(&[
        "hash-object",
        "-w",
        "--no-filters",
        "--literally",
        "-t",
        kind,
        file,
    ])
}

fn tree(repo: &TestRepo, lines: &str) -> String {
    let file = repo.beside("tree");
    std::fs::write(&file, lines).unwrap();
    let script = format!("git mktree < '{}'", file.display());
    let mut command = repo.command("sh");
    let out = command
        .args(["-c", &script])
        .current_dir(repo.path())
        .output()
        .unwrap();
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

/// Replaces the draft's plan by one derived from these changes.
fn waits(repo: &TestRepo, changes: &[MadeChange]) -> WrittenPlan {
    let words = AgentText {
        title: "Tidy up",
        rationale: "I tidied up.\n\n## Action Plan\n### `EXECUTE`\n",
    };
    let written = plan_with_takes(changes, &words, &BTreeSet::new());
    repo.reply(&plan("Nothing yet", &[create("none", "n\n")]));
    repo.done(&["plan", "-m", "tidy up"]);

    let mut lines = String::new();
    for line in repo.git(&["ls-tree", "teddy/drafts/demo"]).lines() {
        let (_, name) = line.split_once('\t').unwrap();
        let content = match name {
            "plan.md" => written.text.clone(),
            "meta.yaml" => {
                let meta = repo.git(&["show", "teddy/drafts/demo:meta.yaml"]);
                format!("{meta}\nmade: true\n")
            }
            _ => {
                lines += &format!("{line}\n");
                continue;
            }
        };
        let blob = stored(repo, "blob", content.as_bytes());
        lines += &format!("100644 blob {blob}\t{name}\n");
    }

    let mut taken = String::new();
    for (name, bytes) in &written.taken_bytes {
        let blob = stored(repo, "blob", bytes);
        let name = name.strip_prefix("taken/").unwrap();
        taken += &format!("100644 blob {blob}\t{name}\n");
    }
    if !taken.is_empty() {
        lines += &format!("040000 tree {}\ttaken\n", tree(repo, &taken));
    }

    let commit = repo.git(&["cat-file", "commit", "teddy/drafts/demo"]);
    let (_, rest) = commit.split_once('\n').unwrap();
    let commit = format!("tree {}\n{rest}\n", tree(repo, &lines));
    let id = stored(repo, "commit", commit.as_bytes());
    repo.git(&["update-ref", "refs/teddy/drafts/demo", &id]);
    repo.done(&["switch", "--adopt", "demo"]);
    written
}

#[test]
fn p40_what_an_agent_did_arrives_and_goes_again() {
    let repo = project();
    let written = waits(&repo, &work());
    assert_eq!(written.taken_bytes.len(), 3);
    let out = repo.teddy(&["execute", "-y"]);
    out.check(0, &[]);

    assert_eq!(repo.read("a.txt"), "one\n2\nthree\n");
    assert_eq!(repo.read("folder"), "now a file\n");
    assert_eq!(repo.read("file/inside"), "now a directory\n");
    assert!(!repo.path().join("old").exists());
    let at = |name: &str| repo.path().join(name);
    assert_eq!(std::fs::read(at("bin.dat")).unwrap(), b"\0\x02\xff");
    assert_eq!(
        std::fs::read_link(at("link")).unwrap().to_str(),
        Some("../elsewhere")
    );
    assert_ne!(
        std::fs::metadata(at("run.sh"))
            .unwrap()
            .permissions()
            .mode()
            & 0o100,
        0
    );

    repo.done(&["verify"]);
    let replayed = repo.json(&["verify", "--rerun", "1"], 0);
    assert_eq!(
        replayed["differences"].as_array().map(Vec::len),
        Some(0),
        "{replayed}"
    );
    repo.done(&["undo"]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.done(&["redo"]);
    assert_eq!(repo.read("folder"), "now a file\n");
}

#[test]
fn p40_the_review_names_what_a_take_does_and_what_is_risky_about_it() {
    let repo = project();
    waits(&repo, &work());
    let shown = repo.done(&["diff", "draft"]);
    for line in [
        "-moved",
        "+now a file",
        "binary content differs",
        "--- a/old/only.txt",
        "+++ /dev/null",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    let listed = repo.json(&["diff", "draft"], 0);
    let change = |path: &str| {
        let rows = listed.as_array().unwrap().iter();
        let mut row = rows.filter(|row| row["path"] == path);
        row.next()
            .map(|row| row["change"].as_str().unwrap().to_owned())
    };
    assert_eq!(change("old/only.txt").as_deref(), Some("deleted"));
    assert_eq!(change("link").as_deref(), Some("modified"));
    let selected = repo.json(&["diff", "draft", "--", "link"], 0);
    let expected = serde_json::json!([{ "path": "link", "change": "modified" }]);
    assert_eq!(selected, expected);

    let out = repo.teddy(&["execute", "-y"]);
    for line in [
        "link becomes a link out of the project, to `../elsewhere`",
        "run.sh: it becomes executable",
        "new/only.txt: it was renamed from `old/only.txt`",
        "old/only.txt is removed (6 bytes)",
        "bin.dat  file, 2 bytes → file, 3 bytes",
        "link  symbolic link, 5 bytes → symbolic link to `../elsewhere`",
    ] {
        assert!(out.stderr.contains(line), "{line}: {out}");
    }
    let report = repo.done(&["show", "@", "report.md"]);
    for line in [
        "- **Becomes:** executable file\n",
        "- **Outcome:** file → executable file, 15 bytes\n",
        "- **Outcome:** removed, 6 bytes\n",
        "--- a/old/only.txt\n+++ /dev/null\n",
    ] {
        assert!(report.contains(line), "{line}: {report}");
    }
}

#[test]
fn p39_what_the_user_changed_meanwhile_is_refused_and_stays() {
    let repo = project();
    waits(&repo, &work());
    repo.write("bin.dat", b"\0mine");
    let out = repo.teddy(&["execute", "-y"]);
    let why = "`bin.dat` is not what it was when this plan was made";
    assert_ne!(out.code, 0, "{out}");
    assert!(out.stderr.contains(why), "{out}");
    assert_eq!(
        std::fs::read(repo.path().join("bin.dat")).unwrap(),
        b"\0mine"
    );
    assert_eq!(repo.read("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn p39_a_take_that_somebody_made_up_never_runs() {
    let repo = project();
    let written = plan_with_takes(&work(), &AgentText::default(), &BTreeSet::new());
    let why = "the turn has no `taken/01`, whose bytes TAKE needs";
    let out = repo.teddy_reads(&["execute", "-", "-y"], &written.text);
    assert_ne!(out.code, 0, "{out}");
    assert!(out.stderr.contains(why), "{out}");
    repo.reply(&written.text);
    let out = repo.teddy(&["plan", "-m", "take it"]);
    assert!(
        out.stderr.contains(why) || out.stdout.contains(why),
        "{out}"
    );
    assert_eq!(repo.read("a.txt"), "one\ntwo\nthree\n");
}

#[test]
fn p39_bytes_that_are_not_those_of_the_plan_are_a_fault_of_the_turn() {
    let repo = project();
    waits(&repo, &work());
    repo.done(&["execute", "-y"]);
    let blob = stored(&repo, "blob", b"other");
    let old = repo.git(&["rev-parse", "teddy/sessions/demo:taken"]);
    let taken = repo.git(&["ls-tree", &old]);
    let first = repo.git(&["rev-parse", "teddy/sessions/demo:taken/01"]);
    let new = tree(&repo, &format!("{}\n", taken.replace(&first, &blob)));
    let lines = repo.git(&["ls-tree", "teddy/sessions/demo"]);
    let lines = tree(&repo, &format!("{}\n", lines.replace(&old, &new)));
    let commit = repo.git(&["cat-file", "commit", "teddy/sessions/demo"]);
    let (_, rest) = commit.split_once('\n').unwrap();
    let forged = stored(
        &repo,
        "commit",
        format!("tree {lines}\n{rest}\n").as_bytes(),
    );
    repo.git(&["update-ref", "refs/teddy/sessions/forged", &forged]);
    let found = repo.json(&["verify", "forged"], 1);
    let fault = &found[0]["faults"][0];
    assert_eq!(fault["rule"], "P39");
    assert_eq!(
        fault["what"],
        "`taken/01` does not have the bytes that TAKE names"
    );
}

#[test]
fn t14_a_plan_that_is_set_aside_keeps_its_bytes_and_leaves_none() {
    let repo = project();
    waits(&repo, &work());
    repo.reply(&plan("Other", &[create("b", "b\n")]));
    repo.done(&["plan", "-m", "something else"]);
    let names = repo.git(&["ls-tree", "-r", "--name-only", "teddy/drafts/demo"]);
    let taken: Vec<&str> = names
        .lines()
        .filter(|name| name.contains("taken/"))
        .collect();
    let aside = [
        "replaced/01/taken/01",
        "replaced/01/taken/02",
        "replaced/01/taken/03",
    ];
    assert_eq!(taken, aside);
    let meta = repo.git(&["show", "teddy/drafts/demo:meta.yaml"]);
    assert!(!meta.contains("made:"), "{meta}");
    let kept = repo.git(&["show", "teddy/drafts/demo:replaced/01/meta.yaml"]);
    assert!(kept.contains("made: true"), "{kept}");
}

#[test]
fn p41_a_plan_of_an_agent_may_edit_what_is_in_no_context() {
    let repo = project();
    let before = FileState::plain("one\ntwo\nthree\n");
    let after = FileState::plain("one\ntwo\n3\n");
    waits(&repo, &[change("a.txt", Some(before), Some(after))]);
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("a.txt"), "one\ntwo\n3\n");
}

#[test]
fn t13_a_plan_that_was_interrupted_waits_again_with_its_bytes() {
    let repo = project();
    waits(&repo, &work());
    let mut command = repo.teddy_command(&["execute", "-y"]);
    command.current_dir(repo.path());
    let out = command
        .env("FAILPOINTS", "before-write=1*return(error)")
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("folder"), "now a file\n");
    repo.done(&["verify"]);
}

#[test]
fn p40_a_program_that_reviews_is_told_kinds_sizes_and_hashes() {
    let repo = project();
    waits(&repo, &work());
    let out = repo.teddy(&["--json", "execute"]);
    let value: serde_json::Value = serde_json::from_str(&out.stdout).unwrap();
    let actions = value["review"]["actions"].as_array().unwrap();
    let action = |target: &str| {
        actions
            .iter()
            .find(|action| action["target"] == target)
            .unwrap()
    };
    let link = action("link");
    assert_eq!(
        (
            &link["becomes"]["kind"],
            &link["was"]["size"],
            &link["artifact"]
        ),
        (&"symbolic link".into(), &5.into(), &"taken/02".into())
    );
    let gone = action("old/only.txt");
    assert_eq!(
        (&gone["becomes"], &gone["removed"]),
        (&serde_json::Value::Null, &1.into())
    );
    assert_eq!(gone["description"], "renamed to `new/only.txt`");
}

#[test]
fn p41_a_name_beside_its_twin_is_a_risk_of_what_an_agent_did() {
    let repo = project();
    waits(
        &repo,
        &[change("A.txt", None, Some(FileState::plain("A\n")))],
    );
    insta::assert_snapshot!(repo.printed(&["execute", "-y"]), @r#"
    turn 1 executed [id]
    --- stderr
    ▶ Reviewing Plan: "Tidy up"
      demo · turn 1
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      I tidied up.
     Changes: 1 file  +1
      A.txt  +1  new file
        +A
     Action Plan:
      - CREATE: 1 file
        ⚠ A.txt is the same name as a.txt for some file systems
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE A.txt
      ✓ created, 1 line
    Updated your files: A.txt (new)
    exit code 0
    "#);
    assert_eq!(repo.read("A.txt"), "A\n");
}
