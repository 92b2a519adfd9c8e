//! `blame`: attributes each line to a turn, landed or not.

use crate::support::landing::land_as;
use serde_json::{Value, json};

use crate::plans::{create, edit, execute, plan};
use crate::support::TestRepo;

/// Two turns change a file, and the user edits it after each.
fn project() -> TestRepo {
    let repo = TestRepo::new().file("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.reply(&plan("Second line", &[edit("a.txt", "two", "2")]));
    repo.workflow().plan("make the second line a digit").done();
    repo.workflow().execute().done();
    repo.workflow().run_plan(&plan(
        "Fourth line",
        &[edit("a.txt", "four", "4"), create("b.txt", "b\n")],
    ));
    let text = repo.read("a.txt");
    repo.write("a.txt", text + "mine\n");
    repo
}

/// Returns the origins of the lines in short form.
fn origins(repo: &TestRepo, args: &[&str]) -> Vec<String> {
    let lines = repo.json(&[&["blame"], args].concat(), 0);
    let short = |line: &Value| match line["kind"].as_str().unwrap() {
        "turn" => {
            let landed = if line["landed"].is_null() {
                ""
            } else {
                " landed"
            };
            format!(
                "{}:{}{landed}",
                line["session"].as_str().unwrap(),
                line["turn"]
            )
        }
        "commit" => line["title"].as_str().unwrap().to_owned(),
        other => other.to_owned(),
    };
    lines.as_array().unwrap().iter().map(short).collect()
}

#[test]
fn lines_lead_to_turns_before_anything_landed() {
    let repo = project();
    assert_eq!(
        origins(&repo, &["a.txt"]),
        [
            "init",
            "demo:1",
            "init",
            "demo:2",
            "init",
            "init",
            "uncommitted"
        ]
    );
    assert_eq!(origins(&repo, &["b.txt"]), ["demo:2"]);
    assert_eq!(origins(&repo, &["-L", "2,3", "a.txt"]), ["demo:1", "init"]);
    // After undo and redo, lines still belong to the turn that made them.
    repo.done(&["undo", "2"]);
    repo.done(&["redo"]);
    assert_eq!(
        origins(&repo, &["a.txt"]),
        [
            "init",
            "demo:1",
            "init",
            "init",
            "init",
            "init",
            "uncommitted"
        ]
    );
    repo.done(&["redo"]);
    assert_eq!(
        origins(&repo, &["a.txt"]),
        [
            "init",
            "demo:1",
            "init",
            "demo:2",
            "init",
            "init",
            "uncommitted"
        ]
    );

    let model = repo.json(&["show", "1"], 0)["model"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown = repo.done(&["blame", "--prompt", "a.txt"]);
    let head = &repo.git(&["rev-parse", "HEAD"])[..8];
    let lines: Vec<String> = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    let author = repo.git(&["log", "-1", "--format=%an"]);
    assert_eq!(
        lines,
        [
            format!("{head} ({author}) init 1) one"),
            "> make the second line a digit".to_owned(),
            format!("demo:1 ({model}) Second line 2) 2"),
            format!("{head} ({author}) init 3) three"),
            "> make the second line a digit".to_owned(),
            "demo:2 Fourth line 4) 4".to_owned(),
            format!("{head} ({author}) init 5) five"),
            format!("{head} ({author}) init 6) six"),
            "not committed 7) mine".to_owned(),
        ]
    );
}

#[test]
fn landed_lines_are_traced_through_a_rewritten_history() {
    let repo = project();
    let expected = [
        "init",
        "demo:1 landed",
        "init",
        "demo:2 landed",
        "init",
        "init",
        "uncommitted",
    ];
    repo.done(&["land", "-m", "Digits"]);
    assert_eq!(origins(&repo, &["a.txt"]), expected);

    repo.git(&[
        "commit",
        "-q",
        "--amend",
        "--no-edit",
        "--date",
        "2001-01-01T00:00:00Z",
    ]);
    assert_eq!(origins(&repo, &["a.txt"]), expected);

    repo.git(&["stash", "-q"]);
    repo.git(&["checkout", "-q", "-b", "base", "HEAD~"]);
    repo.write("c.txt", "c\n");
    repo.git(&["add", "c.txt"]);
    repo.git(&["commit", "-qm", "other"]);
    repo.git(&["rebase", "-q", "base", "main"]);
    repo.git(&["stash", "pop", "-q"]);
    assert_eq!(origins(&repo, &["a.txt"]), expected);

    // The session is deleted. Its name is in the commit message.
    repo.git(&["update-ref", "-d", "refs/teddy/sessions/demo"]);
    let lines = repo.json(&["blame", "a.txt"], 0);
    assert_eq!(
        [&lines[1]["session"], &lines[1]["turns"]],
        [&json!("demo"), &json!([1, 2])]
    );
    assert_eq!([&lines[1]["turn"], &lines[1]["commit"]], [&Value::Null; 2]);
    insta::assert_snapshot!(repo.printed(&["blame", "a.txt"]), @"
    [id] (Test) init 1) one
    demo:1-2 (not here)  2) 2
    [id] (Test) init 3) three
    demo:1-2 (not here)  4) 4
    [id] (Test) init 5) five
    [id] (Test) init 6) six
    not committed        7) mine
    exit code 0
    ");
}

#[test]
fn a_file_or_range_that_cannot_be_blamed_is_an_error() {
    let repo = project();
    for (args, words) in [
        (vec!["gone.txt"], "`gone.txt` is not a file of the project"),
        (vec!["."], "`.` is not a file of the project"),
        (vec!["../x"], "`../x` is outside the project"),
        (
            vec!["-L", "90,99", "a.txt"],
            "git blame: file a.txt has only 7 lines",
        ),
    ] {
        repo.teddy(&[&["blame"], args.as_slice()].concat())
            .check(1, &[words]);
    }
    repo.write("new.txt", "x\n");
    assert_eq!(origins(&repo, &["new.txt"]), ["uncommitted"]);
    insta::assert_snapshot!(repo.printed(&["blame", "nwe.txt:1"]), @"
    --- stderr
    error: `nwe.txt` is not a file of the project
    hint: did you mean `new.txt`?
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["blame", "-L", "1,1", "new.txt"]), @"
    --- stderr
    error: no commit and no turn has `new.txt` yet, so it has no range to blame
    exit code 1
    ");
}

#[test]
fn the_lines_of_a_landing_lead_to_the_turns_that_brought_them_and_no_others() {
    let repo = TestRepo::new().file("a.txt", "{\n}\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    // Lines that exist before and in both turns.
    repo.workflow()
        .run_plan(&plan("One", &[edit("a.txt", "{\n}", "{\n}\none {\n}")]));
    repo.workflow().run_plan(&plan(
        "Two",
        &[edit("a.txt", "one {\n}", "one {\n}\ntwo {\n}")],
    ));
    let hook = repo.path().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(
        &hook,
        "#!/bin/sh\nprintf '}\\n' >> a.txt && git add a.txt\n",
    )
    .unwrap();
    std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    repo.workflow().land(&land_as("Both")).done();
    let both = [
        "init",
        "init",
        "demo:1 landed",
        "demo:1 landed",
        "demo:2 landed",
        "demo:2 landed",
    ];
    // The hook added the last line. It follows a line of turn 2.
    let expected = [&both[..], &["demo:2 landed"]].concat();
    assert_eq!(origins(&repo, &["a.txt"]), expected);
    repo.git(&[
        "commit",
        "-q",
        "--amend",
        "--no-verify",
        "-m",
        "Without trailers",
    ]);
    assert_eq!(origins(&repo, &["a.txt"])[2], "Without trailers");
    repo.git(&["reset", "-q", "--hard", "HEAD@{1}"]);
    assert_eq!(origins(&repo, &["a.txt"]), expected);

    // The user's own lines in an amended commit are theirs, whatever its trailers say.
    repo.write("a.txt", "mine\n".to_owned() + &repo.read("a.txt"));
    repo.git(&["commit", "-q", "-a", "--amend", "--no-verify", "--no-edit"]);
    assert_eq!(origins(&repo, &["a.txt"])[0], "Both");
    assert_eq!(origins(&repo, &["a.txt"])[3..7], expected[2..6]);
}

#[test]
fn a_file_with_an_odd_name_is_traced() {
    let repo = TestRepo::new().file("a \"b\"\t\u{fc}.txt", "one\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    let script = "printf '1\\n2\\n' > 'a \"b\"'\"$(printf '\\t')\"'\u{fc}.txt'";
    repo.run_plan(&plan("One", &[execute(script)]));
    repo.workflow()
        .run_plan(&plan("Two", &[create("b.txt", "b\n")]));
    repo.done(&["land", "-m", "Both"]);
    assert_eq!(
        origins(&repo, &["a \"b\"\t\u{fc}.txt"]),
        ["demo:1 landed", "demo:1 landed"]
    );
}

/// Bug: the error had no hint.
#[test]
fn a_partial_clone_without_the_history_of_a_file_says_how_to_get_it() {
    let repo = TestRepo::new().file("a.txt", "one\n");
    repo.commit("one");
    repo.write("a.txt", "one\ntwo\n");
    repo.commit("two");
    for setting in ["allowFilter", "allowAnySHA1InWant"] {
        repo.git(&["config", &format!("uploadpack.{setting}"), "true"]);
    }
    let url = format!("file://{}", repo.path().display());
    repo.git(&["clone", "-q", "--filter=blob:none", &url, "../clone"]);
    let clone = repo.beside("clone");
    let blame = || repo.teddy_in(&clone, &["blame", "a.txt"]);
    blame().check(
        1,
        &[
            "error: this partial clone lacks earlier versions of `a.txt`",
            "hint: `git blame` of the file fetches them, then it works",
        ],
    );
    repo.git_in(&clone, &["blame", "a.txt"]);
    blame().check(0, &["one", "two"]);
}

#[test]
fn what_is_not_a_range_of_lines_is_named() {
    let repo = TestRepo::new().file("a.txt", "a\n");
    repo.commit("init");
    for range in ["x", "1,x", ""] {
        let said = format!("`{range}` is not a range of lines, such as `10,20`");
        repo.teddy(&["blame", "-L", range, "a.txt"])
            .check(2, &[&said]);
    }
    for range in ["1", "1,+1", "/a/", ",1"] {
        repo.done(&["blame", "-L", range, "a.txt"]);
    }
}

/// git opens the file from the directory in which it runs.
#[test]
fn revisions_to_ignore_are_found_by_a_relative_path() {
    let repo = project();
    repo.git(&["commit", "-q", "-am", "all"]);
    repo.git(&["config", "blame.ignoreRevsFile", ".git-blame-ignore-revs"]);
    repo.git(&["config", "--add", "blame.ignoreRevsFile", "dev/./more"]);
    repo.write("dev/more", "");
    let text = repo.read("a.txt").replace("five", "  five");
    repo.write("a.txt", text);
    repo.git(&["commit", "-q", "-am", "indent"]);
    let head = repo.git(&["rev-parse", "HEAD"]);
    repo.write(".git-blame-ignore-revs", format!("{head}\n"));
    let lines = repo.json(&["blame", "a.txt"], 0);
    let named = |line: &Value| line["commit"] == json!(head);
    assert!(!named(&lines[4]), "{lines}");

    repo.remove("dev/more");
    insta::assert_snapshot!(repo.printed(&["blame", "a.txt"]), @"
    --- stderr
    error: git blame: could not open object name list: dev/./more
    exit code 1
    ");
}

#[test]
fn a_git_before_2_41_tells_the_same() {
    let repo = project();
    repo.git(&["commit", "-q", "-am", "all"]);
    let text = repo.read("a.txt").replace("six", "6 mine");
    repo.write("a.txt", text);
    let expected = repo.json(&["blame", "a.txt"], 0);

    let real = repo.command("which").arg("git").output().unwrap().stdout;
    let real = String::from_utf8(real).unwrap();
    let bin = repo.beside("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' --contents '*)\n\
         echo 'fatal: cannot use --contents with final commit object name' >&2; exit 128;; esac\n\
         exec {} \"$@\"\n",
        real.trim()
    );
    let path = bin.join("git");
    std::fs::write(&path, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    let mut command = repo.teddy_command(&["--json", "blame", "a.txt"]);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let out = crate::support::Output::of(command.current_dir(repo.path()).env("PATH", path));
    let told: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(told, expected, "{out}");
}

#[test]
fn a_file_behind_a_linked_directory_is_not_the_projects() {
    let repo = project();
    let outside = repo.beside("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("secret.txt"), "secret\n").unwrap();
    std::os::unix::fs::symlink(&outside, repo.path().join("linked")).unwrap();
    insta::assert_snapshot!(repo.printed(&["blame", "linked/secret.txt"]), @"
    --- stderr
    error: `linked/secret.txt` is not a file of the project
    exit code 1
    ");
}
