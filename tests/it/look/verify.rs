//! `verify`: accepts valid sessions and reports each kind of forgery.

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

/// A project whose session has turns of every kind.
fn history() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\ntwo\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "two", "2")]));
    repo.reply(&plan(
        "Make b",
        &[create("b.txt", "b\n"), execute("echo built > built.txt")],
    ));
    repo.done(&["plan", "-m", "make b"]);
    repo.done(&["execute", "-y"]);
    repo.workflow().undo(1).done();
    repo.workflow().redo(1).done();
    repo.workflow().restore("1").done();
    repo.workflow().branch("2", "other").done();
    repo.teddy_reads(&["execute", "-", "-y"], plan("Fail", &[execute("exit 3")]))
        .check(1, &["turn 3 failed"]);
    repo
}

/// Makes a session whose newest turn is a changed copy of a turn of `demo`. Returns its faults.
fn forged(repo: &TestRepo, forge: impl Fn(&str) -> String) -> Vec<String> {
    let commit = repo.git(&["cat-file", "commit", "teddy/sessions/demo~3"]);
    let forged = forge(&format!("{commit}\n"));
    repo.write("forged", &forged);
    let id = repo.git(&["hash-object", "-t", "commit", "-w", "forged"]);
    repo.remove("forged");
    repo.git(&["update-ref", "refs/teddy/sessions/forged", &id]);
    let verified = repo.json(&["verify", "forged"], 1);
    let faults = verified[0]["faults"].as_array().unwrap();
    let short = |text: &str| text.split(' ').take(6).collect::<Vec<_>>().join(" ");
    faults
        .iter()
        .map(|fault| {
            let rule = fault["rule"].as_str().unwrap();
            format!("{rule}: {}", short(fault["what"].as_str().unwrap()))
        })
        .collect()
}

/// Like [`forged`], with other content for one file of the turn.
fn with_file(repo: &TestRepo, name: &str, content: &str) -> Vec<String> {
    repo.write("file", format!("{content}\n"));
    let blob = repo.git(&["hash-object", "-w", "file"]);
    repo.remove("file");
    let tree = repo.git(&["ls-tree", "teddy/sessions/demo~3"]);
    let old = repo.git(&["rev-parse", &format!("teddy/sessions/demo~3:{name}")]);
    repo.write("tree", format!("{}\n", tree.replace(&old, &blob)));
    let out = repo
        .command("sh")
        .args(["-c", "git mktree < tree"])
        .current_dir(repo.path())
        .output()
        .unwrap();
    let tree = String::from_utf8(out.stdout).unwrap();
    repo.remove("tree");
    forged(repo, |commit| {
        let (_, rest) = commit.split_once('\n').unwrap();
        format!("tree {}\n{rest}", tree.trim())
    })
}

#[test]
fn t20_an_answer_that_does_more_is_named() {
    let repo = history();
    let meta = repo.git(&["show", "teddy/sessions/demo~3:meta.yaml"]);
    let told = with_file(&repo, "meta.yaml", &format!("{meta}\nquestion: true"));
    assert_eq!(
        told,
        [
            "T20: it answers a question, and files",
            "T20: it answers a question, and its"
        ]
    );
}

#[test]
fn t21_a_turn_that_ran_was_not_recorded() {
    let repo = history();
    let meta = repo.git(&["show", "teddy/sessions/demo~3:meta.yaml"]);
    let told = with_file(&repo, "meta.yaml", &format!("{meta}\nrecorded: {{}}"));
    assert_eq!(told, ["T21: it is executed, and `recorded` says"]);
}

#[test]
fn what_teddy_records_is_sound() {
    let repo = history();
    assert_eq!(
        repo.done(&["verify"]),
        "demo: 5 turns, sound, not signed\nother: 3 turns, sound, not signed\n"
    );
    let verified = repo.json(&["verify", "other"], 0);
    assert_eq!(
        verified,
        serde_json::json!([{ "session": "other", "turns": 4, "signature": null, "faults": [] }])
    );
    insta::assert_snapshot!(repo.printed(&["verify", "gone"]), @"
    --- stderr
    error: there is no session `gone`
    hint: `teddy sessions` lists the sessions
    exit code 1
    ");
}

#[test]
fn what_a_forged_commit_says_is_named() {
    let repo = history();
    let replace = |from: &'static str, to: &'static str| {
        move |commit: &str| {
            assert!(commit.contains(from), "{commit}");
            commit.replace(from, to)
        }
    };
    let told = forged(&repo, replace("Teddy-Turn: 2", "Teddy-Turn: 7"));
    assert_eq!(told, ["T7: `Teddy-Turn` is `7` in its message,"]);
    let told = forged(
        &repo,
        replace("Teddy-Status: executed", "Teddy-Status: failed"),
    );
    assert_eq!(told, ["T7: `Teddy-Status` is `failed` in its message,"]);
    let told = forged(&repo, replace("Teddy-Session: demo", "Teddy-Session: ../x"));
    assert_eq!(told[0], "T7: its message names no session");
    // Nor is it known whose publication it is.
    assert!(told[1].starts_with("PB7: "), "{told:#?}");

    // Without its second parent, the code.
    let told = forged(&repo, |commit| {
        let mut parents = 0;
        let lines = commit.split_inclusive('\n').filter(|line| {
            parents += usize::from(line.starts_with("parent "));
            !(line.starts_with("parent ") && parents == 2)
        });
        lines.collect()
    });
    assert!(told[0].starts_with("T3: its second parent is"), "{told:#?}");

    // The tree of the previous turn has the wrong number, id and parent.
    let older = repo.git(&["rev-parse", "teddy/sessions/demo~4^{tree}"]);
    let told = forged(&repo, |commit| {
        let (_, rest) = commit.split_once('\n').unwrap();
        format!("tree {older}\n{rest}")
    });
    let rules: Vec<&str> = told
        .iter()
        .map(|one| one.split(':').next().unwrap())
        .collect();
    assert!(rules.contains(&"T4") && rules.contains(&"T1"), "{told:#?}");
}

#[test]
fn what_ran_is_compared_with_what_was_approved() {
    let repo = history();
    let plan = repo.git(&["show", "teddy/sessions/demo~3:plan.md"]);
    let other = plan.replace("echo built > built.txt", "rm -rf /");
    assert_ne!(plan, other);
    let told = with_file(&repo, "plan.md", &other);
    assert_eq!(told, ["R2: the command of action 2 in"]);
}

/// Unpacks all objects, so that a single one can be deleted.
fn unpack(repo: &TestRepo) {
    repo.git(&["repack", "-adq"]);
    repo.git(&["pack-refs", "--all"]);
    let packs = repo.path().join(".git/objects/pack");
    let aside = repo.beside("packs");
    std::fs::rename(&packs, &aside).unwrap();
    std::fs::create_dir(&packs).unwrap();
    for entry in std::fs::read_dir(&aside).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "pack") {
            let command = format!("git unpack-objects -q < '{}'", path.display());
            let out = repo
                .command("sh")
                .args(["-c", &command])
                .current_dir(repo.path())
                .status();
            assert!(out.unwrap().success());
        }
    }
}

/// Deletes a loose object and returns its id.
fn lose(repo: &TestRepo, name: &str) -> String {
    let id = repo.git(&["rev-parse", name]);
    repo.remove(&format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    id
}

#[test]
fn an_object_that_is_missing_or_damaged_is_named() {
    let repo = history();
    unpack(&repo);
    assert_eq!(repo.teddy(&["verify"]).code, 0);
    let blob = lose(&repo, "teddy/sessions/demo~3:plan.md");
    let out = repo.teddy(&["verify", "demo"]);
    assert!(out.stdout.contains(&blob), "{out}");
    insta::assert_snapshot!(out.shown(&repo), @"
    demo: 5 turns, 2 faults
      turn 2: reading blob [id]: object [id] is missing (T5)
      [id]: object [id]: blob is missing (objects)
    exit code 1
    ");
}

/// Returns the problems that `doctor` finds, each as its reason.
fn problems(repo: &TestRepo, args: &[&str]) -> Vec<String> {
    let report = repo.json(&[&["doctor"], args].concat(), 1);
    let checks = report["checks"].as_array().unwrap().iter();
    let found = checks.filter(|check| check["state"] == "problem");
    let reasons = found.map(|check| repo.plain(check["reason"].as_str().unwrap()));
    let reasons: Vec<String> = reasons.collect();
    assert_eq!(report["problems"], reasons.len());
    reasons
}

#[test]
fn doctor_names_a_missing_file_of_a_new_turn() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    unpack(&repo);
    repo.json(&["doctor"], 0);
    lose(&repo, "teddy/sessions/demo^2:b.txt");
    let found = problems(&repo, &[]);
    let expected = "turn 1 of `demo`: `b.txt`: reading blob [id]: object [id] is missing";
    assert_eq!(found, [expected]);
}

#[test]
fn what_recovery_cannot_repair_is_a_problem() {
    let repo = history();
    unpack(&repo);
    let demo = "refs/teddy/sessions/demo";
    let first = repo.git(&["rev-list", "--first-parent", "--max-parents=0", demo]);
    lose(&repo, &format!("{first}:next/meta.yaml"));
    let found = problems(&repo, &["--fix"]);
    assert!(
        found.contains(&format!("some of what `{demo}` reaches is gone")),
        "{found:?}"
    );
}
