//! Rules of `docs/formats/` that need the whole program. Each test is named after its rule.

use std::sync::LazyLock;

use teddy::session::input::ListScope;
use teddy::workflow::context::edit::ListEdit;

use crate::plans::{create, edit, execute, plan, read};
use crate::support::TestRepo;

/// A project with a session in which `a.txt` can be edited.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\n")
        .file(".teddyignore", "docs/\n")
        .file("docs/x", "");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo
}

/// Returns a file of the newest turn.
fn artifact(repo: &TestRepo, name: &str) -> String {
    repo.workflow().artifact("@", name)
}

/// The session's newest turn.
const TIP: &str = "teddy/sessions/demo";

#[test]
fn t1_a_sessions_ref_points_at_a_commit() {
    let repo = project();
    assert_eq!(
        repo.git(&["cat-file", "-t", "refs/teddy/sessions/demo"]),
        "commit"
    );
}

#[test]
fn t2_the_first_commit_has_no_parent() {
    let repo = project();
    assert_eq!(
        repo.git(&["rev-list", "--parents", "-1", TIP]),
        repo.git(&["rev-parse", TIP])
    );
    let names = repo.git(&["ls-tree", "-r", "--name-only", TIP]);
    assert_eq!(
        names,
        "meta.yaml\nnext/meta.yaml\nnext/system_prompt.xml\nnext/turn.context\nsession.context"
    );
}

#[test]
fn t3_the_parents_are_the_turn_before_the_code_after_and_what_is_in_the_files() {
    let repo = project();
    let start = repo.git(&["rev-parse", TIP]);
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    let after = repo.workflow().log()[0]["after"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(
        repo.git(&["show", "-s", "--format=%P", TIP]),
        format!(
            "{start} {after} {}",
            repo.git(&["rev-parse", "teddy/published/main"])
        )
    );
}

#[test]
fn t4_a_number_is_the_distance_from_the_start() {
    let repo = project();
    for title in ["One", "Two", "Three"] {
        repo.workflow().run_plan(&plan(title, &[read("a.txt")]));
        let count: u64 = repo
            .git(&["rev-list", "--count", "--first-parent", TIP])
            .parse()
            .unwrap();
        assert_eq!(repo.workflow().status()["turn"], count - 1);
    }
}

#[test]
fn t5_a_file_that_is_not_known_is_left_alone() {
    let repo = project();
    repo.workflow().run_plan(&plan("One", &[read("a.txt")]));
    let blob = repo.git(&["hash-object", "-w", "a.txt"]);
    let index = [("GIT_INDEX_FILE", repo.beside("other-index"))];
    let git = |args: &[&str]| {
        let out = repo
            .command("git")
            .envs(index.clone())
            .current_dir(repo.path())
            .args(args)
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    git(&["read-tree", TIP]);
    git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("100644,{blob},notes/mine.txt"),
    ]);
    let tree = git(&["write-tree"]);
    let message = repo.git(&["show", "-s", "--format=%B", TIP]);
    let commit = repo.git(&[
        "commit-tree",
        &tree,
        "-p",
        &format!("{TIP}^1"),
        "-p",
        &format!("{TIP}^2"),
        "-m",
        &message,
    ]);
    repo.git(&["update-ref", "refs/teddy/sessions/demo", &commit]);
    assert_eq!(
        repo.workflow().artifact("@", "notes/mine.txt"),
        "one\ntwo\n"
    );
    repo.workflow().run_plan(&plan("Two", &[read("a.txt")]));
}

#[test]
fn t6_a_turn_starts_from_what_the_one_before_it_left() {
    let repo = project();
    repo.workflow().run_plan(&plan("One", &[read("a.txt")]));
    let next = artifact(&repo, "next/turn.context");
    repo.workflow().run_plan(&plan("Two", &[read("a.txt")]));
    assert_eq!(artifact(&repo, "turn.context"), next);
}

#[test]
fn t7_the_message_says_what_was_asked_and_done() {
    let repo = project();
    repo.reply(&plan("Make it", &[create("one.txt", "1\n")]));
    repo.workflow().plan("please\nmake it").done();
    repo.workflow().execute().done();
    let message = repo.git(&["show", "-s", "--format=%B", TIP]);
    let model = repo.workflow().log()[0]["model"]
        .as_str()
        .unwrap()
        .to_owned();
    let expected = format!(
        "Make it\n\n> please\n> make it\n\nCREATE one.txt: done\n1 file changed\n\n\
         Teddy-Session: demo\nTeddy-Turn: 1\nTeddy-Status: executed\nTeddy-Agent: assistant\nTeddy-Model: {model}"
    );
    assert_eq!(message.trim_end(), expected);
}

#[test]
fn t8_facts_have_the_version_of_their_format() {
    assert!(artifact(&project(), "meta.yaml").starts_with("schema: 1\n"));
}

#[test]
fn t9_a_workspace_commit_is_made_only_where_none_fits() {
    let repo = project();
    let workspace = |key: &str| repo.workflow().log()[0][key].as_str().unwrap().to_owned();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    assert_eq!(workspace("before"), repo.git(&["rev-parse", "HEAD"]));
    let after = workspace("after");
    assert_eq!(
        repo.git(&["rev-parse", &format!("{after}^")]),
        workspace("before")
    );
    repo.workflow().run_plan(&plan("Two", &[read("a.txt")]));
    assert_eq!(
        (workspace("before"), workspace("after")),
        (after.clone(), after.clone()),
        "nothing changed"
    );
    repo.write("mine.txt", "mine\n");
    repo.workflow()
        .run_plan(&plan("Three", &[create("three.txt", "3\n")]));
    assert_eq!(
        repo.git(&["rev-parse", &format!("{}^", workspace("before"))]),
        after
    );
    let shown = repo.git(&["show", "--format=", "--name-only", &workspace("after")]);
    assert_eq!(
        shown, "three.txt",
        "a turn's commit has just what the turn did"
    );
}

#[test]
fn t10_a_rejected_plan_is_a_turn_that_changed_nothing() {
    let repo = project();
    let tree = repo.tree();
    repo.workflow()
        .execute_text(&plan("Wrong", &[edit("a.txt", "nine", "9")]))
        .refused();
    let row = &repo.workflow().log()[0];
    assert_eq!(
        (row["status"].as_str(), &row["before"]),
        (Some("rejected"), &row["after"])
    );
    assert_eq!(repo.tree(), tree);
}

#[test]
fn t11_a_sessions_code_is_merged_like_any_branch() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    repo.git(&["stash", "-q", "-u"]);
    repo.git(&["merge", "-q", "--no-edit", &format!("{TIP}^2")]);
    assert_eq!(repo.read("one.txt"), "1\n");
    assert_eq!(
        repo.git(&["log", "-1", "--format=%s", "--", "one.txt"]),
        "One"
    );
}

#[test]
fn r1_the_head_has_status_plan_times_and_counts() {
    let repo = project();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n"), read("a.txt")]));
    let expected = "# Execution Report: One\n- **Overall Status:** Completed 🟢\n\
        - **Approved By:** the user beforehand, with `-y`\n\
        - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)\n\
        - **Start Time:** 2026-01-02T03:04:05Z\n- **End Time:** 2026-01-02T03:04:05Z\n\
        - **Actions:** 2 Total / 2 Approved / 0 Skipped\n- **Outcomes:** 2 Succeeded / 0 Failed\n";
    let report = artifact(&repo, "report.md");
    assert_eq!(&report[..expected.len().min(report.len())], expected);
}

/// The report and the output of a plan whose actions end in all possible ways.
static MIXED: LazyLock<(String, String)> = LazyLock::new(|| {
    let repo = project();
    let actions = [
        edit("a.txt", "two", "2"),
        read("a.txt"),
        execute("for i in 1 2 3 4 5 6; do echo row $i; done; exit 3"),
        create("never.txt", "secret content\n"),
    ];
    repo.teddy_reads(
        &["-c", "execute.output_limit=4", "execute", "-", "-y"],
        plan("Mixed", &actions),
    )
    .check(1, &[]);
    let report = repo.plain(&artifact(&repo, "report.md"));
    (report, artifact(&repo, "output/03.txt"))
});

#[test]
fn r2_each_action_is_listed_once_in_order() {
    let (report, _) = &*MIXED;
    let headings: Vec<&str> = report
        .lines()
        .filter(|line| line.starts_with("#### "))
        .collect();
    assert_eq!(
        headings,
        [
            "#### `EDIT`",
            "#### `READ`",
            "#### `EXECUTE`",
            "#### `CREATE`"
        ]
    );
    assert_eq!(report.matches("- **Status:** Skipped 🟡").count(), 1);
}

#[test]
fn r3_an_action_has_its_result_and_its_fields() {
    let (report, _) = &*MIXED;
    insta::assert_snapshot!(report, @"
    # Execution Report: Mixed
    - **Overall Status:** Failed 🔴
    - **Approved By:** the user beforehand, with `-y`
    - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 4 Total / 3 Approved / 1 Skipped
    - **Outcomes:** 2 Succeeded / 1 Failed

    ## 1. Rationale
    ````text
    Mixed, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `EDIT`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** changed 1 place: 1 line added, 1 removed
    - **File Path:** [a.txt](/a.txt)
    - **Description:** Change a.txt.
    - **Match 1:** line 2, whole lines

    Change of the file:
    ````diff
    --- a/a.txt
    +++ b/a.txt
    ... 2 lines left out ...
    -two
    +2
    ````

    The whole difference is `changes/01.diff`.

    #### `READ`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** read; it is in the context of the next turn
    - **Resource:** [a.txt](/a.txt)
    - **Description:** Look at it.

    Content was successfully read. The resource has been added to the context for the next turn.

    #### `EXECUTE`
    - **Status:** Approved ✅
    - **Execution:** Failure 🔴
    - **Duration:** [n]
    - **Outcome:** the command failed with exit code 3
    - **Exit Code:** 3
    - **Description:** Run it.
    - **Expected Outcome:** It works.

    Command:
    ````shell
    for i in 1 2 3 4 5 6; do echo row $i; done; exit 3
    ````

    Output:
    ````text
    row 1
    row 2
    ... 2 lines left out ...
    row 5
    row 6
    ````

    The whole output is `output/03.txt`.

    #### `CREATE`
    - **Status:** Skipped 🟡
    - **Outcome:** skipped because an action before it failed
    - **File Path:** [never.txt](/never.txt)
    - **Description:** Make never.txt.
    ");
}

#[test]
fn r4_an_edit_says_where_it_matched() {
    assert!(MIXED.0.contains("- **Match 1:** line 2, whole lines\n"));
}

#[test]
fn r5_a_report_contains_no_file_contents() {
    let (report, _) = &*MIXED;
    assert!(!report.contains("secret content"), "{report}");
    assert!(report.contains("Content was successfully read. The resource has been added to the context for the next turn."), "{report}");
}

#[test]
fn r6_head_and_tail_of_an_output_and_the_whole_beside_it() {
    let (report, output) = &*MIXED;
    assert!(
        report.contains("row 1\nrow 2\n... 2 lines left out ...\nrow 5\nrow 6\n"),
        "{report}"
    );
    assert_eq!(output, "row 1\nrow 2\nrow 3\nrow 4\nrow 5\nrow 6\n");
}

#[test]
fn r8_nothing_breaks_out_of_its_place() {
    let repo = project();
    repo.run_plan(&plan(
        "Fences",
        &[execute(
            "printf '````\\n# Not a title\\n\\033[31mred\\033[0m\\n'",
        )],
    ));
    insta::assert_snapshot!(repo.plain(&artifact(&repo, "report.md")), @r"
    # Execution Report: Fences
    - **Overall Status:** Completed 🟢
    - **Approved By:** the user beforehand, with `-y`
    - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 1 Total / 1 Approved / 0 Skipped
    - **Outcomes:** 1 Succeeded / 0 Failed

    ## 1. Rationale
    ````text
    Fences, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `EXECUTE`
    - **Status:** Approved ✅
    - **Execution:** Success 🟢
    - **Duration:** [n]
    - **Outcome:** the command succeeded
    - **Exit Code:** 0
    - **Description:** Run it.
    - **Expected Outcome:** It works.

    Command:
    `````shell
    printf '````\n# Not a title\n\033[31mred\033[0m\n'
    `````

    Output:
    `````text
    ````
    # Not a title
    red
    `````

    The whole output is `output/01.txt`.
    ");
}

#[test]
fn r9_every_mistake_is_listed_with_a_hint() {
    let repo = project();
    let wrong = plan(
        "Wrong",
        &[edit("a.txt", "nine", "9"), edit("none.txt", "x", "y")],
    );
    repo.workflow().execute_text(&wrong).refused();
    let report = artifact(&repo, "report.md");
    insta::assert_snapshot!(repo.plain(&report), @"
    # Execution Report: Wrong
    - **Overall Status:** Rejected 🔴
    - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 2 Total / 0 Approved / 2 Skipped
    - **Outcomes:** 0 Succeeded / 0 Failed

    ## Validation Errors

    - line 17: EDIT a.txt: FIND is not in `a.txt`

      ````text
      no place in the file is like it
      ````
      - **Hint:** copy the lines to change from the file as they are, including spaces
    - line 26: EDIT none.txt: there is no file `none.txt`
      - **Hint:** use CREATE for a new file

    ## 1. Rationale
    ````text
    Wrong, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `EDIT`
    - **Status:** Not run
    - **File Path:** [a.txt](/a.txt)
    - **Description:** Change a.txt.

    #### `EDIT`
    - **Status:** Not run
    - **File Path:** [none.txt](/none.txt)
    - **Description:** Change none.txt.
    ");
}

#[test]
fn r10_a_key_that_a_command_prints_is_taken_out() {
    let repo = project();
    let key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    repo.run_plan(&plan(
        "Print",
        &[execute(&format!("echo {} | tr x h", key.replace('h', "x")))],
    ));
    let (report, output) = (
        artifact(&repo, "report.md"),
        artifact(&repo, "output/01.txt"),
    );
    assert!(
        !report.contains(key) && !output.contains(key),
        "{report}\n{output}"
    );
}

#[test]
fn i1_the_sections_keep_their_numbers() {
    let repo = project();
    let headings = || {
        repo.workflow()
            .input(0)
            .lines()
            .filter(|line| line.starts_with("## "))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        headings(),
        "## 1. System Information ## 2. Project Structure ## 4. Context Summary ## 5. Resource Contents ## 6. Git Status"
    );
    repo.write(".teddy/memos.yaml", "- x\n");
    assert!(headings().contains("## 2. Project Structure ## 3. Memos ## 4. Context Summary"));
}

#[test]
fn i2_the_structure_follows_both_ignore_files() {
    let repo = project();
    assert!(
        repo.workflow()
            .input(0)
            .contains("## 2. Project Structure\n````\n.teddyignore\na.txt\n````\n")
    );
}

#[test]
fn i3_a_resource_is_shown_once_in_the_first_list_that_names_it() {
    let repo = project();
    repo.workflow()
        .edit(ListScope::Turn, ListEdit::Add, &["a.txt"])
        .done();
    let input = repo.workflow().input(0);
    assert_eq!(
        input.matches("[a.txt](/a.txt)").count(),
        2,
        "summary and content: {input}"
    );
    assert!(
        input.contains("### Turn\n- [a.txt](/a.txt) (") && !input.contains("### Session"),
        "{input}"
    );
}

#[test]
fn i4_a_directory_means_the_files_in_it() {
    let repo = project();
    repo.write("src/deep/x.rs", "fn x() {}\n");
    repo.workflow().add(&["src"]);
    assert!(
        repo.workflow()
            .input(0)
            .contains("````rust\nfn x() {}\n````")
    );
}

#[test]
fn i5_a_missing_resource_is_reported_at_its_position() {
    let repo = project();
    repo.workflow().add(&["gone.md"]);
    assert!(repo.workflow().input(0).contains(
        "**Resource:** `[gone.md](/gone.md)`\n**Tokens:** 0\n````\n--- FILE NOT FOUND ---\n````\n"
    ));
}

#[test]
fn i6_tokens_are_counted_for_each_resource() {
    let repo = project();
    let rows = repo.workflow().resources(0);
    assert_eq!(
        rows[0]["tokens"],
        teddy::model::token::count("one\ntwo\n") as u64
    );
}

#[test]
fn i7_a_fence_is_longer_than_any_run_inside() {
    let repo = project();
    repo.write("a.txt", "`````\nx\n`````\n");
    assert!(
        repo.workflow()
            .input(0)
            .contains("``````text\n`````\nx\n`````\n``````\n")
    );
}

#[test]
fn i8_the_turn_before_is_in_it() {
    let repo = project();
    repo.workflow().run_plan(&plan("One", &[read("a.txt")]));
    let shown = |turn: &str| {
        let input = repo.workflow().input(0);
        ["report.md", "plan.md", "user_prompt.txt"]
            .map(|name| input.contains(&format!("**Resource:** `[.teddy/demo/{turn}/{name}]")))
    };
    assert_eq!(shown("01"), [true, true, false]);
    repo.workflow()
        .plan_from("again", &plan("Two", &[read("a.txt")]))
        .done();
    repo.workflow().execute().done();
    assert_eq!(shown("02"), [true, true, true]);
}

#[test]
fn i11_the_users_request_is_the_last_section() {
    let repo = project();
    repo.workflow()
        .plan_from("a wish\n```\ncode\n````", &plan("One", &[read("a.txt")]))
        .done();
    repo.workflow().execute().done();
    let input = repo.workflow().input(0);
    assert!(
        input.ends_with(
            "\n## 7. User Requests\n\nWhat the user asked for before, oldest first. A later request goes before an earlier one.\n\n### Turn 1\n`````text\na wish\n```\ncode\n````\n`````\n"
        ),
        "{input}"
    );
    assert_eq!(input.matches("a wish").count(), 1, "{input}");
    assert!(
        input.contains(
            "user_prompt.txt)`\n**Tokens:** 0\n````\n--- SHOWN IN 7. USER REQUESTS ---\n````\n"
        ),
        "{input}"
    );
    assert!(
        repo.workflow()
            .artifact("@", "user_prompt.txt")
            .contains("a wish")
    );
}

#[test]
fn i9_the_same_files_give_the_same_bytes_at_any_time() {
    let repo = project();
    let at = |time: &str| {
        let mut command = repo.teddy_command(&["context"]);
        crate::support::Output::of(command.env("TEDDY_NOW", time).current_dir(repo.path())).stdout
    };
    assert_eq!(at("2026-01-02T03:04:05Z"), at("2030-06-07T08:09:10Z"));
}

#[test]
fn i10_a_key_in_a_file_is_taken_out() {
    let repo = project();
    let key = "AKIAQ4X7MZ2LK9WPTR3D";
    repo.write("a.txt", format!("id = {key}\n"));
    assert!(!repo.workflow().input(0).contains(key));
}

#[test]
fn cf1_later_layers_win() {
    let repo = TestRepo::new();
    let agent = |name: &str| {
        let reply = repo.workflow().new_session(name).done();
        reply.trim_end().rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(agent("a"), "assistant");
    repo.git(&["config", "teddy.agent", "architect"]);
    assert_eq!(agent("b"), "architect");
    repo.configure("agent: debugger\n");
    assert_eq!(agent("c"), "debugger");
    repo.write(".teddy/config.yaml", "agent: developer\n");
    assert_eq!(agent("d"), "developer");
    let called = repo.workflow().setting("agent", "assistant");
    assert_eq!(called.new_session("e").done(), "started e with assistant\n");
}

#[test]
fn cf9_git_spells_a_setting_without_an_underscore() {
    let repo = TestRepo::new();
    for name in ["teddy.execute.outputLimit", "teddy.execute.output-limit"] {
        repo.git(&["config", name, "many"]);
        let name = name.strip_prefix("teddy.").unwrap();
        assert_eq!(
            repo.workflow().find_turn("@").refused(),
            format!(
                "error: git config {name}: must be a whole number that is not negative, not `many`\nhint: `git config --unset teddy.{name}` removes it\nexit code 1\n"
            )
        );
        repo.git(&["config", "--unset", &format!("teddy.{name}")]);
    }

    repo.git(&["config", "teddy.onFailures", "rollback"]);
    insta::assert_snapshot!(repo.workflow().find_turn("@").refused(), @r"
    error: git config: unknown setting `onFailures`
    hint: did you mean `teddy.onFailure`? `git config --unset teddy.onFailures` removes it
    exit code 1
    ");
    repo.git(&["config", "--unset", "teddy.onFailures"]);
    repo.git(&["config", "teddy.onFailure", "rollback"]);
    repo.workflow().new_session("demo").done();
    let failing = crate::plans::plan(
        "Fail",
        &[
            crate::plans::create("b.txt", "b\n"),
            crate::plans::execute("false"),
        ],
    );
    std::fs::write(repo.beside("plan.md"), failing).unwrap();
    assert_eq!(repo.teddy(&["execute", "../plan.md", "-y"]).code, 1);
    assert!(!repo.path().join("b.txt").exists());
}

#[test]
fn cf2_an_unknown_key_is_named_with_its_file() {
    let repo = TestRepo::new();
    repo.configure("replan: { most: 3 }\n");
    insta::assert_snapshot!(repo.workflow().find_turn("@").refused(), @r"
    error: [dir]/teddy.yaml, line 1: unknown setting `replan.most`
    hint: correct the file; `TEDDY_CONFIG=/dev/null teddy <command>` runs without it
    exit code 1
    ");
}

#[test]
fn cf3_a_file_has_a_largest_size_and_is_a_mapping() {
    let repo = TestRepo::new();
    repo.configure(&"# x\n".repeat(20_000));
    insta::assert_snapshot!(repo.workflow().find_turn("@").refused(), @r"
    error: [dir]/teddy.yaml: the file has 80000 bytes; at most 65536 are read
    hint: correct the file; `TEDDY_CONFIG=/dev/null teddy <command>` runs without it
    exit code 1
    ");
    repo.configure("- a\n");
    insta::assert_snapshot!(repo.workflow().find_turn("@").refused(), @r"
    error: [dir]/teddy.yaml: must be a mapping of settings
    hint: correct the file; `TEDDY_CONFIG=/dev/null teddy <command>` runs without it
    exit code 1
    ");
}

/// Bug: nothing could be looked at after a merge conflict in the file.
#[test]
fn cf2_a_broken_file_of_the_repository_stops_only_what_runs_or_records_something() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.write(".teddy/global.context", "**\n");
    repo.workflow().new_session("one").done();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    let wrong = "config.yaml, line 1: `replan.max` must be a whole number";
    for (text, mistake) in [
        ("agent: x\n<<<<<<< HEAD\nagent: y\n=======\n", " at line "),
        ("replan: {max: many}\n", wrong),
    ] {
        repo.write(".teddy/config.yaml", text);
        let warning = [mistake, "; the settings in it are ignored"];
        for args in [
            &["status"][..],
            &["log"],
            &["show"],
            &["diff"],
            &["sessions"],
        ] {
            let out = repo.teddy(args);
            let is_told = warning.iter().all(|part| out.stderr.contains(part));
            assert!(out.code == 0 && is_told, "{args:?}: {out}");
            assert_eq!(out.stderr.matches(warning[1]).count(), 1, "{out}");
        }
        for args in [
            &["plan", "-m", "go"][..],
            &["execute", "-y"],
            &["land", "-m", "x"],
            &["undo"],
            &["restore", "0"],
            &["compare", "0", "1", "--check", "true"],
        ] {
            let out = repo.teddy(args);
            let error = format!("error: {}", repo.path().join(".teddy").display());
            assert!(
                out.code == 1 && out.stderr.contains(&error),
                "{args:?}: {out}"
            );
        }
    }
}

#[test]
fn cf4_what_a_repository_may_not_say_is_left_out_and_named() {
    let repo = TestRepo::new().file(
        ".teddy/config.yaml",
        "execute: { sandbox: off, output_limit: 5 }\nmodel: x\n",
    );
    let ignored = repo.workflow().open().unwrap().ignored;
    assert_eq!(ignored, ["execute.sandbox", "model"]);
}

#[test]
fn cf5_trust_ends_with_any_changed_byte_of_a_prompt_too() {
    let repo = TestRepo::new().file(".teddy/prompts/mine.xml", "<prompt>Mine.</prompt>\n");
    repo.done(&["trust", "-y"]);
    assert_eq!(repo.json(&["trust"], 0)["trusted"], true);
    repo.write(".teddy/prompts/mine.xml", "<prompt>Theirs.</prompt>\n");
    insta::assert_snapshot!(repo.printed(&["trust"]), @r#"
    --- trusted
    +++ prompts/mine.xml
    @@ -1 +1 @@
    -<prompt>Mine.</prompt>
    +<prompt>Theirs.</prompt>
    --- stderr
    error: stdin is not a terminal, so TeDDy cannot ask "Trust exactly this?"
    hint: `-y` says yes
    exit code 1
    "#);
}

#[test]
fn cf6_a_value_of_the_call_is_yaml() {
    let repo = project();
    let wrong = plan("Fails", &[create("one.txt", "1\n"), execute("false")]);
    let shown = repo
        .teddy_reads(
            &[
                "-c",
                "on_failure=rollback",
                "-c",
                "execute={timeout: 5}",
                "execute",
                "-",
                "-y",
            ],
            wrong,
        )
        .shown(&repo);
    insta::assert_snapshot!(shown, @r#"
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
     Action Plan:
      - CREATE: 1 file
      - EXECUTE: 1 command (sandboxed, no network)
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
}
