//! Rejected plans: recorded, and sent back to the model separately from the user's message, a
//! limited number of times.

use teddy::session::input::ListScope;
use teddy::workflow::context::edit::ListEdit;
use teddy::workflow::execute::options::ExecuteOptions;

use crate::plans::{create, edit, plan, prune, read};
use crate::support::TestRepo;
use crate::support::in_process::{Reply, Workflow};

/// A project with a session and `a.txt` in its context.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\n")
        .file("b.txt", "b\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow()
        .edit(ListScope::Turn, ListEdit::Add, &["a.txt"])
        .done();
    repo
}

/// A plan whose FIND does not match.
fn wrong(find: &str) -> String {
    plan(
        &format!("Change {find}"),
        &[edit("a.txt", find, "2"), read("b.txt"), prune("a.txt")],
    )
}

#[test]
fn a_rejected_plan_is_a_turn_and_the_corrected_one_waits() {
    let repo = project();
    repo.reply(&wrong("nine"))
        .reply(&plan("Better", &[edit("a.txt", "two", "2")]));
    insta::assert_snapshot!(repo.workflow().plan("make it 2").refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 1: "Change nine", 1 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    "#);
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 2: "Better"
    "#);
    assert_eq!(repo.read("a.txt"), "one\ntwo\n");
    let report = repo.workflow().artifact("1", "report.md");
    insta::assert_snapshot!(repo.plain(&report), @"
    # Execution Report: Change nine
    - **Overall Status:** Rejected 🔴
    - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 3 Total / 0 Approved / 3 Skipped
    - **Outcomes:** 0 Succeeded / 0 Failed

    ## User Prompt
    ````text
    make it 2
    ````

    ## Validation Errors

    - line 17: EDIT a.txt: FIND is not in `a.txt`

      ````text
      no place in the file is like it
      ````
      - **Hint:** copy the lines to change from the file as they are, including spaces

    ## 1. Rationale
    ````text
    Change nine, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `EDIT`
    - **Status:** Not run
    - **File Path:** [a.txt](/a.txt)
    - **Description:** Change a.txt.

    #### `READ`
    - **Status:** Not run
    - **Resource:** [b.txt](/b.txt)
    - **Description:** Look at it.

    #### `PRUNE`
    - **Status:** Not run
    - **Resource:** [a.txt](/a.txt)
    - **Description:** Done with it.
    ");
    repo.workflow().execute().done();
    assert_eq!(repo.read("a.txt"), "one\n2\n");
}

#[test]
fn what_the_machine_says_is_never_taken_for_the_users_words() {
    let repo = project();
    repo.reply(&wrong("nine"))
        .reply(&plan("Better", &[edit("a.txt", "two", "2")]));
    repo.workflow().plan("make it 2").refused();
    repo.workflow().execute().refused();
    repo.workflow().execute().done();
    let found = repo.json(&["bisect", "run", "grep -q two a.txt"], 0);
    let culprit = &found["culprits"][0];
    assert_eq!(
        (&culprit["turn"], &culprit["request"]),
        (&2.into(), &"make it 2".into())
    );
    assert_eq!(
        repo.workflow().artifact("1", "user_prompt.txt"),
        "make it 2"
    );
    assert!(
        repo.workflow()
            .artifact("1", "meta.yaml")
            .contains("origin: user\n")
    );
    insta::assert_snapshot!(repo.printed(&["show", "2"]), @"
    turn demo:2 [id]
    Title:   Better
    Status:  executed
    Agent:   assistant
    Model:   replay:[dir]/answers
    Date:    Fri Jan 2 03:04:05 2026 +0000
    Request: none; validation asked for a corrected plan

    # Execution Report: Better
    - **Overall Status:** Completed 🟢
    - **Approved By:** the user beforehand, with `-y`
    - **Original Plan:** [.teddy/demo/02/plan.md](/.teddy/demo/02/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 1 Total / 1 Approved / 0 Skipped
    - **Outcomes:** 1 Succeeded / 0 Failed

    ## 1. Rationale
    ````text
    Better, because it is wanted.
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
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    ````

    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    exit code 0
    ");
    let message = repo.git(&["show", "-s", "--format=%B", "teddy/sessions/demo"]);
    assert!(!message.contains("> "), "no request is quoted: {message}");
    insta::assert_snapshot!(repo.printed(&["find", "failed validation", "--in", "request"]), @"exit code 1");
    insta::assert_snapshot!(repo.printed(&["find", "failed validation", "--in", "input"]), @"
    demo:2:user_prompt.txt:1: The previous plan failed validation. Please review the errors and the original plan, then generate a corrected version.
    exit code 0
    ");
    let feedback = repo.workflow().artifact("2", "user_prompt.txt");
    assert!(
        feedback.starts_with("The previous plan failed validation.")
            && feedback.contains("# Change nine"),
        "{feedback}"
    );
    assert!(
        repo.workflow()
            .artifact("2", "meta.yaml")
            .contains("origin: validation\n")
    );
}

#[test]
fn a_rejected_plan_changes_nothing_and_its_report_is_not_in_the_next_input() {
    let repo = project();
    repo.reply(&wrong("nine"))
        .reply(&plan("Better", &[edit("a.txt", "two", "2")]));
    repo.workflow().plan("x").refused();
    repo.workflow().execute().refused();
    assert_eq!(
        repo.workflow().artifact("1", "next/turn.context"),
        "a.txt\n"
    );
}

#[test]
fn no_replan_and_a_limit_of_zero_make_no_call() {
    let alone: fn(Workflow<'_>) -> Reply = |workflow| workflow.execute_with(None, false);
    let limited: fn(Workflow<'_>) -> Reply =
        |workflow| workflow.setting("replan.max", "0").execute();
    let replies = [alone, limited].map(|execute| {
        let repo = project();
        repo.reply(&wrong("nine"))
            .reply(&plan("Better", &[edit("a.txt", "two", "2")]));
        repo.workflow().plan("x").refused();
        let reply = execute(repo.workflow()).refused();
        assert_eq!(repo.workflow().status()["state"], "ready");
        reply
    });
    insta::assert_snapshot!(replies.join("\n"), @r"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces

    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    the plan was rejected; say what to do with `teddy plan '<message>'`
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ");
}

#[test]
fn after_so_many_rejections_in_a_row_the_person_has_the_word() {
    let repo = project();
    for word in ["three", "four", "five", "six", "seven", "eight"] {
        repo.reply(&wrong(word));
    }
    repo.workflow().plan("x").refused();
    let replies = [(); 3].map(|()| repo.workflow().execute().refused());
    insta::assert_snapshot!(replies.join("\n"), @r#"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 2: "Change four", 1 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces

    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 2 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 3: "Change five", 1 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces

    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 3 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 4: "Change six", 1 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    "#);
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    4 plans in a row were rejected; say what to do with `teddy plan '<message>'`
    turn 4 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ");
    assert_eq!(repo.workflow().status()["state"], "ready");
}

#[test]
fn the_same_wrong_find_twice_ends_the_loop() {
    let repo = project();
    repo.reply(&wrong("nine"))
        .reply(&wrong("nine"))
        .reply(&plan("Never", &[create("x", "x\n")]));
    repo.workflow().plan("x").refused();
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 2: "Change nine", 1 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    "#);
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    the same mistake was made twice; say what to do with `teddy plan '<message>'`
    turn 2 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ");
}

#[test]
fn a_plan_that_comes_again_word_for_word_ends_the_loop() {
    let repo = project();
    let taken = plan("Taken", &[create("a.txt", "x\n")]);
    repo.reply(&taken)
        .reply(&taken)
        .reply(&plan("Never", &[create("x", "x\n")]));
    repo.workflow().plan("x").refused();
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE a.txt: `a.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:13: CREATE a.txt: `a.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    planned turn 2: "Taken", 1 mistakes
    plan.md:13: CREATE a.txt: `a.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    "#);
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:13: CREATE a.txt: `a.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    the same mistake was made twice; say what to do with `teddy plan '<message>'`
    turn 2 rejected
    plan.md:13: CREATE a.txt: `a.txt` already exists
        hint: change it with EDIT, or say `- **Overwrite:** true` to replace it as a whole
    ");
}

#[test]
fn a_model_that_cannot_be_reached_leaves_the_rejection_and_a_session_to_go_on_with() {
    let repo = project();
    std::fs::write(repo.beside("answer.md"), wrong("nine")).unwrap();
    let _ = repo.workflow().plan_file(Some("x"), "answer.md");
    let unreachable = ExecuteOptions {
        replan: true,
        model: Some("replay:none".to_owned()),
        ..ExecuteOptions::default()
    };
    let reply = repo.workflow().execute_by(None, &unreachable);
    insta::assert_snapshot!(reply.refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    the model could not be asked again: reading `none`: No such file or directory (os error 2)
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ");
    insta::assert_snapshot!(repo.plain(&repo.workflow().artifact("1", "report.md")), @"
    # Execution Report: Change nine
    - **Overall Status:** Rejected 🔴
    - **Original Plan:** [.teddy/demo/01/plan.md](/.teddy/demo/01/plan.md)
    - **Start Time:** 2026-01-02T03:04:05Z
    - **End Time:** 2026-01-02T03:04:05Z
    - **Actions:** 3 Total / 0 Approved / 3 Skipped
    - **Outcomes:** 0 Succeeded / 0 Failed

    ## User Prompt
    ````text
    x
    ````

    ## Validation Errors

    - line 17: EDIT a.txt: FIND is not in `a.txt`

      ````text
      no place in the file is like it
      ````
      - **Hint:** copy the lines to change from the file as they are, including spaces

    ## 1. Rationale
    ````text
    Change nine, because it is wanted.
    ````

    ## 2. Execution Summary

    ### Applied State Changes
    *(No state changes were proposed in the plan.)*

    ### Action Log

    #### `EDIT`
    - **Status:** Not run
    - **File Path:** [a.txt](/a.txt)
    - **Description:** Change a.txt.

    #### `READ`
    - **Status:** Not run
    - **Resource:** [b.txt](/b.txt)
    - **Description:** Look at it.

    #### `PRUNE`
    - **Status:** Not run
    - **Resource:** [a.txt](/a.txt)
    - **Description:** Done with it.
    ");
    std::fs::write(
        repo.beside("answer.md"),
        plan("Better", &[edit("a.txt", "two", "2")]),
    )
    .unwrap();
    repo.workflow().plan_file(None, "answer.md").done();
    repo.workflow().execute().done();
    assert_eq!(repo.read("a.txt"), "one\n2\n");
}

#[test]
fn a_file_that_the_model_had_wrong_is_before_it_the_next_time() {
    let repo = project();
    let unseen = plan("Unseen", &[edit("b.txt", "x", "y")]);
    insta::assert_snapshot!(repo.workflow().execute_text(&unseen).refused(), @r"
    The plan was not accepted: 2 mistakes
    plan.md:13: EDIT b.txt: `b.txt` is in no context list
        hint: READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /b.txt` adds it
    plan.md:17: EDIT b.txt: FIND is not in `b.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:13: EDIT b.txt: `b.txt` is in no context list
        hint: READ it in this plan and edit it in the next one, when its text is before you; by hand, `teddy context add /b.txt` adds it
    plan.md:17: EDIT b.txt: FIND is not in `b.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ");
    assert_eq!(
        repo.workflow().artifact("1", "next/turn.context"),
        "a.txt\nb.txt\n"
    );
}

#[test]
fn the_faulty_plan_goes_back_in_a_fence_that_is_longer_than_any_inside() {
    let repo = project();
    let content = "``````\nx\n``````\n";
    let faulty = plan(
        "Fences",
        &[
            edit("a.txt", "nine", "9"),
            create("b.md", content)
                .replace("````text", "```````text")
                .replace("x\n``````\n````\n", "x\n``````\n```````\n"),
        ],
    );
    repo.reply(&faulty)
        .reply(&plan("Better", &[edit("a.txt", "two", "2")]));
    insta::assert_snapshot!(repo.workflow().plan("x").refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 1: "Fences", 1 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    "#);
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 2: "Better"
    "#);
    let feedback = repo.git(&["show", "refs/teddy/drafts/demo:user_prompt.txt"]);
    assert!(
        feedback.ends_with(&format!(
            "## Original Faulty Plan:\n````````markdown\n{faulty}````````"
        )),
        "{feedback}"
    );
    assert!(
        feedback.contains("## Correct Actions:\n\nRepeat these as they are.\n\n- CREATE b.md\n"),
        "{feedback}"
    );
}

#[test]
fn a_smaller_limit_ends_the_loop_sooner() {
    let repo = project();
    repo.reply(&wrong("three"))
        .reply(&wrong("four"))
        .reply(&plan("Never", &[create("x", "x\n")]));
    repo.workflow().plan("x").refused();
    insta::assert_snapshot!(repo.workflow().setting("replan.max", "1").execute().refused(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    planned turn 2: "Change four", 1 mistakes
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    "#);
    insta::assert_snapshot!(repo.workflow().setting("replan.max", "1").execute().refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    2 plans in a row were rejected; say what to do with `teddy plan '<message>'`
    turn 2 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ");
}

#[test]
fn a_plan_whose_fences_are_in_doubt_goes_back_with_the_lines() {
    let repo = project();
    let doubtful = plan("Doubt", &["### `CREATE`\n- **File Path:** [n.md](/n.md)\n```markdown\nbegin with\n```\nend so\n```\n".to_owned()]);
    repo.reply(&doubtful)
        .reply(&plan("Better", &[create("n.md", "n\n")]));
    insta::assert_snapshot!(repo.workflow().plan("x").refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    planned turn 1: "Doubt", 1 mistakes
    plan.md:19: the fences can be read in two ways: line 19 closes its block, or line 19 follows a block whose closing fence is missing
        hint: write the plan again; the fence of each block must be longer than any run of its character inside
    "#);
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:19: the fences can be read in two ways: line 19 closes its block, or line 19 follows a block whose closing fence is missing
        hint: write the plan again; the fence of each block must be longer than any run of its character inside
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:19: the fences can be read in two ways: line 19 closes its block, or line 19 follows a block whose closing fence is missing
        hint: write the plan again; the fence of each block must be longer than any run of its character inside
    planned turn 2: "Better"
    "#);
    assert!(
        repo.git(&["show", "refs/teddy/drafts/demo:user_prompt.txt"])
            .contains("the fences can be read in two ways")
    );
    repo.workflow().execute().done();
    assert_eq!(repo.read("n.md"), "n\n");
}

/// A fetched or imported turn can name any number of corrections.
#[test]
fn a_number_of_corrections_without_end_is_only_too_many() {
    let repo = project();
    repo.reply(&wrong("nine"))
        .reply(&plan("Better", &[edit("a.txt", "two", "2")]));
    repo.workflow().plan("make it 2").refused();
    repo.workflow().execute().refused();
    let tip = "refs/teddy/sessions/demo";
    let forge = |reference: &str| {
        let meta = repo.git(&["show", &format!("{reference}:meta.yaml")]);
        let line = meta.lines().find(|line| line.starts_with("replans: "));
        let file = repo.beside("meta");
        let most = format!("replans: {}", u32::MAX);
        std::fs::write(&file, meta.replace(line.unwrap(), &most) + "\n").unwrap();
        let blob = repo.git(&["hash-object", "-w", file.to_str().unwrap()]);
        let listed = repo.git(&["ls-tree", reference]);
        let kept = listed.lines().filter(|line| !line.ends_with("\tmeta.yaml"));
        let lines: String = kept.map(|line| format!("{line}\n")).collect();
        let mut mktree = repo.command("git");
        mktree.arg("mktree");
        let tree = repo.reads(mktree, format!("{lines}100644 blob {blob}\tmeta.yaml\n"));
        let message = repo.git(&["log", "-1", "--format=%B", reference]);
        let mut args = vec!["commit-tree".to_owned(), tree.stdout.trim().to_owned()];
        for parent in repo
            .git(&["log", "-1", "--format=%P", reference])
            .split(' ')
        {
            args.extend(["-p".to_owned(), parent.to_owned()]);
        }
        args.extend(["-m".to_owned(), message]);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let commit = repo.git(&args);
        repo.git(&["update-ref", reference, &commit]);
    };
    // The next draft counts on from the turn.
    repo.git(&["update-ref", "-d", "refs/teddy/drafts/demo"]);
    forge(tip);
    insta::assert_snapshot!(repo.workflow().execute_text(&wrong("ten")).refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    4294967295 plans in a row were rejected; say what to do with `teddy plan '<message>'`
    turn 2 rejected
    plan.md:17: EDIT a.txt: FIND is not in `a.txt`
        no place in the file is like it
        hint: copy the lines to change from the file as they are, including spaces
    ");
}
