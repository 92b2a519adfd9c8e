//! Repositories that share sessions through a bare repository.

use crate::plans::{create, plan};
use crate::support::TestRepo;

/// Ada has a session of two turns, not pushed yet. Ben has a clone of the project.
pub fn two_people() -> (TestRepo, TestRepo) {
    let ada = TestRepo::new().file("a.txt", "a\n");
    ada.commit("init");
    let server = ada.beside("server.git");
    ada.git(&[
        "init",
        "-q",
        "--bare",
        "-b",
        "main",
        server.to_str().unwrap(),
    ]);
    ada.git(&["remote", "add", "origin", server.to_str().unwrap()]);
    ada.git(&["push", "-q", "-u", "origin", "main"]);
    ada.workflow().new_session("add-auth").done();
    ada.workflow()
        .run_plan(&plan("One", &[create("one.txt", "1\n")]));
    ada.workflow()
        .run_plan(&plan("Two", &[create("two.txt", "2\n")]));

    let ben = TestRepo::new();
    ben.git(&["remote", "add", "origin", server.to_str().unwrap()]);
    ben.git(&["fetch", "-q"]);
    ben.git(&["reset", "-q", "--hard", "origin/main"]);
    (ada, ben)
}

/// Returns TeDDy's session refs and their commits.
pub fn session_refs(repo: &TestRepo) -> String {
    let all = repo.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    let ours = ["sessions/", "signed/", "drafts/", "manifest"];
    let is_ours = |line: &&str| {
        let name = line.strip_prefix("refs/teddy/");
        name.is_some_and(|name| ours.iter().any(|start| name.starts_with(start)))
    };
    all.lines().filter(is_ours).collect::<Vec<_>>().join("\n")
}
