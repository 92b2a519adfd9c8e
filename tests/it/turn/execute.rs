//! `execute`: what a plan changes in the user's files and what it leaves alone.

use crate::plans::{create, edit, execute, execute_with, plan, prune, read, with_memos};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\nthree\n")
        .file("b.txt", "b\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    // The model can only edit files in its context.
    repo.done(&["context", "add", "a.txt"]);
    repo
}

#[test]
fn files_are_made_and_changed_and_commands_see_them() {
    let repo = project();
    let found = execute("cat a.txt new/c.txt > seen.txt");
    repo.run_plan(&plan(
        "All of it",
        &[create("new/c.txt", "c\n"), edit("a.txt", "two", "2"), found],
    ));
    assert_eq!(repo.read("a.txt"), "one\n2\nthree\n");
    assert_eq!(repo.read("seen.txt"), "one\n2\nthree\nc\n");
    assert_eq!(
        repo.git(&["rev-parse", "teddy/sessions/demo^2^{tree}"]),
        repo.tree()
    );
}

#[test]
fn a_folder_that_is_empty_or_ignored_is_no_obstacle() {
    let repo = project()
        .file(".gitignore", "built/\n")
        .file("built/old", "old\n");
    std::fs::create_dir(repo.path().join("empty")).unwrap();
    repo.run_plan(&plan(
        "Both",
        &[create("empty/a.txt", "a\n"), create("built/b.txt", "b\n")],
    ));
    assert_eq!(
        [
            repo.read("empty/a.txt"),
            repo.read("built/b.txt"),
            repo.read("built/old")
        ],
        ["a\n", "b\n", "old\n"]
    );
}

#[test]
fn without_a_session_one_is_started_and_named_after_the_plan() {
    let repo = TestRepo::new();
    std::fs::write(
        repo.beside("plan.md"),
        plan("Add a Login Form!", &[create("x", "x\n")]),
    )
    .unwrap();
    repo.done(&["execute", "../plan.md", "-y"]);
    assert_eq!(repo.json(&["status"], 0)["session"], "add-a-login-form");
}

#[test]
fn a_session_that_a_plan_starts_is_named() {
    let repo = TestRepo::new();
    let out = repo.teddy_reads(
        &["execute", "-", "-y"],
        plan("Add a file", &[create("a.txt", "a\n")]),
    );
    out.check(0, &["Started session add-a-file.\n", "turn 1 executed"]);
}

#[test]
fn a_wrong_plan_from_elsewhere_starts_no_session() {
    let repo = TestRepo::new();
    repo.teddy_reads(&["execute", "-", "-y"], "# Nothing\n")
        .check(3, &["no session was started"]);
    assert_eq!(repo.git(&["for-each-ref"]), "");
}

#[test]
fn nothing_runs_without_approval_where_nobody_can_be_asked() {
    let repo = project();
    let out = repo.teddy_reads(&["execute", "-"], plan("One", &[create("one.txt", "1\n")]));
    out.check(1, &["`-y`", "CREATE: 1 file"]);
    assert!(!repo.path().join("one.txt").exists());
    assert_eq!(repo.json(&["status"], 0)["state"], "planned");
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("one.txt"), "1\n");
}

#[test]
fn a_failed_action_ends_the_run_and_what_was_done_is_kept() {
    let repo = project();
    let actions = [
        create("one.txt", "1\n"),
        execute("echo broken >&2; exit 7"),
        create("two.txt", "2\n"),
    ];
    repo.teddy_reads(&["execute", "-", "-y"], plan("Fails", &actions))
        .check(1, &["turn 1 failed", "exit code 7"]);
    assert!(repo.path().join("one.txt").exists() && !repo.path().join("two.txt").exists());
    let log = repo.git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Teddy-Status,valueonly)",
        "teddy/sessions/demo",
    ]);
    assert_eq!(log, "failed");
    let report = repo.done(&["show"]);
    assert!(
        report.contains("- **Exit Code:** 7")
            && report.contains("broken")
            && report.contains("Skipped 🟡"),
        "{report}"
    );
}

#[test]
fn on_failure_rollback_drops_it_all_and_keeps_the_record() {
    let repo = project();
    let wrong = plan("Fails", &[create("one.txt", "1\n"), execute("false")]);
    let out = repo.teddy_reads(&["-c", "on_failure=rollback", "execute", "-", "-y"], wrong);
    out.check(1, &["turn 1 failed"]);
    assert!(!repo.path().join("one.txt").exists());
    let row = &repo.json(&["log"], 0)[0];
    assert_eq!(row["before"], row["after"]);
}

#[test]
fn allow_failure_goes_on() {
    let repo = project();
    let may_fail = execute_with("- **Allow Failure:** true\n", "exit 3");
    repo.run_plan(&plan("Goes on", &[may_fail, create("one.txt", "1\n")]));
    assert_eq!(repo.read("one.txt"), "1\n");
}

#[test]
fn a_command_has_its_folder_and_variables_and_an_empty_input() {
    let repo = project();
    let fields = "- **cwd:** [sub](/sub)\n- **env:**\n  - `GREETING`: \"hello\"\n";
    repo.run_plan(&plan(
        "Env",
        &[
            create("sub/x", ""),
            execute_with(
                fields,
                "cat; echo $GREETING > said; pwd | sed 's,.*/,,' >> said",
            ),
        ],
    ));
    assert_eq!(repo.read("sub/said"), "hello\nsub\n");
}

#[test]
fn a_command_over_its_time_fails_with_124_and_its_output_is_kept() {
    let repo = project();
    let endless = execute_with("- **Timeout:** 1\n", "echo started; while :; do :; done");
    repo.teddy_reads(&["execute", "-", "-y"], plan("Endless", &[endless]))
        .check(1, &["started"]);
    let report = repo.done(&["show"]);
    assert!(
        report.contains("- **Exit Code:** 124") && report.contains("started"),
        "{report}"
    );
}

#[test]
fn long_output_is_cut_in_the_report_and_whole_beside_it() {
    let repo = project();
    repo.run_plan(&plan(
        "Much",
        &[execute(
            "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo line $i; done",
        )],
    ));
    let report = repo.done(&["show"]);
    assert!(
        report.contains("line 1\n")
            && report.contains("line 1000\n")
            && !report.contains("line 500\n"),
        "{report}"
    );
    assert_eq!(
        repo.done(&["show", "1", "output/01.txt"]).lines().count(),
        1000
    );
}

#[test]
fn what_the_plan_writes_is_recorded_although_git_ignores_it() {
    let repo = project();
    repo.write(".gitignore", "*.log\n");
    repo.run_plan(&plan("Log", &[create("x.log", "1\n")]));
    assert_eq!(repo.git(&["show", "teddy/sessions/demo^2:x.log"]), "1");
}

#[test]
fn memos_are_kept_in_a_file_of_the_project() {
    let repo = project();
    repo.run_plan(&with_memos(
        "Remember",
        "[+] Tests first. # agreed",
        &[read("a.txt")],
    ));
    assert_eq!(repo.read(".teddy/memos.yaml"), "- Tests first.\n");
    repo.run_plan(&with_memos("Forget", "[-] Tests first.", &[read("b.txt")]));
    assert!(!repo.read(".teddy/memos.yaml").contains("Tests"));
    assert!(repo.done(&["show", "1", "report.md"]).contains("Applied:"));
}

#[test]
fn read_and_prune_change_the_context_of_the_next_turn() {
    let repo = project();
    repo.run_plan(&plan("Look", &[read("a.txt"), read("b.txt")]));
    let next = repo.done(&["show", "1", "next/turn.context"]);
    let history = ".teddy/demo/01/report.md\n.teddy/demo/01/plan.md\n";
    assert_eq!(next, format!("a.txt\nb.txt\n{history}"));
    repo.run_plan(&plan("Enough", &[prune("a.txt")]));
    let next = repo.done(&["show", "2", "next/turn.context"]);
    assert_eq!(next, format!("b.txt\n{}", history.replace("/01/", "/02/")));
}

#[test]
fn edits_made_meanwhile_stay() {
    let repo = project();
    repo.teddy_reads(
        &["plan", "--from", "-"],
        plan("Two", &[edit("a.txt", "three", "3")]),
    )
    .check(0, &[]);
    repo.write("a.txt", "1\ntwo\nthree\n");
    repo.write("notes.txt", "mine\n");
    repo.done(&["execute", "-y"]);
    assert_eq!(
        (repo.read("a.txt").as_str(), repo.read("notes.txt").as_str()),
        ("1\ntwo\n3\n", "mine\n")
    );
}

#[test]
fn an_edit_of_the_same_line_during_the_run_is_an_overlap_and_no_byte_of_it_is_lost() {
    let repo = project();
    let mine = repo.path().join("a.txt");
    // The command acts as a user who saves the file while the plan runs.
    let save = execute(&format!(
        "printf 'one\\nmine\\nthree\\n' > '{}'",
        mine.display()
    ));
    let actions = [edit("a.txt", "two", "theirs"), create("c.txt", "c\n"), save];
    let out = repo.teddy_reads(
        &["-c", "execute.sandbox=off", "execute", "-", "-y"],
        plan("Race", &actions),
    );
    out.check(4, &["`a.txt` overlaps", "--theirs", "--ours", "--markers"]);
    assert_eq!(repo.read("a.txt"), "one\nmine\nthree\n");
    assert!(!repo.path().join("c.txt").exists(), "all or nothing");
    assert_eq!(
        repo.git(&["show", "teddy/sessions/demo^2:a.txt"]),
        "one\ntheirs\nthree"
    );
    repo.done(&["restore", "@", "--theirs"]);
    assert_eq!(
        (repo.read("a.txt").as_str(), repo.read("c.txt").as_str()),
        ("one\ntheirs\nthree\n", "c\n")
    );
}

#[test]
fn json_has_every_key_that_scripts_rely_on() {
    let repo = project();
    std::fs::write(
        repo.beside("plan.md"),
        plan("All", &[create("c.txt", "c\n"), execute("exit 3")]),
    )
    .unwrap();
    let value = repo.json(&["execute", "../plan.md", "-y"], 1);
    let keys = [
        "session",
        "turn",
        "commit",
        "status",
        "before",
        "after",
        "synced",
        "overlaps",
        "actions",
        "diagnostics",
    ];
    for key in keys {
        assert!(value.get(key).is_some(), "no `{key}` in {value}");
    }
    assert_eq!(
        (
            value["status"].as_str(),
            value["synced"].as_bool(),
            value["turn"].as_u64()
        ),
        (Some("failed"), Some(true), Some(1))
    );
    let action = &value["actions"][1];
    for key in ["index", "kind", "target", "status", "detail", "exit_code"] {
        assert!(action.get(key).is_some(), "no `{key}` in {action}");
    }
    assert_eq!(
        (
            action["kind"].as_str(),
            action["status"].as_str(),
            action["exit_code"].as_i64()
        ),
        (Some("EXECUTE"), Some("failure"), Some(3))
    );
}

#[test]
fn what_a_command_removed_for_nothing_is_there_for_the_next_plan_to_read() {
    let repo = project();
    repo.run_plan(&plan(
        "Files",
        &[create("one.txt", "1\n"), create("d/two.txt", "2\n")],
    ));
    let wrong = plan("Fails", &[execute("rm -r one.txt d; false")]);
    repo.teddy_reads(&["-c", "on_failure=rollback", "execute", "-", "-y"], wrong)
        .check(1, &["failed"]);
    repo.run_plan(&plan("Reads a file", &[read("one.txt")]));
    repo.run_plan(&plan("Reads below a folder", &[read("d/two.txt")]));
    let wrong = plan("Fails", &[execute("rm -r d; false")]);
    repo.teddy_reads(&["-c", "on_failure=rollback", "execute", "-", "-y"], wrong)
        .check(1, &["failed"]);
    repo.run_plan(&plan("Reads a folder", &[read("d")]));
}

#[test]
fn a_worktree_whose_setup_was_cut_short_is_set_up_again() {
    let repo = project();
    repo.configure("worktree: { setup: 'true' }\n");
    let run =
        |title: &str| repo.teddy_reads(&["execute", "-", "-y"], plan(title, &[execute("true")]));
    run("One").check(0, &["preparing the worktree"]);
    assert!(!run("Two").stderr.contains("preparing"));
    let records = repo.path().join(".git/teddy/worktrees");
    // The note is in one place for overlays and in another for checkouts.
    let ready = |folder: std::fs::DirEntry| {
        ["layer-setup", "setup"].map(|note| std::fs::remove_file(folder.path().join(note)).is_ok())
    };
    assert!(
        std::fs::read_dir(records)
            .unwrap()
            .any(|folder| ready(folder.unwrap()).contains(&true))
    );
    run("Three").check(0, &["preparing the worktree"]);
    repo.configure("worktree: { setup: 'true # another' }\n");
    run("Four").check(0, &["preparing the worktree: true # another"]);
}

/// Bug: every later command failed, even one that would have removed the directory.
#[test]
fn a_folder_in_the_place_of_ignore_rules_has_none() {
    let repo = TestRepo::new()
        .file(".gitignore", "ign*\n")
        .file("a", "a\n");
    repo.commit("one");
    repo.done(&["new", "s"]);
    let script = "rm .gitignore; mkdir .gitignore; echo 1 > .gitignore/in; echo n > a";
    repo.run_plan(&plan("Replace", &[execute(script)]));
    assert_eq!(repo.read(".gitignore/in"), "1\n");
    repo.run_plan(&plan("Go on", &[execute("echo m > a")]));
    repo.done(&["undo", "2"]);
    assert_eq!([repo.read(".gitignore"), repo.read("a")], ["ign*\n", "a\n"]);
}

/// A command or the user can create thousands of files that snapshots leave out.
#[test]
fn what_is_left_out_never_makes_a_turn_unreadable() {
    let repo = TestRepo::new().file("a", "a\n");
    repo.commit("one");
    repo.done(&["new", "s"]);
    let script = "mkdir m; cd m; i=0; while [ $i -lt 4500 ]; do i=$((i + 1)); : > .env$(printf %0230d $i); done; echo n > ../a";
    repo.run_plan(&plan("Many secrets", &[execute(script)]));
    assert!(repo.done(&["log"]).contains("Many secrets"));
    repo.run_plan(&plan("Go on", &[execute("echo m > a")]));
    repo.done(&["undo", "2"]);
    assert_eq!(repo.read("a"), "a\n");
}
