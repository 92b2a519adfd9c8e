//! Saves by the user while a model answers or a command runs. No save is lost, and a plan is
//! validated against the files at the time it runs.

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

/// A model changes files with a shell command and then answers with a plan.
fn project(deed: &str, actions: &[String]) -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\n")
        .file("b.txt", "b\n")
        .file(".gitignore", "*.log\n");
    repo.commit("init");
    answers(&repo, deed, actions);
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo
}

/// Configures a model that runs a shell command and then answers with a plan.
fn answers(repo: &TestRepo, deed: &str, actions: &[String]) {
    let (script, answer) = (repo.beside("model.sh"), repo.beside("answer.md"));
    std::fs::write(&answer, plan("Change it", actions)).unwrap();
    std::fs::write(
        &script,
        format!("cat > /dev/null; {deed}; cat {}", answer.display()),
    )
    .unwrap();
    repo.configure(&format!(
        "model: fast\nmodels:\n  fast: {{ kind: command, run: [sh, {}] }}\n",
        script.display()
    ));
}

/// Returns a file of the snapshot before the newest turn.
fn before(repo: &TestRepo, path: &str) -> String {
    repo.git(&["show", &format!("teddy/sessions/demo^2^:{path}")])
}

#[test]
fn what_is_saved_at_a_path_of_the_plan_is_what_it_changes() {
    let repo = project("echo mine >> a.txt", &[edit("a.txt", "one", "1")]);
    repo.done(&["resume", "-m", "go", "-y"]);
    assert_eq!(repo.read("a.txt"), "1\ntwo\nmine\n");
    assert_eq!(before(&repo, "a.txt"), "one\ntwo\nmine");
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.txt"), "one\ntwo\nmine\n");
}

#[test]
fn edits_of_other_files_are_kept_and_are_in_the_next_turn() {
    let repo = project("echo mine >> b.txt", &[edit("a.txt", "one", "1")]);
    repo.done(&["resume", "-m", "go", "-y"]);
    assert_eq!(repo.read("a.txt"), "1\ntwo\n");
    assert_eq!(repo.read("b.txt"), "b\nmine\n");

    answers(&repo, ":", &[edit("a.txt", "two", "2")]);
    repo.done(&["resume", "-m", "go", "-y"]);
    assert_eq!(before(&repo, "b.txt"), "b\nmine");
    repo.workflow().undo(1).done();
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("a.txt"), "one\ntwo\n");
    assert_eq!(repo.read("b.txt"), "b\nmine\n");
}

#[test]
fn an_ignored_file_that_a_plan_replaces_is_recorded_first() {
    let overwrite =
        create("out.log", "new\n").replace("````text\n", "- **Overwrite:** true\n````text\n");
    let repo = project(":", &[overwrite]);
    repo.write("out.log", "mine\n");
    repo.done(&["resume", "-m", "go", "-y"]);
    assert_eq!(repo.read("out.log"), "new\n");
    repo.workflow().undo(1).done();
    assert_eq!(repo.read("out.log"), "mine\n");
}

#[test]
fn edits_during_a_command_are_kept_and_merged_with_the_plan() {
    for backend in ["auto", "checkout"] {
        let repo = project(":", &[execute("sed -i s/one/1/ a.txt; sleep 1")]);
        let top = repo.path();
        let saves = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(700));
            std::fs::write(top.join("b.txt"), "b\nmine\n").unwrap();
            std::fs::write(top.join("a.txt"), "one\ntwo\nmine\n").unwrap();
        });
        let setting = format!("worktree.backend={backend}");
        repo.done(&["-c", &setting, "resume", "-m", "go", "-y"]);
        saves.join().unwrap();
        assert_eq!(repo.read("a.txt"), "1\ntwo\nmine\n", "{backend}");
        assert_eq!(repo.read("b.txt"), "b\nmine\n", "{backend}");
    }
}

#[test]
fn names_in_every_language_are_shown_as_they_are() {
    let repo = TestRepo::new();
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .run_plan(&plan("Greet", &[create("日本語.txt", "1\n")]));
    insta::assert_snapshot!(repo.printed(&["diff", "1", "--stat"]), @"
     日本語.txt | 1 +
     1 file changed, 1 insertion(+)
    exit code 0
    ");
}
