//! `push`: sends sessions bare or with their code. It never forces, and sends no secrets
//! unless the user allows them.

use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::plans::{create, edit, execute, plan};
use crate::screen::Screen;
use crate::scripted_agent::scripted_command;
use crate::support::{Output, TestRepo};

/// A key without its prefix, so that secret scanners don't report this source.
const RANDOM: &str = "a9Zk3Qx7Lm2Vt8Rb5Nw4Yc6Hd1Jf0Gs4x8Pq2";

const BARE: &str = "refs/teddy/bare/demo";
const CODE: &str = "refs/teddy/sessions/demo";

fn key() -> String {
    format!("ghp_{RANDOM}")
}

/// A session with two turns, and an empty remote.
fn session() -> TestRepo {
    session_in(&[])
}

/// Like [`session`], in a repository made with these arguments of `git init`.
fn session_in(init: &[&str]) -> TestRepo {
    let repo = TestRepo::with(init).file("a.txt", "one\ntwo\n");
    repo.commit("init");
    repo.workflow().new_session("demo").done();
    repo.workflow().add(&["a.txt"]);
    repo.workflow()
        .run_plan(&plan("Change a", &[edit("a.txt", "two", "2")]));
    repo.workflow()
        .run_plan(&plan("Make b", &[create("b.txt", "b\n")]));
    let there = remote(&repo);
    let there = there.to_str().unwrap();
    repo.git(&[&["init", "-q", "--bare"], init, &[there]].concat());
    repo.git(&["remote", "add", "origin", there]);
    repo
}

fn remote(repo: &TestRepo) -> PathBuf {
    repo.beside("remote.git")
}

/// Returns the refs of the remote, one per line.
fn refs(repo: &TestRepo) -> String {
    let list = ["for-each-ref", "--format=%(objectname) %(refname)"];
    repo.git_in(&remote(repo), &list)
}

/// Returns the commit of a ref of the remote.
fn there(repo: &TestRepo, name: &str) -> String {
    repo.git_in(&remote(repo), &["rev-parse", name])
}

/// Clones the remote, and fetches the sessions from `from`.
fn clone(repo: &TestRepo, name: &str, from: &str) -> PathBuf {
    let path = repo.beside(name);
    let there = remote(repo);
    repo.git(&[
        "clone",
        "-q",
        there.to_str().unwrap(),
        path.to_str().unwrap(),
    ]);
    let refspec = "refs/teddy/sessions/*:refs/teddy/sessions/*";
    repo.git_in(&path, &["fetch", "-q", from, refspec]);
    path
}

/// Adds a file to the newest turn of `demo`, as any program can.
fn plant(repo: &TestRepo, name: &str, content: &str) {
    let index = repo.beside("planted");
    let _ = std::fs::remove_file(&index);
    let run = |args: &[&str]| {
        let mut command = repo.command("git");
        command
            .current_dir(repo.path())
            .env("GIT_INDEX_FILE", &index);
        let out = Output::of(command.args(args));
        assert_eq!(out.code, 0, "{args:?}: {out}");
        out.stdout.trim().to_owned()
    };
    run(&["read-tree", "teddy/sessions/demo"]);
    let file = repo.beside("content");
    std::fs::write(&file, content).unwrap();
    let blob = run(&["hash-object", "-w", "--", file.to_str().unwrap()]);
    run(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("100644,{blob},{name}"),
    ]);
    let tree = run(&["write-tree"]);
    let parents = run(&["log", "-1", "--format=%P", "teddy/sessions/demo"]);
    let message = run(&["log", "-1", "--format=%B", "teddy/sessions/demo"]);
    let mut args = vec!["commit-tree", &tree, "-m", &message];
    parents
        .split(' ')
        .for_each(|parent| args.extend(["-p", parent]));
    let commit = run(&args);
    run(&["update-ref", CODE, &commit]);
}

#[test]
fn bare1_a_bare_session_has_the_turns_and_nothing_of_the_workspace() {
    for init in [
        ["--object-format=sha1", "--ref-format=files"],
        ["--object-format=sha256", "--ref-format=reftable"],
    ] {
        let repo = session_in(&init);
        let before = (repo.users(), repo.git(&["for-each-ref"]));
        let done = repo.json(&["push", "-y"], 0);
        assert_eq!((repo.users(), repo.git(&["for-each-ref"])), before);

        let tip = there(&repo, BARE);
        assert_eq!(refs(&repo), format!("{tip} {BARE}"), "and no other ref");
        let shown = &done["sessions"][0];
        assert_eq!(
            (&done["sent"], &done["remote"]),
            (&json!(true), &json!("origin"))
        );
        assert_eq!((&shown["to"], &shown["ref"]), (&json!(tip), &json!(BARE)));
        assert_eq!(
            (&shown["turns"], &shown["new_turns"]),
            (&json!(2), &json!(2))
        );
        assert_eq!(
            (&shown["mode"], &shown["state"]),
            (&json!("no-code"), &json!("new"))
        );

        let list = ["log", "--format=%T %an %ae %at %cn %ct %B"];
        let local = [&list[..], &["--first-parent", "teddy/sessions/demo"]].concat();
        let theirs = repo.git_in(&remote(&repo), &[&list[..], &[BARE]].concat());
        assert_eq!(theirs, repo.git(&local));
        let parents = repo.git_in(&remote(&repo), &["log", "--format=%p", BARE]);
        assert!(parents.lines().all(|line| !line.contains(' ')), "{parents}");
        let objects = repo.git_in(&remote(&repo), &["rev-list", "--objects", "--all"]);
        assert!(!objects.contains("a.txt"), "{objects}");
        repo.git_in(&remote(&repo), &["fsck", "--strict", "--no-dangling"]);
        assert_eq!(shown["objects"], json!(objects.lines().count()));
        repo.teddy(&["push"]).check(0, &["origin has all of it"]);
    }
}

#[test]
fn who_says_no_has_sent_and_deleted_nothing() {
    let repo = session();
    let no = |args: &[&str], question: &str| {
        let mut screen = Screen::open(&repo, (100, 20), args);
        screen.wait_for(question);
        screen.press("n");
        assert_eq!(screen.end(), 1, "{}", screen.shown());
    };
    no(&["push"], "Send `demo` to `origin`?");
    assert_eq!(refs(&repo), "");
    repo.done(&["push", "-y"]);
    no(
        &["push", "--delete", "demo"],
        "Delete 1 session on `origin`?",
    );
    assert!(refs(&repo).contains(BARE));
    no(&["gc", "demo"], "demo");
    repo.done(&["log", "demo"]);
}

#[test]
fn bare2_the_same_session_has_the_same_bare_one_on_every_machine() {
    let repo = session();
    repo.done(&["push", "-y"]);
    let first = there(&repo, BARE);
    let other = clone(&repo, "other", repo.path().to_str().unwrap());
    let out = repo.teddy_in(&other, &["push", "-s", "demo"]);
    insta::assert_snapshot!(out.shown(&repo), @"
    demo: origin has all of it
    --- stderr
    `origin` has all of it.
    exit code 0
    ");

    // Each clone adds new turns to the remote's bare session.
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    repo.git_in(
        &other,
        &[
            "fetch",
            "-q",
            repo.path().to_str().unwrap(),
            &format!("{CODE}:{CODE}"),
        ],
    );
    let there_now = |path: &std::path::Path| {
        let out = repo.teddy_in(path, &["-s", "demo", "push", "-n", "--json"]);
        let shown: Value = serde_json::from_str(&out.check(0, &[]).stdout).unwrap();
        (
            shown["sessions"][0]["to"].clone(),
            shown["sessions"][0]["new_turns"].clone(),
        )
    };
    assert_eq!(there_now(&repo.path()), there_now(&other));
    assert_eq!(there_now(&other).1, json!(1));
    let shown = repo
        .teddy_in(&other, &["-s", "demo", "push", "-y"])
        .shown(&repo);
    insta::assert_snapshot!(shown, @"
    demo: 1 of 3 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
    let parent = repo.git_in(&remote(&repo), &["rev-parse", &format!("{BARE}^")]);
    assert_eq!(parent, first);
    insta::assert_snapshot!(repo.printed(&["push"]), @"
    demo: origin has all of it
    --- stderr
    `origin` has all of it.
    exit code 0
    ");
}

#[test]
fn bare3_a_bare_session_comes_from_the_session_and_from_no_ref_here() {
    let repo = session();
    let list = ["for-each-ref", "--format=%(objectname) %(refname)"];
    repo.git(&["update-ref", BARE, "main"]);
    let before = repo.git(&list);
    repo.done(&["push", "-y"]);
    assert_eq!(repo.git(&list), before);
    assert_eq!(
        there_file(&repo, "plan.md"),
        repo.git(&["show", &format!("{CODE}:plan.md")])
    );
    // The bare session's objects can be pruned and are written again.
    repo.git(&["update-ref", "-d", BARE]);
    repo.done(&["gc"]);
    repo.git(&["gc", "-q", "--prune=now"]);
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 1 of 3 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
}

#[test]
fn bare10_the_code_that_a_turn_names_is_not_there() {
    let repo = session();
    repo.done(&["push", "-y"]);
    let meta: serde_yaml::Value = serde_yaml::from_str(&there_file(&repo, "meta.yaml")).unwrap();
    let after = meta["workspace"]["after"].as_str().unwrap();
    let mut git = repo.command("git");
    git.current_dir(remote(&repo))
        .args(["cat-file", "-e", after]);
    assert_ne!(Output::of(&mut git).code, 0);
    repo.git(&["cat-file", "-e", after]);
}

#[test]
fn bare11_a_chain_that_leads_to_code_is_not_sent() {
    let repo = session();
    // The first turn has a commit of the user as parent.
    let root = repo.git(&["rev-list", "--max-parents=0", "--first-parent", CODE]);
    for (parent, message) in [
        ("main", "is not a turn"),
        (root.as_str(), "says that it is turn 0"),
    ] {
        let tree = repo.git(&["rev-parse", &format!("{CODE}^{{tree}}")]);
        let commit = repo.git(&["commit-tree", &tree, "-p", parent, "-m", "Turn"]);
        repo.git(&["update-ref", "refs/teddy/sessions/lies", &commit]);
        repo.teddy(&["push", "lies", "-y"]).check(1, &[message]);
    }
    assert_eq!(refs(&repo), "");
}

#[test]
fn nothing_is_sent_without_a_confirmation() {
    let repo = session();
    insta::assert_snapshot!(repo.printed(&["push"]), @r#"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    error: stdin is not a terminal, so TeDDy cannot ask "Send `demo` to `origin`?"
    hint: `-y` says yes
    exit code 1
    "#);
    insta::assert_snapshot!(repo.printed(&["push", "-n"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    exit code 0
    ");
    let shown = repo.json(&["push", "-n"], 0);
    assert_eq!(shown["sent"], json!(false));
    assert_eq!(refs(&repo), "");
}

#[test]
fn bare5_the_code_takes_the_place_of_the_bare_session_and_never_the_other_way_round() {
    let repo = session();
    repo.done(&["push", "-y"]);
    repo.write("notes.txt", "mine\n");
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    let shown = repo.json(&["push", "--code", "-y"], 0);
    let shown = &shown["sessions"][0];
    assert_eq!(
        shown["files"],
        json!(["a.txt", "b.txt", "c.txt", "notes.txt"])
    );
    assert_eq!(
        (&shown["mode"], &shown["replaces"]),
        (&json!("code"), &json!(BARE))
    );
    let tip = repo.git(&["rev-parse", CODE]);
    assert_eq!(refs(&repo), format!("{tip} {CODE}"));

    // Once the code was sent, a bare session is refused.
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    insta::assert_snapshot!(repo.printed(&["push", "--no-code", "-y"]), @"
    --- stderr
    error: remote `origin` has `demo` with its code; a session without code cannot take its place
    hint: `--code` sends it as a copy there; `--as <name>` sends it without code under another name
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 1 of 4 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin
      1 file in no branch of origin:
        d.txt
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
    assert_eq!(there(&repo, CODE), repo.git(&["rev-parse", CODE]));
}

#[test]
fn files_that_the_remote_has_are_not_named() {
    let repo = session();
    repo.git(&["push", "-q", "origin", "main"]);
    let shown = repo.json(&["push", "--code", "-n"], 0);
    assert_eq!(shown["sessions"][0]["files"], json!(["b.txt"]));
}

#[test]
fn the_setting_says_how_and_where() {
    let repo = session();
    repo.configure("push: {mode: code, remote: elsewhere}\n");
    insta::assert_snapshot!(repo.printed(&["push", "-n"]), @"
    --- stderr
    error: there is no remote `elsewhere`
    hint: the only remote is `origin`
    exit code 1
    ");
    let shown = repo.json(&["push", "-n", "--remote", "origin"], 0);
    assert_eq!(shown["sessions"][0]["mode"], json!("code"));
    // The repository's own settings don't apply here.
    repo.configure("");
    repo.write(".teddy/config.yaml", "push: {mode: code, allow: [keys]}\n");
    insta::assert_snapshot!(repo.printed(&["push", "-n"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    warning: settings of this repository are ignored: push.mode, push.allow (a repository may not decide that)
    exit code 0
    ");
}

#[test]
fn bare4_turns_of_others_are_named_and_never_overwritten() {
    for mode in ["--no-code", "--code"] {
        let repo = session();
        let other = clone(&repo, "other", repo.path().to_str().unwrap());
        repo.git_in(
            &other,
            &["checkout", "-q", "-b", "main", "teddy/sessions/demo^2"],
        );
        std::fs::write(
            other.join("plan.md"),
            plan("Theirs", &[create("x.txt", "x\n")]),
        )
        .unwrap();
        let args = ["-s", "demo", "execute", "plan.md", "-y"];
        let mut theirs = repo.teddy_command(&args);
        let theirs = theirs.current_dir(&other).env("GIT_AUTHOR_NAME", "Grace");
        Output::of(theirs.stdin(Stdio::null())).check(0, &[]);
        repo.teddy_in(&other, &["-s", "demo", "push", "-y", mode])
            .check(0, &[]);
        let before = refs(&repo);

        repo.workflow()
            .run_plan(&plan("Mine", &[create("c.txt", "c\n")]));
        repo.teddy(&["push", "-y", mode]).check(
            1,
            &[
                "turn 3 `Theirs` by Grace",
                "`--as <name>`",
                "`teddy fetch origin demo`",
            ],
        );
        assert_eq!(refs(&repo), before);
        let error = repo.json(&["push", "-y", mode], 1);
        assert_eq!(error["error"]["kind"], json!("NotSent"));
        repo.teddy(&["push", "-y", mode, "--as", "mine"])
            .check(0, &[]);
        assert!(refs(&repo).contains("/mine"), "{}", refs(&repo));

        // If the remote has more turns, there is nothing to send.
        repo.git(&["reset", "-q", "--hard"]);
        repo.git(&["update-ref", CODE, &format!("{CODE}^")]);
        repo.teddy(&["push", "-y", mode])
            .check(0, &["all of it, and more turns"]);
    }
}

#[test]
fn bare6_a_key_in_an_output_stops_the_push_until_it_is_allowed() {
    let repo = session();
    plant(&repo, "output/01.txt", &format!("one\ntoken {}\n", key()));
    let out = repo.teddy(&["push", "-y"]);
    insta::assert_snapshot!(out.shown(&repo), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    May be private:
      demo:2:output/01.txt:2 (keys) github token: token [github token]
    --- stderr
    error: nothing was sent: 1 finding may be private
    hint: `--redact` takes them out of the copy that is sent; `--allow demo:2:output/01.txt:2` lets one go, `--allow <kind>` all of a kind
    exit code 1
    ");
    assert!(!format!("{out}").contains(RANDOM), "{out}");
    let error = repo.json(&["push", "-y"], 1);
    assert_eq!(error["error"]["kind"], json!("Findings"));
    assert_eq!(
        error["findings"][0]["name"],
        json!("demo:2:output/01.txt:2")
    );
    assert!(!error.to_string().contains(RANDOM), "{error}");
    repo.json(&["push", "-n"], 1);
    assert_eq!(refs(&repo), "");

    insta::assert_snapshot!(repo.printed(&["push", "-y", "--allow", "demo:1"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    May be private:
      demo:2:output/01.txt:2 (keys) github token: token [github token]
    --- stderr
    warning: `--allow demo:1` names no finding
    error: nothing was sent: 1 finding may be private
    hint: `--redact` takes them out of the copy that is sent; `--allow demo:2:output/01.txt:2` lets one go, `--allow <kind>` all of a kind
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["push", "-y", "--allow", "demo:2"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    May be private:
      demo:2:output/01.txt:2 (keys) github token, allowed: token [github token]
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
    // Findings in turns that the remote already has are not reported again.
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    plant(&repo, "output/02.txt", &key());
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 1 of 3 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
}

#[test]
fn a_path_of_home_in_a_request_stops_it_too() {
    let repo = session();
    let home = repo.beside("home");
    let home = home.to_str().unwrap();
    repo.reply(&plan("Read it", &[create("c.txt", "c\n")]));
    repo.done(&[
        "plan",
        "-m",
        &format!("see /home/ada/notes.md and {home}/x"),
    ]);
    repo.done(&["execute", "-y"]);
    let error = repo.json(&["push", "-y"], 1);
    let findings = error["findings"].as_array().unwrap().iter();
    let found: Vec<(&str, &str)> = findings
        .map(|one| (one["name"].as_str().unwrap(), one["kind"].as_str().unwrap()))
        .collect();
    let expected = ("demo:3:user_prompt.txt:1", "paths");
    assert_eq!(found, [expected, expected]);

    let users = |yaml: &str| format!("model: replay:x\n{yaml}");
    repo.configure(&users("push: {allow: [paths]}\n"));
    repo.json(&["push", "-n"], 0);
    repo.configure(&users(""));
    repo.teddy(&["push", "-y", "--allow", "paths"])
        .check(0, &[]);
}

#[test]
fn with_the_code_every_file_is_looked_at_that_the_remote_lacks() {
    let repo = session();
    repo.git(&["push", "-q", "origin", "main"]);
    repo.write("notes.txt", "one\nsee /home/ada/notes\n");
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    insta::assert_snapshot!(repo.printed(&["push", "-n"]), @"
    demo: 4 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    exit code 0
    ");
    insta::assert_snapshot!(repo.printed(&["push", "-y", "--code"]), @"
    demo: 4 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin
      4 files in no branch of origin:
        b.txt
        c.txt
        d.txt
        notes.txt
    May be private:
      demo:3:notes.txt:2 (paths) personal path: see /home/ada/notes
    --- stderr
    error: nothing was sent: 1 finding may be private
    hint: `--no-code` sends the turns without the files; `--allow demo:3:notes.txt:2` lets one go, `--allow <kind>` all of a kind
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["push", "-y", "--code", "--redact"]), @"
    demo: 4 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin
      without keys and paths: 0 findings in the new turns
      files and commits are sent as they are; only what is recorded of the turns is redacted
      4 files in no branch of origin:
        b.txt
        c.txt
        d.txt
        notes.txt
    May be private:
      demo:3:notes.txt:2 (paths) personal path: see /home/ada/notes
    --- stderr
    error: nothing was sent: 1 finding may be private
    hint: `--no-code` sends the turns without the files; `--allow demo:3:notes.txt:2` lets one go, `--allow <kind>` all of a kind
    exit code 1
    ");
    repo.teddy(&["push", "-y", "--code", "--allow", "demo:3:notes.txt"])
        .check(0, &[]);
}

#[test]
fn bare7_findings_are_redacted_in_the_copy_and_in_later_pushes() {
    let repo = session();
    plant(
        &repo,
        "output/01.txt",
        &format!("token {} in /home/ada/x\n", key()),
    );
    plant(
        &repo,
        "requests.yaml",
        &format!("schema: 1\nrequests:\n- turn: 1\n  text: {}\n", key()),
    );
    let home = repo.beside("home");
    let home = home.to_str().unwrap();
    plant(
        &repo,
        "input.md",
        &format!("the project is in {home}/project\n"),
    );
    let shown = repo.json(&["push", "-y", "--redact"], 0);
    let shown = &shown["sessions"][0];
    assert_eq!(shown["redacted"], json!(["keys", "paths"]));
    let file = |name: &str| there_file(&repo, name);
    assert_eq!(
        file("output/01.txt"),
        "token [redacted github token] in /home/user/x"
    );
    let yaml: serde_yaml::Value = serde_yaml::from_str(&file("requests.yaml")).unwrap();
    assert_eq!(yaml["requests"][0]["text"], "(redacted github token)");
    assert_eq!(
        file("input.md"),
        format!(
            "the project is in {}/project",
            home.replace("/home", "/user")
        )
    );
    repo.git_in(&remote(&repo), &["fsck", "--strict"]);

    // A later push adds to the redacted bare session, from another machine too.
    let first = there(&repo, BARE);
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    plant(&repo, "output/02.txt", "in /home/ada/y\n");
    let shown = repo.json(&["push", "-n"], 0);
    assert_eq!(shown["sessions"][0]["new_turns"], json!(1));
    let other = clone(&repo, "other", repo.path().to_str().unwrap());
    let shown = repo
        .teddy_in(&other, &["-s", "demo", "push", "-y"])
        .shown(&repo);
    insta::assert_snapshot!(shown, @"
    demo: 1 of 3 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      without keys and paths: 0 findings in the new turns
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
    assert_eq!(there_file(&repo, "output/02.txt"), "in /home/user/y");
    let parent = repo.git_in(&remote(&repo), &["rev-parse", &format!("{BARE}^")]);
    assert_eq!(parent, first);
    insta::assert_snapshot!(repo.printed(&["push"]), @"
    demo: origin has all of it
      without keys and paths: 0 findings in the new turns
    --- stderr
    `origin` has all of it.
    exit code 0
    ");
}

#[test]
fn bare7_with_the_code_the_turns_are_redacted_and_the_files_are_not() {
    let repo = session();
    let report = format!("token {} in /home/ada/x\n", key());
    plant(&repo, "output/01.txt", &report);
    let own = repo.git(&["rev-parse", CODE]);
    insta::assert_snapshot!(repo.printed(&["push", "-y", "--code"]), @"
    demo: 2 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin
      2 files in no branch of origin:
        a.txt
        b.txt
    May be private:
      demo:2:output/01.txt:1 (keys) github token: token [github token] in /home/ada/x
      demo:2:output/01.txt:1 (paths) personal path: ...[github token] in /home/ada/x
    --- stderr
    error: nothing was sent: 2 findings may be private
    hint: `--redact` takes them out of all but the files and messages of commits; `--allow demo:2:output/01.txt:1` lets one go, `--allow <kind>` all of a kind
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["push", "-y", "--code", "--redact"]), @"
    demo: 2 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin
      without keys and paths: 2 findings in the new turns
      files and commits are sent as they are; only what is recorded of the turns is redacted
      2 files in no branch of origin:
        a.txt
        b.txt
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
    let sent = there(&repo, CODE);
    assert_ne!(sent, own);
    assert_eq!(repo.git(&["rev-parse", CODE]), own);
    let file = |name: &str| repo.git_in(&remote(&repo), &["show", &format!("{CODE}{name}")]);
    assert_eq!(
        file(":output/01.txt"),
        "token [redacted github token] in /home/user/x"
    );
    assert_eq!(file("^2:b.txt"), "b");
    repo.git_in(&remote(&repo), &["fsck", "--strict"]);
    check_fetched(&repo, "redacted");

    // Later turns go on with the redacted ones.
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    plant(&repo, "output/02.txt", "in /home/ada/y\n");
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 1 of 3 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin
      without keys and paths: 0 findings in the new turns
      files and commits are sent as they are; only what is recorded of the turns is redacted
      1 file in no branch of origin:
        c.txt
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
    assert_eq!(file(":output/02.txt"), "in /home/user/y");
    assert_eq!(there(&repo, &format!("{CODE}^")), sent);
    insta::assert_snapshot!(repo.printed(&["push"]), @"
    demo: origin has all of it
      without keys and paths: 0 findings in the new turns
      files and commits are sent as they are; only what is recorded of the turns is redacted
    --- stderr
    `origin` has all of it.
    exit code 0
    ");

    // A path in a file of a commit stops the push also if a turn had it.
    repo.write("notes.txt", "see /home/ada/x\n");
    repo.workflow()
        .run_plan(&plan("Make d", &[create("d.txt", "d\n")]));
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 1 of 4 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin
      without keys and paths: 0 findings in the new turns
      files and commits are sent as they are; only what is recorded of the turns is redacted
      2 files in no branch of origin:
        d.txt
        notes.txt
    May be private:
      demo:4:notes.txt:1 (paths) personal path: see /home/ada/x
    --- stderr
    error: nothing was sent: 1 finding may be private
    hint: `--no-code` sends the turns without the files; `--allow demo:4:notes.txt:1` lets one go, `--allow <kind>` all of a kind
    exit code 1
    ");
}

/// Bug: the workspace commits took key and path along, "without keys and paths".
#[test]
fn bare7_with_the_code_the_messages_of_commits_are_not_redacted() {
    let repo = session();
    let title = format!("Use {} of /home/ada/key", key());
    let made = plan(&title, &[create("c.txt", "c\n")]);
    repo.workflow().run_plan(&made);
    let shown = repo.printed(&["push", "-y", "--code", "--redact"]);
    insta::assert_snapshot!(shown, @"
    demo: 3 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin
      without keys and paths: 2 findings in the new turns
      files and commits are sent as they are; only what is recorded of the turns is redacted
      3 files in no branch of origin:
        a.txt
        b.txt
        c.txt
    May be private:
      demo:3:commit [id]:1 (keys) github token: Use [github token] of /home/ada/key
      demo:3:commit [id]:1 (paths) personal path: ...[github token] of /home/ada/key
    --- stderr
    error: nothing was sent: 2 findings may be private
    hint: `--no-code` sends the turns without the files; `--allow demo:3:commit [id]:1` lets one go, `--allow <kind>` all of a kind
    exit code 1
    ");
    assert_eq!(refs(&repo), "");
}

/// Bug: what the other address had counted as known here, so keys went along without a finding.
#[test]
fn a_push_looks_at_the_address_to_which_it_goes() {
    let repo = session();
    let title = format!("Use {}", key());
    let made = plan(&title, &[create("c.txt", "c\n")]);
    repo.workflow().run_plan(&made);
    repo.done(&["push", "-y", "--code", "--allow", "keys"]);
    let public = repo.beside("public.git");
    let public = public.to_str().unwrap();
    repo.git(&["init", "-q", "--bare", public]);
    repo.git(&["remote", "set-url", "--push", "origin", public]);
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 3 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    May be private:
      demo:3:plan.md:1 (keys) github token, 3 places: # Use [github token]
    --- stderr
    error: nothing was sent: 1 finding may be private
    hint: `--redact` takes them out of the copy that is sent; `--allow demo:3:plan.md:1` lets one go, `--allow <kind>` all of a kind
    exit code 1
    ");
    repo.done(&["push", "-y", "--code", "--allow", "keys"]);
    assert_eq!(
        repo.git(&["ls-remote", public]),
        repo.git(&["ls-remote", "origin"])
    );
    repo.done(&["push", "--delete", "demo", "-y"]);
    assert_eq!(repo.git(&["ls-remote", public]), "");

    // git would send to both.
    let there = remote(&repo);
    repo.git(&[
        "remote",
        "set-url",
        "--push",
        "--add",
        "origin",
        there.to_str().unwrap(),
    ]);
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    --- stderr
    error: a push to remote `origin` goes to 2 addresses, and each can have other sessions
    hint: `git remote add <name> <address>` makes a remote of one of them, for `teddy push --remote <name>`
    exit code 1
    ");
}

/// Bug: with the paths allowed, the turns went as they are and replaced the redacted ones.
#[test]
fn bare7_the_code_that_replaces_a_redacted_bare_session_is_redacted() {
    let repo = session();
    plant(&repo, "output/01.txt", "in /home/ada/x\n");
    repo.done(&["push", "-y", "--redact"]);
    let shown = repo.json(&["push", "-y", "--code", "--allow", "paths"], 0);
    let shown = &shown["sessions"][0];
    assert_eq!(
        (&shown["replaces"], &shown["redacted"]),
        (&json!(BARE), &json!(["keys", "paths"]))
    );
    let sent = format!("{CODE}:output/01.txt");
    let sent = repo.git_in(&remote(&repo), &["show", &sent]);
    assert_eq!(sent, "in /home/user/x");
    check_fetched(&repo, "redacted");
}

#[test]
fn r11_the_directories_of_a_run_are_in_no_turn() {
    let repo = session();
    repo.configure("worktree: {root: ../home/ada/.cache/teddy}\n");
    let command =
        "pwd; echo \"File \\\"$PWD/x.py\\\", line 1\" >&2; echo $TMPDIR/y; no-such-command";
    let text = plan("Run", &[execute(command)]);
    let out = repo.teddy_reads(&["execute", "-", "-y"], text);
    let output = repo.done(&["show", "@", "output/01.txt"]);
    let start = ".\nFile \"./x.py\", line 1\n$TMPDIR/y\nexecute.sh: ";
    assert!(output.starts_with(start), "{output}");
    let report = repo.done(&["show", "@", "report.md"]);
    for text in [&output, &report, &out.stdout, &out.stderr] {
        assert!(
            !text.contains("/ada/") && !text.contains("worktrees/"),
            "{text}"
        );
    }
    repo.teddy(&["push", "-y"]).check(0, &[]);
}

/// Returns a file of the newest turn in the remote's bare session.
fn there_file(repo: &TestRepo, name: &str) -> String {
    repo.git_in(&remote(repo), &["show", &format!("{BARE}:{name}")])
}

#[test]
fn bare8_what_is_there_with_a_key_does_not_become_another_bare_session() {
    let repo = session();
    plant(&repo, "output/01.txt", &key());
    repo.done(&["push", "-y", "--allow", "keys"]);
    let before = refs(&repo);
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    insta::assert_snapshot!(repo.printed(&["push", "-y", "--redact"]), @"
    --- stderr
    error: remote `origin` has turns of `demo` with what would be taken out of them now
    hint: `--as <name>` sends it under another name; `teddy push --delete --remote origin demo` deletes what is there
    exit code 1
    ");
    assert_eq!(refs(&repo), before);
    repo.done(&["push", "-y", "--delete", "demo"]);
    insta::assert_snapshot!(repo.printed(&["push", "-y", "--redact"]), @"
    demo: 3 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      without keys and paths: 1 finding in the new turns
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
}

#[test]
fn a_session_is_deleted_on_the_remote_only() {
    let repo = session();
    repo.done(&["push", "demo", "demo", "-y"]);
    let local = repo.git(&["for-each-ref"]);
    let words = ["demo: 2 turns, refs/teddy/bare/demo", "TeDDy cannot ask"];
    repo.teddy(&["push", "--delete", "demo"]).check(1, &words);
    repo.teddy(&["push", "--delete", "demo", "-n"])
        .check(0, &words[..1]);
    assert_ne!(refs(&repo), "");
    let done = repo.json(&["push", "--delete", "demo", "demo", "-y"], 0);
    assert_eq!(done["deleted"], json!(true));
    assert_eq!(
        (refs(&repo), repo.git(&["for-each-ref"])),
        (String::new(), local)
    );
    insta::assert_snapshot!(repo.printed(&["push", "--delete", "demo", "-y"]), @"
    --- stderr
    error: remote `origin` has no session `demo`
    hint: `git ls-remote origin 'refs/teddy/*'` lists what the remote has
    exit code 1
    ");
    insta::assert_snapshot!(repo.printed(&["push", "--delete", "-y"]), @"
    --- stderr
    error: the following required arguments were not provided:
      <SESSION>...

    Usage: teddy push --delete --yes <SESSION>...

    hint: `teddy push --help` shows its arguments, with examples
    exit code 2
    ");
}

#[test]
fn only_what_is_shared_ever_travels() {
    let repo = session();
    repo.reply(&plan("Wait", &[create("c.txt", "c\n")]));
    repo.done(&["plan", "-m", "wait"]);
    repo.git(&["config", "remote.origin.mirror", "true"]);
    repo.git(&["tag", "-a", "-m", "x", "x"]);
    repo.git(&["config", "push.followTags", "true"]);
    repo.done(&["push", "-y", "--code"]);
    assert_eq!(refs(&repo).lines().count(), 1, "{}", refs(&repo));
}

#[test]
fn each_kind_of_refusal_has_a_message_and_changes_nothing() {
    let repo = session();
    let hook = repo.path().join(".git/hooks/pre-push");
    write_hook(&hook, "echo no way >&2; exit 1");
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    error: remote `origin`: the `pre-push` hook declined: no way
    exit code 1
    ");
    std::fs::remove_file(&hook).unwrap();

    let hook = remote(&repo).join("hooks/pre-receive");
    write_hook(&hook, "echo full of turns >&2; exit 1");
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    error: remote `origin`: remote: full of turns; ! [remote rejected] [id] -> refs/teddy/bare/demo (pre-receive hook declined); failed to push some refs to '[dir]/remote.git'
    exit code 1
    ");
    std::fs::remove_file(&hook).unwrap();

    repo.git_in(
        &remote(&repo),
        &["config", "receive.hideRefs", "refs/teddy"],
    );
    let out = repo.teddy(&["push", "-y"]);
    out.check(1, &["hidden ref", "must allow refs below `refs/teddy/`"]);
    repo.git_in(&remote(&repo), &["config", "--unset", "receive.hideRefs"]);
    assert_eq!(refs(&repo), "");

    repo.git(&[
        "remote",
        "set-url",
        "origin",
        "https://ada:s3cret@127.0.0.1:1/x.git",
    ]);
    let out = repo.teddy(&["push", "-y"]);
    out.check(1, &["127.0.0.1"]);
    assert!(!format!("{out}").contains("s3cret"), "{out}");
    repo.git(&["remote", "remove", "origin"]);
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    --- stderr
    error: this repository has no remote
    hint: `git remote add origin <url>` adds one
    exit code 1
    ");
}

fn write_hook(path: &std::path::Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;

    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn after_a_connection_that_was_cut_pushing_again_works() {
    let repo = session();
    // The server dies before it updates a ref.
    let hook = remote(&repo).join("hooks/pre-receive");
    write_hook(&hook, "kill -9 $PPID; sleep 1");
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    error: remote `origin`: the remote end hung up unexpectedly
    hint: nothing was moved on the remote; push again
    exit code 1
    ");
    std::fs::remove_file(&hook).unwrap();
    assert_eq!(refs(&repo), "");
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");

    // The server dies after it has updated the ref.
    repo.workflow()
        .run_plan(&plan("Make c", &[create("c.txt", "c\n")]));
    let hook = remote(&repo).join("hooks/post-update");
    write_hook(&hook, "kill -9 $PPID; sleep 1");
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 1 of 3 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
    std::fs::remove_file(&hook).unwrap();
    insta::assert_snapshot!(repo.printed(&["push"]), @"
    demo: origin has all of it
    --- stderr
    `origin` has all of it.
    exit code 0
    ");
}

/// Bug: both were in one push, and git deleted the bare session although it refused the code.
#[test]
fn the_bare_session_is_deleted_only_when_the_code_has_arrived() {
    let repo = session();
    repo.done(&["push", "-y"]);
    let hide = |value: &str| {
        let key = "transfer.hideRefs";
        repo.git_in(&remote(&repo), &["config", key, value]);
    };
    hide("refs/teddy/sessions");
    let before = refs(&repo);
    repo.teddy(&["push", "-y", "--code"])
        .check(1, &["deny updating a hidden ref", "must allow refs"]);
    assert_eq!(refs(&repo), before);

    hide("refs/none");
    let hook = remote(&repo).join("hooks/update");
    write_hook(&hook, "case $3 in *[1-9a-f]*) ;; *) exit 1 ;; esac");
    repo.teddy(&["push", "-y", "--code"])
        .check(1, &["hook declined", "hint: the new turns have arrived"]);
    assert_eq!(refs(&repo).lines().count(), 2, "{}", refs(&repo));
    std::fs::remove_file(&hook).unwrap();
    repo.done(&["push", "-y", "--code"]);
    assert_eq!(refs(&repo).lines().count(), 1, "{}", refs(&repo));
}

#[test]
fn after_a_push_that_was_killed_pushing_again_works() {
    let repo = session();
    let note = repo.beside("note");
    let hook = repo.path().join(".git/hooks/pre-push");
    write_hook(
        &hook,
        &format!("touch {}; sleep 600 & echo $! > {0}; wait", note.display()),
    );
    let mut command = repo.teddy_command(&["push", "-y"]);
    let command = command.current_dir(repo.path()).stdin(Stdio::null());
    let mut child = command
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !std::fs::read_to_string(&note).is_ok_and(|text| text.ends_with('\n')) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // The hook that git started still runs.
    std::fs::remove_file(&hook).unwrap();
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    Sent 1 session to `origin`.
    exit code 0
    ");
    repo.git(&["fsck", "--strict", "--no-dangling"]);
    let sleeper = std::fs::read_to_string(&note).unwrap();
    repo.command("kill").arg(sleeper.trim()).status().unwrap();
}

#[test]
fn of_two_concurrent_pushes_one_fails_and_names_the_new_turns() {
    let repo = session();
    let other = clone(&repo, "other", repo.path().to_str().unwrap());
    repo.git_in(
        &other,
        &["checkout", "-q", "-b", "main", "teddy/sessions/demo^2"],
    );
    std::fs::write(
        other.join("plan.md"),
        plan("Theirs", &[create("x.txt", "x\n")]),
    )
    .unwrap();
    repo.teddy_in(&other, &["-s", "demo", "execute", "plan.md", "-y"])
        .check(0, &[]);
    repo.workflow()
        .run_plan(&plan("Mine", &[create("c.txt", "c\n")]));
    // The other clone pushes after this one has read the remote's refs.
    let hook = repo.path().join(".git/hooks/pre-push");
    let teddy = env!("CARGO_BIN_EXE_teddy");
    let push = format!(
        "unset GIT_DIR GIT_WORK_TREE; cd {}; {teddy} -s demo push -y",
        other.display()
    );
    write_hook(&hook, &push);
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 3 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    error: remote `origin` has turns of `demo` that you don't have: turn 3 `Theirs` by Test
    hint: `--as <name>` sends yours under another name; `teddy fetch origin demo` brings theirs
    exit code 1
    ");
    assert_eq!(refs(&repo).lines().count(), 1);
}

/// Checks that a new clone can fetch from the remote.
#[track_caller]
fn check_fetched(repo: &TestRepo, name: &str) {
    let (other, from) = (repo.beside(name), remote(repo));
    let [other, from] = [&other, &from].map(|path| path.to_str().unwrap());
    repo.git(&["clone", "-q", from, other]);
    repo.teddy_in(other.as_ref(), &["fetch"])
        .check(0, &["new", "origin/"]);
}

#[test]
fn turns_of_every_kind_can_be_fetched_and_come_back_from_a_bundle() {
    let repo = session();
    repo.write("hand.txt", "by hand\n");
    repo.done(&["record", "By hand"]);
    // A report shows this text in another form.
    let script = format!("echo 'a\u{200d}b {}' > made.txt", key());
    repo.run_plan(&plan("Run it", &[execute(&script)]));
    repo.workflow().undo(1).done();
    repo.git(&["add", "a.txt"]);
    repo.done(&["land", "1", "-m", "Land it"]);
    repo.done(&["verify"]);

    repo.done(&["push", "-y", "--allow", "keys"]);
    check_fetched(&repo, "record");
    repo.done(&["push", "-y", "--code", "--allow", "keys"]);
    check_fetched(&repo, "code");

    let out = repo.teddy(&["gc", "demo", "-y"]);
    let (_, rest) = out
        .stderr
        .split_once("`teddy fetch ")
        .expect("how it comes back");
    let file = rest.split_once('`').unwrap().0;
    repo.done(&["fetch", file]);
    repo.done(&["verify", "demo"]);
}

#[test]
fn what_an_agent_made_can_be_fetched_redacted() {
    let repo = session();
    // A command in the sandbox does not see other files in `/dev/shm`.
    let agents = tempfile::tempdir().unwrap();
    let work = "echo 'cat /home/ada/todo' > run.sh; chmod +x run.sh; echo done";
    let agent = scripted_command(agents.path(), work);
    let run = agent.display();
    repo.configure(&format!("models:\n  ag: {{ kind: agent, run: [{run}] }}\n"));
    repo.done(&["plan", "-m", "go", "--model", "ag"]);
    repo.done(&["execute", "-y"]);
    let script = repo.git(&["show", "teddy/sessions/demo:taken/01"]);
    assert_eq!(script, "cat /home/ada/todo");
    repo.done(&["push", "-y", "--redact"]);
    check_fetched(&repo, "redacted");
}

#[test]
fn a_redaction_that_takes_nothing_out_can_be_repeated() {
    let repo = session();
    repo.done(&["new", "plain"]);
    let file = repo.beside("plan.md");
    std::fs::write(&file, plan("Run", &[execute("true")])).unwrap();
    for _ in 0..2 {
        repo.done(&["execute", "-y", file.to_str().unwrap()]);
        for _ in 0..2 {
            repo.done(&["push", "plain", "-y", "--code", "--redact"]);
        }
        let name = "refs/teddy/sessions/plain";
        assert_eq!(there(&repo, name), repo.git(&["rev-parse", name]));
    }
}

#[test]
fn an_invalid_session_is_not_sent_until_git_restores_it() {
    let repo = session();
    plant(&repo, "approved.md", &plan("Other", &[execute("true")]));
    insta::assert_snapshot!(repo.printed(&["push", "-y"]), @"
    demo: 2 turns without the code, [n] objects, [n] KiB, to refs/teddy/bare/demo of origin
      the `input.md` of each turn names the project's directory
    --- stderr
    error: nothing was sent: no one could fetch `demo`: turn 2: the plan that ran has the actions EXECUTE, and the report says that these were approved: CREATE (R2)
    hint: `teddy verify demo` lists what is wrong with the session itself
    exit code 1
    ");
    assert_eq!(refs(&repo), "");
    let out = repo.teddy(&["gc", "demo", "-y"]);
    insta::assert_snapshot!(out.shown(&repo), @"
    session demo
    --- stderr
    `git fetch .git/teddy/archive/demo-[id].bundle 'refs/teddy/*:refs/teddy/*'` restores session demo ([n] KiB); `teddy fetch` refuses it: turn 2: the plan that ran has the actions EXECUTE, and the report says that these were approved: CREATE (R2).
    Loose objects are packed.
    exit code 0
    ");
    let (_, rest) = out.stderr.split_once("`git fetch ").expect("the way back");
    let file = rest.split_once(' ').unwrap().0;
    repo.git(&["fetch", "-q", file, "refs/teddy/*:refs/teddy/*"]);
    repo.git(&["rev-parse", CODE]);
}

#[test]
fn what_was_sent_can_be_fetched_redacted_or_not() {
    for args in [
        &["push", "-y", "--allow", "keys"][..],
        &["push", "-y", "--redact"],
        &["push", "-y", "--code", "--allow", "keys"],
        &["push", "-y", "--as", "other", "--allow", "keys"],
    ] {
        let repo = session();
        repo.reply(&plan(
            "Say it",
            &[create("c.txt", &format!("token {}\n", key()))],
        ));
        repo.done(&["plan", "-m", &format!("keep {} in mind", key())]);
        repo.done(&["execute", "-y"]);
        repo.done(args);
        let name = if args.contains(&"other") {
            "other"
        } else {
            "demo"
        };
        let other = repo.beside("other");
        let from = remote(&repo);
        repo.git(&[
            "clone",
            "-q",
            from.to_str().unwrap(),
            other.to_str().unwrap(),
        ]);
        let out = repo.teddy_in(&other, &["fetch"]);
        assert_eq!(out.code, 0, "{args:?}: {out}");
        let turn = format!("origin/{name}:3");
        repo.teddy_in(&other, &["show", &turn])
            .check(0, &["Say it"]);
    }
}

#[test]
fn a_remote_with_another_hash_function_is_not_one_to_try_again() {
    let repo = session();
    let other = repo.beside("other.git");
    let other = other.to_str().unwrap();
    repo.git(&["init", "-q", "--bare", "--object-format=sha256", other]);
    repo.git(&["remote", "set-url", "origin", other]);
    insta::assert_snapshot!(repo.printed(&["push", "-y", "--code"]), @"
    demo: 2 turns with the code, [n] objects, [n] KiB, to refs/teddy/sessions/demo of origin
      2 files in no branch of origin:
        a.txt
        b.txt
    --- stderr
    error: remote `origin`: the receiving end does not support this repository's hash algorithm; the remote end hung up unexpectedly
    hint: one of the two repositories has SHA-1 ids, the other SHA-256; use a remote with the same, as `git init --object-format` makes it
    exit code 1
    ");
}

#[test]
fn a_push_from_a_shallow_clone_suggests_unshallow() {
    let repo = session();
    repo.commit("More");
    repo.git(&["push", "-q", "origin", "HEAD:refs/heads/main"]);
    let clone = repo.beside("shallow");
    let from = format!("file://{}", remote(&repo).display());
    let to = clone.to_str().unwrap();
    repo.git(&["clone", "-q", "--depth=1", "-b", "main", &from, to]);
    let empty = repo.beside("empty.git");
    let empty = empty.to_str().unwrap();
    repo.git(&["init", "-q", "--bare", empty]);
    repo.git_in(&clone, &["remote", "set-url", "origin", empty]);
    let made = plan("Make c", &[create("c.txt", "c\n")]);
    let file = repo.beside("plan.md");
    std::fs::write(&file, made).unwrap();
    repo.done(&["-C", to, "execute", "-y", file.to_str().unwrap()]);
    insta::assert_snapshot!(repo.teddy_in(&clone, &["push", "-y", "--code"]).shown(&repo), @"
    make-c: 1 turn with the code, [n] objects, [n] KiB, to refs/teddy/sessions/make-c of origin
      1 file in no branch of origin:
        c.txt
    --- stderr
    error: remote `origin`: ! [remote rejected] [id] -> refs/teddy/sessions/make-c (shallow update not allowed); failed to push some refs to '[dir]/empty.git'
    hint: this clone has only a part of the history; `git fetch --unshallow` gets the rest
    exit code 1
    ");
}

#[test]
fn a_session_with_an_unusual_author_is_pushed() {
    let repo = session();
    let tip = repo.git(&["cat-file", "commit", CODE]);
    for offset in ["+9999", "-9959", "+0545"] {
        let commit: Vec<String> = tip
            .lines()
            .map(|line| match line.strip_prefix("author ") {
                Some(_) => format!("author Ada <ada@example.org> 1700000000 {offset}"),
                None => line.to_owned(),
            })
            .collect();
        let mut hash = repo.command("git");
        hash.current_dir(repo.path())
            .args(["hash-object", "-t", "commit", "-w", "--stdin"]);
        let id = repo.reads(hash, commit.join("\n") + "\n");
        repo.git(&["update-ref", CODE, id.stdout.trim()]);
        repo.done(&["push", "-n", "--no-code"]);
        repo.done(&["push", "--no-code", "-y"]);
        let bare = repo.git_in(&remote(&repo), &["cat-file", "commit", BARE]);
        let author = format!("author Ada <ada@example.org> 1700000000 {offset}");
        assert!(bare.contains(&author), "{bare}");
        repo.git_in(&remote(&repo), &["update-ref", "-d", BARE]);
    }
}
