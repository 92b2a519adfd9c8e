//! Plans that a parser could misread, from every source: remarks after a block, truncated answers,
//! and lines that look like closing fences. Either the plan does what it says or the model is asked
//! again.

use teddy::workflow::resume::ResumeOptions;

use crate::fake::{Act, Fake, stream};
use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

#[derive(Debug, Clone, Copy)]
enum Source {
    File,
    Command,
    Replay,
    /// A provider that reports a complete answer.
    Http,
}

const SOURCES: [Source; 4] = [Source::File, Source::Command, Source::Replay, Source::Http];

/// A project with a session and `a.txt` in its context.
fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "one\ntwo\n")
        .file("README.md", "# Project\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo
}

/// Executes this answer from a source without asking, and returns everything that the user sees.
/// The source repeats it when asked again.
fn answer(repo: &TestRepo, source: Source, text: &str, yolo: bool) -> String {
    std::fs::write(repo.beside("answer.md"), text).unwrap();
    let path = repo.beside("answer.md").display().to_string();
    let resume = || {
        let resumed = repo.workflow().resume_with(ResumeOptions {
            message: Some("go".to_owned()),
            yolo,
            alone: true,
            max_turns: Some(2),
            ..ResumeOptions::default()
        });
        resumed.refused()
    };
    match source {
        Source::File => repo.workflow().execute_text(text).refused(),
        Source::Command => {
            let model =
                format!("model: m\nmodels:\n  m: {{ kind: command, run: [cat, {path}] }}\n");
            repo.configure(&model);
            let how = if yolo { "--yolo" } else { "-y" };
            let out = repo.teddy(&["resume", how, "-m", "go", "--max-turns", "2"]);
            assert_eq!(out.code, 3, "{out}");
            out.to_string()
        }
        Source::Replay => {
            repo.configure(&format!("model: replay:{path}\n"));
            resume()
        }
        Source::Http => {
            let said = || vec![Act::Send(stream(text, "stop", (9, 9)))];
            let fake = Fake::start((0..4).map(|_| said()).collect());
            repo.configure(&fake.config(""));
            resume()
        }
    }
}

/// Checks that nothing of an answer is executed, and the messages.
fn check_from(source: Source, yolo: bool, text: &str, words: &[&str]) {
    let repo = project();
    let before = repo.tree();
    let said = answer(&repo, source, text, yolo);
    let missing: Vec<_> = ["turn 1 rejected"]
        .iter()
        .chain(words)
        .filter(|words| !said.contains(**words))
        .collect();
    assert!(
        repo.tree() == before && missing.is_empty(),
        "{source:?}: nothing says {missing:?} of this: {said}\n{text}"
    );
}

/// Checks that an answer is refused from a file and a recording, which don't report whether it is
/// complete.
fn check_refused(text: &str, words: &[&str]) {
    check_from(Source::File, false, text, words);
    check_from(Source::Replay, true, text, words);
}

/// The message if a block and a remark could also be one block.
const TWO_WAYS: &str = "the fences can be read in two ways: line ";

#[test]
fn promise_a1_remarks_behind_a_command_are_never_run() {
    for fence in ["```", "````", "~~~"] {
        let text = plan(
            "List",
            &["### `EXECUTE`\n- **Description:** List the files.\n- **Expected Outcome:** A list.\n"
                .to_owned()],
        );
        let text = format!(
            "{text}{fence}sh\nls\n{fence}\nTo undo:\n{fence}\nrm -f README.md a.txt\n{fence}\n"
        );
        check_refused(&text, &["more than one code block", TWO_WAYS]);
    }
}

#[test]
fn promise_a1_remarks_behind_a_file_are_never_written_to_it() {
    for (fence, info) in [
        ("```", "python"),
        ("````", "python"),
        ("```", ""),
        ("~~~~", "text"),
    ] {
        let text = plan(
            "Make x",
            &[
                "### `CREATE`\n- **File Path:** [x.py](/x.py)\n- **Description:** A program.\n"
                    .to_owned(),
            ],
        );
        let text = format!(
            "{text}{fence}{info}\nprint(1)\n{fence}\n\nRun it with:\n\n{fence}\npython x.py\n{fence}\n"
        );
        check_refused(&text, &["more than one code block", TWO_WAYS]);
    }
}

#[test]
fn promise_a1_preprocess_shows_both_readings_and_keeps_the_block_as_it_is() {
    let repo = TestRepo::new();
    let text = format!(
        "{}### `EXECUTE`\n- **Description:** d\n````sh\nls\n````\nOr:\n````\nrm -f README.md\n````\n",
        plan("List", &[])
    );
    let out = repo.teddy_reads(&["preprocess", "-"], &text);
    assert_eq!((out.code, out.stdout.as_str()), (3, text.as_str()), "{out}");
    insta::assert_snapshot!(out.stderr, @r"
    line 17: the fences can be read in two ways: line 17 closes its block, and a remark with a block of its own follows, or line 21 closes it
    warning: another reading is about as likely; the plan is unchanged
    ");
}

#[test]
fn promise_a1_blocks_with_prose_between_them_are_one_markdown_file() {
    let repo = project();
    let content = "# Tool\n\nInstall:\n\n```\nmake install\n```\n\nUse:\n\n```\ntool\n```\n";
    let text = format!(
        "{}### `CREATE`\n- **File Path:** [tool.md](/tool.md)\n- **Description:** d\n```markdown\n{content}```\n",
        plan("Say how", &[])
    );
    repo.workflow().run_plan(&text);
    assert_eq!(repo.read("tool.md"), content);
}

#[test]
fn promise_a1_a_here_document_with_fences_is_one_script() {
    let repo = project();
    let script = "cat > doc.md <<'EOF'\n```\nmake\n```\nEOF\n";
    let head = "### `EXECUTE`\n- **Description:** d\n";
    let text = |behind: &str| format!("{}{head}```sh\n{script}```\n{behind}", plan("Write", &[]));
    let undo = text("To undo:\n```\nrm -f README.md\n```\n");
    let refused = repo.workflow().execute_text(&undo).refused();
    insta::assert_snapshot!(refused, @r#"
    The plan was not accepted: 2 mistakes
    plan.md:22: EXECUTE cat > doc.md <<'EOF': unexpected text "To undo:"
        hint: EXECUTE has a list and one code block; leave everything else out
    plan.md:23: EXECUTE cat > doc.md <<'EOF': EXECUTE has more than one code block
        hint: put all of the content into one block whose fence is longer than any run of backticks inside
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:22: EXECUTE cat > doc.md <<'EOF': unexpected text "To undo:"
        hint: EXECUTE has a list and one code block; leave everything else out
    plan.md:23: EXECUTE cat > doc.md <<'EOF': EXECUTE has more than one code block
        hint: put all of the content into one block whose fence is longer than any run of backticks inside
    "#);
    repo.run_plan(&text(""));
    assert_eq!(repo.read("doc.md"), "```\nmake\n```\n");
    assert_eq!(repo.read("README.md"), "# Project\n");
}

/// Two EDITs and a command.
fn three() -> String {
    let pair = edit("a.txt", "one", "1");
    plan(
        "Change",
        &[pair, edit("a.txt", "two", "2"), execute("touch ran")],
    )
}

/// Truncates the plan after the last occurrence of a text.
fn up_to(words: &str) -> String {
    let text = three();
    let end = text.rfind(words).unwrap() + words.len();
    text[..end].to_owned()
}

#[test]
fn promise_a2_an_answer_that_ends_inside_of_a_block_is_never_run() {
    let cut = &["the answer was cut off"];
    check_refused(&up_to("touch r"), cut);
    check_refused(&up_to("touch ran\n"), cut);
    check_refused(&up_to("touch ran\n```"), cut);
    check_refused(&up_to("````text\n2"), cut);
    check_refused(&up_to("because it is"), cut);
}

#[test]
fn promise_a2_an_answer_without_the_end_that_it_announces_is_never_run() {
    let cut = &["the answer was cut off"];
    check_refused(&up_to("````text\ntw"), cut);
    check_refused(&up_to("````text\ntwo\n````\n"), &["REPLACE"]);
    check_refused(&up_to("two\n````\n`REPL"), &["REPLACE"]);
    check_refused(&up_to("\n### "), cut);
    check_refused(&up_to("\n### `EXEC"), cut);
    check_refused(&up_to("\n### `EXECUTE`\n"), &["code block"]);
    let wrapped = format!("```markdown\n{}", three().replace("````", "~~~~"));
    check_refused(&wrapped, cut);
}

#[test]
fn promise_a2_it_does_not_matter_where_the_answer_comes_from() {
    let remark = "### `EXECUTE`\n- **Description:** d\n```sh\nls\n```\nOr:\n```\nrm a.txt\n```\n";
    for source in SOURCES {
        for yolo in [false, true] {
            check_from(source, yolo, &up_to("touch r"), &["the answer was cut off"]);
            check_from(
                source,
                yolo,
                &plan("List", &[remark.to_owned()]),
                &[TWO_WAYS],
            );
        }
    }
}

#[test]
fn promise_a2_the_model_is_asked_again_with_the_reason() {
    let repo = project();
    let whole = plan("Change", &[edit("a.txt", "two", "2")]);
    repo.reply(&up_to("touch r")).reply(&whole);
    repo.workflow().plan("go").refused();
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:42: the answer was cut off: it ends inside the block that starts here
        hint: write the whole plan again, up to its end; if it is too long for one answer, plan less
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:42: the answer was cut off: it ends inside the block that starts here
        hint: write the whole plan again, up to its end; if it is too long for one answer, plan less
    planned turn 2: "Change"
    "#);
    insta::assert_snapshot!(repo.workflow().execute().done(), @r"
    ▶ 1. EDIT a.txt
      ✓ changed 1 place: 1 line added, 1 removed
    turn 2 executed
      modified a.txt
    ");
    let asked = repo.workflow().artifact("2", "user_prompt.txt");
    assert!(asked.contains("the answer was cut off"), "{asked}");
    assert_eq!(repo.read("a.txt"), "one\n2\n");
}

#[test]
fn promise_a2_a_plan_cut_at_any_place_does_no_half_of_a_change() {
    let text = three();
    let first = text.find("### `EDIT`").unwrap();
    for (end, _) in text.char_indices().filter(|&(at, _)| at > first) {
        let read = teddy::plan::reading::read(&text[..end]);
        let actions = [
            edit("a.txt", "one", "1"),
            edit("a.txt", "two", "2"),
            execute("touch ran"),
        ];
        let cut = text[..end].trim_end();
        let is_whole = actions
            .iter()
            .any(|action| cut.ends_with(action.trim_end()));
        assert!(
            is_whole == read.diagnostics.is_empty(),
            "{}",
            &text[first..end]
        );
    }
}

#[test]
fn promise_d1_a_command_with_an_almost_closing_fence_never_runs() {
    let behind = create("b.txt", "b\n");
    for (name, block) in [
        ("glued to the last line", "````sh\ntouch ran````\n"),
        (
            "a no-break space in front",
            "````sh\ntouch ran\n\u{a0}````\n",
        ),
        ("the other character", "````sh\ntouch ran\n~~~~\n"),
        ("the opener twice", "````sh\n````sh\ntouch ran\n````\n"),
        ("two backticks", "````sh\ntouch ran\n``\n"),
        ("escaped", "````sh\ntouch ran\n\\`\\`\\`\n"),
        (
            "a heading behind it",
            "````sh\ntouch ran\n````### `READ`\n- **Resource:** [a.txt](/a.txt)\n",
        ),
    ] {
        let head = "### `EXECUTE`\n- **Description:** d\n";
        let text = plan("Run", &[format!("{head}{block}"), behind.clone()]);
        let repo = project();
        let before = repo.tree();
        let reply = repo.workflow().execute_text(&text).refused();
        assert!(reply.contains("turn 1 rejected"), "{name}: {reply}");
        assert_eq!(repo.tree(), before, "{name}");
    }
}

#[test]
fn promise_d1_the_last_line_of_a_comment_is_not_taken_for_a_closing_fence() {
    let content =
        "/** Adds.\n```\nadd(1, 2)\n``` */\nfn add() {}\n\n/** Ends.\n```\nend()\n``` */\n";
    let head = "### `CREATE`\n- **File Path:** [a.rs](/a.rs)\n- **Description:** d\n";
    let text = format!("{}{head}```rust\n{content}```\n", plan("Make", &[]));
    let repo = project();
    repo.workflow().run_plan(&text);
    assert_eq!(repo.read("a.rs"), content);
    let open = format!(
        "{}{head}```rust\n{content}\n{}",
        plan("Make", &[]),
        execute("true")
    );
    let repo = project();
    insta::assert_snapshot!(repo.workflow().execute_text(&open).refused(), @r"
    The plan was not accepted: 1 mistake
    plan.md:26: this can be meant to close the block that opens at line 16
        hint: write the plan again; the fence of each block must be longer than any run of its character inside
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:26: this can be meant to close the block that opens at line 16
        hint: write the plan again; the fence of each block must be longer than any run of its character inside
    ");
}

#[test]
fn promise_d1_a_find_that_lacks_its_closer_does_not_lose_a_line() {
    let old = "Use:\n```\nmake\n```\n";
    let repo = TestRepo::new().file("a.md", format!("{old}end\n"));
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.md"]);
    let head = "### `EDIT`\n- **File Path:** [a.md](/a.md)\n- **Description:** d\n\n";
    let new = "Use:\n```\nmake all\n```\n";
    let text = format!(
        "{}{head}`FIND:`\n```markdown\n{old}`REPLACE:`\n```markdown\n{new}```\n",
        plan("Change", &[])
    );
    repo.workflow().execute_text(&text).refused();
    assert_eq!(repo.read("a.md"), format!("{old}end\n"));
}

#[test]
fn promise_d2_a_fence_around_a_find_is_named_only_where_it_is_closed() {
    let hint = "FIND has a fence around its lines";
    let said = |find: &str| {
        let repo = project();
        let text = plan("Change", &[edit("a.txt", find, "1")]);
        let text = text.replace("````", "``````");
        let refused = repo.workflow().execute_text(&text).refused();
        assert!(refused.contains("FIND is not in `a.txt`"), "{refused}");
        refused.contains(hint)
    };
    assert_eq!(
        [
            said("```\none\n```"),
            said("```\none"),
            said("one\n```"),
            said("```\none\n~~~")
        ],
        [true, false, false, false]
    );
}
