//! The rules of `docs/formats/publication.md`. Each test is named after its rule.

use serde_json::{Value, json};

use crate::plans::{create, plan, read};
use crate::support::TestRepo;

/// The ref of the last publication.
const LAST: &str = "refs/teddy/published/main";

/// A project with a session in which `a.txt` can be edited.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "1\n2\n3\n4\n5\n")
        .file(".gitignore", ".teddy/\n");
    repo.commit("init");
    repo.write(".teddy/global.context", "**\n");
    repo.workflow().new_session("demo").done();
    repo
}

fn publication(repo: &TestRepo, name: &str) -> Value {
    let message = repo.git(&["log", "-1", "--format=%B", name]);
    serde_json::from_str(message.split_once("\n\n").unwrap().1).unwrap()
}

fn id(repo: &TestRepo, name: &str) -> String {
    repo.git(&["rev-parse", name])
}

#[test]
fn pb1_a_publication_is_a_commit_that_reaches_what_undoes_it() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    let first = id(&repo, LAST);
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    let after = id(&repo, "teddy/sessions/demo^2");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%s %P %T", LAST]),
        format!("Files after turn 2 of demo {after} {first} {}", repo.tree())
    );
    assert_eq!(
        publication(&repo, LAST),
        json!({
            "schema": 1,
            "session": "demo",
            "turn": 2,
            "change": { "before": id(&repo, "teddy/sessions/demo~1^2"), "after": after },
            "below": { "top": first },
            "applied": true,
        })
    );
    repo.git(&["update-ref", "-d", "refs/teddy/sessions/demo"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.git(&["rev-list", "--objects", LAST]);
}

#[test]
fn pb2_what_is_in_the_files_follows_from_the_last_publication() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    let first = id(&repo, LAST);
    repo.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));
    repo.workflow().restore("1").done();
    assert_eq!(publication(&repo, LAST)["target"], json!({ "top": first }));
    repo.workflow()
        .run_plan(&plan("Other", &[create("other.txt", "o\n")]));
    assert_eq!(publication(&repo, LAST)["below"], json!({ "top": first }));
}

#[test]
fn pb3_a_folder_that_was_restored_alone_is_apart() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("dir/one.txt", "1\n")]));
    repo.workflow().run_plan(&plan(
        "Two",
        &[create("dir/two.txt", "2\n"), create("two.txt", "2\n")],
    ));
    let (second, first) = (id(&repo, LAST), id(&repo, "teddy/sessions/demo~1^3"));
    repo.done(&["restore", "1", "dir"]);
    assert_eq!(
        publication(&repo, LAST)["target"],
        json!({ "top": second, "apart": { "dir": first } })
    );
    assert_eq!(
        repo.json(&["restore", "0"], 0)["deleted"],
        json!(["dir/one.txt", "two.txt"])
    );
}

#[test]
fn pb4_a_turn_without_changes_names_what_is_there() {
    let repo = project();
    repo.workflow().run_plan(&plan("Look", &[read("a.txt")]));
    let found = publication(&repo, LAST);
    assert_eq!(
        (&found["change"], &found["below"]["top"]),
        (&Value::Null, &Value::Null)
    );
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    let one = id(&repo, LAST);
    repo.workflow().run_plan(&plan("Look", &[read("a.txt")]));
    assert_eq!(id(&repo, LAST), one);
    assert_eq!(id(&repo, "teddy/sessions/demo^3"), one);
}

#[test]
fn pb5_what_a_crash_left_is_noted_when_it_is_finished() {
    let repo = project();
    std::fs::write(
        repo.beside("plan.md"),
        plan("One", &[create("one.txt", "1\n")]),
    )
    .unwrap();
    for point in ["after-ref", "after-publish"] {
        let killed = repo
            .teddy_command(&["execute", "../plan.md", "-y"])
            .current_dir(repo.path())
            .env("FAILPOINTS", format!("{point}=return(kill)"))
            .output()
            .unwrap();
        assert_eq!(killed.status.code(), None, "{point}");
        repo.done(&["doctor", "--fix"]);
        assert_eq!(
            id(&repo, LAST),
            id(&repo, "teddy/sessions/demo^3"),
            "{point}"
        );
        repo.workflow().undo(1).done();
        assert!(!repo.path().join("one.txt").exists(), "{point}");
    }
}
