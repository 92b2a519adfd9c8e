//! Doubtful plans without a user: actions that the model only talks about do not run.

use teddy::session::input::ListScope;
use teddy::workflow::context::edit::ListEdit;

use crate::plans::{chat, create, edit, execute, execute_with, plan};
use crate::screen::Screen;
use crate::support::TestRepo;

/// Remarks next to a command, in several languages.
const WORDS: [&str; 7] = [
    "Hold off on this one for now.",
    "Don't run this yet.",
    "Bitte noch nicht ausführen.",
    "Ne lancez pas ceci pour le moment.",
    "Пока не запускайте это.",
    "まだ実行しないでください。",
    "请先不要执行这个命令。",
];

fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\ntwo\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo
}

/// A plan with a remark after its command.
fn doubtful(words: &str) -> String {
    format!(
        "{}\n{words}\n",
        plan("Clean up", &[execute("echo ran > ran.txt")])
    )
}

#[test]
fn p42_words_beside_a_command_wait_for_a_person() {
    let repo = project();
    let replies = WORDS.map(|words| {
        let reply = repo.workflow().execute_text(&doubtful(words)).done();
        assert!(!repo.path().join("ran.txt").exists(), "{words}");
        reply
    });
    insta::assert_snapshot!(replies.concat(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Hold off on this one for now."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 1 undecided
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Don't run this yet."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 1 undecided
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Bitte noch nicht ausführen."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 1 undecided
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Ne lancez pas ceci pour le moment."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 1 undecided
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Пока не запускайте это."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 1 undecided
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "まだ実行しないでください。"
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 1 undecided
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "请先不要执行这个命令。"
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 1 undecided
    "#);

    // TeDDy does not call the model again, and the plan still waits.
    insta::assert_snapshot!(repo.printed(&["execute", "-y"]), @r#"
    --- stderr
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "请先不要执行这个命令。"
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    Nothing was run: the plan of turn 1 is in doubt, and waits for a person. `teddy execute` without `-y` reviews it.
    exit code 5
    "#);
    let waiting = repo.json(&["execute", "-y"], 5);
    assert_eq!(
        (
            &waiting["status"],
            waiting["diagnostics"].as_array().map(Vec::len)
        ),
        (&"planned".into(), Some(1))
    );
}

/// Bug: a no-break space before the text counted as a bullet.
#[test]
fn p42_prose_below_a_field_needs_an_answer_despite_leading_space() {
    let repo = project();
    for space in ["", "\u{a0}"] {
        let words = format!("{space}{}\n", WORDS[0]);
        let text = plan("Clean up", &[execute_with(&words, "echo ran > ran.txt")]);
        let reply = repo.workflow().execute_text(&text).done();
        assert!(reply.contains("words beside a command"), "{reply}");
        assert!(!repo.path().join("ran.txt").exists(), "{words}");
    }
}

#[test]
fn p42_a_person_sees_the_words_and_runs_the_plan() {
    let repo = project();
    repo.write("../plan.md", doubtful(WORDS[2]));
    let mut screen = Screen::open(&repo, (140, 40), &["execute", "../plan.md"]);
    screen.wait_for_prompt("(q)uit ›");
    assert!(screen.shown().contains("noch nicht"), "{}", screen.shown());
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("ran.txt"), "ran\n");
}

#[test]
fn p42_the_model_is_asked_once_and_then_the_plan_waits() {
    let repo = project();
    repo.reply(&doubtful(WORDS[0])).reply(&doubtful(WORDS[1]));
    repo.workflow().plan("clean up").done();
    insta::assert_snapshot!(repo.workflow().execute().refused(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Hold off on this one for now."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:20: words beside a command, which may say not to run it: left out the words "Hold off on this one for now."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    planned turn 2: "Clean up"
    "#);
    let feedback = repo.workflow().artifact("draft", "user_prompt.txt");
    assert!(feedback.contains(WORDS[0]), "{feedback}");

    // TeDDy does not ask again about the new plan.
    let again = [0; 2].map(|_| repo.workflow().execute().done());
    insta::assert_snapshot!(again.concat(), @r#"
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Don't run this yet."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 2 undecided
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Don't run this yet."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 2 undecided
    "#);
    assert!(!repo.path().join("ran.txt").exists());
}

#[test]
fn p42_a_plan_that_comes_back_without_the_words_runs() {
    let repo = project();
    repo.reply(&doubtful(WORDS[0]))
        .reply(&plan("Clean up", &[execute("echo ran > ran.txt")]));
    let out = repo.teddy(&["resume", "-m", "clean up", "--yolo", "--max-turns", "2"]);
    assert_eq!(repo.read("ran.txt"), "ran\n", "{out}");

    let repo = project();
    repo.reply(&doubtful(WORDS[0])).reply(&doubtful(WORDS[0]));
    let reply = repo.workflow().resume_turns(Some("clean up"), 4);
    insta::assert_snapshot!(reply.refused(), @r#"
    Asking replay:[dir]/answers with about [n] tokens
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Hold off on this one for now."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    Asking replay:[dir]/answers with about [n] tokens
    turn 1 rejected
    plan.md:20: words beside a command, which may say not to run it: left out the words "Hold off on this one for now."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    planned turn 2: "Clean up"
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Hold off on this one for now."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    ended: InDoubt(2)
    "#);
    assert!(!repo.path().join("ran.txt").exists());
}

#[test]
fn p17_a_block_that_a_message_shows_is_no_action() {
    let replies = ["**EXECUTE**", "**EXECUTE:**", "**Run**"].map(|head| {
        let repo = project();
        let message = format!(
            "Shall I run this?\n\n{head}\n- **Description:** d\n````shell\necho ran > ran.txt\n````"
        );
        let text = plan("Ask", &[chat(&message)]);
        let reply = repo.workflow().execute_text(&text).refused();
        assert!(!repo.path().join("ran.txt").exists(), "{head}");
        reply
    });
    insta::assert_snapshot!(replies.join("\n"), @r"
    ▶ 1. CHAT_WITH_USER Shall I run this?
      ✓ asks the user
    turn 1 executed
      asks (Open): Shall I run this?

    **EXECUTE**
    - **Description:** d
    ````shell
    echo ran > ran.txt
    ````

    ▶ 1. CHAT_WITH_USER Shall I run this?
      ✓ asks the user
    turn 1 executed
      asks (Open): Shall I run this?

    **EXECUTE:**
    - **Description:** d
    ````shell
    echo ran > ran.txt
    ````

    ▶ 1. CHAT_WITH_USER Shall I run this?
      ✓ asks the user
    turn 1 executed
      asks (Open): Shall I run this?

    **Run**
    - **Description:** d
    ````shell
    echo ran > ran.txt
    ````
    ");
}

#[test]
fn rp19_preprocess_leaves_what_is_in_doubt_as_it_is() {
    let cut = plan(
        "Write",
        &[create("b.txt", "b\n"), execute("echo ran > ran.txt")],
    );
    let cut = cut.trim_end().trim_end_matches('`').to_owned();
    let replies = [doubtful(WORDS[3]), cut].map(|text| {
        let repo = project();
        repo.write("../plan.md", &text);
        let shown = [0; 2].map(|_| {
            let shown = repo.printed(&["preprocess", "../plan.md"]);
            assert_eq!(repo.read("../plan.md"), text);
            shown
        });
        assert_eq!(shown[0], shown[1]);
        assert_eq!(repo.teddy_reads(&["preprocess", "-"], &text).stdout, text);
        let refused = repo.workflow().execute_text(&text).to_string();
        assert!(!repo.path().join("ran.txt").exists());
        format!("{}{refused}", shown[0])
    });
    insta::assert_snapshot!(replies.join("\n"), @r#"
    --- stderr
    line 20: left out the words "Ne lancez pas ceci pour le moment."
    warning: there are words beside a command, which may say not to run it; the plan is unchanged
    exit code 3
    The plan was not accepted: 1 mistake
    plan.md:20: words beside a command, which may say not to run it: left out the words "Ne lancez pas ceci pour le moment."
        hint: send the plan again without these words; if the command must not run yet, leave it out and ask with ### `CHAT_WITH_USER`
    turn 1 undecided

    --- stderr
    line 23: the answer was cut off: it ends inside the block that starts here
    line 25: closed the block that opens at line 23; its closing fence was missing
    warning: another reading is about as likely; the plan is unchanged
    exit code 3
    The plan was not accepted: 1 mistake
    plan.md:23: the answer was cut off: it ends inside the block that starts here
        hint: write the whole plan again, up to its end; if it is too long for one answer, plan less
    no model is configured to correct the plan
    turn 1 rejected
    plan.md:23: the answer was cut off: it ends inside the block that starts here
        hint: write the whole plan again, up to its end; if it is too long for one answer, plan less
    "#);
}

#[test]
fn p44_a_placeholder_for_code_is_sent_back_to_the_model() {
    let overwriting = |content: &str| {
        create("a.txt", content).replace(
            "- **Description:**",
            "- **Overwrite:** true\n- **Description:**",
        )
    };
    let actions = [
        edit("a.txt", "one\ntwo", "1\n# ... existing code ..."),
        edit("a.txt", "one\ntwo", "1\n// rest unchanged"),
        overwriting("1\n/* ... rest of the file ... */\n"),
        overwriting("1\n# ... bestehender Code ...\n"),
    ];
    let refused = actions.map(|action| {
        let repo = project();
        let text = plan("Change it", &[action]);
        let reply = repo.workflow().plan_from("go", &text).refused();
        repo.workflow().execute_with(None, false).refused();
        assert_eq!(repo.read("a.txt"), "one\ntwo\n");
        reply
    });
    insta::assert_snapshot!(refused.concat(), @r##"
    planned turn 1: "Change it", 1 mistakes
    plan.md:17: EDIT a.txt: REPLACE of pair 1 leaves out code: "# ... existing code ..."
        hint: the text is written as it is; write out every line, or FIND only the lines that change
    planned turn 1: "Change it", 1 mistakes
    plan.md:17: EDIT a.txt: REPLACE of pair 1 leaves out code: "// rest unchanged"
        hint: the text is written as it is; write out every line, or FIND only the lines that change
    planned turn 1: "Change it", 1 mistakes
    plan.md:13: CREATE a.txt: the content leaves out code: "/* ... rest of the file ... */"
        hint: the text is written as it is; write out every line, or FIND only the lines that change
    planned turn 1: "Change it", 1 mistakes
    plan.md:13: CREATE a.txt: the content leaves out code: "# ... bestehender Code ..."
        hint: the text is written as it is; write out every line, or FIND only the lines that change
    "##);

    // An existing line and one in a new file stand for no code.
    let repo = project();
    repo.write("b.py", "# ... existing code ...\nx = 1\n");
    repo.workflow().add(&["b.py"]);
    let kept = "# ... existing code ...\nx = ";
    let change = edit("b.py", &format!("{kept}1"), &format!("{kept}2"));
    repo.workflow()
        .run_plan(&plan("Keep it", &[change, create("c.py", "# ...\n")]));
    assert_eq!(repo.read("b.py"), "# ... existing code ...\nx = 2\n");
}

#[test]
fn p15_a_script_is_run_by_the_program_that_it_names() {
    let repo = project();
    repo.run_plan(&plan(
        "Print",
        &[execute(
            "#!/usr/bin/env -S awk -f\nBEGIN { print \"awk\" > \"out.txt\" }",
        )],
    ));
    assert_eq!(repo.read("out.txt"), "awk\n");

    let lines = [
        "#!/no/such/program",
        "#!/usr/bin/env no-such-program",
        "#!",
        "#!./run",
    ];
    let refused = lines.map(|line| {
        let script = format!("{line}\necho ran > ran.txt");
        let text = plan("Print", &[execute(&script)]);
        let reply = repo.workflow().plan_from("go", &text).refused();
        repo.workflow().execute_with(None, false).refused();
        assert!(!repo.path().join("ran.txt").exists(), "{line}");
        reply
    });
    insta::assert_snapshot!(refused.concat(), @r##"
    planned turn 2: "Print", 1 mistakes
    plan.md:13: EXECUTE #!/no/such/program: the `#!` line asks for `/no/such/program`, which cannot run here
        hint: name a program that is installed, or leave the line out and use a shell
    planned turn 3: "Print", 1 mistakes
    plan.md:13: EXECUTE #!/usr/bin/env no-such-program: the `#!` line asks for `no-such-program`, which cannot run here
        hint: name a program that is installed, or leave the line out and use a shell
    planned turn 4: "Print", 2 mistakes
    plan.md:13: EXECUTE #!: the `#!` line asks for ``, which cannot run here
        hint: name a program that is installed, or leave the line out and use a shell
    plan.md:13: EXECUTE #!: the `#!` line names no program: "#!"
        hint: write `#!/usr/bin/env python3`, or leave the line out
    planned turn 5: "Print", 2 mistakes
    plan.md:13: EXECUTE #!./run: the `#!` line asks for `./run`, which cannot run here
        hint: name a program that is installed, or leave the line out and use a shell
    plan.md:13: EXECUTE #!./run: the `#!` line names no program: "#!./run"
        hint: write `#!/usr/bin/env python3`, or leave the line out
    "##);
}

#[test]
fn p15_a_block_runs_in_the_shell_of_its_language() {
    let repo = project();
    if teddy::host::process::find("bash").is_none() {
        return crate::support::skipped("bash");
    }
    let in_bash = "[[ a == a* ]] && words=(x y) && echo \"${words[1]}\" > out.txt";
    let block = |language: &str| execute(in_bash).replace("````shell", &format!("````{language}"));
    repo.run_plan(&plan("Run", &[block("bash")]));
    assert_eq!(repo.read("out.txt"), "y\n");

    // In a plain shell the same script fails, with a hint.
    repo.write("../plan.md", plan("Run", &[block("sh")]));
    let is_plain = repo.command("sh").args(["-c", "[[ a ]]"]).status().unwrap();
    if !is_plain.success() {
        let out = repo.teddy(&["execute", "../plan.md", "-y", "--no-replan"]);
        out.check(1, &["a block with the language `bash`"]);
    }

    let setting = ["-c", "execute.shell=sh -c 'echo mine > out.txt'"];
    repo.write("../plan.md", plan("Run", &[block("bash")]));
    let arguments = [&["execute", "../plan.md", "-y"][..], &setting].concat();
    repo.teddy(&arguments).check(0, &[]);
    assert_eq!(repo.read("out.txt"), "mine\n");
}

#[test]
fn p33_blocks_of_one_shell_and_prompts_have_one_meaning() {
    let repo = project();
    let two = execute("echo a > a.out").replace(
        "````shell\necho a > a.out\n````\n",
        "```sh\ncd .. && cd -\n```\n```sh\necho a > a.out\n```\n",
    );
    repo.write(
        "../plan.md",
        plan("Both", &[two, execute("$ echo b > b.out")]),
    );
    repo.teddy(&["execute", "../plan.md", "-y"]).check(0, &[]);
    assert_eq!(
        (repo.read("a.out"), repo.read("b.out")),
        ("a\n".into(), "b\n".into())
    );

    // In a here-document, a fence is content.
    let open =
        "### `EXECUTE`\n- **Description:** d\n```sh\ncat > c.out <<'EOF'\n```\n```sh\nEOF\n```\n";
    repo.write("../plan.md", plan("Write", &[open.to_owned()]));
    let out = repo.teddy(&["execute", "../plan.md", "-y"]);
    assert!(
        out.code == 3 || repo.read("c.out") == "```\n```sh\n",
        "{out}"
    );
}

#[test]
fn p43_an_existing_path_can_have_any_characters() {
    let names = [
        "می\u{200c}خواهم.md",
        "👩\u{200d}💻.txt",
        "क्\u{200d}ष.md",
        "so\u{ad}ft.md",
        "rl\u{200f}m.md",
        "bidi\u{202e}x",
        "~",
        "s:1",
        "trail ",
        " lead",
        "dot.",
        "d /f",
    ];
    let repo = project();
    repo.write("d /f", "a\n");
    for name in names {
        repo.write(name, "a\n");
    }
    repo.commit("names");
    for name in names {
        let resource = format!("./{name}");
        let edited = repo
            .workflow()
            .edit(ListScope::Session, ListEdit::Add, &[&resource]);
        let edited = edited.done();
        assert!(
            edited.starts_with("session: added ") && !edited.contains(", "),
            "{edited}"
        );
        repo.workflow().run_plan(&named(name));
        assert_eq!(repo.read(name), "b\n", "{name:?}");
    }

    // The name is escaped for display, and a plan can use the escaped name.
    let listed = repo.done(&["context", "list"]);
    assert!(
        listed.contains("bidi\\u{202e}x") && !listed.contains('\u{202e}'),
        "{listed}"
    );
    repo.write("bidi\u{202e}x", "a\n");
    repo.workflow().run_plan(&named("bidi\\u{202e}x"));
    assert_eq!(repo.read("bidi\u{202e}x"), "b\n");
}

/// A plan that edits a file with any name.
fn named(name: &str) -> String {
    plan(
        "Change it",
        &[edit("@", "a", "b").replace("[@](/@)", &format!("[{name}](</{name}>)"))],
    )
}

#[test]
fn p43_a_new_path_has_no_deceptive_characters_and_similar_names_are_different_files() {
    let repo = project();
    let names = [
        "new\u{202e}x",
        "so\u{ad}ft",
        "~/new",
        "y:new",
        "end.",
        "new /x",
    ];
    let refused = names.map(|name| {
        let make = create("@", "x\n").replace("[@](/@)", &format!("[{name}](</{name}>)"));
        let text = plan("Make it", &[make]);
        repo.workflow().plan_from("go", &text).refused()
    });
    insta::assert_snapshot!(refused.concat(), @r#"
    planned turn 1: "Make it", 1 mistakes
    plan.md:13: CREATE new\u{202e}x: the path has the character U+202E, which is not allowed in a path: "new\u{202e}x"
        hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
    planned turn 1: "Make it", 1 mistakes
    plan.md:13: CREATE so\u{ad}ft: the path has the character U+00AD, which is not allowed in a path: "so\u{ad}ft"
        hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
    planned turn 1: "Make it", 1 mistakes
    plan.md:13: CREATE ~/new: the path must be relative to the project's root: "~/new"
        hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
    planned turn 1: "Make it", 1 mistakes
    plan.md:13: CREATE y:new: the path must be relative to the project's root: "y:new"
        hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
    planned turn 1: "Make it", 1 mistakes
    plan.md:13: CREATE end.: `end.` ends with a dot or a space: "end."
        hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
    planned turn 1: "Make it", 1 mistakes
    plan.md:13: CREATE new /x: `new ` ends with a dot or a space: "new /x"
        hint: write `[path/from/root](/path/from/root)`, text and destination alike, inside the project
    "#);

    repo.write("ﬁle", "x\n");
    repo.write("１", "x\n");
    repo.write("é", "x\n");
    repo.workflow().run_plan(&plan(
        "Make them",
        &[create("file", "y\n"), create("1", "y\n")],
    ));
    let text = plan("Make it", &[create("e\u{301}", "y\n")]);
    insta::assert_snapshot!(repo.workflow().plan_from("go", &text).refused(), @r#"
    planned turn 2: "Make it", 1 mistakes
    plan.md:13: CREATE é: `é` is the same name as `é` for some file systems
        hint: choose another name
    "#);
}

#[test]
fn p43_a_refused_link_says_where_it_leads() {
    let repo = project();
    repo.write("AGENTS.md", "a\n");
    repo.write("docs/a.md", "a\n");
    std::os::unix::fs::symlink("AGENTS.md", repo.path().join("CLAUDE.md")).unwrap();
    std::os::unix::fs::symlink("docs", repo.path().join("d")).unwrap();
    repo.commit("links");
    let refused = ["CLAUDE.md", "d/a.md"].map(|path| {
        let text = plan("Change it", &[edit(path, "a", "b")]);
        repo.workflow().plan_from("go", &text).refused()
    });
    insta::assert_snapshot!(refused.concat(), @r#"
    planned turn 1: "Change it", 1 mistakes
    plan.md:13: EDIT CLAUDE.md: `CLAUDE.md` is a symbolic link to `AGENTS.md`
        hint: EDIT `AGENTS.md`, to which it leads
    planned turn 1: "Change it", 1 mistakes
    plan.md:13: EDIT d/a.md: `d/a.md` is below `d`, which is a symbolic link to `docs`
        hint: EDIT `docs/a.md`, to which it leads
    "#);
    let added = repo
        .workflow()
        .edit(ListScope::Session, ListEdit::Add, &["d/a.md"]);
    insta::assert_snapshot!(added.refused(), @r"
    error: `d/a.md` cannot be in a context list: it is below `d`, which is a symbolic link
    exit code 1
    ");
}

#[test]
fn p32_a_mention_or_the_lines_of_a_link_stand_for_the_plain_path() {
    for path in ["@a.txt", "a.txt#L1-L2", "a.txt#L2"] {
        let repo = project();
        repo.workflow()
            .run_plan(&plan("Change it", &[edit(path, "two", "2")]));
        assert_eq!(repo.read("a.txt"), "one\n2\n", "{path}");
    }

    // A file with exactly this name takes precedence.
    let repo = project();
    repo.write("@a.txt", "two\n");
    repo.workflow().add(&["@a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change it", &[edit("@a.txt", "two", "2")]));
    assert_eq!(
        (repo.read("@a.txt"), repo.read("a.txt")),
        ("2\n".into(), "one\ntwo\n".into())
    );
}
