//! Doubtful plans without a user: actions that the model only talks about do not run.

use crate::plans::{chat, create, edit, execute, plan};
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
    repo.done(&["new", "demo"]);
    repo.done(&["context", "add", "a.txt"]);
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
    for words in WORDS {
        repo.write("../plan.md", doubtful(words));
        let out = repo.teddy(&["execute", "../plan.md", "-y"]);
        out.check(5, &["words beside a command", "waits for a person"]);
        assert!(!repo.path().join("ran.txt").exists(), "{words}");
    }

    // TeDDy does not call the model again, and the plan still waits.
    repo.teddy(&["execute", "-y"]).check(5, &[]);
    let waiting = repo.json(&["execute", "-y"], 5);
    assert_eq!(
        (
            &waiting["status"],
            waiting["diagnostics"].as_array().map(Vec::len)
        ),
        (&"planned".into(), Some(1))
    );
}

#[test]
fn p42_a_person_sees_the_words_and_runs_the_plan() {
    let repo = project();
    repo.write("../plan.md", doubtful(WORDS[2]));
    let mut screen = Screen::open(&repo, (140, 40), &["execute", "../plan.md"]);
    screen.wait_for("(q)uit ›");
    assert!(screen.shown().contains("noch nicht"), "{}", screen.shown());
    screen.press("a");
    assert_eq!(screen.end(), 0, "{}", screen.shown());
    assert_eq!(repo.read("ran.txt"), "ran\n");
}

#[test]
fn p42_the_model_is_asked_once_and_then_the_plan_waits() {
    let repo = project();
    repo.reply(&doubtful(WORDS[0])).reply(&doubtful(WORDS[1]));
    repo.done(&["plan", "-m", "clean up"]);
    let asked = repo.json(&["execute", "-y"], 5);
    assert_eq!(
        (&asked["status"], &asked["replanned"]["title"]),
        (&"rejected".into(), &"Clean up".into())
    );
    let feedback = repo.done(&["show", "draft", "user_prompt.txt"]);
    assert!(feedback.contains(WORDS[0]), "{feedback}");

    // TeDDy does not ask again about the new plan.
    for _ in 0..2 {
        let out = repo.teddy(&["execute", "-y"]);
        out.check(5, &["waits for a person"]);
    }
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
    let out = repo.teddy(&["resume", "-m", "clean up", "--yolo", "--max-turns", "4"]);
    out.check(5, &["words beside a command"]);
    assert!(!repo.path().join("ran.txt").exists());
}

#[test]
fn p17_a_block_that_a_message_shows_is_no_action() {
    for head in ["**EXECUTE**", "**EXECUTE:**", "**Run**"] {
        let repo = project();
        let message = format!(
            "Shall I run this?\n\n{head}\n- **Description:** d\n````shell\necho ran > ran.txt\n````"
        );
        repo.write("../plan.md", plan("Ask", &[chat(&message)]));
        let out = repo.teddy(&["execute", "../plan.md", "-y"]);
        out.check(5, &["the model waits for your answer", "Shall I run this?"]);
        assert!(!repo.path().join("ran.txt").exists(), "{head}");
    }
}

#[test]
fn rp19_preprocess_leaves_what_is_in_doubt_as_it_is() {
    let cut = plan(
        "Write",
        &[create("b.txt", "b\n"), execute("echo ran > ran.txt")],
    );
    let cut = cut.trim_end().trim_end_matches('`').to_owned();
    for text in [doubtful(WORDS[3]), cut] {
        let repo = project();
        repo.write("../plan.md", &text);
        for _ in 0..2 {
            repo.teddy(&["preprocess", "../plan.md"])
                .check(3, &["unchanged"]);
            assert_eq!(repo.read("../plan.md"), text);
        }
        assert_eq!(repo.teddy_reads(&["preprocess", "-"], &text).stdout, text);
        let out = repo.teddy(&["execute", "../plan.md", "-y"]);
        assert_ne!(out.code, 0, "{out}");
        assert!(!repo.path().join("ran.txt").exists());
    }
}

#[test]
fn p44_a_line_that_stands_for_code_goes_back_to_the_model() {
    let overwriting = |content: &str| {
        create("a.txt", content).replace(
            "- **Description:**",
            "- **Overwrite:** true\n- **Description:**",
        )
    };
    for action in [
        edit("a.txt", "one\ntwo", "1\n# ... existing code ..."),
        edit("a.txt", "one\ntwo", "1\n// rest unchanged"),
        overwriting("1\n/* ... rest of the file ... */\n"),
        overwriting("1\n# ... bestehender Code ...\n"),
    ] {
        let repo = project();
        repo.write("../plan.md", plan("Change it", &[action]));
        repo.teddy(&["execute", "../plan.md", "-y"])
            .check(3, &["leaves out code"]);
        assert_eq!(repo.read("a.txt"), "one\ntwo\n");
    }

    // An existing line and one in a new file stand for no code.
    let repo = project();
    repo.write("b.py", "# ... existing code ...\nx = 1\n");
    repo.done(&["context", "add", "b.py"]);
    let kept = "# ... existing code ...\nx = ";
    let change = edit("b.py", &format!("{kept}1"), &format!("{kept}2"));
    repo.run_plan(&plan("Keep it", &[change, create("c.py", "# ...\n")]));
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

    for (line, code) in [
        ("#!/no/such/program", 3),
        ("#!/usr/bin/env no-such-program", 3),
        ("#!", 3),
        ("#!./run", 3),
    ] {
        let script = format!("{line}\necho ran > ran.txt");
        repo.write("../plan.md", plan("Print", &[execute(&script)]));
        repo.teddy(&["execute", "../plan.md", "-y"])
            .check(code, &[]);
        assert!(!repo.path().join("ran.txt").exists(), "{line}");
    }
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
fn p43_a_path_that_exists_can_be_named_whatever_is_in_it() {
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
        let out = repo.teddy(&["context", "add", "--", &format!("./{name}")]);
        out.check(0, &[]);
        assert!(!out.stderr.contains("there is no"), "{out}");
        repo.write("../plan.md", named(name));
        repo.teddy(&["execute", "../plan.md", "-y"]).check(0, &[]);
        assert_eq!(repo.read(name), "b\n", "{name:?}");
    }

    // The name is escaped for display, and a plan can use the escaped name.
    let listed = repo.done(&["context", "list"]);
    assert!(
        listed.contains("bidi\\u{202e}x") && !listed.contains('\u{202e}'),
        "{listed}"
    );
    repo.write("bidi\u{202e}x", "a\n");
    repo.write("../plan.md", named("bidi\\u{202e}x"));
    repo.teddy(&["execute", "../plan.md", "-y"]).check(0, &[]);
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
fn p43_a_new_name_deceives_nobody_and_another_name_is_another_file() {
    let repo = project();
    for name in [
        "new\u{202e}x",
        "so\u{ad}ft",
        "~/new",
        "y:new",
        "end.",
        "new /x",
    ] {
        let make = create("@", "x\n").replace("[@](/@)", &format!("[{name}](</{name}>)"));
        repo.write("../plan.md", plan("Make it", &[make]));
        repo.teddy(&["execute", "../plan.md", "-y"])
            .check(3, &["hint: write `[path/from/root]"]);
    }

    repo.write("ﬁle", "x\n");
    repo.write("１", "x\n");
    repo.write("é", "x\n");
    repo.run_plan(&plan(
        "Make them",
        &[create("file", "y\n"), create("1", "y\n")],
    ));
    repo.write("../plan.md", plan("Make it", &[create("e\u{301}", "y\n")]));
    repo.teddy(&["execute", "../plan.md", "-y"])
        .check(3, &["is the same name as `é` for some file systems"]);
}

#[test]
fn p43_a_refused_link_says_where_it_leads() {
    let repo = project();
    repo.write("AGENTS.md", "a\n");
    repo.write("docs/a.md", "a\n");
    std::os::unix::fs::symlink("AGENTS.md", repo.path().join("CLAUDE.md")).unwrap();
    std::os::unix::fs::symlink("docs", repo.path().join("d")).unwrap();
    repo.commit("links");
    for (path, words) in [
        (
            "CLAUDE.md",
            [
                "`CLAUDE.md` is a symbolic link to `AGENTS.md`",
                "EDIT `AGENTS.md`",
            ],
        ),
        (
            "d/a.md",
            [
                "`d/a.md` is below `d`, which is a symbolic link to `docs`",
                "EDIT `docs/a.md`",
            ],
        ),
    ] {
        repo.write("../plan.md", plan("Change it", &[edit(path, "a", "b")]));
        repo.teddy(&["execute", "../plan.md", "-y"])
            .check(3, &words);
    }
    let out = repo.teddy(&["context", "add", "d/a.md"]);
    out.check(1, &["is below `d`, which is a symbolic link"]);
}

#[test]
fn p32_a_mention_or_the_lines_of_a_link_stand_for_the_plain_path() {
    for path in ["@a.txt", "a.txt#L1-L2", "a.txt#L2"] {
        let repo = project();
        repo.run_plan(&plan("Change it", &[edit(path, "two", "2")]));
        assert_eq!(repo.read("a.txt"), "one\n2\n", "{path}");
    }

    // A file with exactly this name takes precedence.
    let repo = project();
    repo.write("@a.txt", "two\n");
    repo.done(&["context", "add", "@a.txt"]);
    repo.run_plan(&plan("Change it", &[edit("@a.txt", "two", "2")]));
    assert_eq!(
        (repo.read("@a.txt"), repo.read("a.txt")),
        ("2\n".into(), "one\ntwo\n".into())
    );
}
