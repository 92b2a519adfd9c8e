//! Turns of another user that say what is not so.

use super::remote::{check, forge_onto, world};
use crate::support::TestRepo;

const TIP: &str = "teddy/sessions/add-auth";

/// Takes a forged session with plain git, which skips TeDDy's checks, and enters it.
fn enter(ben: &TestRepo, name: &str) {
    let refspec = format!("refs/teddy/sessions/{name}:refs/teddy/sessions/{name}");
    ben.git(&["fetch", "-q", "origin", &refspec]);
    ben.done(&["switch", name]);
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
