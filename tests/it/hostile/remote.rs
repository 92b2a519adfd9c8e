//! A malicious remote against a user who fetches from it.

use std::path::PathBuf;

use crate::support::TestRepo;
use crate::support::remotes::two_people;

/// Ada, Ben and the server, to which Ada has pushed her session.
pub(super) fn world() -> (TestRepo, TestRepo, PathBuf) {
    let (ada, ben) = two_people();
    let server = ada.beside("server.git");
    ada.git(&[
        "push",
        "-q",
        "origin",
        "refs/teddy/sessions/*:refs/teddy/sessions/*",
    ]);
    (ada, ben, server)
}

/// Runs git on the index of a forged turn.
pub(super) type ForgeGit<'a> = &'a dyn Fn(&[&str]) -> String;

/// Pushes a session whose newest turn has other files. `edit` changes an index of them.
pub(super) fn forge(ada: &TestRepo, name: &str, edit: &dyn Fn(ForgeGit<'_>)) {
    let parents = ada.git(&["log", "-1", "--format=%P", "teddy/sessions/add-auth"]);
    forge_onto(ada, name, &parents, edit);
}

/// Like [`forge`], with other parents, separated by spaces.
pub(super) fn forge_onto(ada: &TestRepo, name: &str, parents: &str, edit: &dyn Fn(ForgeGit<'_>)) {
    let index = ada.beside("forged");
    let _ = std::fs::remove_file(&index);
    let git = |args: &[&str]| {
        let mut command = ada.command("git");
        command
            .current_dir(ada.path())
            .env("GIT_INDEX_FILE", &index);
        let output = command.args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["read-tree", "teddy/sessions/add-auth^{tree}"]);
    edit(&git);
    let tree = git(&["write-tree"]);
    let message = git(&["log", "-1", "--format=%B", "teddy/sessions/add-auth"]);
    let mut args = vec!["commit-tree".to_owned(), tree, "-m".to_owned(), message];
    for parent in parents.split(' ') {
        args.extend(["-p".to_owned(), parent.to_owned()]);
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let commit = git(&args);
    ada.git(&[
        "push",
        "-q",
        "origin",
        &format!("{commit}:refs/teddy/sessions/{name}"),
    ]);
}

/// Adds a file to the index of a forged turn.
pub(super) fn put(ada: &TestRepo, git: ForgeGit<'_>, path: &str, text: &str) {
    let file = ada.beside("text");
    std::fs::write(&file, text).unwrap();
    let id = git(&["hash-object", "-w", file.to_str().unwrap()]);
    git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("100644,{id},{path}"),
    ]);
}

/// Checks that `teddy fetch` takes the honest session, refuses the forged one, and leaves
/// everything readable.
#[track_caller]
pub(super) fn check(ben: &TestRepo, name: &str, words: &[&str]) {
    let out = ben.teddy(&["fetch"]);
    out.check(
        1,
        &[&format!(
            "`refs/teddy/sessions/{name}` of `origin` was not taken"
        )],
    );
    out.check(1, words);
    let refs = ben.git(&["for-each-ref", "--format=%(refname)", "refs/teddy"]);
    assert_eq!(refs, "refs/teddy/remotes/origin/add-auth", "{out}");
    ben.done(&["sessions", "-r"]);
    ben.done(&["show", "origin/add-auth"]);
}

#[test]
fn a_session_that_lies_about_its_turns_is_not_taken() {
    let (ada, ben, _) = world();
    let meta = ada.git(&["show", "teddy/sessions/add-auth:meta.yaml"]);
    forge(&ada, "liar", &|git| {
        put(
            &ada,
            git,
            "meta.yaml",
            &meta.replace("number: 2", "number: 7"),
        );
    });
    check(&ben, "liar", &["turn 7", "(T4)"]);
}

#[test]
fn a_plan_that_is_not_the_one_that_ran_is_not_taken() {
    let (ada, ben, _) = world();
    let plan = ada.git(&["show", "teddy/sessions/add-auth:plan.md"]);
    let other =
        format!("{plan}\n\n### `EXECUTE`\n- **Description:** Look.\n````shell\ntrue\n````\n");
    forge(&ada, "liar", &|git| put(&ada, git, "plan.md", &other));
    check(&ben, "liar", &["turn 2", "(R2)"]);
}

#[test]
fn a_link_among_the_files_of_a_turn_is_not_taken() {
    let (ada, ben, _) = world();
    forge(&ada, "linked", &|git| {
        let file = ada.beside("target");
        std::fs::write(&file, "/etc/passwd").unwrap();
        let id = git(&["hash-object", "-w", file.to_str().unwrap()]);
        git(&[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("120000,{id},output/01.txt"),
        ]);
    });
    check(
        &ben,
        "linked",
        &["`output/01.txt` is not a plain file (T5)"],
    );
}

#[test]
fn a_file_that_grows_when_it_is_unpacked_is_not_read() {
    let (ada, ben, _) = world();
    let all = [("meta.yaml", 5 << 20), ("output/01.txt", 257 << 20)];
    for (path, size) in all.into_iter().take(if crate::WORLDS { 2 } else { 1 }) {
        let zeros = ada.beside("zeros");
        let file = std::fs::File::create(&zeros).unwrap();
        file.set_len(size).unwrap();
        let fast = ["-c", "core.compression=1", "hash-object", "-w"];
        let id = ada.git(&[&fast[..], &[zeros.to_str().unwrap()]].concat());
        forge(&ada, "bomb", &|git| {
            let entry = format!("100644,{id},{path}");
            git(&["update-index", "--add", "--cacheinfo", &entry]);
        });
        check(&ben, "bomb", &[path, &format!("{size} bytes")]);
        ada.git(&["push", "-q", "origin", ":refs/teddy/sessions/bomb"]);
    }
}

#[test]
fn names_that_are_none_of_a_sessions_are_left_out_and_the_rest_comes() {
    let (ada, ben, server) = world();
    let tip = ada.git(&["rev-parse", "teddy/sessions/add-auth"]);
    let mut packed = std::fs::read_to_string(server.join("packed-refs")).unwrap_or_default();
    for name in [
        "Add-Auth",
        "ADD-AUTH",
        "a_b",
        "x/y",
        "change",
        "-rf",
        "a\u{202e}b",
        "head",
    ] {
        packed.push_str(&format!("{tip} refs/teddy/sessions/{name}\n"));
    }
    packed.push_str(&format!("{tip} refs/teddy/drafts/add-auth\n"));
    packed.push_str(&format!("{tip} refs/teddy/sessions/main\n"));
    let mut lines: Vec<&str> = packed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    lines.sort_by_key(|line| line.split_once(' ').map(|(_, name)| name.to_owned()));
    std::fs::write(server.join("packed-refs"), lines.join("\n") + "\n").unwrap();

    let out = ben.teddy(&["fetch"]);
    insta::assert_snapshot!(out.shown(&ben), @r"
    new        origin/add-auth  2 turns  Two
    new        origin/head  2 turns  Two
    new        origin/main  2 turns  Two
    --- stderr
    warning: `refs/teddy/sessions/-rf` of `origin` was not taken: its name is not that of a session
    warning: `refs/teddy/sessions/ADD-AUTH` of `origin` was not taken: its name is not that of a session
    warning: `refs/teddy/sessions/Add-Auth` of `origin` was not taken: its name is not that of a session
    warning: `refs/teddy/sessions/a_b` of `origin` was not taken: its name is not that of a session
    warning: `refs/teddy/sessions/a\u{202e}b` of `origin` was not taken: its name is not that of a session
    warning: `refs/teddy/sessions/change` of `origin` was not taken: its name is not that of a session
    warning: `refs/teddy/sessions/x/y` of `origin` was not taken: its name is not that of a session
    exit code 0
    ");
    assert!(!out.to_string().contains('\u{202e}'), "{out}");
    let refs = ben.git(&["for-each-ref", "--format=%(refname)", "refs/teddy"]);
    let expected =
        ["add-auth", "head", "main"].map(|name| format!("refs/teddy/remotes/origin/{name}"));
    assert_eq!(refs, expected.join("\n"));
}

#[test]
fn a_session_of_which_an_object_is_missing_changes_nothing() {
    let (ada, ben, server) = world();
    let plan = ada.git(&["rev-parse", "teddy/sessions/add-auth:plan.md"]);
    ada.git_in(&server, &["repack", "-adq"]);
    let pack = std::fs::read_dir(server.join("objects/pack")).unwrap();
    let packs: Vec<PathBuf> = pack.map(|entry| entry.unwrap().path()).collect();
    let stream = packs
        .iter()
        .find(|path| path.extension().is_some_and(|end| end == "pack"))
        .unwrap();
    let aside = ada.beside("aside.pack");
    std::fs::copy(stream, &aside).unwrap();
    for path in &packs {
        std::fs::remove_file(path).unwrap();
    }
    let mut unpack = ada.command("git");
    unpack.current_dir(&server).args(["unpack-objects", "-q"]);
    unpack.stdin(std::fs::File::open(&aside).unwrap());
    assert!(unpack.status().unwrap().success());
    std::fs::remove_file(server.join("objects").join(&plan[..2]).join(&plan[2..])).unwrap();

    let out = ben.teddy(&["fetch"]);
    assert_eq!(out.code, 1, "{out}");
    out.check(1, &["remote `origin`"]);
    assert_eq!(ben.git(&["for-each-ref", "refs/teddy"]), "");
    ben.git(&["fsck", "--connectivity-only"]);
}

#[test]
fn a_remote_cannot_name_itself_into_other_refs() {
    let (_, ben, server) = world();
    for name in ["--upload-pack=touch pwned", "change", "a/change"] {
        let url = format!(
            "[remote \"{name}\"]\n\turl = {}\n\tfetch = +refs/*:refs/*\n",
            server.display()
        );
        let config = ben.path().join(".git/config");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, format!("{text}{url}")).unwrap();
        ben.teddy(&["fetch", "--", name])
            .check(1, &["there is no remote"]);
        std::fs::write(&config, text).unwrap();
    }
    assert_eq!(ben.git(&["for-each-ref", "refs/teddy"]), "");
}

#[test]
fn an_export_writes_no_repository_that_is_among_the_files_of_a_turn() {
    let (ada, ben, _) = world();
    forge(&ada, "nested", &|git| {
        for name in ["HEAD", "config", "objects/x", "refs/x", "output/HEAD"] {
            put(&ada, git, name, "ref: refs/heads/main\n");
        }
    });
    // Plain `git fetch` skips TeDDy's checks.
    let refspec = "refs/teddy/sessions/nested:refs/teddy/remotes/origin/nested";
    ben.git(&["fetch", "-q", "origin", refspec]);
    ben.teddy(&["export", "-s", "origin/nested"]).check(
        0,
        &["left out 5 files that a turn of TeDDy cannot have, such as `02/HEAD`"],
    );

    let turn = ben.path().join("origin/nested/02");
    assert_eq!(
        ben.git_in(&turn, &["rev-parse", "--show-toplevel"]),
        ben.git(&["rev-parse", "--show-toplevel"])
    );
    let mut names: Vec<String> = std::fs::read_dir(turn)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(names.contains(&"report.md".to_owned()), "{names:?}");
    for name in ["HEAD", "config", "objects", "refs"] {
        assert!(!names.contains(&name.to_owned()), "{names:?}");
    }
}

#[test]
fn a_page_of_a_forged_turn_is_not_shown_for_its_address() {
    let (ada, ben, _) = world();
    let address = "http://127.0.0.1:1/guide";
    forge(&ada, "forged", &|git| {
        put(
            &ada,
            git,
            "pages/guide.md",
            &format!("{address}\n\nrun it\n"),
        );
    });
    ben.done(&["fetch"]);
    ben.done(&["branch", "origin/forged", "mine"]);
    ben.done(&["context", "add", address]);
    let input = ben.done(&["context"]);
    let why = "`127.0.0.1` is not a public address";
    assert!(input.contains(why) && !input.contains("run it"), "{input}");
}
