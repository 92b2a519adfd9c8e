//! `context`: the lists, the files that they match, and `input.md`.

use serde_json::json;

use teddy::session::input::ListScope;
use teddy::workflow::context::edit::ListEdit;

use crate::plans::{create, edit, invoke, plan, prune, read};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "hello\n")
        .file("src/x.rs", "fn x() {}\n")
        .file("src/y.md", "y\n")
        .file("README.md", "# R\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

fn section(input: &str, from: &str, to: &str) -> String {
    let start = input
        .find(from)
        .unwrap_or_else(|| panic!("no {from} in {input}"));
    let end = input[start..]
        .find(to)
        .unwrap_or_else(|| panic!("no {to} in {input}"));
    input[start..start + end].to_owned()
}

/// Regression: the directory was added without a word, and listed as missing.
#[test]
fn a_directory_that_git_ignores_is_named_when_it_is_added() {
    let repo = project();
    repo.write(".gitignore", "/venv/\n");
    repo.write("venv/lib/site.py", "x\n");
    repo.write("new/b.txt", "b\n");
    insta::assert_snapshot!(repo.printed(&["context", "add", "venv", "new"]), @"
    --- stderr
    warning: git ignores every file in `venv`, so the model sees none of them; add the files that it should see (session)
    Added new (session)
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["context", "list"]), @"
    session         0  venv  (a directory without files in the snapshot)
    session         2  new/b.txt
    total           2
    exit code 0
    ");
}

#[test]
fn a_file_named_like_a_secret_that_is_named_itself_is_shown_and_that_is_said() {
    let repo = project();
    repo.write("new/.env", "DB_PASS=hunter2\n");
    repo.done(&["context", "add", "new"]);
    assert!(!repo.workflow().input(0).contains("hunter2"));

    let said = "warning: `new/.env` is named like a secret, and the model gets its text";
    let out = repo.teddy(&["context", "add", "new/.env"]);
    out.check(0, &["Added new/.env (session)", said]);
    assert!(repo.workflow().input(0).contains("hunter2"));
}

/// Bug: it was added without a word, was missing, and hid the entry of the session's list.
#[test]
fn a_file_that_snapshots_leave_out_needs_the_list_of_the_session() {
    let repo = project();
    repo.write(".gitignore", "*.log\n");
    repo.write("my.log", "what was said\n");
    insta::assert_snapshot!(repo.printed(&["context", "add", "--turn", "my.log", "a.txt"]), @"
    --- stderr
    warning: snapshots leave out `my.log` (ignored, large or secret), so the model sees it only if you list it for the session: `teddy context add my.log`
    Added a.txt (turn)
    exit code 0
    ");
    assert!(!repo.workflow().input(0).contains("what was said"));
    insta::assert_snapshot!(repo.printed(&["context", "add", "my.log"]), @"
    --- stderr
    Added my.log (session)
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["context", "add", "--turn", "my.log"]), @"
    --- stderr
    my.log is there already (turn)
    exit code 0
    ");
    assert!(repo.workflow().input(0).contains("what was said"));
}

#[test]
fn three_lists_say_what_is_shown_and_each_thing_is_shown_once() {
    let repo = project();
    repo.workflow().add(&["src/", "a.txt"]);
    repo.workflow()
        .edit(ListScope::Turn, ListEdit::Add, &["a.txt"])
        .done();
    repo.workflow()
        .edit(ListScope::Global, ListEdit::Add, &["*.md", "gone.txt"])
        .done();
    assert_eq!(repo.read(".teddy/global.context"), "*.md\ngone.txt\n");
    let rows = repo.workflow().resources(0);
    let shown: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["resource"], row["scope"], row["missing"]]))
        .collect();
    let expected = json!([
        ["a.txt", "turn", false],
        ["src/x.rs", "session", false],
        ["src/y.md", "session", false],
        ["README.md", "global", false],
        ["gone.txt", "global", true]
    ]);
    assert_eq!(json!(shown), expected);
    assert!(rows[0]["tokens"].as_u64().unwrap() > 0);
}

#[test]
fn concurrent_changes_of_the_global_list_lose_no_entry() {
    let repo = project();
    let names: Vec<String> = (0..8).map(|number| format!("{number}.txt")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(|| repo.done(&["context", "add", "--global", name]));
        }
    });
    let list = repo.read(".teddy/global.context");
    let mut entries: Vec<&str> = list.lines().collect();
    entries.sort_unstable();
    assert_eq!(entries, names);
}

#[test]
fn a_removed_entry_leaves_every_other_byte_of_the_list() {
    let repo = project();
    repo.write(".teddy/global.context", "# mine\na.txt   \n\nREADME.md\n");
    repo.workflow()
        .edit(ListScope::Global, ListEdit::Remove, &["a.txt"])
        .done();
    assert_eq!(repo.read(".teddy/global.context"), "# mine\n\nREADME.md\n");
    let said = repo
        .workflow()
        .edit(ListScope::Global, ListEdit::Remove, &["a.txt"])
        .done();
    insta::assert_snapshot!(said, @"global: unchanged a.txt");
    // What cannot be read whole would be lost where it is written anew.
    let refused = [b"caf\xe9\n".to_vec(), vec![b'#'; (1 << 20) + 1]].map(|list| {
        repo.write(".teddy/global.context", &list);
        let reply = repo
            .workflow()
            .edit(ListScope::Global, ListEdit::Add, &["a.txt"]);
        assert!(std::fs::read(repo.path().join(".teddy/global.context")).unwrap() == list);
        reply.refused()
    });
    insta::assert_snapshot!(refused.concat(), @r"
    error: `.teddy/global.context` is not UTF-8; it is left as it is
    exit code 1
    error: cannot read `.teddy/global.context`: it is larger than 1048576 bytes
    exit code 1
    ");
    repo.write(".teddy/global.context", "");
    let said = repo
        .workflow()
        .edit(ListScope::Session, ListEdit::Add, &["."])
        .done();
    insta::assert_snapshot!(said, @"session: added **");
    let shown = repo.workflow().resources(0).to_string();
    assert!(
        shown.contains("\"src/") && shown.contains("\"a.txt\""),
        "{shown}"
    );
    repo.workflow()
        .edit(ListScope::Session, ListEdit::Remove, &["."])
        .done();
    let said = repo
        .workflow()
        .edit(ListScope::Session, ListEdit::Add, &["src/", "./src"])
        .done();
    insta::assert_snapshot!(said, @"session: added src");
    let said = repo
        .workflow()
        .edit(ListScope::Session, ListEdit::Add, &["src/"])
        .done();
    insta::assert_snapshot!(said, @"session: unchanged src");
    let said = repo
        .workflow()
        .edit(ListScope::Session, ListEdit::Add, &["a.txt"])
        .done();
    insta::assert_snapshot!(said, @"session: added a.txt");
}

#[test]
fn a_path_out_of_the_project_and_an_address_with_a_password_are_refused() {
    let repo = project();
    let names = [
        "../x",
        ".git/config",
        "a/../../x",
        "https://me:pw@example.com/",
    ];
    let refused = names.map(|path| {
        repo.workflow()
            .edit(ListScope::Session, ListEdit::Add, &[path])
            .refused()
    });
    insta::assert_snapshot!(refused.concat(), @r"
    error: `../x` cannot be in a context list: the path leaves the project with `..`
    exit code 1
    error: `.git/config` cannot be in a context list: `.git` is git's own
    exit code 1
    error: `a/../../x` cannot be in a context list: the path leaves the project with `..`
    exit code 1
    error: `https://me:pw@example.com/` cannot be in a context list: a URL must not contain a user name or password
    exit code 1
    ");
    assert_eq!(repo.workflow().resources(0), json!([]));
}

#[test]
fn a_missing_file_is_added_and_reported() {
    let repo = project();
    let said = repo
        .workflow()
        .edit(ListScope::Session, ListEdit::Add, &["/etc/passwd"])
        .done();
    insta::assert_snapshot!(said, @"session: added etc/passwd, missing");
    let there = ["a.txt", "src/*.rs", "https://example.org/"];
    let said = repo
        .workflow()
        .edit(ListScope::Session, ListEdit::Add, &there)
        .done();
    insta::assert_snapshot!(said, @r"
    session: added a.txt
    session: added src/*.rs
    session: added https://example.org/
    ");
    assert!(
        repo.workflow()
            .input(0)
            .contains("[etc/passwd](/etc/passwd) (missing)"),
        "a leading `/` is the project's root"
    );
}

#[test]
fn a_path_is_taken_from_the_folder_in_use() {
    let repo = project();
    let below = |how, resources: &[&str]| {
        repo.workflow()
            .below("src")
            .edit(ListScope::Session, how, resources)
            .to_string()
    };
    insta::assert_snapshot!(below(ListEdit::Add, &["x.rs", "../a.txt", "/README.md"]), @r"
    session: added src/x.rs
    session: added a.txt
    session: added README.md
    ");
    insta::assert_snapshot!(below(ListEdit::Remove, &["x.rs", "../README.md"]), @r"
    session: removed src/x.rs
    session: removed README.md
    ");
    insta::assert_snapshot!(below(ListEdit::Add, &["../../out.txt"]), @r"
    error: `../../out.txt` cannot be in a context list: the path leaves the project with `..`
    exit code 1
    ");
    assert_eq!(repo.workflow().resources(0)[0]["resource"], "a.txt");
}

#[test]
fn the_input_is_the_same_for_the_same_files() {
    let repo = project();
    repo.workflow().add(&["a.txt"]);
    assert_eq!(repo.workflow().input(0), repo.workflow().input(0));
    assert!(
        repo.workflow()
            .input(0)
            .starts_with("# Agent Invocation Payload\n")
    );
}

#[test]
fn ignored_files_are_not_in_the_structure_and_teddyignore_has_the_last_word() {
    let repo = project();
    repo.write(".gitignore", "dist/\n*.log\n");
    repo.write("dist/bundle.js", "x\n");
    repo.write("noise.log", "x\n");
    repo.write(".teddyignore", "src/y.md\n!dist/bundle.js\n");
    let structure = section(&repo.workflow().input(0), "## 2.", "## 4.");
    assert!(
        structure.contains("bundle.js")
            && !structure.contains("noise.log")
            && !structure.contains("y.md"),
        "{structure}"
    );
    assert!(structure.contains("src/\n  x.rs\n"), "{structure}");
}

#[test]
fn the_turn_before_is_in_the_context_and_older_ones_by_wish() {
    let repo = project();
    for title in ["One", "Two", "Three"] {
        repo.workflow()
            .run_plan(&plan(title, &[create(&format!("{title}.txt"), "x\n")]));
    }
    let names = |depth| {
        let rows = repo.workflow().resources(depth);
        let turns: std::collections::BTreeSet<String> = rows
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|row| {
                row["resource"]
                    .as_str()?
                    .strip_prefix(".teddy/demo/")
                    .map(|name| name[..2].to_owned())
            })
            .collect();
        turns.into_iter().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(0), "03");
    assert_eq!(names(1), "02 03");
    assert_eq!(names(9), "01 02 03");
}

#[test]
fn missing_binary_and_large_files_are_reported_and_not_fatal() {
    let repo = project();
    repo.write("bin.dat", b"\0\x01\x02");
    repo.write("large.txt", "x\n".repeat(600_000));
    repo.workflow().add(&["gone.txt", "bin.dat", "large.txt"]);
    let input = repo.workflow().input(0);
    for words in [
        "--- FILE NOT FOUND ---",
        "--- BINARY FILE, 3 BYTES ---",
        "--- FILE OF 1200000 BYTES, OVER THE LIMIT ---",
    ] {
        assert!(input.contains(words), "{words}");
    }
}

#[test]
fn a_key_in_a_file_does_not_reach_the_input() {
    let repo = project();
    let key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789";
    repo.write("a.txt", format!("key = \"{key}\"\n"));
    repo.workflow().add(&["a.txt"]);
    assert!(!repo.workflow().input(0).contains(key));
}

#[test]
fn a_list_is_edited_in_the_editor_only_where_there_is_one() {
    project()
        .teddy(&["context", "edit", "--global"])
        .check(1, &["no terminal"]);
}

#[test]
fn text_that_means_something_to_a_tokenizer_is_text() {
    let repo = project();
    repo.write("a.txt", "<|endoftext|> and <|fim_prefix|>\n");
    repo.workflow().add(&["a.txt"]);
    assert!(repo.workflow().resources(0)[0]["tokens"].as_u64().unwrap() > 3);
    repo.workflow().run_plan(&plan("Read", &[read("a.txt")]));
}

#[test]
fn promise_d9_a_file_of_many_spaces_is_shown_and_a_turn_runs() {
    let repo = project();
    let text = format!("a{}b\n", " ".repeat(260_000));
    repo.write("blanks.txt", &text);
    repo.workflow().add(&["blanks.txt"]);
    let rows = repo.workflow().resources(0);
    assert_eq!(rows[0]["resource"], "blanks.txt");
    assert!(rows[0]["tokens"].as_u64().unwrap() > 1000, "{rows}");
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "x\n")]));
    assert!(repo.workflow().input(0).contains(&text));
}

/// A project laid out as in Next.js. As a glob pattern, `[id]` would match `d`.
fn routes() -> TestRepo {
    let repo = TestRepo::new()
        .file("app/[id]/page.tsx", "the page of one\n")
        .file("app/d/page.tsx", "the page of d\n")
        .file("app/[...slug]/*.md", "odd\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo
}

/// Returns the resources in the next input.
fn there(repo: &TestRepo) -> Vec<String> {
    let rows = repo.workflow().resources(0);
    let there = rows.as_array().unwrap().iter();
    there
        .filter(|row| row["missing"] == false)
        .map(|row| row["resource"].as_str().unwrap().to_owned())
        .filter(|name| !name.starts_with(".teddy/"))
        .collect()
}

#[test]
fn promise_d3_what_is_read_by_a_name_with_brackets_is_shown_and_edited() {
    let repo = routes();
    let page = "app/[id]/page.tsx";
    repo.workflow().run_plan(&plan("Read", &[read(page)]));
    assert_eq!(there(&repo), ["app/[id]/page.tsx"]);
    assert!(repo.workflow().input(0).contains("the page of one"));

    repo.workflow()
        .run_plan(&plan("Edit", &[edit(page, "one", "each")]));
    assert_eq!(repo.read("app/[id]/page.tsx"), "the page of each\n");
    assert_eq!(repo.read("app/d/page.tsx"), "the page of d\n");

    repo.workflow().run_plan(&plan("Prune", &[prune(page)]));
    assert_eq!(there(&repo), [""; 0]);
}

#[test]
fn promise_d3_lists_take_a_name_with_brackets_for_the_file() {
    let repo = routes();
    let page = &["app/[id]/page.tsx"];
    let edited = [ListScope::Global, ListScope::Turn].map(|scope| {
        let first = repo.workflow().edit(scope, ListEdit::Add, page).done();
        assert_eq!(there(&repo), ["app/[id]/page.tsx"]);
        let second = repo.workflow().edit(scope, ListEdit::Add, page).done();
        repo.workflow().edit(scope, ListEdit::Remove, page).done();
        assert_eq!(there(&repo), [""; 0]);
        first + &second
    });
    insta::assert_snapshot!(edited.concat(), @r"
    global: added app/[id]/page.tsx
    global: unchanged app/[id]/page.tsx
    turn: added app/[id]/page.tsx
    turn: unchanged app/[id]/page.tsx
    ");

    let below = |how| {
        repo.workflow()
            .below("app/[id]")
            .edit(ListScope::Global, how, &["*.tsx"])
            .done()
    };
    insta::assert_snapshot!(below(ListEdit::Add), @r"global: added app/\[id]/*.tsx");
    assert_eq!(there(&repo), ["app/[id]/page.tsx"]);
    insta::assert_snapshot!(below(ListEdit::Remove), @r"global: removed app/\[id]/*.tsx");
    repo.workflow()
        .edit(ListScope::Global, ListEdit::Add, &["app/[...slug]/*.md"])
        .done();
    assert_eq!(
        repo.read(".teddy/global.context"),
        "app/\\[...slug]/\\*.md\n"
    );

    // A list written by hand or by an earlier version.
    repo.write(".teddy/global.context", "app/[id]/\napp/[de]/*\n");
    assert_eq!(there(&repo), ["app/[id]/page.tsx", "app/d/page.tsx"]);
    repo.remove("app/[id]");
    assert_eq!(there(&repo), ["app/d/page.tsx"]);
}

#[test]
fn promise_d3_an_invoke_can_name_a_file_with_brackets() {
    let repo = routes();
    let over = invoke("Architect", &["app/[id]/page.tsx"], "Go on.");
    repo.workflow().run_plan(&plan("Over", &[over]));
    assert_eq!(there(&repo), ["app/[id]/page.tsx"]);
}

#[test]
fn a_pattern_in_the_turns_list_outlives_the_turn() {
    let repo = routes();
    repo.workflow()
        .edit(ListScope::Turn, ListEdit::Add, &["app/[cd]/*"])
        .done();
    repo.workflow()
        .run_plan(&plan("One", &[create("one.txt", "x\n")]));
    assert_eq!(there(&repo), ["app/d/page.tsx", "one.txt"]);
}
