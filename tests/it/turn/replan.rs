//! Rejected plans: recorded, and sent back to the model separately from the user's message, a
//! limited number of times.

use crate::plans::{create, edit, plan, prune, read};
use crate::support::TestRepo;

/// A project with a session and `a.txt` in its context.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\n")
        .file("b.txt", "b\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "--turn", "a.txt"]);
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
    repo.teddy(&["plan", "-m", "make it 2"])
        .check(3, &["FIND is not in `a.txt`"]);
    let value = repo.json(&["execute", "-y"], 3);
    assert_eq!(
        (
            &value["status"],
            &value["turn"],
            &value["replanned"]["title"]
        ),
        (&"rejected".into(), &1.into(), &"Better".into())
    );
    assert_eq!(repo.read("a.txt"), "one\ntwo\n");
    assert!(repo.done(&["show", "1"]).contains("## Validation Errors"));
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("a.txt"), "one\n2\n");
}

#[test]
fn what_the_machine_says_is_never_taken_for_the_users_words() {
    let repo = project();
    repo.reply(&wrong("nine"))
        .reply(&plan("Better", &[edit("a.txt", "two", "2")]));
    repo.teddy(&["plan", "-m", "make it 2"]);
    repo.teddy(&["execute", "-y"]).check(3, &[]);
    repo.done(&["execute", "-y"]);
    let found = repo.json(&["bisect", "run", "grep -q two a.txt"], 0);
    let culprit = &found["culprits"][0];
    assert_eq!(
        (&culprit["turn"], &culprit["request"]),
        (&2.into(), &"make it 2".into())
    );
    assert_eq!(repo.done(&["show", "1", "user_prompt.txt"]), "make it 2");
    assert!(
        repo.done(&["show", "1", "meta.yaml"])
            .contains("origin: user\n")
    );
    assert!(
        repo.done(&["show", "2"])
            .contains("Request: none; validation asked for a corrected plan\n")
    );
    let message = repo.git(&["show", "-s", "--format=%B", "teddy/sessions/demo"]);
    assert!(
        !message.contains("> "),
        "nobody's words are quoted: {message}"
    );
    repo.teddy(&["find", "failed validation", "--in", "request"])
        .check(1, &[]);
    assert!(
        repo.done(&["find", "failed validation", "--in", "input"])
            .contains("demo:2:user_prompt.txt:1: ")
    );
    let feedback = repo.done(&["show", "2", "user_prompt.txt"]);
    assert!(
        feedback.starts_with("The previous plan failed validation.")
            && feedback.contains("# Change nine"),
        "{feedback}"
    );
    assert!(
        repo.done(&["show", "2", "meta.yaml"])
            .contains("origin: validation\n")
    );
}

#[test]
fn nothing_of_a_rejected_plan_applies_and_its_report_stays_out() {
    let repo = project();
    repo.reply(&wrong("nine"))
        .reply(&plan("Better", &[edit("a.txt", "two", "2")]));
    repo.teddy(&["plan", "-m", "x"]);
    repo.teddy(&["execute", "-y"]).check(3, &[]);
    assert_eq!(repo.done(&["show", "1", "next/turn.context"]), "a.txt\n");
}

#[test]
fn no_replan_and_a_limit_of_zero_ask_nobody() {
    for args in [
        &["execute", "-y", "--no-replan"][..],
        &["-c", "replan.max=0", "execute", "-y"],
    ] {
        let repo = project();
        repo.reply(&wrong("nine"))
            .reply(&plan("Better", &[edit("a.txt", "two", "2")]));
        repo.teddy(&["plan", "-m", "x"]);
        repo.teddy(args).check(3, &["turn 1 rejected"]);
        assert_eq!(repo.json(&["status"], 0)["state"], "ready");
    }
}

#[test]
fn after_so_many_rejections_in_a_row_the_person_has_the_word() {
    let repo = project();
    for word in ["three", "four", "five", "six", "seven", "eight"] {
        repo.reply(&wrong(word));
    }
    repo.teddy(&["plan", "-m", "x"]);
    for _ in 0..3 {
        repo.teddy(&["execute", "-y"])
            .check(3, &["wrote another plan"]);
    }
    repo.teddy(&["execute", "-y"]).check(
        3,
        &["4 plans in a row were rejected", "`teddy plan '<message>'`"],
    );
    assert_eq!(repo.json(&["status"], 0)["state"], "ready");
}

#[test]
fn the_same_wrong_find_twice_ends_the_loop() {
    let repo = project();
    repo.reply(&wrong("nine"))
        .reply(&wrong("nine"))
        .reply(&plan("Never", &[create("x", "x\n")]));
    repo.teddy(&["plan", "-m", "x"]);
    repo.teddy(&["execute", "-y"])
        .check(3, &["wrote another plan"]);
    repo.teddy(&["execute", "-y"])
        .check(3, &["the same mistake was made twice"]);
}

#[test]
fn a_plan_that_comes_again_word_for_word_ends_the_loop() {
    let repo = project();
    let taken = plan("Taken", &[create("a.txt", "x\n")]);
    repo.reply(&taken)
        .reply(&taken)
        .reply(&plan("Never", &[create("x", "x\n")]));
    repo.teddy(&["plan", "-m", "x"]);
    repo.teddy(&["execute", "-y"])
        .check(3, &["wrote another plan"]);
    repo.teddy(&["execute", "-y"])
        .check(3, &["the same mistake was made twice"]);
}

#[test]
fn a_model_that_cannot_be_reached_leaves_the_rejection_and_a_session_to_go_on_with() {
    let repo = project();
    std::fs::write(repo.beside("answer.md"), wrong("nine")).unwrap();
    repo.teddy(&["plan", "--from", "../answer.md", "-m", "x"]);
    repo.teddy(&["execute", "-y", "--model", "command:false"])
        .check(3, &["the model could not be asked again"]);
    assert!(repo.done(&["show", "1"]).contains("## Validation Errors"));
    std::fs::write(
        repo.beside("answer.md"),
        plan("Better", &[edit("a.txt", "two", "2")]),
    )
    .unwrap();
    repo.done(&["plan", "--from", "../answer.md"]);
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("a.txt"), "one\n2\n");
}

#[test]
fn a_file_that_the_model_had_wrong_is_before_it_the_next_time() {
    let repo = project();
    let unseen = plan("Unseen", &[edit("b.txt", "x", "y")]);
    repo.teddy_reads(&["execute", "-", "-y"], unseen)
        .check(3, &["`b.txt` is in no context list"]);
    assert_eq!(
        repo.done(&["show", "1", "next/turn.context"]),
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
    repo.teddy(&["plan", "-m", "x"])
        .check(3, &["FIND is not in `a.txt`"]);
    repo.teddy(&["execute", "-y"])
        .check(3, &["wrote another plan"]);
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
    repo.teddy(&["plan", "-m", "x"]);
    repo.teddy(&["-c", "replan.max=1", "execute", "-y"])
        .check(3, &["wrote another plan"]);
    repo.teddy(&["-c", "replan.max=1", "execute", "-y"])
        .check(3, &["2 plans in a row were rejected"]);
}

#[test]
fn a_plan_whose_fences_are_in_doubt_goes_back_with_the_lines() {
    let repo = project();
    let doubtful = plan("Doubt", &["### `CREATE`\n- **File Path:** [n.md](/n.md)\n```markdown\nbegin with\n```\nend so\n```\n".to_owned()]);
    repo.reply(&doubtful)
        .reply(&plan("Better", &[create("n.md", "n\n")]));
    repo.teddy(&["plan", "-m", "x"])
        .check(3, &["plan.md:", "the fences can be read in two ways"]);
    repo.teddy(&["execute", "-y"])
        .check(3, &["wrote another plan"]);
    assert!(
        repo.git(&["show", "refs/teddy/drafts/demo:user_prompt.txt"])
            .contains("the fences can be read in two ways")
    );
    repo.done(&["execute", "-y"]);
    assert_eq!(repo.read("n.md"), "n\n");
}
