//! `execute`: what a plan changes in the user's files and what it leaves alone.

use crate::plans::{create, edit, execute, execute_with, plan, prune, read, with_memos};
use crate::support::TestRepo;

/// Executes a plan on stdin. What the review says of a sandbox depends on the kernel.
const UNCONFINED: [&str; 5] = ["-c", "execute.sandbox=off", "execute", "-", "-y"];

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\nthree\n")
        .file("b.txt", "b\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    // The model can only edit files in its context.
    repo.workflow().add(&["a.txt"]);
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
    repo.workflow().run_plan(&plan(
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
    let text = plan("Add a Login Form!", &[create("x", "x\n")]);
    insta::assert_snapshot!(repo.workflow().execute_text(&text).done(), @r"
    Started session add-a-login-form.
    ▶ 1. CREATE x
      ✓ created, 1 line
    turn 1 executed
      added x
    ");
    assert_eq!(repo.workflow().status()["session"], "add-a-login-form");
}

#[test]
fn a_wrong_plan_from_a_file_starts_no_session() {
    let repo = TestRepo::new();
    insta::assert_snapshot!(repo.workflow().execute_text("# Nothing\n").refused(), @r"
    not a plan
    plan.md:1: the plan has no `## Rationale`
        hint: add `## Rationale` with one code block before `## Action Plan`
    plan.md:1: the plan has no `## Action Plan`
        hint: add `## Action Plan` and at least one action
    ");
    assert_eq!(repo.git(&["for-each-ref"]), "");
}

#[test]
fn nothing_runs_without_approval_if_there_is_no_terminal() {
    let repo = project();
    let out = repo.teddy_reads(&["execute", "-"], plan("One", &[create("one.txt", "1\n")]));
    insta::assert_snapshot!(out.shown(&repo), @r#"
    --- stderr
    ▶ Reviewing Plan: "One"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      One, because it is wanted.
     Changes: 1 file  +1
      one.txt  +1  new file
        +1
     Action Plan:
      - CREATE: 1 file
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    error: stdin is not a terminal, so TeDDy cannot ask for approval of this plan
    hint: `-y` approves it
    exit code 1
    "#);
    assert!(!repo.path().join("one.txt").exists());
    assert_eq!(repo.workflow().status()["state"], "planned");
    repo.workflow().execute().done();
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
    let out = repo.teddy_reads(&UNCONFINED, plan("Fails", &actions));
    insta::assert_snapshot!(out.shown(&repo), @r#"
    turn 1 failed [id]
    --- stderr
    ▶ Reviewing Plan: "Fails"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Fails, because it is wanted.
     Changes: 2 files  +2
      one.txt  +1  new file
        +1
      two.txt  +1  new file
        +2
     Look at:
      ⚠ commands run with all your rights (not sandboxed)
     Action Plan:
      - CREATE: 1 file  one.txt
      - EXECUTE: 1 command (not sandboxed)
        $ echo broken >&2; exit 7
      - CREATE: 1 file  two.txt
        ⚠ CREATE two.txt depends on an earlier command; it is checked again when it runs
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE one.txt
      ✓ created, 1 line
    ▶ 2. EXECUTE echo broken >&2; exit 7
      │ broken
      ✗ the command failed with exit code 7
      - 3. skipped because an action before it failed
    Updated your files: one.txt (new)
    `teddy resume` lets the model continue; `teddy undo` takes it back.
    exit code 1
    "#);
    assert!(repo.path().join("one.txt").exists() && !repo.path().join("two.txt").exists());
    let log = repo.git(&[
        "log",
        "-1",
        "--format=%(trailers:key=Teddy-Status,valueonly)",
        "teddy/sessions/demo",
    ]);
    assert_eq!(log, "failed");
    let report = repo.workflow().artifact("@", "report.md");
    let (_, actions) = report.split_once("### Action Log\n").unwrap();
    insta::assert_snapshot!(repo.plain(actions), @r"
    #### `CREATE`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** created, 1 line
    - **File Path:** [one.txt](/one.txt)
    - **Description:** Make one.txt.

    Change of the file:
    ````diff
    --- /dev/null
    +++ b/one.txt
    @@ -0,0 +1 @@
    +1
    ````

    #### `EXECUTE`
    - **Status:** Approved ✅
    - **Execution:** Failure 🔴
    - **Duration:** [n]
    - **Outcome:** the command failed with exit code 7
    - **Exit Code:** 7
    - **Description:** Run it.
    - **Expected Outcome:** It works.

    Command:
    ````shell
    echo broken >&2; exit 7
    ````

    Output:
    ````text
    broken
    ````

    The whole output is `output/02.txt`.

    #### `CREATE`
    - **Status:** Skipped 🟡
    - **Outcome:** skipped because an action before it failed
    - **File Path:** [two.txt](/two.txt)
    - **Description:** Make two.txt.
    ");
}

#[test]
fn on_failure_rollback_drops_it_all_and_keeps_the_record() {
    let repo = project();
    let wrong = plan("Fails", &[create("one.txt", "1\n"), execute("false")]);
    let out = repo.teddy_reads(
        &[&["-c", "on_failure=rollback"], &UNCONFINED[..]].concat(),
        wrong,
    );
    insta::assert_snapshot!(out.shown(&repo), @r#"
    turn 1 failed [id]
    --- stderr
    ▶ Reviewing Plan: "Fails"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Fails, because it is wanted.
     Changes: 1 file  +1
      one.txt  +1  new file
        +1
     Look at:
      ⚠ commands run with all your rights (not sandboxed)
     Action Plan:
      - CREATE: 1 file
      - EXECUTE: 1 command (not sandboxed)
        $ false
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE one.txt
      ✓ created, 1 line
    ▶ 2. EXECUTE false
      ✗ the command failed with exit code 1
    Your files are unchanged.
    `teddy resume` lets the model continue.
    exit code 1
    "#);
    assert!(!repo.path().join("one.txt").exists());
    let row = &repo.workflow().log()[0];
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
    let out = repo.teddy_reads(&UNCONFINED, plan("Endless", &[endless]));
    insta::assert_snapshot!(out.shown(&repo), @r#"
    turn 1 failed [id]
    --- stderr
    ▶ Reviewing Plan: "Endless"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Endless, because it is wanted.
     Look at:
      ⚠ commands run with all your rights (not sandboxed)
     Action Plan:
      - EXECUTE: 1 command (not sandboxed)
        $ echo started; while :; do :; done
          (at most 1 s)
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. EXECUTE echo started; while :; do :; done
      │ started
      ✗ the command was stopped after its time limit of 1 s
    Your files are unchanged.
    `teddy resume` lets the model continue.
    exit code 1
    "#);
    let report = repo.workflow().artifact("@", "report.md");
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
    let report = repo.workflow().artifact("@", "report.md");
    assert!(
        report.contains("line 1\n")
            && report.contains("line 1000\n")
            && !report.contains("line 500\n"),
        "{report}"
    );
    assert_eq!(
        repo.workflow()
            .artifact("1", "output/01.txt")
            .lines()
            .count(),
        1000
    );
}

#[test]
fn what_the_plan_writes_is_recorded_although_git_ignores_it() {
    let repo = project();
    repo.write(".gitignore", "*.log\n");
    repo.workflow()
        .run_plan(&plan("Log", &[create("x.log", "1\n")]));
    assert_eq!(repo.git(&["show", "teddy/sessions/demo^2:x.log"]), "1");
}

#[test]
fn memos_are_kept_in_a_file_of_the_project() {
    let repo = project();
    repo.workflow().run_plan(&with_memos(
        "Remember",
        "[+] Tests first. # agreed",
        &[read("a.txt")],
    ));
    assert_eq!(repo.read(".teddy/memos.yaml"), "- Tests first.\n");
    repo.workflow()
        .run_plan(&with_memos("Forget", "[-] Tests first.", &[read("b.txt")]));
    assert_eq!(repo.read(".teddy/memos.yaml"), "");
    let applied = ["1", "2"].map(|turn| {
        let report = repo.workflow().artifact(turn, "report.md");
        let (_, rest) = report.split_once("### Applied State Changes\n").unwrap();
        rest.split_once("\n### ").unwrap().0.to_owned()
    });
    insta::assert_snapshot!(applied.concat(), @r"
    - Applied: ` [+] Tests first. `
    - Applied: ` [-] Tests first. `
    ");
}

#[test]
fn read_and_prune_change_the_context_of_the_next_turn() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("Look", &[read("a.txt"), read("b.txt")]));
    let next = repo.workflow().artifact("1", "next/turn.context");
    let history = ".teddy/demo/01/report.md\n.teddy/demo/01/plan.md\n";
    assert_eq!(next, format!("a.txt\nb.txt\n{history}"));
    repo.workflow().run_plan(&plan("Enough", &[prune("a.txt")]));
    let next = repo.workflow().artifact("2", "next/turn.context");
    assert_eq!(next, format!("b.txt\n{}", history.replace("/01/", "/02/")));
}

#[test]
fn concurrent_edits_are_kept() {
    let repo = project();
    let text = plan("Two", &[edit("a.txt", "three", "3")]);
    repo.workflow().plan_from("go", &text).done();
    repo.write("a.txt", "1\ntwo\nthree\n");
    repo.write("notes.txt", "mine\n");
    repo.workflow().execute().done();
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
    let out = repo.teddy_reads(&UNCONFINED, plan("Race", &actions));
    insta::assert_snapshot!(out.shown(&repo), @r#"
    turn 1 executed [id]
    --- stderr
    ▶ Reviewing Plan: "Race"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Race, because it is wanted.
     Changes: 2 files  +2 -1
      a.txt  +1 -1
        @@ -1,3 +1,3 @@
         one
        -two
        +theirs
         three
      c.txt  +1  new file
        +c
     Look at:
      ⚠ commands run with all your rights (not sandboxed)
     Action Plan:
      - EDIT: 1 file
      - CREATE: 1 file
      - EXECUTE: 1 command (not sandboxed)
        $ printf 'one\nmine\nthree\n' > '[dir]/repo/a.txt'
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. EDIT a.txt
      ✓ changed 1 place: 1 line added, 1 removed
    ▶ 2. CREATE c.txt
      ✓ created, 1 line
    ▶ 3. EXECUTE printf 'one\nmine\nthree\n' > '[dir]/repo/a.txt'
      ✓ the command succeeded
    warning: `a.txt` overlaps with your own edits and was left as it is
    The result is in the turn: `teddy restore @ --theirs` takes it, `--markers` writes conflict markers, `--ours` keeps your side.
    exit code 4
    "#);
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
    let text = plan("All", &[create("c.txt", "c\n"), execute("exit 3")]);
    std::fs::write(repo.beside("plan.md"), text).unwrap();
    let out = repo.teddy(&[
        "--json",
        "-c",
        "execute.sandbox=off",
        "execute",
        "../plan.md",
        "-y",
    ]);
    insta::assert_snapshot!(out.shown(&repo), @r#"
    {
      "actions": [
        {
          "detail": "created, 1 line",
          "duration_ms": [n],
          "exit_code": null,
          "index": 0,
          "kind": "CREATE",
          "status": "success",
          "target": "c.txt"
        },
        {
          "detail": "the command failed with exit code 3",
          "duration_ms": [n],
          "exit_code": 3,
          "index": 1,
          "kind": "EXECUTE",
          "status": "failure",
          "target": "exit 3"
        }
      ],
      "after": "[id]",
      "answer": null,
      "before": "[id]",
      "commit": "[id]",
      "conclusion": null,
      "damage": [],
      "diagnostics": [],
      "files": [
        {
          "change": "added",
          "path": "c.txt"
        }
      ],
      "interruption": null,
      "notes": [],
      "overlaps": [],
      "question": null,
      "replanned": null,
      "session": "demo",
      "status": "failed",
      "synced": true,
      "turn": 1,
      "workspace": {
        "branch": null,
        "extra": [],
        "lacking": [],
        "marked": [],
        "missing": [],
        "not_brought": null,
        "same_turns": null
      }
    }
    --- stderr
    ▶ Reviewing Plan: "All"
      demo · turn 1 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      All, because it is wanted.
     Changes: 1 file  +1
      c.txt  +1  new file
        +c
     Look at:
      ⚠ commands run with all your rights (not sandboxed)
     Action Plan:
      - CREATE: 1 file
      - EXECUTE: 1 command (not sandboxed)
        $ exit 3
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. CREATE c.txt
      ✓ created, 1 line
    ▶ 2. EXECUTE exit 3
      ✗ the command failed with exit code 3
    exit code 1
    "#);
}

#[test]
fn what_a_command_removed_for_nothing_is_there_for_the_next_plan_to_read() {
    let repo = project();
    repo.workflow().run_plan(&plan(
        "Files",
        &[create("one.txt", "1\n"), create("d/two.txt", "2\n")],
    ));
    let wrong = plan("Fails", &[execute("rm -r one.txt d; false")]);
    let shown = repo
        .teddy_reads(&["-c", "on_failure=rollback", "execute", "-", "-y"], wrong)
        .shown(&repo);
    insta::assert_snapshot!(shown, @r#"
    turn 2 failed [id]
    --- stderr
    ▶ Reviewing Plan: "Fails"
      demo · turn 2 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Fails, because it is wanted.
     Action Plan:
      - EXECUTE: 1 command (sandboxed, no network)
        $ rm -r one.txt d; false
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. EXECUTE rm -r one.txt d; false
      ✗ the command failed with exit code 1
    Your files are unchanged.
    `teddy resume` lets the model continue.
    exit code 1
    "#);
    repo.workflow()
        .run_plan(&plan("Reads a file", &[read("one.txt")]));
    repo.workflow()
        .run_plan(&plan("Reads below a folder", &[read("d/two.txt")]));
    let wrong = plan("Fails", &[execute("rm -r d; false")]);
    let shown = repo
        .teddy_reads(&["-c", "on_failure=rollback", "execute", "-", "-y"], wrong)
        .shown(&repo);
    insta::assert_snapshot!(shown, @r#"
    turn 5 failed [id]
    --- stderr
    ▶ Reviewing Plan: "Fails"
      demo · turn 5 · 🟢 Green · Pathfinder
    ────────────────────────────────────────────────────────────────────────────────────────────────────
     Rationale:
      Fails, because it is wanted.
     Action Plan:
      - EXECUTE: 1 command (sandboxed, no network)
        $ rm -r d; false
    ────────────────────────────────────────────────────────────────────────────────────────────────────
    ▶ 1. EXECUTE rm -r d; false
      ✗ the command failed with exit code 1
    Your files are unchanged.
    `teddy resume` lets the model continue.
    exit code 1
    "#);
    repo.workflow()
        .run_plan(&plan("Reads a folder", &[read("d")]));
}

#[test]
fn a_worktree_whose_setup_was_cut_short_is_set_up_again() {
    let repo = project();
    repo.configure("worktree: { setup: 'true' }\n");
    let run = |title: &str| {
        let out = repo.teddy_reads(&["execute", "-", "-y"], plan(title, &[execute("true")]));
        assert_eq!(out.code, 0, "{out}");
        let lines = out.stderr.lines();
        let lines = lines.filter(|line| line.contains("preparing"));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    let prepares = "preparing the worktree: true";
    assert_eq!([run("One").as_str(), run("Two").as_str()], [prepares, ""]);
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
    assert_eq!(run("Three"), prepares);
    repo.configure("worktree: { setup: 'true # another' }\n");
    assert_eq!(run("Four"), format!("{prepares} # another"));
}

/// Bug: every later command failed, even one that would have removed the directory.
#[test]
fn a_folder_in_the_place_of_ignore_rules_has_none() {
    let repo = TestRepo::new()
        .file(".gitignore", "ign*\n")
        .file("a", "a\n");
    repo.commit("one");
    repo.workflow().new_session("s").done();
    let script = "rm .gitignore; mkdir .gitignore; echo 1 > .gitignore/in; echo n > a";
    repo.run_plan(&plan("Replace", &[execute(script)]));
    assert_eq!(repo.read(".gitignore/in"), "1\n");
    repo.run_plan(&plan("Go on", &[execute("echo m > a")]));
    repo.workflow().undo(2).done();
    assert_eq!([repo.read(".gitignore"), repo.read("a")], ["ign*\n", "a\n"]);
}

/// A command or the user can create thousands of files that snapshots leave out.
#[test]
fn what_is_left_out_never_makes_a_turn_unreadable() {
    let repo = TestRepo::new().file("a", "a\n");
    repo.commit("one");
    repo.workflow().new_session("s").done();
    let script = "mkdir m; cd m; i=0; while [ $i -lt 4500 ]; do i=$((i + 1)); : > .env$(printf %0230d $i); done; echo n > ../a";
    repo.run_plan(&plan("Many secrets", &[execute(script)]));
    assert_eq!(repo.workflow().log()[0]["title"], "Many secrets");
    repo.run_plan(&plan("Go on", &[execute("echo m > a")]));
    repo.workflow().undo(2).done();
    assert_eq!(repo.read("a"), "a\n");
}
