//! `context`: the lists, the files that they match, and `input.md`.

use serde_json::json;

use crate::plans::{create, edit, invoke, plan, prune, read};
use crate::support::TestRepo;

fn project() -> TestRepo {
    let repo = TestRepo::new()
        .file("a.txt", "hello\n")
        .file("src/x.rs", "fn x() {}\n")
        .file("src/y.md", "y\n")
        .file("README.md", "# R\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
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

#[test]
fn three_lists_say_what_is_shown_and_each_thing_is_shown_once() {
    let repo = project();
    repo.done(&["context", "add", "src/", "a.txt"]);
    repo.done(&["context", "add", "--turn", "a.txt"]);
    repo.done(&["context", "add", "--global", "*.md", "gone.txt"]);
    assert_eq!(repo.read(".teddy/global.context"), "*.md\ngone.txt\n");
    let rows = repo.json(&["context", "list"], 0);
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
fn what_is_taken_out_is_gone_and_every_other_byte_stays() {
    let repo = project();
    repo.write(".teddy/global.context", "# mine\na.txt   \n\nREADME.md\n");
    repo.done(&["context", "rm", "--global", "a.txt"]);
    assert_eq!(repo.read(".teddy/global.context"), "# mine\n\nREADME.md\n");
    repo.teddy(&["context", "rm", "--global", "a.txt"])
        .check(0, &["`a.txt` is not in the list (global)"]);
    // TeDDy must not rewrite a list that it cannot read completely.
    for (list, why) in [
        (b"caf\xe9\n".to_vec(), "not UTF-8"),
        (vec![b'#'; (1 << 20) + 1], "is larger than"),
    ] {
        repo.write(".teddy/global.context", &list);
        repo.teddy(&["context", "add", "--global", "a.txt"])
            .check(1, &[why]);
        assert!(std::fs::read(repo.path().join(".teddy/global.context")).unwrap() == list);
    }
    repo.write(".teddy/global.context", "");
    repo.teddy(&["context", "add", "."])
        .check(0, &["Added ** (session)"]);
    let shown = repo.json(&["context", "list"], 0).to_string();
    assert!(
        shown.contains("\"src/") && shown.contains("\"a.txt\""),
        "{shown}"
    );
    repo.done(&["context", "rm", "."]);
    let out = repo.teddy(&["context", "add", "src/", "./src"]);
    out.check(0, &["Added src (session)"]);
    assert!(!out.stderr.contains("already"), "{out}");
    repo.teddy(&["context", "add", "src/"])
        .check(0, &["src is there already (session)"]);
    assert_eq!(
        repo.json(&["context", "add", "a.txt"], 0),
        json!({ "list": "session", "changed": ["a.txt"] })
    );
}

#[test]
fn a_path_out_of_the_project_is_refused() {
    let repo = project();
    for path in ["../x", ".git/config", "a/../../x"] {
        let out = repo.teddy(&["context", "add", path]);
        assert!(out.code != 0, "{path}: {out}");
    }
    assert_eq!(repo.json(&["context", "list"], 0), json!([]));
}

#[test]
fn what_is_not_there_yet_is_added_and_said() {
    let repo = project();
    repo.teddy(&["context", "add", "/etc/passwd"]).check(
        0,
        &["warning: there is no `etc/passwd` yet; it is in the list now (session)"],
    );
    assert!(
        !repo
            .teddy(&[
                "context",
                "add",
                "a.txt",
                "src/*.rs",
                "https://example.org/"
            ])
            .stderr
            .contains("not there")
    );
    assert!(
        repo.done(&["context"])
            .contains("[etc/passwd](/etc/passwd) (missing)"),
        "a leading `/` is the project's root"
    );
}

#[test]
fn a_path_is_taken_from_the_folder_in_use() {
    let repo = project();
    let below = |args: &[&str]| repo.teddy_in(&repo.path().join("src"), args);
    below(&["context", "add", "x.rs", "../a.txt", "/README.md"]).check(
        0,
        &[
            "Added src/x.rs (session)\n",
            "Added a.txt",
            "Added README.md",
        ],
    );
    below(&["context", "rm", "x.rs", "../README.md"])
        .check(0, &["Removed src/x.rs", "Removed README.md"]);
    below(&["context", "add", "../../out.txt"]).check(1, &["leaves the project"]);
    assert_eq!(repo.json(&["context", "list"], 0)[0]["resource"], "a.txt");
}

#[test]
fn the_input_is_the_same_for_the_same_files() {
    let repo = project();
    repo.done(&["context", "add", "a.txt"]);
    assert_eq!(repo.done(&["context"]), repo.done(&["context"]));
    assert!(
        repo.json(&["context"], 0)["input"]
            .as_str()
            .unwrap()
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
    let structure = section(&repo.done(&["context"]), "## 2.", "## 4.");
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
        repo.run_plan(&plan(title, &[create(&format!("{title}.txt"), "x\n")]));
    }
    let names = |args: &[&str]| {
        let rows = repo.json(args, 0);
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
    assert_eq!(names(&["context", "list"]), "03");
    assert_eq!(names(&["context", "--context-depth", "1", "list"]), "02 03");
    assert_eq!(
        names(&["context", "--context-depth", "9", "list"]),
        "01 02 03"
    );
}

#[test]
fn a_missing_a_binary_and_a_large_file_are_said_and_are_not_fatal() {
    let repo = project();
    repo.write("bin.dat", b"\0\x01\x02");
    repo.write("large.txt", "x\n".repeat(600_000));
    repo.done(&["context", "add", "gone.txt", "bin.dat", "large.txt"]);
    let input = repo.done(&["context"]);
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
    repo.done(&["context", "add", "a.txt"]);
    assert!(!repo.done(&["context"]).contains(key));
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
    repo.done(&["context", "add", "a.txt"]);
    assert!(
        repo.json(&["context", "list"], 0)[0]["tokens"]
            .as_u64()
            .unwrap()
            > 3
    );
    repo.run_plan(&plan("Read", &[read("a.txt")]));
}

#[test]
fn what_was_counted_once_is_not_counted_again() {
    let repo = project();
    (0..200).for_each(|n| repo.write(&format!("many/{n}.txt"), format!("file number {n}\n")));
    repo.done(&["context", "add", "many/"]);
    let counts = || {
        repo.read(".git/teddy/tokens")
            .lines()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    repo.done(&["context"]);
    let first = counts();
    assert_eq!(first.len(), 200);
    repo.done(&["context"]);
    assert_eq!(counts(), first);
    // An impossible token count shows whether the count comes from the cache.
    let text = repo.read(".git/teddy/tokens");
    let poisoned = text
        .lines()
        .enumerate()
        .map(|(n, line)| match line.rsplit_once(' ') {
            Some((blob, _)) if n > 0 => format!("{blob} 7777\n"),
            _ => format!("{line}\n"),
        });
    repo.write(".git/teddy/tokens", poisoned.collect::<String>());
    repo.write("many/7.txt", "another text\n");
    let rows = repo.json(&["context", "list"], 0);
    let counted: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["tokens"] != 7777)
        .map(|row| row["resource"].as_str().unwrap())
        .collect();
    assert_eq!(
        (rows.as_array().unwrap().len(), counted),
        (200, vec!["many/7.txt"])
    );
}

#[test]
fn promise_d9_a_file_of_a_million_blanks_is_shown_and_a_turn_goes_on() {
    let repo = project();
    let text = format!("a{}b\n", " ".repeat(1_040_000));
    repo.write("blanks.txt", &text);
    repo.done(&["context", "add", "blanks.txt"]);
    let rows = repo.json(&["context", "list"], 0);
    assert_eq!(rows[0]["resource"], "blanks.txt");
    assert!(rows[0]["tokens"].as_u64().unwrap() > 1000, "{rows}");
    repo.run_plan(&plan("One", &[create("one.txt", "x\n")]));
    assert!(repo.done(&["context"]).contains(&text));
}

/// A project laid out as in Next.js. As a glob pattern, `[id]` would match `d`.
fn routes() -> TestRepo {
    let repo = TestRepo::new()
        .file("app/[id]/page.tsx", "the page of one\n")
        .file("app/d/page.tsx", "the page of d\n")
        .file("app/[...slug]/*.md", "odd\n");
    repo.commit("init");
    repo.done(&["new", "demo"]);
    repo
}

/// Returns the resources in the next input.
fn there(repo: &TestRepo) -> Vec<String> {
    let rows = repo.json(&["context", "list"], 0);
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
    repo.run_plan(&plan("Read", &[read(page)]));
    assert_eq!(there(&repo), ["app/[id]/page.tsx"]);
    assert!(repo.done(&["context"]).contains("the page of one"));

    repo.run_plan(&plan("Edit", &[edit(page, "one", "each")]));
    assert_eq!(repo.read("app/[id]/page.tsx"), "the page of each\n");
    assert_eq!(repo.read("app/d/page.tsx"), "the page of d\n");

    repo.run_plan(&plan("Prune", &[prune(page)]));
    assert_eq!(there(&repo), [""; 0]);
}

#[test]
fn promise_d3_lists_take_a_name_with_brackets_for_the_file() {
    let repo = routes();
    for (scope, list) in [("--global", "global"), ("--turn", "turn")] {
        repo.teddy(&["context", "add", scope, "app/[id]/page.tsx"])
            .check(0, &[&format!("Added app/[id]/page.tsx ({list})\n")]);
        assert_eq!(there(&repo), ["app/[id]/page.tsx"]);
        repo.teddy(&["context", "add", scope, "app/[id]/page.tsx"])
            .check(0, &["app/[id]/page.tsx is there already"]);
        repo.done(&["context", "rm", scope, "app/[id]/page.tsx"]);
        assert_eq!(there(&repo), [""; 0]);
    }

    let folder = repo.path().join("app/[id]");
    repo.teddy_in(&folder, &["context", "add", "--global", "*.tsx"])
        .check(0, &["Added app/\\[id]/*.tsx"]);
    assert_eq!(there(&repo), ["app/[id]/page.tsx"]);
    repo.teddy_in(&folder, &["context", "rm", "--global", "*.tsx"])
        .check(0, &["Removed"]);
    repo.done(&["context", "add", "--global", "app/[...slug]/*.md"]);
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
fn promise_d3_a_name_with_brackets_is_handed_over() {
    let repo = routes();
    let over = invoke("Architect", &["app/[id]/page.tsx"], "Go on.");
    repo.run_plan(&plan("Over", &[over]));
    assert_eq!(there(&repo), ["app/[id]/page.tsx"]);
}

#[test]
fn a_pattern_in_the_turns_list_outlives_the_turn() {
    let repo = routes();
    repo.done(&["context", "add", "--turn", "app/[cd]/*"]);
    repo.run_plan(&plan("One", &[create("one.txt", "x\n")]));
    assert_eq!(there(&repo), ["app/d/page.tsx"]);
}
