//! Turns of another user that say what is not so.

use super::remote::{check, forge, forge_onto, put, world};
use crate::plans::{create, plan};
use crate::support::TestRepo;

const TIP: &str = "teddy/sessions/add-auth";

/// Takes a forged session with plain git, which skips TeDDy's checks, and enters it.
fn enter(ben: &TestRepo, name: &str) {
    let refspec = format!("refs/teddy/sessions/{name}:refs/teddy/sessions/{name}");
    ben.git(&["fetch", "-q", "origin", &refspec]);
    ben.done(&["switch", name]);
}

/// Forges a newest turn whose `meta.yaml` is edited.
fn forge_meta(ada: &TestRepo, name: &str, edit: &dyn Fn(&str) -> String) {
    let meta = ada.git(&["show", &format!("{TIP}:meta.yaml")]);
    let forged = edit(&meta);
    assert_ne!(forged, meta);
    forge(ada, name, &|git| put(ada, git, "meta.yaml", &forged));
}

/// The parents of the newest turn, with a publication of a change that adds `evil.sh`.
fn parents_with_other_change(ada: &TestRepo) -> String {
    let at = |revision: &str| ada.git(&["rev-parse", revision]);
    let after = at(&format!("{TIP}^2"));
    let before = at(&format!("{after}^"));
    let evil = {
        ada.git(&["worktree", "add", "-q", "--detach", "../evil", &before]);
        let dir = ada.beside("evil");
        std::fs::write(dir.join("evil.sh"), "evil\n").unwrap();
        ada.git_in(&dir, &["add", "evil.sh"]);
        ada.git_in(&dir, &["commit", "-q", "-m", "evil"]);
        ada.git_in(&dir, &["rev-parse", "HEAD"])
    };

    let publication = format!("{TIP}^3");
    let message = ada.git(&["log", "-1", "--format=%B", &publication]);
    let message = message.replace(&after, &evil);
    let tree = at(&format!("{evil}^{{tree}}"));
    let parents = ada.git(&["log", "-1", "--format=%P", &publication]);
    let parents = parents.replace(&after, &evil);
    let mut args = vec!["commit-tree", &tree, "-m", &message];
    args.extend(parents.split(' ').flat_map(|parent| ["-p", parent]));
    let forged = ada.git(&args);
    format!("{} {after} {forged}", at(&format!("{TIP}^1")))
}

#[test]
fn pb7_a_publication_of_other_changes_is_not_believed() {
    let (ada, ben, _) = world();
    forge_onto(&ada, "liar", &parents_with_other_change(&ada), &|_| {});
    check(&ben, "liar", &["turn 2: its publication", "(PB7)"]);

    enter(&ben, "liar");
    ben.teddy(&["verify", "liar"]).check(1, &["(PB7)"]);
    let refused = "session `liar` is not sound, so it was not adopted: turn 2: its publication";
    ben.teddy(&["switch", "--adopt", "liar"])
        .check(1, &[refused]);
    ben.git(&[
        "update-ref",
        "refs/teddy/remotes/origin/liar",
        "refs/teddy/sessions/liar",
    ]);
    ben.teddy(&["switch", "origin/liar"])
        .check(1, &["`origin/liar` is not sound"]);
    ben.git(&["update-ref", "-d", "refs/teddy/remotes/origin/liar"]);
    ben.done(&["status"]);
    ben.teddy(&["restore", "@", "-y"])
        .check(1, &["turn 2 does not say what it changed in your files"]);
    assert!(!ben.path().join("evil.sh").exists());
    ben.done(&["branch", "liar:1", "mine"]);
    ben.done(&["restore", "@", "-y"]);
    assert_eq!(ben.read("one.txt"), "1\n");
}

#[test]
fn pb7_an_inherited_publication_is_not_that_of_a_change() {
    let (ada, ben, _) = world();
    let at = |parent: &str| ada.git(&["rev-parse", &format!("{TIP}{parent}")]);
    let parents = format!("{} {} {}", at("^1"), at("^2"), at("^1^3"));
    forge_onto(&ada, "liar", &parents, &|_| {});
    check(&ben, "liar", &["turn 2: its publication", "(PB7)"]);
}

/// Bug: git checks only objects that arrive, and a `git fetch` of a branch had brought these.
#[test]
fn t11_a_name_that_git_refuses_is_not_taken_with_objects_that_are_here() {
    let (ada, ben, _) = world();
    let after = ada.git(&["rev-parse", &format!("{TIP}^2")]);
    let tree = |entry: &str| {
        let mut mktree = ada.command("git");
        mktree.arg("mktree");
        let all = format!("{}\n{entry}\n", ada.git(&["ls-tree", &after]));
        ada.reads(mktree, all).stdout.trim().to_owned()
    };
    let blob = ada.git(&["rev-parse", &format!("{after}:one.txt")]);
    let dir = ada.git(&["rev-parse", &format!("{after}^{{tree}}")]);
    for (session, entry, name) in [
        (
            "link",
            format!("120000 blob {blob}\t.gitmodules"),
            ".gitmodules",
        ),
        ("file", format!("100644 blob {blob}\t.Git"), ".Git"),
        ("dir", format!("040000 tree {dir}\tgit~1"), "git~1"),
        ("up", format!("040000 tree {dir}\t.."), ".."),
    ] {
        let parent = ada.git(&["rev-parse", &format!("{after}^")]);
        let message = ada.git(&["log", "-1", "--format=%B", &after]);
        let args = ["commit-tree", &tree(&entry), "-p", &parent, "-m", &message];
        let evil = ada.git(&args);
        ada.git(&["push", "-q", "origin", &format!("+{evil}:refs/heads/evil")]);
        ben.git(&["fetch", "-q", "origin", "evil"]);

        let meta = ada.git(&["show", &format!("{TIP}:meta.yaml")]);
        let forged = meta.replace(&after, &evil);
        let previous = ada.git(&["rev-parse", &format!("{TIP}^1")]);
        forge_onto(&ada, session, &format!("{previous} {evil}"), &|git| {
            put(&ada, git, "meta.yaml", &forged);
        });
        let why = format!("git refuses a name of its files: `{name}` (T11)");
        check(&ben, session, &[&why]);
        let gone = format!(":refs/teddy/sessions/{session}");
        ada.git(&["push", "-q", "origin", &gone]);
    }
}

/// Ada's session has landed, and the server has it.
fn landed() -> (TestRepo, TestRepo) {
    let (ada, ben, _) = world();
    ada.done(&["land", "-m", "one and two"]);
    let session = format!("{TIP}:refs/teddy/sessions/add-auth");
    ada.git(&["push", "-q", "origin", &session]);
    (ada, ben)
}

#[test]
fn t16_a_landing_counts_as_far_as_the_repository_shows_it() {
    let (ada, ben) = landed();
    let commit = ada.git(&["rev-parse", "main"]);
    let root = ada.git(&["rev-parse", "main~1"]);
    let claims = [("root", root), ("gone", "1".repeat(commit.len()))];
    for (name, other) in &claims {
        forge_meta(&ada, name, &|meta| {
            let (files, landed) = meta.split_once("landed:").unwrap();
            format!("{files}landed:{}", landed.replace(&commit, other))
        });
    }

    ben.done(&["fetch"]);
    let is_landed = |session: &str| {
        ben.done(&["switch", &format!("origin/{session}")]);
        let status = ben.json(&["status"], 0);
        let log = ben.json(&["log"], 0);
        let log = &log[0];
        assert_eq!(log["status"], "landed", "{session}");
        let is_landed = log.get("landed").is_some();
        assert_eq!(status["landed"].is_null(), !is_landed, "{session}");
        is_landed
    };
    // The files of its turn bring the commit of the honest landing.
    assert!(is_landed("add-auth"));
    assert!(!is_landed("root"));
    assert!(!is_landed("gone"));
    ben.done(&["restore", "@", "-y"]);
    ben.done(&["land", "-m", "what ada made"]);
    assert_eq!(ben.git(&["show", "main:two.txt"]), "2");
}

#[test]
fn t8_a_name_that_no_branch_has_is_no_error() {
    let (ada, ben) = landed();
    let commit = ada.git(&["rev-parse", "main"]);
    let landed_on = "landed:\n  branch: main";
    for (name, branch) in [("dots", "\"..\""), ("control", "\"x\\ey\"")] {
        let other = format!("landed:\n  branch: {branch}");
        forge_meta(&ada, name, &|meta| meta.replace(landed_on, &other));
        let out = ben.teddy(&["fetch", "origin", name]);
        out.check(1, &["turn 3: no branch can be called", "(T8)"]);
    }
    forge_meta(&ada, "files", &|meta| {
        meta.replacen("  branch: main", "  branch: \"x\\ey\"", 1)
    });
    let out = ben.teddy(&["fetch", "origin", "files"]);
    out.check(1, &["no branch can be called", "(T8)"]);

    for name in ["dots", "control", "files"] {
        enter(&ben, name);
        let status = ben.json(&["status"], 0);
        assert_eq!(status["landed"]["commits"][0], commit, "{name}");
    }
}

#[test]
fn t24_a_turn_that_is_no_restore_restores_nothing() {
    let (ada, ben, _) = world();
    let most = u64::MAX;
    let fields = [
        (
            "restored",
            format!("{{turn: {most}, by: undo, redo: [{most}, 0], over: [{most}]}}"),
        ),
        ("landed", "{branch: main, commits: []}".to_owned()),
    ];
    for (name, value) in &fields {
        forge_meta(&ada, name, &|meta| format!("{meta}\n{name}: {value}\n"));
    }
    let refused = |name: &str, rule: &str| {
        let what = format!("it is executed, and `{name}` says otherwise ({rule})");
        ben.teddy(&["fetch", "origin", name]).check(1, &[&what]);
    };
    refused("restored", "T24");
    refused("landed", "T16");

    enter(&ben, "restored");
    ben.done(&["restore", "@", "-y"]);
    ben.run_plan(&plan("Three", &[create("three.txt", "3\n")]));
    ben.done(&["undo"]);
    assert!(!ben.path().join("three.txt").exists());
    ben.done(&["land", "-m", "what ada made"]);
    assert_eq!(ben.git(&["show", "main:two.txt"]), "2");
}

#[test]
fn t24_a_restore_names_turns_before_it() {
    let (ada, ben, _) = world();
    ada.done(&["undo"]);
    forge_meta(&ada, "over", &|meta| {
        meta.replace("  over:\n  - 2", "  over:\n  - 3")
    });
    let out = ben.teddy(&["fetch", "origin", "over"]);
    out.check(1, &["`restored` names a turn that is not before it (T24)"]);
}
